"""What is said of a task that gets no room: the memory that is short, and by how much."""

from collections.abc import Callable

import pytest
from tests.schedule_programs import Builder

from tilewright.errors import InfeasibleError
from tilewright.program.model import Program
from tilewright.schedule.claims import StuckError
from tilewright.schedule.infeasible import stuck
from tilewright.schedule.schedule import schedule
from tilewright.schedule.tables import tables_of


def with_weights(weights_bytes: int) -> Program:
    """At `make e` a, b, c, d and e are alive, 50 B of 'cmx'; every task has weights of its own.

    a and b cannot be made again: what they are made from does not fit in beside the others.
    """
    sizes = {"weights": weights_bytes, "cmx": 40}
    builder = Builder(sizes, {"dma": 1, "core": 1}, spill=False)
    made = {name: builder.buffer(name, 10) for name in "abcdefz"}
    builder.load(made["z"])
    steps = {"a": "z", "b": "z", "c": "ab", "d": "c", "e": "cd", "f": "abe"}
    for result, data in steps.items():
        weights = builder.buffer(f"weights of {result}", 20, "weights")
        builder.load(weights)
        reads = [weights, *(made[name] for name in data)]
        builder.task(f"make {result}", "core", 1, reads, [made[result]])
    return builder.program()


def test_the_memory_that_is_short_is_named(golden: Callable[[str, str], None]) -> None:
    # The task reads weights first, and these have lots of room.
    with pytest.raises(InfeasibleError) as caught:
        schedule(with_weights(1000))
    golden("errors/no_room_beside_others.txt", f"{caught.value}\n")


def test_the_last_of_what_is_stacked_needs_no_padding() -> None:
    builder = Builder(40, {"dma": 1, "core": 1}, spill=False, alignment_bytes=8)
    a, b, c = (builder.buffer(name, size) for name, size in (("a", 10), ("b", 15), ("c", 15)))
    builder.task("make c", "core", 1, [a, b], [c])
    # 16 B for each of b and c, and the 10 B of a on top: 42 B.
    text = str(stuck(tables_of(builder.program()), StuckError(0, [[a, b]]), None))
    assert "no room for c 15 B: 2 B short" in text


def test_a_memory_that_nobody_uses_is_not_in_pieces() -> None:
    builder = Builder({"weights": 30, "cmx": 100}, {"dma": 1, "core": 1}, spill=False)
    weights = builder.buffer("w", 20, "weights")
    a, c = builder.buffer("a", 10), builder.buffer("c", 60)
    builder.task("make c", "core", 1, [weights], [c])
    builder.task("use a", "core", 1, [a])
    # 10 B are left of the weights, 30 B beside a, which lies in the middle.
    text = str(stuck(tables_of(builder.program()), StuckError(0, [[], [a]]), None))
    assert "'cmx' of 100 B has no room for c 60 B: 90 B are free, but in pieces" in text
    assert "alive in it: a 10 B" in text


def test_without_a_size_that_is_known_to_do_hints_begin_with_what_helps() -> None:
    builder = Builder(40, {"dma": 1, "core": 1})
    a, c = builder.buffer("a", 30), builder.buffer("c", 20)
    builder.task("make c", "core", 1, [a], [c])
    error = stuck(tables_of(builder.program()), StuckError(0, [[a]]), None)
    assert [problem.hint for problem in error.problems] == ["cut the ops into smaller tiles"]
