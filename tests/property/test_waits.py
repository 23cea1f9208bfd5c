"""The compiled books of who waits for whom against those in Python."""

from dataclasses import replace
from random import Random

import pytest
from tests.cascade_cases import QUICK
from tests.small_machines import Small, small_machine

from tilewright.network.zoo import layers
from tilewright.program import waits
from tilewright.program.cascade import PLAIN, Cascade, Strategy
from tilewright.program.lower import lower, prepare
from tilewright.program.model import Access, Box, Buffer, Program, View
from tilewright.program.waits import PlainWaits, Waits

SHAPE = (3, 4, 6)
ROWS = 3
"""Of the ring, along axis 1."""

needs_compiled = pytest.mark.skipif(
    not waits.is_used(layers.draft("none", 8).builder.finish([])),
    reason="the compiled books were not built",
)


def buffer(box: Box, view: View | None = None) -> Buffer:
    return Buffer(name="t", tensor="t", box=box, space="s", size_bytes=1, view=view)


def whole(shape: tuple[int, ...]) -> Box:
    return tuple((0, size) for size in shape)


def some_box(random: Random, within: Box) -> Box:
    """A part of a box, now and then an empty one."""
    ends = [sorted((random.randint(*axis), random.randint(*axis))) for axis in within]
    return tuple((start, stop) for start, stop in ends)


def program_buffers() -> list[Buffer]:
    """Two plain buffers, two windows into the first, the second under another shape, and a ring."""
    return [
        buffer(whole(SHAPE)),
        buffer(whole(SHAPE)),
        buffer(((0, 2), (1, 3), (0, 6)), View(0, (1, 1, 0))),
        buffer(((5, 7), (0, 4), (2, 4)), View(0, (0, 0, 3))),
        buffer(((0, 72),), View(1)),
        buffer(((0, 3), (0, ROWS), (0, 6))),
    ]


def with_laps(books: Waits, buffers: list[Buffer]) -> None:
    """Laps of two tensors in the ring: the second stands three columns to the right."""
    for lap in range(4):
        for columns, shift in ((6, 0), (3, 3)):
            rows = (lap * ROWS, (lap + 1) * ROWS)
            number = len(buffers)
            buffers.append(buffer(((0, 3), rows, (0, columns)), View(5, (0, 0, shift))))
            books.lap(number, 5, 1, (0, -lap * ROWS, shift), lap)


def accesses(random: Random, buffers: list[Buffer], lap: int, most: int) -> list[Access]:
    """Of anything but the ring itself; in the ring, of a lap or of the one before it."""
    laps = [6 + 2 * lap, 7 + 2 * lap, *([4 + 2 * lap, 5 + 2 * lap] if lap else [])]
    numbers = random.choices([0, 1, 2, 3, 4, *laps], k=random.randrange(most))
    return [Access(number, some_box(random, buffers[number].box)) for number in numbers]


@needs_compiled
def test_compiled_books_say_what_those_in_python_say() -> None:
    from tilewright.program import _waits

    for seed in range(150):
        random = Random(seed)
        plain_buffers, buffers = program_buffers(), program_buffers()
        plain, compiled = PlainWaits(plain_buffers), _waits.Waits(buffers)
        with_laps(plain, plain_buffers)
        with_laps(compiled, buffers)
        chains: list[int] = []
        for task in range(40):
            lap = min(3, task // 8)
            reads = accesses(random, buffers, lap, 4)
            writes = accesses(random, buffers, lap, 3)
            known = (random.randrange(task),) if task and random.random() < 0.5 else ()
            expected = plain.before(reads, writes, known)
            assert compiled.before(reads, writes, known) == expected
            chains.append(chains[known[0]] if known else task)
            plain.note(reads, writes, chains[task], task)
            compiled.note(reads, writes, chains[task], task)


def lowered(cores: int, strategy: Strategy, *, size_bytes: int) -> Program:
    net = layers.draft("chain", 8)
    data = layers.given(net, "x", (1, 8, 20, 12))
    first = layers.conv(net, "first", data, 12, layers.square(3, 1, 1))
    second = layers.conv(net, "second", first, 12, layers.square(3, 1, 1))
    both = layers.concat(
        net, "both", [second, layers.max_pool(net, "p", first, layers.square(1))], 1
    )
    network = net.finish(layers.conv(net, "last", both, 8, layers.square(1)))
    machine = small_machine(Small(size_bytes=size_bytes, cores=cores, dma=True))
    return lower(prepare(network, machine, network.ops, QUICK), "latency", strategy).program


@needs_compiled
@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("size_bytes", [4096, 64 * 1024])
def test_programs_are_the_same_with_and_without_compiled_books(
    cores: int, size_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cascade = Strategy(cascades=(Cascade(first=0, last=1, axis=2, step=2),))
    strategies = (PLAIN, cascade, replace(cascade, frugal=True))
    compiled = [lowered(cores, strategy, size_bytes=size_bytes) for strategy in strategies]
    monkeypatch.setattr(waits, "is_used", lambda network: False)
    plain = [lowered(cores, strategy, size_bytes=size_bytes) for strategy in strategies]
    assert [p.tasks for p in compiled] == [p.tasks for p in plain]
    assert any(len(task.after) > 1 for task in plain[0].tasks)


def test_a_box_of_more_axes_than_there_is_room_for_is_left_to_python() -> None:
    shape = (1,) * (waits.MOST_AXES + 1)
    net = layers.draft("deep", 8)
    network = net.finish(layers.activation(net, "y", layers.given(net, "x", shape), "exp"))
    assert not waits.is_used(network)
    assert isinstance(waits.waits_for(network, []), PlainWaits)
