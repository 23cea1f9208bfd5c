"""The parts of the scheduler by themselves: contents, windows, packing, prefetch plans, bounds."""

import random

import pytest
from tests.schedule_programs import Builder

from tilewright.errors import InfeasibleError
from tilewright.program.model import Buffer, Program, Space, View
from tilewright.schedule.bounds import bounds
from tilewright.schedule.claims import StuckError
from tilewright.schedule.contents import Held, box_bytes, surviving, without
from tilewright.schedule.counted import CountedPad
from tilewright.schedule.infeasible import stuck
from tilewright.schedule.order import order_of
from tilewright.schedule.prefetch import compute_starts, release_steps
from tilewright.schedule.schedule import schedule
from tilewright.schedule.scratchpad import Scratchpad
from tilewright.schedule.tables import tables_of


def views_program() -> Program:
    root = Buffer(name="x", tensor="x", box=((0, 4), (0, 2)), space="s", size_bytes=16)
    over = Buffer(
        name="y", tensor="y", box=((0, 4), (0, 2)), space="s", size_bytes=16, view=View(0, (0, 0))
    )
    part = Buffer(
        name="p", tensor="p", box=((0, 2), (0, 2)), space="s", size_bytes=8, view=View(0, (2, 0))
    )
    flat = Buffer(name="f", tensor="f", box=((0, 8),), space="s", size_bytes=16, view=View(0))
    return Program(
        name="views", spaces=(), engines=(), routes=(), buffers=(root, over, part, flat), tasks=()
    )


def test_what_is_overwritten_does_not_survive() -> None:
    program = views_program()
    x = Held(0, ((0, 4), (0, 2)), writer=0)
    row = Held(1, ((1, 2), (0, 2)), writer=1)
    assert surviving(program, 0, [x]) == [x]
    assert surviving(program, 0, [x, row]) == [
        Held(0, ((0, 1), (0, 2)), 0, False),
        Held(0, ((2, 4), (0, 2)), 0, False),
        row,
    ]
    everything = Held(1, ((0, 4), (0, 2)), writer=2)
    assert surviving(program, 0, [x, row, everything]) == [everything]


def test_a_part_and_a_reshape_are_found_in_their_root() -> None:
    program = views_program()
    x = Held(0, ((0, 4), (0, 2)), writer=0)
    part = Held(2, ((0, 1), (0, 2)), writer=1)
    assert surviving(program, 0, [x, part]) == [
        Held(0, ((0, 2), (0, 2)), 0, False),
        Held(0, ((3, 4), (0, 2)), 0, False),
        part,
    ]
    assert surviving(program, 0, [x, Held(3, ((0, 8),), 1)]) == [Held(3, ((0, 8),), 1)]
    assert surviving(program, 0, [x, Held(3, ((0, 3),), 1)]) is None
    assert box_bytes(program, part) == 4


def test_a_box_less_another_is_the_cells_of_the_one_that_are_not_in_the_other() -> None:
    generator = random.Random(1)

    def drawn() -> tuple[tuple[int, int], ...]:
        axes = []
        for _ in range(2):
            low = generator.randrange(5)
            axes.append((low, low + generator.randint(1, 4)))
        return tuple(axes)

    def cells(box: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
        return [(a, b) for a in range(*box[0]) for b in range(*box[1])]

    for _ in range(200):
        one, other = drawn(), drawn()
        found = [cell for part in without(one, other) for cell in cells(part)]
        assert len(found) == len(set(found))
        assert set(found) == set(cells(one)) - set(cells(other))


def space(size_bytes: int, alignment_bytes: int = 1) -> Space:
    return Space(
        name="s",
        memory="s",
        kind="scratchpad",
        size_bytes=size_bytes,
        alignment_bytes=alignment_bytes,
    )


def test_the_cheapest_neighbours_leave() -> None:
    pad = Scratchpad(space(40))
    for root in range(4):
        assert pad.place(root, 10, from_top=False) == 10 * root
    costs: dict[int, int | None] = {0: 9, 1: 3, 2: 5, 3: 4}
    assert pad.cheapest_window(15, costs.__getitem__) == (8, [1, 2])
    costs[2] = None
    assert pad.cheapest_window(15, costs.__getitem__) == (12, [0, 1])
    assert pad.cheapest_window(25, costs.__getitem__) is None
    pad.release(30)
    assert pad.cheapest_window(10, costs.__getitem__) == (0, [])


def test_windows_are_the_best_of_all_windows() -> None:
    generator = random.Random(2)
    for _ in range(200):
        pad = Scratchpad(space(30, generator.choice([1, 4])))
        for root in range(6):
            pad.place(root, generator.randint(1, 8), from_top=generator.random() < 0.3)
        for address in list(pad.addresses):
            if generator.random() < 0.3:
                pad.release(address)
        costs = {root: generator.choice([None, 0, 1, 2, 5]) for root in range(6)}
        size_bytes = generator.randint(1, 20)
        found = pad.cheapest_window(size_bytes, costs.__getitem__)
        options = []
        for address in range(0, 31 - size_bytes, pad.alignment):
            met = [
                r for a, (e, r) in pad.owners.items() if a < address + size_bytes and address < e
            ]
            prices = [costs[root] for root in met]
            if None not in prices:
                options.append(sum(price for price in prices if price is not None))
        assert (found is None) == (not options)
        assert found is None or found[0] == min(options)


def test_a_counted_scratchpad_lets_nobody_leave_in_vain() -> None:
    pad = CountedPad(space(40), 40)
    for root, size_bytes in enumerate((5, 10, 20)):
        assert pad.place(root, size_bytes, from_top=False) is not None
    assert pad.cheapest_window(24, {0: 1, 1: 2, 2: 3}.get) == (3, [2])
    assert not pad.has_room(6)


def test_copies_are_let_go_shortly_before_they_have_to_start() -> None:
    # Three ops of 100 cycles, each with a copy of 10: all copies are typical, so one duration of
    # margin is 20 cycles. The third is due at 200, starts at 190, is let go at 170: during op 1.
    builder = Builder(1000, {"dma": 1, "core": 1})
    last = builder.buffer("x", 10)
    builder.task("op", "core", 100, [], [last])
    for number in range(3):
        weights, result = builder.buffer(f"w{number}", 10), builder.buffer(f"x{number}", 10)
        builder.load(weights)
        builder.task(f"op{number}", "core", 100, [last, weights], [result])
        last = result
    tables = tables_of(builder.program())
    order = order_of(tables, range(len(tables.engine)))
    starts = compute_starts(tables, order)
    assert [starts[task] for task in order.steps] == [0, 100, 200, 300]
    release = release_steps(tables, order, starts, margin=1)
    # Copies are tasks 1, 3 and 5; step 1 is reached when the first op (step 0) has started.
    assert [release[task] for task in (1, 3, 5)] == [1, 2, 3]
    release = release_steps(tables, order, starts, margin=6)
    assert [release[task] for task in (1, 3, 5)] == [0, 1, 2]


def test_bounds_by_hand() -> None:
    # Two copies of 30 and 10 cycles, two ops of 5 and 7, a store of 4.
    builder = Builder(40, {"dma": 1, "core": 1})
    a, b, x, y = (builder.buffer(n, s) for n, s in (("a", 30), ("b", 10), ("x", 3), ("y", 4)))
    builder.load(a)
    builder.task("op1", "core", 5, [a], [x])
    builder.load(b)
    builder.task("op2", "core", 7, [x, b], [y])
    builder.store(y)
    found = bounds(builder.program())
    assert found.engine_cycles == {"dma": 44, "core": 12}
    assert found.path_cycles == 30 + 5 + 7 + 4
    assert found.window_cycles == 30 + 10 + 7 + 4
    assert found.cycles == 51
    assert found.peak_bytes == {"cmx": 33}
    assert found.live_peak_bytes == {"cmx": 33}


def test_memory_that_holds_little_ahead_gives_a_stronger_bound() -> None:
    # A long op, then ten copies of 10 cycles for ten ops of 1; 10 bytes can be there in advance.
    builder = Builder(13, {"dma": 1, "core": 1})
    last = builder.buffer("x", 1)
    builder.task("long", "core", 100, [], [last])
    for number in range(10):
        weights, result = builder.buffer(f"w{number}", 10), builder.buffer(f"x{number}", 1)
        builder.load(weights)
        builder.task(f"op{number}", "core", 1, [last, weights], [result])
        last = result
    program = builder.program()
    found = bounds(program)
    assert found.cycles == 110
    # At the start of op0, at 100, at most 12 bytes are there: 88 cycles of copies and an op remain.
    assert found.order_cycles == 100 + 88 + 1
    # In truth a copy and the next one never fit together: 9 times a copy and its op, after op0.
    assert schedule(program).cycles == 100 + 1 + 9 * (10 + 1)


def test_room_in_one_memory_is_no_room_for_copies_to_another() -> None:
    # As above, but op0 also reads a byte of a large memory, in which no weights may lie.
    builder = Builder({"cmx": 13, "large": 1000}, {"dma": 1, "core": 1})
    last, scale = builder.buffer("x", 1), builder.buffer("scale", 1, "large")
    builder.task("long", "core", 100, [], [last])
    builder.load(scale)
    for number in range(10):
        weights, result = builder.buffer(f"w{number}", 10), builder.buffer(f"x{number}", 1)
        builder.load(weights)
        builder.task(f"op{number}", "core", 1, [last, weights, scale], [result])
        last = result
    # At the start of op0 the scale may be there, and 12 bytes of weights: 88 cycles remain.
    assert bounds(builder.program()).order_cycles == 100 + 88 + 1


def test_a_task_that_is_too_large_is_named_with_its_buffers() -> None:
    builder = Builder(100, {"dma": 1, "core": 1})
    w, x = builder.buffer("w", 70), builder.buffer("x", 40)
    builder.load(w)
    builder.task("conv", "core", 5, [w], [x])
    with pytest.raises(InfeasibleError) as caught:
        schedule(builder.program())
    text = str(caught.value)
    assert "task 'conv'" in text
    assert "110 B of 'cmx' at once, 10 B more than it has (100 B): w 70 B, x 40 B" in text
    assert "'cmx' would have to be 110 B at least" in text


def test_without_a_memory_to_spill_to_the_smallest_size_is_named() -> None:
    # a and b are needed at the end, and c, which is made from them, for d and e: 50 bytes at e.
    # They cannot be made again: what they are made from does not fit in beside the others.
    builder = Builder(40, {"dma": 1, "core": 1}, spill=False)
    a, b, c, d, e, f = (builder.buffer(name, 10) for name in "abcdef")
    z = builder.buffer("z", 10)
    builder.load(z)
    builder.task("make a", "core", 1, [z], [a])
    builder.task("make b", "core", 1, [z], [b])
    builder.task("make c", "core", 1, [a, b], [c])
    builder.task("make d", "core", 1, [c], [d])
    builder.task("make e", "core", 1, [c, d], [e])
    builder.task("make f", "core", 1, [a, b, e], [f])
    with pytest.raises(InfeasibleError) as caught:
        schedule(builder.program())
    text = str(caught.value)
    assert "task 'make e'" in text
    assert "10 B short" in text
    assert "50 B of 'cmx' are enough" in text
    assert "a way to an external memory" in text


def test_room_that_is_free_in_pieces_is_not_called_short() -> None:
    builder = Builder(40, {"dma": 1, "core": 1}, spill=False)
    a, b, c = (builder.buffer(name, size) for name, size in (("a", 10), ("b", 15), ("c", 20)))
    builder.task("make c", "core", 1, [a], [c])
    tables = tables_of(builder.program())
    # Beside a, at an address in the middle, 30 bytes are free.
    assert "30 B are free, but in pieces" in str(stuck(tables, StuckError(0, [[a]]), None))
    assert "5 B short" in str(stuck(tables, StuckError(0, [[a, b]]), None))


def test_without_a_memory_to_spill_to_another_order_is_found() -> None:
    """In the written order a, b and c are alive together; b alone needs the most room."""
    builder = Builder(20, {"dma": 1, "core": 1}, spill=False)
    a, b, small = builder.buffer("a", 10), builder.buffer("b", 15), builder.buffer("small", 5)
    builder.task("make a", "core", 1, [], [a])
    builder.task("make b", "core", 1, [], [b])
    builder.task("shrink b", "core", 1, [b], [small])
    last = builder.buffer("last", 5)
    builder.task("join", "core", 1, [a, small], [last])
    builder.store(last)
    names = [task.name for task in builder.program().tasks]
    timetable = schedule(builder.program())
    order = sorted(range(len(names)), key=lambda task: timetable.slots[task].start_cycle)
    assert [names[task] for task in order][:3] == ["make b", "shrink b", "make a"]
