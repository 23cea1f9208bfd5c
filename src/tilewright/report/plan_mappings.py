"""The mappings of a plan file: are they what their texts say, and of the tiles that name them?"""

from collections.abc import Iterator
from dataclasses import fields, replace
from math import isclose

from tilewright.errors import Problem
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.program.model import Timetable
from tilewright.replay.restored import Restored, restored
from tilewright.report.record import PlanRecord, TileFigures, tile_figures

_ROUNDING = 1e-9
"""Energies and cycles of mappings are sums of floats, in any order."""


def restored_mappings(record: PlanRecord, network: Network, machine: Machine | None) -> Restored:
    """The mappings of a plan file, worked out again from their text."""
    texts = record.figures["mappings"]
    return restored(record.timetable.program, texts, network, machine)


def with_mappings(timetable: Timetable, found: Restored) -> Timetable:
    """The timetable with its mappings, as it was when it was planned, if all of them are right."""
    return replace(timetable, program=found.program_of(timetable.program))


def mapping_problems(record: PlanRecord, found: Restored) -> Iterator[Problem]:
    """Texts that are none of their tasks' tiles, and costs that are not those of their texts."""
    yield from found.problems
    for number, (mapped, said) in enumerate(zip(found.mappings, record.tiles, strict=True)):
        if mapped is None:
            continue
        takes = tile_figures(mapped)
        for key in (field.name for field in fields(TileFigures)):
            one, other = getattr(said, key), getattr(takes, key)
            if not _are_alike(one, other):
                yield Problem(
                    message=f"mapping_costs[{number}].{key} of the plan file is {one}, and its "
                    f"mapping comes to {other}"
                )


def _are_alike(one: object, other: object) -> bool:
    """Whether figures are the same but for rounding."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_are_alike, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return one == other
