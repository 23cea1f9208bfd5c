"""Uses of places, as tests write them down, and the waits between them."""

from collections.abc import Hashable, Sequence
from itertools import groupby
from typing import NamedTuple

from tilewright.program.model import Box
from tilewright.schedule.clocks import Clocks
from tilewright.schedule.place_edges import Place, PlaceUses, User


class PlaceUse(NamedTuple):
    """A task touches the addresses [begin, end) of a holder; -1 is a queue of its own."""

    task: int
    begin: int
    end: int
    is_write: bool
    holder: Hashable = None
    box: Box | None = None
    queue: int = -1


def place_edges(uses: Sequence[PlaceUse]) -> list[tuple[int, int]]:
    """The waits between uses, given in the order in which they happen, sorted."""
    tasks = [(task, list(group)) for task, group in groupby(uses, key=lambda use: use.task)]
    names = [own[0].queue if own[0].queue >= 0 else f"task {task}" for task, own in tasks]
    numbers = _numbers(names)
    queues = [numbers[name] for name in names]
    holders = _numbers([use.holder for use in uses])
    clocks, space = Clocks(queues), PlaceUses()
    edges: list[tuple[int, int]] = []
    for turn, (task, own) in enumerate(tasks):
        user = User(turn, queues[turn], clocks.begin([]))
        met: list[int] = []
        for use in own:
            place = Place(use.begin, use.end, holders[use.holder], use.box)
            met += space.waits(user, place, use.is_write)
        edges += [(tasks[first][0], task) for first in clocks.add(met)]
    return sorted(edges)


def _numbers(names: Sequence[Hashable]) -> dict[Hashable, int]:
    """Numbers from 0 for names."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
