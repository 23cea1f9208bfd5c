"""The end of a plan in smaller tiles, where transfers are all that holds it up.

If transfers never rest, a plan takes as long as they do, and as what is still to be done when the
last of them has come. That is less the smaller the last tiles are. To cut all other ops as finely
would gain nothing and cost a task for every tile.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tilewright.plan_drafts import Draft
from tilewright.program.cascade import PLAIN
from tilewright.program.layout import Layout
from tilewright.program.tile import Tiling
from tilewright.program.tiles import tile_counts

BUSY = 0.9995
"""Transfers that take this part of the time of a plan are all that holds it up."""

END_TILES = 2_000
"""Of the ops at the end, at most."""

MORE_MOVED = 1.01
"""With smaller tiles the transfers of these ops take this factor of their time, at most."""


def is_held_up_by_transfers(draft: Draft) -> bool:
    """Whether nothing but the end of a plan without cascades can be much faster."""
    if draft.candidate.strategy != PLAIN:
        return False
    return draft.candidate.transfer_cycles >= BUSY * draft.timetable.cycles


def with_smaller_end(draft: Draft, smaller: Iterable[Layout]) -> Layout | None:
    """The layout of a draft with the end of one of some layouts, of the smallest tiles that do.

    None if that changes nothing. Each of the layouts has smaller tiles than the one before; the
    first that does not do ends the search.
    """
    lowered, first = draft.candidate.lowered, _first_stage_at_end(draft)
    layout = found = lowered.layout
    for other in smaller:
        end = other.tilings[first:]
        changed = replace(layout, tilings=(*layout.tilings[:first], *end))
        if sum(tile_counts(lowered.stages, changed)[first:]) > END_TILES:
            break
        if _moving_cycles(end) > MORE_MOVED * _moving_cycles(layout.tilings[first:]):
            break
        found = changed
    return None if found.decisions == layout.decisions else found


def _first_stage_at_end(draft: Draft) -> int:
    """The first stage that is not finished when the last load has come."""
    stages = draft.candidate.lowered.stages
    number = {stage.op.name: at for at, stage in enumerate(stages)}
    pairs = list(zip(draft.timetable.program.tasks, draft.timetable.slots, strict=True))
    loaded = max((slot.end_cycle for task, slot in pairs if task.kind == "load"), default=0)
    late = (task for task, slot in pairs if task.kind == "compute" and slot.end_cycle > loaded)
    return min((number[task.op] for task in late), default=len(stages))


def _moving_cycles(tilings: Sequence[Tiling]) -> float:
    return sum(tiling.moving_cycles for tiling in tilings)
