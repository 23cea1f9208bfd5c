"""Cascades that leave room beside them: chosen for a part of the scratchpads, planned in all."""

from collections.abc import Callable, Iterator, Sequence
from math import inf

from tilewright.machine.model import Machine
from tilewright.plan_drafts import Candidate, Draft, Drafts
from tilewright.plan_enough import better, is_good
from tilewright.plan_memory import cut_to
from tilewright.program.cascade import PLAIN, Strategy
from tilewright.program.tile import Goal
from tilewright.program.tiles import MOST_TILES

ROOM_FOR_TILES = (1.0, 0.95, 0.85, 0.7, 0.5)
"""Parts of the scratchpads for which cascades are chosen, too, if nothing can wait outside."""

ROOM_ANYWAY = (0.9, 0.75)
"""Parts for which they are chosen where things can wait outside, if there are several cores or
more has to move than was believed."""

MORE_MOVED = 1.02
"""More has to move if it is at least this factor of what was believed."""

MOST_TRIED = 2_500
"""Tasks of their programs in all, beyond which no more are made."""

MUCH_LONGER = 1.5
"""Nor is a plan enough that takes this factor of what another seemed to take, for which no
addresses were found."""

WAITING = 1.2
"""A plan waits for room if it takes more than this factor of the time it would take with enough."""


def with_room_for_tiles(
    drafts_on: Callable[[Machine], Drafts],
    machine: Machine,
    best: Draft | None,
    seen: Sequence[Candidate],
) -> Draft | None:
    """The best of a draft, if there is one, and those of cascades that are chosen for less room,
    unless everything fits without cascades and hardly anything waits for room.

    What the choice of cascades believes to fit leaves little for the tiles of ops outside them,
    and for what might come early. Where it finds nothing, cascades of more stages may still do.
    """
    drafts = drafts_on(machine)
    fits_plain = any(candidate.strategy == PLAIN for candidate in seen)
    promised = MUCH_LONGER * min((c.least.order_cycles for c in seen), default=inf)
    if fits_plain and (best is None or not (_waits(best) or best.timetable.cycles > promised)):
        return best
    drafts.explain_nothing()
    best = _best_of(drafts, _roomier_strategies(drafts_on, machine), best, seen, MOST_TILES)
    least = drafts.chosen("memory") if best is not None and _waits(best) else None
    if best is not None and least is not None:
        most_cycles = best.timetable.cycles
        frugal = drafts.candidate("latency", least.strategy, most_cycles=most_cycles)
        best = best if frugal is None else better(drafts, frugal, best)
    return best


def with_room_anyway(
    drafts_on: Callable[[Machine], Drafts],
    machine: Machine,
    best: Draft,
    seen: Sequence[Candidate],
) -> Draft:
    """The best of a draft and those of cascades that are chosen for less room, if it may be short
    although things can wait outside.

    What fills each scratchpad to the brim leaves no room on several cores for weights that last, or
    come early, and on none for larger tiles, which take less energy. And where addresses are not
    found for all of it, much more goes out and comes back than was believed.
    """
    drafts = drafts_on(machine)
    if is_good(drafts, best):
        return best
    is_on_several = drafts.prepared.places.cores > 1
    if not (is_on_several or drafts.goal == "energy" or _moves_more(drafts, best)):
        return best
    strategies = _strategies_for_parts(drafts_on, machine, drafts.goal)
    return _best_of(drafts, strategies, best, seen, drafts.rival_tiles) or best


def _moves_more(drafts: Drafts, best: Draft) -> bool:
    """Whether the best draft moves more than the choice of cascades believes in."""
    chosen = None if drafts.goal == "latency" else drafts.chosen(drafts.goal)
    return chosen is not None and best.outside_bytes >= MORE_MOVED * chosen.moved_bytes


def _best_of(
    drafts: Drafts,
    strategies: Iterator[Strategy],
    best: Draft | None,
    seen: Sequence[Candidate],
    most_tiles: int,
) -> Draft | None:
    """The best of a draft and those of strategies, as long as they are worth a try."""
    known, n_tasks = [candidate.strategy for candidate in seen], 0
    while best is None or (n_tasks <= MOST_TRIED and not is_good(drafts, best)):
        strategy = next(strategies, None)
        if strategy is None:
            break
        if strategy in known:
            continue
        known.append(strategy)
        most_cycles = inf if best is None or drafts.goal != "latency" else best.timetable.cycles
        candidate = drafts.candidate(drafts.goal, strategy, most_tiles, most_cycles=most_cycles)
        if candidate is not None:
            n_tasks += len(candidate.lowered.program.tasks)
            best = better(drafts, candidate, best)
    return best


def _strategies_for_parts(
    drafts_on: Callable[[Machine], Drafts], machine: Machine, goal: Goal
) -> Iterator[Strategy]:
    """What the choice of cascades proposes for parts of the scratchpads."""
    for part in ROOM_ANYWAY:
        smaller = drafts_on(cut_to(machine, part))
        found = [smaller.chosen("traffic", small_cuts=True)] if goal == "traffic" else []
        chosen = [choice for choice in (*found, smaller.chosen(goal)) if choice is not None]
        if not chosen:
            break
        yield from (choice.strategy for choice in chosen)


def _roomier_strategies(
    drafts_on: Callable[[Machine], Drafts], machine: Machine
) -> Iterator[Strategy]:
    """What the choice of cascades proposes for parts of the scratchpads, if anything fits."""
    for part in ROOM_FOR_TILES if drafts_on(machine).chosen("memory") is not None else ():
        smaller = drafts_on(cut_to(machine, part))
        chosen = smaller.chosen("latency") or smaller.chosen("latency", quickly=False)
        if chosen is None:
            break
        yield chosen.strategy


def _waits(draft: Draft) -> bool:
    """Whether tasks of a draft wait for room."""
    return draft.timetable.cycles > WAITING * draft.candidate.least.order_cycles
