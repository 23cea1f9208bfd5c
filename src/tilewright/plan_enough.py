"""What is good enough, and what is better, under an objective."""

from tilewright.plan_drafts import Candidate, Draft, Drafts
from tilewright.program.tile import Goal

WORTH_TRYING = 1.02
"""A plan that moves no more than this factor of what must be moved wants no other candidate."""

NEAR = 1.01
"""If it is time that counts, one that takes no more than this factor of what it must take."""


def better(drafts: Drafts, candidate: Candidate, best: Draft | None) -> Draft | None:
    """The draft of a candidate if it is better than the best so far."""
    draft = drafts.draft(candidate, best)
    found = [d for d in (best, draft) if d is not None]
    return min(found, key=lambda d: d.value(drafts.goal), default=None)


def is_best(draft: Draft, goal: Goal) -> bool:
    """Whether a draft is at its bound."""
    least = draft.candidate.lowered.bounds
    if goal == "traffic":
        return draft.outside_bytes <= least.traffic_bytes
    return goal == "latency" and draft.timetable.cycles <= least.in_order_cycles


def may_be_good(drafts: Drafts, candidate: Candidate) -> bool:
    """Whether a draft of a candidate can be good enough."""
    return _is_enough(drafts, candidate, candidate.outside_bytes, candidate.least.order_cycles)


def is_good(drafts: Drafts, draft: Draft) -> bool:
    """Whether no other strategy is worth a try."""
    return _is_enough(drafts, draft.candidate, draft.outside_bytes, draft.timetable.cycles)


def _is_enough(drafts: Drafts, candidate: Candidate, moved_bytes: int, cycles: int) -> bool:
    least = candidate.lowered.bounds
    moves_little = moved_bytes <= WORTH_TRYING * least.traffic_bytes
    match drafts.goal:
        case "latency":
            least_cycles = least.in_order_cycles
            if drafts.prepared.costs.core_model is not None:
                # Tiles were chosen by what they really take: others would hardly compute faster.
                least_cycles = max(least_cycles, candidate.compute_cycles)
                if moves_little:
                    least_cycles = max(least_cycles, candidate.least.order_cycles)
            return cycles <= NEAR * least_cycles
        case "traffic":
            return moved_bytes <= drafts.prepared.bounds.traffic_bytes
        case _:
            # What is moved inside the scratchpads counts, too, and has no bound.
            return False
