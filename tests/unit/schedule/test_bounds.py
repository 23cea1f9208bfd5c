"""What no schedule can do better: by hand, and against the shortest of all runs of a few tasks."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from tests.schedule_optimum import shortest
from tests.schedule_programs import Builder, random_program

from tilewright.program.model import Engine, Program
from tilewright.schedule.bounds import bounds


def test_no_bound_is_above_the_shortest_run_of_a_few_tasks() -> None:
    reached = 0
    for seed in range(50):
        program = random_program(seed, max_tasks=5)
        found, least = bounds(program), shortest(program)
        assert found.cycles <= least
        assert found.order_cycles <= shortest(program, keep_order=True)
        reached += found.cycles == least
    assert reached > 25


def test_no_bound_is_above_the_shortest_run_where_there_is_room_for_one_copy() -> None:
    stronger = 0
    for seed in range(10):
        chance = Random(seed)
        sizes = [chance.randint(4, 6) for _ in range(2)]
        builder = Builder(max(sizes) + 2 + chance.randint(0, 1), {"dma": 1, "core": 1})
        copies = [(size, chance.choice([size, 1, 9])) for size in sizes]
        _chain(builder, chance.randint(15, 30), copies, cycles=chance.randint(1, 4))
        found = bounds(builder.program())
        assert found.order_cycles <= shortest(builder.program(), keep_order=True)
        stronger += found.order_cycles > found.cycles
    assert stronger > 1


def _chain(
    builder: Builder, first: int, copies: Sequence[tuple[int, int]], *, cycles: int = 1
) -> None:
    """A long op, then for each copy, of so many bytes and cycles, an op that reads it."""
    last = builder.buffer("x", 1)
    builder.task("long", "core", first, [], [last])
    for number, (size, length) in enumerate(copies):
        weights, result = builder.buffer(f"w{number}", size), builder.buffer(f"x{number}", 1)
        builder.load(weights, cycles=length)
        builder.task(f"op{number}", "core", cycles, [last, weights], [result])
        last = result


def test_nothing_takes_no_time_and_no_room() -> None:
    found = bounds(Builder(10, {"dma": 1, "core": 1}).program())
    assert found.cycles == found.order_cycles == found.path_cycles == found.window_cycles == 0
    assert found.engine_cycles == found.port_cycles == {}
    assert found.peak_bytes == {"cmx": 0}


class TestEngines:
    @pytest.mark.parametrize(("instances", "expected"), [(1, 15), (2, 8), (4, 4)])
    def test_instances_share_the_work(self, instances: int, expected: int) -> None:
        builder = Builder(100, {"dma": 1, "core": instances, "idle": 1})
        for number, cycles in enumerate((4, 5, 6)):
            builder.task(f"op{number}", "core", cycles, [], [builder.buffer(f"x{number}", 1)])
        found = bounds(builder.program())
        assert found.engine_cycles == {"core": expected}
        assert found.cycles == max(6, expected)

    def test_a_port_is_held_once_bytes_flow(self) -> None:
        """Three copies of 9 cycles, 2 of them set-up; one of 3 cycles that is all set-up."""
        builder = Builder(100, {"dma": 4, "core": 1})
        for number, cycles in enumerate((9, 9, 9, 3)):
            builder.load(builder.buffer(f"w{number}", 1), cycles=cycles)
        drafted = builder.program()
        tasks = tuple(
            replace(task, ports=("port",), setup_cycles=2 if task.cycles == 9 else 5)
            for task in drafted.tasks
        )
        for lanes, expected in ((1, 21), (2, 11)):
            engines = (*drafted.engines, Engine(name="port", count=lanes))
            found = bounds(replace(drafted, tasks=tasks, engines=engines))
            assert found.port_cycles == {"port": expected}
            assert found.cycles == expected


class TestWindows:
    def test_tasks_that_cannot_start_before_a_moment(self) -> None:
        """Three ops of 10 wait for a copy of 40; a short op is done long before."""
        builder = Builder(100, {"dma": 1, "core": 1})
        weights = builder.buffer("w", 1)
        builder.task("short", "core", 1, [], [builder.buffer("y", 1)])
        builder.load(weights, cycles=40)
        for number in range(3):
            builder.task(f"op{number}", "core", 10, [weights], [builder.buffer(f"x{number}", 1)])
        found = bounds(builder.program())
        assert (found.path_cycles, found.window_cycles) == (50, 40 + 30)

    def test_what_comes_before_is_a_chain(self) -> None:
        """A copy of 40 for an op of 7 that two ops of 10 wait for, on a core of their own."""
        builder = Builder(100, {"dma": 1, "core0": 1, "core1": 1})
        weights, middle = builder.buffer("w", 1), builder.buffer("x", 1)
        builder.load(weights, cycles=40)
        builder.task("first", "core0", 7, [weights], [middle])
        for number in range(2):
            builder.task(f"op{number}", "core1", 10, [middle], [builder.buffer(f"y{number}", 1)])
        assert bounds(builder.program()).window_cycles == 40 + 7 + 20

    def test_tasks_after_which_much_follows(self) -> None:
        """Copies of 10, 20 and 30, each for an op of 50 on a core of its own, and one for none."""
        builder = Builder(100, {"dma": 1, "core0": 1, "core1": 1, "core2": 1})
        builder.load(builder.buffer("w", 1), cycles=5)
        for number in range(3):
            weights, result = builder.buffer(f"w{number}", 1), builder.buffer(f"x{number}", 1)
            builder.load(weights, cycles=10 * (number + 1))
            builder.task(f"op{number}", f"core{number}", 50, [weights], [result])
        found = bounds(builder.program())
        assert (found.path_cycles, found.window_cycles) == (80, 60 + 50)

    def test_on_several_instances_with_work_before_and_behind(self) -> None:
        """Ops of 5, 6 and 7 on two instances, after a copy of 30 and before an op of 3."""
        builder = Builder(100, {"dma": 1, "core": 2, "other": 1})
        weights, end = builder.buffer("w", 1), builder.buffer("end", 1)
        builder.load(weights, cycles=30)
        made = [builder.buffer(f"x{number}", 1) for number in range(3)]
        for number, result in enumerate(made):
            builder.task(f"op{number}", "core", 5 + number, [weights], [result])
        builder.task("end", "other", 3, made, [end])
        found = bounds(builder.program())
        assert (found.path_cycles, found.window_cycles) == (30 + 7 + 3, 30 + 9 + 3)


class TestOrder:
    """At the start of the first op that reads a copy, at 100, few bytes of copies can be there."""

    def test_what_is_dearest_by_byte_may_have_come_before(self) -> None:
        builder = Builder(13 + 1, {"dma": 1, "core": 1})
        _chain(builder, 100, [(11, 11), (11, 66), (11, 11)])
        # 13 bytes beside a result: the copy of 66 cycles, and two bytes of another one.
        assert bounds(builder.program()).order_cycles == 100 + (88 - 66 - 2) + 1

    def test_a_part_of_a_copy_may_be_there(self) -> None:
        builder = Builder(13, {"dma": 1, "core": 1})
        _chain(builder, 100, [(8, 40), (8, 8), (8, 8)])
        assert bounds(builder.program()).order_cycles == 100 + (56 - 40 - 4) + 1

    def test_instances_share_the_copies_and_what_follows_counts(self) -> None:
        builder = Builder(13, {"dma": 2, "core": 1})
        _chain(builder, 100, [(10, 10)] * 10, cycles=3)
        # 88 cycles are left, 44 on each instance; an op of 3 reads what comes last.
        assert bounds(builder.program()).order_cycles == 100 + 44 + 3

    def test_reserved_bytes_hold_nothing(self) -> None:
        builder = Builder(21, {"dma": 1, "core": 1}, reserved=((0, 8),))
        _chain(builder, 100, [(10, 10)] * 10)
        assert bounds(builder.program()).order_cycles == 100 + 88 + 1

    def test_two_instances_of_a_core_may_change_the_order(self) -> None:
        builder = Builder(13, {"dma": 1, "core": 2})
        _chain(builder, 100, [(10, 10)] * 10)
        found = bounds(builder.program())
        assert found.order_cycles == found.cycles == 110

    def test_few_dear_bytes_come_before_many_cheap_ones(self) -> None:
        builder = Builder(14, {"dma": 1, "core": 1})
        _chain(builder, 100, [(12, 24), (4, 20)])
        # 13 bytes: 4 of 5 cycles each and 9 of 2 cycles each.
        assert bounds(builder.program()).order_cycles == 100 + (44 - 20 - 18) + 1

    def test_a_copy_of_which_only_a_part_has_room(self) -> None:
        """While an op fills 20 of 24 bytes, 4 of the 22 bytes for the next one can be there."""
        builder = Builder(24, {"dma": 1, "core": 1})
        small, large, end = (builder.buffer(n, s) for n, s in (("a", 1), ("b", 20), ("c", 1)))
        weights = builder.buffer("w", 22)
        builder.task("long", "core", 100, [], [small])
        builder.task("large", "core", 1, [], [large])
        builder.load(weights)
        builder.task("end", "core", 1, [weights], [end])
        assert bounds(builder.program()).order_cycles == 100 + (22 - 4) + 1

    def test_results_elsewhere_take_no_room_of_copies(self) -> None:
        builder = Builder({"cmx": 13, "large": 1000}, {"dma": 1, "core": 1})
        last = builder.buffer("x", 1, "large")
        builder.task("long", "core", 100, [], [last])
        for number in range(10):
            weights = builder.buffer(f"w{number}", 10)
            result = builder.buffer(f"x{number}", 1, "large")
            builder.load(weights)
            builder.task(f"op{number}", "core", 1, [last, weights], [result])
            last = result
        assert bounds(builder.program()).order_cycles == 100 + (100 - 13) + 1

    def test_the_longest_of_several_queues_decides(self) -> None:
        builder = Builder({"cmx": 13, "other": 13}, {"dma": 1, "core": 1, "late": 1})
        _chain(builder, 100, [(10, 10)] * 10)
        weights, result = builder.buffer("w", 1, "other"), builder.buffer("y", 1, "other")
        builder.load(weights)
        builder.task("short", "late", 1, [weights], [result])
        assert bounds(builder.program()).order_cycles == 100 + 88 + 1


def _read_again(
    builder: Builder, lengths: tuple[int, int], *, waits_only: bool = False, over: bool = False
) -> Program:
    """Two copies of 10 bytes for two ops; a third op reads the first one again, or waits for it.

    The first op may also compute over what it reads.
    """
    first, second = builder.buffer("w0", 10), builder.buffer("w1", 10)
    x, y, z = (builder.buffer(name, 1) for name in "xyz")
    copy = builder.load(first, cycles=lengths[0])
    builder.task("op0", "core", 1, [first], [x, first] if over else [x])
    builder.load(second, cycles=lengths[1])
    builder.task("op1", "core", 1, [x, second], [y])
    reads = [y] if waits_only else [y, first]
    builder.task("op2", "core", 1, reads, [z], after=[copy] if waits_only else [])
    return builder.program()


class TestReadAgain:
    """When the second op starts, both copies were made, and what has no room is made once more."""

    def test_what_has_no_room_until_it_is_read_again_comes_twice(self) -> None:
        # 12 bytes beside a result: one copy, and a fifth of the other. The last op follows.
        program = _read_again(Builder(13, {"dma": 1, "core": 1}), (50, 50))
        assert bounds(program).order_cycles == 100 + (100 - 60) + 1

    def test_what_followed_the_first_reader_does_not_follow_the_last(self) -> None:
        """Copies of 10 for ops of 1, an op of 100, and ops that read both copies again."""
        builder = Builder(14, {"dma": 1, "core": 1})
        first, second = builder.buffer("w0", 10), builder.buffer("w1", 10)
        v, w, x, y, z = (builder.buffer(name, 1) for name in "vwxyz")
        builder.load(first)
        builder.task("op0", "core", 1, [first], [v])
        builder.load(second)
        builder.task("op1", "core", 1, [v, second], [w])
        builder.task("long", "core", 100, [w], [x])
        builder.task("op2", "core", 1, [x, first], [y])
        builder.task("op3", "core", 1, [y, second], [z])
        # A run takes 134: the first copy comes again meanwhile, the second one after op2.
        found = bounds(builder.program())
        assert found.order_cycles == found.cycles == 10 + 10 + 1 + 100 + 1 + 1

    def test_on_two_instances_parts_of_cycles_are_cycles(self) -> None:
        # The first op ends at 52. 15 bytes: the copy of 51, and half of the other; 25 are left.
        program = _read_again(Builder(16, {"dma": 2, "core": 1}), (51, 50))
        assert bounds(program).order_cycles == 52 + 13 + 1

    def test_to_wait_for_a_copy_is_not_to_read_it(self) -> None:
        program = _read_again(Builder(13, {"dma": 1, "core": 1}), (50, 50), waits_only=True)
        assert bounds(program).order_cycles == bounds(program).cycles == 102

    def test_what_was_computed_over_may_come_back_in_less_time(self) -> None:
        """Saved and fetched in 10 cycles each: 50 + 1 + 10 + 50 + 1 + 10 + 1 are enough."""
        program = _read_again(Builder(13, {"dma": 1, "core": 1}), (50, 50), over=True)
        assert bounds(program).order_cycles <= 123

    def test_what_came_to_two_memories_may_come_to_one_in_less_time(self) -> None:
        """A copy of 50 to both, and of 10 to one of them: 50 + 1 + 50 + 1 + 10 + 1 are enough."""
        builder = Builder({"cmx": 13, "large": 100}, {"dma": 1, "core": 1})
        program = _read_again(builder, (50, 50))
        copy, *others = program.tasks
        far = replace(program.buffers[0], name="w0@large", space="large")
        both = (*copy.writes, copy.writes[0]._replace(buffer=len(program.buffers)))
        program = replace(
            program,
            buffers=(*program.buffers, far),
            tasks=(replace(copy, writes=both), *others),
        )
        assert bounds(program).order_cycles <= 113


class TestPeak:
    def test_only_the_buffer_on_top_needs_no_padding(self) -> None:
        """10 and 13 bytes, aligned to 8: 16 and then 13, or 16 and then 10."""
        program = self._program(alignment_bytes=8)
        assert bounds(program).peak_bytes == {"cmx": 26, "large": 9}

    def test_without_alignment_bytes_add_up(self) -> None:
        assert bounds(self._program(alignment_bytes=1)).peak_bytes == {"cmx": 23, "large": 9}

    def _program(self, alignment_bytes: int) -> Program:
        builder = Builder(
            {"cmx": 100, "large": 100}, {"dma": 1, "core": 1}, alignment_bytes=alignment_bytes
        )
        x, y, z = (builder.buffer(name, size) for name, size in (("x", 10), ("y", 13), ("z", 5)))
        far = builder.buffer("far", 9, "large")
        builder.task("first", "core", 1, [], [x])
        builder.task("second", "core", 1, [x], [y])
        builder.task("third", "core", 1, [x], [z, far])
        return builder.program()
