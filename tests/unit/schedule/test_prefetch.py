"""When ops could start, and from which step on copies may be made, by hand."""

import pytest
from tests.schedule_programs import Builder

from tilewright.schedule.order import order_of
from tilewright.schedule.prefetch import compute_starts, release_steps
from tilewright.schedule.tables import tables_of


def test_ops_wait_for_each_other_and_for_their_engine_but_not_for_copies() -> None:
    builder = Builder(1000, {"dma": 1, "core": 2, "other": 1, "third": 1})
    a, b, c, d, e, f, w = (builder.buffer(name, 1) for name in "abcdefw")
    tasks = [
        builder.task("a", "core", 10, [], [a]),
        builder.task("b", "core", 20, [], [b]),
        # The first instance is free at 10, and then again at 15.
        builder.task("c", "core", 5, [], [c]),
        builder.task("d", "core", 3, [], [d]),
        # It needs the results that are there at 10, 20 and 15.
        builder.task("e", "other", 7, [a, b, c], [e]),
    ]
    builder.load(w, cycles=100)
    tasks.append(builder.task("f", "third", 1, [w], [f]))
    tables = tables_of(builder.program())
    starts = compute_starts(tables, order_of(tables, range(len(tables.engine))))
    assert [starts[task] for task in tasks] == [0, 0, 10, 15, 20, 0]


@pytest.mark.parametrize(
    ("instances", "margin", "released"),
    [
        # The later copy starts at 70, the other one before it at 60.
        (1, 0, (7, 8)),
        # A copy takes 20 cycles on average: let go at 60 - 20 - 10, and at 70 - 20 - 30.
        (1, 1, (4, 3)),
        # Each has an instance of its own: they start at 90, which is the last step, and at 70.
        (2, 0, (10, 8)),
        (1, 9, (0, 0)),
    ],
)
def test_copies_for_one_op_are_made_one_after_the_other(
    instances: int, margin: int, released: tuple[int, int]
) -> None:
    """Ten ops of 10 cycles, and one that reads copies of 10 and of 30 cycles at 100."""
    builder = Builder(1000, {"dma": instances, "core": 1})
    for number in range(10):
        builder.task(f"op{number}", "core", 10, [], [builder.buffer(f"x{number}", 1)])
    weights = [builder.buffer(name, 1) for name in ("w0", "w1")]
    loads = [builder.load(w, cycles=n) for w, n in zip(weights, (10, 30), strict=True)]
    builder.task("last", "core", 10, weights, [builder.buffer("y", 1)])
    tables = tables_of(builder.program())
    order = order_of(tables, range(len(tables.engine)))
    found = release_steps(tables, order, compute_starts(tables, order), margin)
    assert tuple(found[load] for load in loads) == released
