"""A timetable made by hand for tests of reports, every wait of which is known.

    cycle     0    4    10   15        24   30        40    50
    dma 0     set-up bytes x        set-up  bytes y
              |----|-----|          |----|-------|
    core[0]               | first |  idle          | second |
    core[1]                                         idle     | third |

`x` is loaded from 0 to 10 (4 of it set-up), `first` computes from 10 to 15. `y` is loaded from 20
to 30 into the address of `x`, which `first` leaves: the plan lets it go 5 cycles later than it
could. `second` computes from 30 to 40, and `third` on the other core, which reads what `second`
makes, from 40 to 50. The result is stored from 50 to 56.
"""

from tilewright.program.model import Access, Buffer, Charge, Engine, Program, Slot, Space, Task
from tilewright.program.model import Timetable as _Timetable

BOX = ((0, 8),)


def _buffer(name: str, space: str) -> Buffer:
    return Buffer(name=name, tensor=name, box=BOX, space=space, size_bytes=8)


BUFFERS = (
    _buffer("x", "dram"),
    _buffer("x", "cmx[0]"),
    _buffer("y", "dram"),
    _buffer("y", "cmx[0]"),
    _buffer("a", "cmx[0]"),
    _buffer("b", "cmx[0]"),
    _buffer("c", "cmx[0]"),
    _buffer("c", "dram"),
)
ADDRESSES = (0, 0, 8, 0, 8, 16, 24, 16)


def _transfer(name: str, source: int, target: int, cycles: int, after: tuple[int, ...]) -> Task:
    return Task(
        name=name,
        kind="store" if BUFFERS[target].space == "dram" else "load",
        engine="dma",
        cycles=cycles,
        reads=(Access(source, BOX),),
        writes=(Access(target, BOX),),
        after=after,
        setup_cycles=4,
        ports=("dram.port",),
        charges=(Charge("dram", 8, 0, 80.0), Charge("cmx", 0, 8, 8.0)),
    )


def _compute(op: str, core: int, cycles: int, reads: tuple[int, ...], write: int) -> Task:
    return Task(
        name=op,
        kind="compute",
        engine=f"core[{core}]",
        cycles=cycles,
        reads=tuple(Access(buffer, BOX) for buffer in reads),
        writes=(Access(write, BOX),),
        after={"first": (0,), "second": (1, 2), "third": (3,)}[op],
        op=op,
        charges=(Charge("array", 0, 0, 1.0),),
    )


def by_hand() -> _Timetable:
    tasks = (
        _transfer("load x", 0, 1, 10, ()),
        _compute("first", 0, 5, (1,), 4),
        _transfer("load y", 2, 3, 10, ()),
        _compute("second", 0, 10, (3, 4), 5),
        _compute("third", 1, 10, (5,), 6),
        _transfer("store c", 6, 7, 6, (4,)),
    )
    starts = (0, 10, 20, 30, 40, 50)
    return _Timetable(
        program=Program(
            name="by hand",
            spaces=(
                Space(name="cmx[0]", memory="cmx", kind="scratchpad", size_bytes=32),
                Space(name="dram", memory="dram", kind="external", size_bytes=1024),
            ),
            engines=(
                Engine(name="core[0]"),
                Engine(name="core[1]"),
                Engine(name="dma", count=2),
                Engine(name="dram.port"),
            ),
            routes=(),
            buffers=BUFFERS,
            tasks=tasks,
            given=(0, 2),
            results=(7,),
        ),
        slots=tuple(
            Slot(start_cycle=start, end_cycle=start + task.cycles)
            for start, task in zip(starts, tasks, strict=True)
        ),
        addresses=ADDRESSES,
        edges=((1, 2),),
    )
