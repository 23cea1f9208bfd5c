"""Looking for the best plan: strategies are lowered and scheduled, and what is really best stays.

Without room for everything that is made, the choice of cascades has something to win. It rests on
estimates, so its strategy is a candidate beside the plain one, never a replacement.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from tilewright.machine.model import Machine
from tilewright.plan_drafts import Candidate, Draft, Drafts
from tilewright.plan_ends import is_held_up_by_transfers, with_smaller_end
from tilewright.plan_enough import WORTH_TRYING, better, is_best, is_good, may_be_good
from tilewright.plan_memory import (
    SURELY,
    cut_to,
    cut_to_powers,
    draft_in_least_memory,
    first_within,
    resized,
)
from tilewright.plan_model import Plan
from tilewright.plan_room import with_room_anyway, with_room_for_tiles
from tilewright.plan_rungs import last_resort
from tilewright.program.cascade import PLAIN, Strategy
from tilewright.program.layout import Layout
from tilewright.program.tile import Goal
from tilewright.program.tiles import MOST_TILES
from tilewright.schedule.packed import packed

ROUGHLY = 1.25
"""What the layout of a plain strategy says of the bytes moved is at most this factor too much."""

MOST_SMALLER = 8
"""For so many sizes of smaller scratchpads tiles are tried in the larger ones."""

HOPE = 1.02
"""Not for any smaller ones than those whose candidates take this factor of the best at least."""

FEW_TASKS = 1_000
"""Programs of no more tasks are quickly made: smaller scratchpads are looked at even if the last
ones gave nothing better."""

OTHER_AIMS: tuple[tuple[Goal, bool], ...] = (
    ("traffic", True),
    ("traffic", False),
    ("latency", True),
)
"""For which cascades are chosen, too, if energy counts, and whether quickly."""

PARTS = (0.75, 0.5, 0.25)
"""Of the scratchpads, for which tiles are tried where those for all of them do not fit."""

MANY = 2
"""With so many times as many tasks as are otherwise allowed, plain candidates are still made if
their tiles are thought to be faster outright."""

MOST = 6
"""With so many times as many, only if they are thought to take less than the first ones even where
nothing waits."""

WORTHWHILE = 0.998
"""Of larger ones only if the last ones came to less than this factor of the best before."""

FEW_CORES = 8
"""On no more cores are half of them tried."""

WORTH_WAITING = 0.97
"""One core alone must come to less than this factor of what several come to."""

SMALLER_TILES = 2_000
"""Of cascades in smaller scratchpads, if time counts."""


def best_plan(drafts_on: Callable[[Machine], Drafts], machine: Machine) -> Plan:
    """The best plan under an objective other than memory.

    Raises:
        InfeasibleError: no strategy fits.
    """
    drafts = drafts_on(machine)
    best, seen = _best_on(drafts, None, [])
    if drafts.goal == "latency" and drafts.prepared.places.overflow() is None:
        best = with_room_for_tiles(drafts_on, machine, best, seen)
    elif best is not None:
        best = with_room_anyway(drafts_on, machine, best, seen)
    if best is not None:
        best = _with_smaller_tiles(drafts_on, machine, best, [*seen, best.candidate])
    elif seen:
        best = _first_with_smaller_tiles(drafts_on, machine)
    best = best or _tight(drafts_on, machine)
    if best is not None:
        return drafts.finished(_on_fewer_cores(drafts, best))
    plan = last_resort(drafts.prepared, drafts.options, drafts.watcher)
    if plan is None:
        raise drafts.refusals[0]
    return plan


def _on_fewer_cores(drafts: Drafts, best: Draft) -> Draft:
    """The best of a draft and plain ones that leave cores idle, which share less and wait less.

    One core alone mostly takes much longer, so that it has to save something worth it; of many
    cores, half of them are tried, and half of these, as long as that is faster.
    """
    goal, cores = drafts.goal, drafts.prepared.places.cores
    if goal != "latency":
        alone = _better_on(1, drafts, best) if cores > 1 else None
        saves = alone is not None and alone.value(goal)[0] < WORTH_WAITING * best.value(goal)[0]
        return alone if alone is not None and saves else best
    while cores > FEW_CORES and best.candidate.transfer_cycles > best.candidate.compute_cycles:
        cores //= 2
        faster = _better_on(cores, drafts, best)
        if faster is None:
            break
        best = faster
    return best


def _better_on(cores: int, drafts: Drafts, best: Draft) -> Draft | None:
    """A plain draft on so many cores at most, if it is better than the best so far."""
    candidate = drafts.candidate(drafts.goal, replace(PLAIN, cores=cores))
    found = None if candidate is None else better(drafts, candidate, best)
    return None if found is best else found


def _with_smaller_tiles(
    drafts_on: Callable[[Machine], Drafts], machine: Machine, best: Draft, seen: list[Candidate]
) -> Draft:
    """The best of a draft and those with tiles for smaller scratchpads.

    What is cut to fit into half of the scratchpads leaves room in all of them to bring things early
    and to hold them longer: it is scheduled in all of them. The same goes for a quarter and so on,
    as long as something may be better and the budget lasts: with more room a plan is then hardly
    ever worse. Where nothing but the end can be better, only that gets smaller tiles.
    """
    drafts = best_on = drafts_on(machine)
    goal, share, is_better = drafts.goal, 1.0, True
    plain = next((candidate for candidate in seen if candidate.strategy == PLAIN), None)
    known = list(seen)
    for _ in range(MOST_SMALLER):
        n_tasks = max((len(c.lowered.program.tasks) for c in seen), default=0)
        if is_best(best, goal) or not _may_be_better(seen, best, goal):
            break
        if goal == "latency" and n_tasks > FEW_TASKS and is_held_up_by_transfers(best):
            break
        if _are_too_many(n_tasks, drafts, is_better=is_better):
            break
        share *= _smaller(max(candidate.fill for candidate in seen) / share)
        smaller = _for_part(drafts_on, machine, share)
        if not _is_worth_it(smaller, plain, best, n_tasks):
            break
        found, seen = _best_on(smaller, best, known)
        before, best = best, found or best
        if goal == "energy":
            best = with_room_anyway(drafts_on, cut_to_powers(machine, share), best, known + seen)
        best_on = best_on if best is before else smaller
        if best is before and is_good(drafts, best):
            break
        if not all(_is_known(candidate, known) for candidate in seen):
            is_better = best.value(goal)[0] < WORTHWHILE * before.value(goal)[0]
        known += seen
    if goal == "latency" and is_held_up_by_transfers(best):
        share = _smaller(best.candidate.fill)
        return _with_smaller_end(best_on, best, _smaller_layouts(drafts_on, machine, share))
    return best


def _are_too_many(n_tasks: int, drafts: Drafts, *, is_better: bool) -> bool:
    """Whether nothing is looked for in smaller scratchpads after programs of so many tasks, of
    which the last ones were better than those before or not."""
    if drafts.goal == "traffic":
        return False
    if not is_better:
        return n_tasks > FEW_TASKS
    return drafts.goal == "latency" and n_tasks > MOST * drafts.options.smaller_tasks


def _with_smaller_end(drafts: Drafts, best: Draft, smaller: Iterator[Layout]) -> Draft:
    """The best of a draft and one that ends like some layouts of ever smaller tiles."""
    layout = with_smaller_end(best, smaller)
    candidate = None if layout is None else drafts.laid_out_as(layout, PLAIN)
    return best if candidate is None else better(drafts, candidate, best) or best


def _smaller_layouts(
    drafts_on: Callable[[Machine], Drafts], machine: Machine, share: float
) -> Iterator[Layout]:
    """Plain layouts for a part of the scratchpads, half of it and so on, while there are any."""
    for halvings in range(MOST_SMALLER):
        layout = drafts_on(cut_to(machine, share / 2**halvings)).layout("latency", PLAIN)
        if layout is None:
            return
        yield layout


def _first_with_smaller_tiles(
    drafts_on: Callable[[Machine], Drafts], machine: Machine
) -> Draft | None:
    """The best draft with tiles for the largest part of the scratchpads that has one.

    Tiles that fill the scratchpads one by one may leave no room for what has to wait beside them.
    """
    for share in PARTS:
        best, _ = _best_on(_for_part(drafts_on, machine, share), None, [])
        if best is not None:
            return best
    return None


def _for_part(drafts_on: Callable[[Machine], Drafts], machine: Machine, share: float) -> Drafts:
    """Drafts with tiles for a part of the scratchpads, scheduled in all of them; tiles that are
    candidates for a little more or less room, too."""
    drafts = drafts_on(cut_to_powers(machine, share))
    drafts.explain_nothing()
    drafts.rival_tiles = SMALLER_TILES
    drafts.room = drafts_on(machine).prepared.places.spaces
    return drafts


def _may_be_better(seen: Sequence[Candidate], best: Draft, goal: Goal) -> bool:
    """Whether tiles for still smaller scratchpads may be better than the best draft."""
    return any(candidate.least_value(goal)[0] <= HOPE * best.value(goal)[0] for candidate in seen)


def _is_worth_it(smaller: Drafts, plain: Candidate | None, best: Draft, n_tasks: int) -> bool:
    """Whether candidates are made for smaller scratchpads, after some of so many tasks."""
    match smaller.goal:
        case "traffic":
            return _may_move_less(smaller, best)
        case "latency":
            smaller.wants_plain = plain is not None and (
                _is_thought_faster(smaller, plain)
                if n_tasks > MANY * smaller.options.smaller_tasks
                else _may_be_faster(smaller, plain, best)
            )
            if smaller.wants_plain:
                return True
            # Smaller cascades are hardly better where those for all of the room were not.
            has_cascades = best.candidate.strategy != PLAIN
            return has_cascades and n_tasks <= smaller.options.smaller_tasks
        case _:
            # Smaller scratchpads may take fewer tiles, where more streams past them.
            tiles = smaller.tiles("energy", PLAIN) or inf
            return min(n_tasks, tiles) <= smaller.options.smaller_tasks


def _smaller(fill: float) -> float:
    """How much smaller scratchpads get; half full ones, or less, would change nothing."""
    share = 0.5
    while share / 2 >= fill > 0.0:
        share /= 2
    return share


def _tight(drafts_on: Callable[[Machine], Drafts], machine: Machine) -> Draft | None:
    """The draft that takes least memory, as the choice of cascades believes.

    Otherwise what a search for the least memory comes to: tiles that are chosen for a little more
    of it may still fit when addresses are found.
    """
    drafts = drafts_on(machine)
    chosen = drafts.chosen("memory")
    tight = None if chosen is None else first_within(drafts, [chosen.strategy])
    if tight is not None:
        return better(drafts, tight.candidate, tight)
    if drafts_on(resized(machine, 1 / SURELY)).chosen("memory") is None:
        return None
    found = draft_in_least_memory(drafts_on, resized(machine, 1 / SURELY**2))
    if found is None:
        return None
    timetable, fills = packed(found.timetable, drafts.options.packing)
    sizes = {space.name: space.size_bytes for space in drafts.prepared.places.spaces}
    fits = all(fill.peak_bytes <= sizes[name] for name, fill in fills.items())
    return replace(found, timetable=timetable) if fits else None


def _best_on(
    drafts: Drafts, best: Draft | None, known: Sequence[Candidate]
) -> tuple[Draft | None, list[Candidate]]:
    """The best draft of all candidates, or what was the best so far; and the candidates.

    Candidates that are known already, with tiles for another size, are not scheduled again.

    What may be good enough is scheduled at once, and if the best so far is, there is no other
    candidate. Of the others, those that may come to the least are scheduled first, so that the rest
    need not be.
    """
    goal, seen = drafts.goal, list[Candidate]()
    for candidate in _candidates(drafts, best):
        seen.append(candidate)
        is_last = best is not None and is_good(drafts, best)
        if _is_known(candidate, known):
            continue
        if is_last or may_be_good(drafts, candidate):
            best = better(drafts, candidate, best)
        if best is not None and is_good(drafts, best):
            return best, seen
    others = [c for c in seen if not may_be_good(drafts, c) and not _is_known(c, known)]
    for candidate in sorted(others, key=lambda c: c.least_value(goal)):
        best = better(drafts, candidate, best)
    if goal == "traffic":
        for candidate in _plain_ones(drafts, best):
            seen.append(candidate)
            best = better(drafts, candidate, best)
    return best, seen


def _is_known(candidate: Candidate, known: Sequence[Candidate]) -> bool:
    """Whether a candidate has the very tasks of another one."""
    tasks = candidate.lowered.program.tasks
    return any(other.lowered.program.tasks is tasks for other in known)


class _Limits(NamedTuple):
    """What a layout may say of itself if its program is to be made."""

    most_bytes: float = inf
    most_cycles: float = inf


def _candidates(drafts: Drafts, best: Draft | None) -> Iterator[Candidate]:
    """The plain candidate, and what the choice of cascades proposes.

    What is made for the least latency is also a candidate for the least traffic: with the same
    room, more bytes are then never moved for the sake of fewer. If plain ones are not near what
    must be moved, they are left for later: see `_plain_ones`.
    """
    goal, limits = drafts.goal, _limits(drafts, best)
    plain = _plain_one(drafts, limits) if drafts.wants_plain else None
    if plain is not None:
        yield plain
    if best is not None and best.candidate.strategy == PLAIN and is_good(drafts, best):
        return
    # A second candidate for the sake of time must not take much of it.
    has_rival = plain is not None or best is not None
    most_tiles = drafts.rival_tiles if has_rival and goal == "latency" else MOST_TILES
    known = {plain.strategy: plain.outside_bytes} if plain is not None else {}
    for strategy in _strategies(drafts, goal):
        candidate = drafts.candidate(goal, strategy, most_tiles, *limits)
        if candidate is not None:
            known[strategy] = candidate.outside_bytes
            yield candidate
    if goal == "traffic":
        yield from _with_small_cuts(drafts, known)
        found = (drafts.candidate("latency", s) for s in _strategies(drafts, "latency"))
        yield from (candidate for candidate in found if candidate is not None)
    if goal == "energy":
        yield from _as_for_other_goals(drafts, known)


def _plain_one(drafts: Drafts, limits: _Limits) -> Candidate | None:
    """The candidate without cascades; none for the traffic if it moves more than it must."""
    if drafts.goal == "traffic":
        must_move = drafts.prepared.bounds.traffic_bytes
        limits = limits._replace(most_bytes=WORTH_TRYING * must_move)
    return drafts.candidate(drafts.goal, PLAIN, MOST_TILES, *limits)


def _limits(drafts: Drafts, best: Draft | None) -> _Limits:
    """Beyond which a candidate is hardly better than the best draft so far."""
    if best is None or drafts.goal == "traffic":
        return _Limits()
    if drafts.goal == "energy":
        return _Limits(most_bytes=ROUGHLY * best.outside_bytes)
    return _Limits(most_cycles=best.timetable.cycles)


def _as_for_other_goals(drafts: Drafts, known: Mapping[Strategy, int]) -> Iterator[Candidate]:
    """What is made for less traffic or latency, and everything with the fastest tiles: these may
    take less energy than what was thought to take the least."""
    moved = dict(known)
    for aim, quickly in OTHER_AIMS:
        chosen = drafts.chosen(aim, quickly=quickly)
        if chosen is not None and chosen.strategy not in moved:
            most_bytes = ROUGHLY * min(moved.values(), default=inf)
            candidate = drafts.candidate("energy", chosen.strategy, most_bytes=most_bytes)
            if candidate is not None:
                moved[chosen.strategy] = candidate.outside_bytes
                yield candidate
    most_bytes = ROUGHLY * min(moved.values(), default=inf)
    for strategy, moved_bytes in moved.items():
        candidate = None
        if moved_bytes <= most_bytes:
            candidate = drafts.candidate("latency", strategy, most_bytes=most_bytes)
        if candidate is not None:
            yield candidate


def _plain_ones(drafts: Drafts, best: Draft | None) -> Iterator[Candidate]:
    """Candidates without cascades that may move less than the best draft so far."""
    most_bytes = inf if best is None else ROUGHLY * best.outside_bytes
    for goal in ("traffic", "latency"):
        candidate = drafts.candidate(goal, PLAIN, most_bytes=most_bytes)
        if candidate is not None:
            yield candidate


def _strategies(drafts: Drafts, goal: Goal) -> Iterator[Strategy]:
    """What the choice of cascades proposes; first what is quickly found, if nothing moves less."""
    quick = drafts.chosen("traffic", quickly=True) if goal == "traffic" else None
    if quick is not None and quick.moved_bytes > drafts.prepared.bounds.traffic_bytes:
        quick = None
    if quick is not None:
        yield quick.strategy
    chosen = drafts.chosen(goal)
    if chosen is not None and (quick is None or chosen.strategy != quick.strategy):
        yield chosen.strategy


def _with_small_cuts(drafts: Drafts, known: Mapping[Strategy, int]) -> Iterator[Candidate]:
    """What the choice finds if stages may also be cut in all directions, tiles coming again."""
    chosen = drafts.chosen("traffic", small_cuts=True)
    if chosen is None or chosen.strategy in known:
        return
    if known and chosen.moved_bytes * WORTH_TRYING >= min(known.values()):
        return
    candidate = drafts.candidate("traffic", chosen.strategy)
    if candidate is not None:
        yield candidate


def _is_thought_faster(drafts: Drafts, first: Candidate) -> bool:
    """Whether plain tiles for smaller scratchpads take less time than the first ones, as the choice
    of tiles estimates it."""
    return drafts.layout_cycles("latency", PLAIN) < first.lowered.layout.cycles


def _may_be_faster(drafts: Drafts, first: Candidate, best: Draft) -> bool:
    """Whether plain tiles for smaller scratchpads may take less time than the best draft.

    They may if what they take more than the first ones, as the choice of tiles estimates it, is
    less than what is lost with those because work and transfers wait for each other; or if the
    model of a core says that less is computed, or waited for what streams. That is not asked of
    small programs, which are as quickly made.
    """
    n_tasks = len(first.lowered.program.tasks)
    if n_tasks <= FEW_TASKS:
        return True
    if drafts.least_compute_cycles(PLAIN) < WORTHWHILE * best.candidate.compute_cycles:
        return True
    slack = HOPE if n_tasks <= drafts.options.smaller_tasks else 1.0
    may_take = slack * best.timetable.cycles / first.least.order_cycles
    return drafts.layout_cycles("latency", PLAIN) <= may_take * first.lowered.layout.cycles


def _may_move_less(drafts: Drafts, best: Draft) -> bool:
    """Whether the choice of cascades believes that less can be moved on another machine."""
    chosen = drafts.chosen("traffic")
    return chosen is not None and chosen.moved_bytes < best.outside_bytes
