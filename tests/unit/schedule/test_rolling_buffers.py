"""Rolling buffers that have to leave: what comes back never lies on top of newer rows."""

from fractions import Fraction

import pytest

from tilewright.program.model import (
    Access,
    Buffer,
    Engine,
    Program,
    Route,
    Space,
    Task,
    View,
)
from tilewright.replay.check import problems
from tilewright.schedule.schedule import schedule

ROW = 4
"""Bytes of a row."""


def rows(start: int, stop: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (start, stop), (0, ROW)


def program(dma_ports: int, new_row_cycles: int) -> Program:
    """Rows 0 to 2 in a ring of three, then a task that needs the room, then row 3 and a reader.

    Row 3 takes the place of row 0, and the reader wants rows 1 to 3.
    """
    spaces = (
        Space(name="ddr", memory="ddr", kind="external", size_bytes=1 << 20),
        Space(name="pad", memory="pad", kind="scratchpad", size_bytes=64),
    )
    routes = tuple(
        Route(
            source=source,
            target=target,
            engine="dma",
            setup_cycles=10,
            bytes_per_cycle=Fraction(1),
        )
        for source, target in (("ddr", "pad"), ("pad", "ddr"))
    )
    buffers = (
        Buffer(name="x", tensor="x", box=rows(0, 8), space="ddr", size_bytes=8 * ROW),
        Buffer(name="x", tensor="x", box=rows(0, 3), space="pad", size_bytes=3 * ROW),
        _lap(0),
        _lap(3),
        Buffer(name="big", tensor="big", box=rows(0, 15), space="pad", size_bytes=60),
        *(
            Buffer(name=name, tensor=name, box=rows(0, 1), space="ddr", size_bytes=ROW)
            for name in ("first", "second", "third")
        ),
    )
    tasks = (
        _load(0, (2, 0, 3), 22, ()),
        _compute("first", [Access(2, rows(0, 3))], [Access(5, rows(0, 1))], (0,)),
        _compute("big", [], [Access(4, rows(0, 15))], (1,)),
        _compute("second", [Access(4, rows(0, 15))], [Access(6, rows(0, 1))], (2,)),
        _load(4, (3, 3, 4), new_row_cycles, (0, 1)),
        _compute(
            "third",
            [Access(2, rows(1, 3)), Access(3, rows(3, 4))],
            [Access(7, rows(0, 1))],
            (0, 3, 4),
        ),
    )
    return Program(
        name="rolling",
        spaces=spaces,
        engines=(Engine(name="dma", count=dma_ports), Engine(name="core")),
        routes=routes,
        buffers=buffers,
        tasks=tasks,
        given=(0,),
        results=(5, 6, 7),
    )


def _lap(first: int) -> Buffer:
    box, view = rows(first, first + 3), View(1, (0, 0))
    return Buffer(name="x", tensor="x", box=box, space="pad", size_bytes=3 * ROW, view=view)


def _load(number: int, target: tuple[int, int, int], cycles: int, after: tuple[int, ...]) -> Task:
    buffer, start, stop = target
    box = rows(start, stop)
    return Task(
        name=f"load {number}",
        kind="load",
        engine="dma",
        cycles=cycles,
        reads=(Access(0, box),),
        writes=(Access(buffer, box),),
        after=after,
    )


def _compute(name: str, reads: list[Access], writes: list[Access], after: tuple[int, ...]) -> Task:
    return Task(
        name=name,
        kind="compute",
        engine="core",
        cycles=50,
        reads=tuple(reads),
        writes=tuple(writes),
        after=after,
    )


@pytest.mark.parametrize("dma_ports", [1, 2])
@pytest.mark.parametrize("new_row_cycles", [1, 14, 40])
def test_rows_that_come_back_do_not_lie_on_newer_ones(dma_ports: int, new_row_cycles: int) -> None:
    found = schedule(program(dma_ports, new_row_cycles))
    assert [str(problem) for problem in problems(found)] == []
    assert len(found.program.tasks) > 6, "the ring never left"
