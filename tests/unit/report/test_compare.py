from dataclasses import replace
from functools import cache

import pytest

from tilewright.errors import InputError, LimitError
from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.planner import PlanOptions, plan
from tilewright.report.compare import Comparison, compare, comparison_view, require
from tilewright.report.plan import plan_figures
from tilewright.report.record import PlanRecord, record_of
from tilewright.report.tables import plain_text


@cache
def record(limit_bytes: int = 0) -> PlanRecord:
    limits = (("cmx", limit_bytes),) if limit_bytes else ()
    options = PlanOptions(memory_limits=limits)
    made = plan(load_network("lenet5"), load_machine("npu_37xx"), options)
    return record_of(made, plan_figures(made))


def with_cycles(before: int, after: int) -> Comparison:
    def figures(cycles: int) -> PlanRecord:
        made = record()
        totals = {**made.figures["totals"], "cycles": cycles}
        return replace(made, figures={**made.figures, "totals": totals})

    return compare(figures(before), figures(after))


def test_a_plan_does_not_differ_from_itself() -> None:
    found = compare(record(), record())
    assert all(change.share == 0 for change in found.totals)
    assert all(op.cycles == 0 for op in found.ops)
    text = plain_text(comparison_view(found))
    assert text is not None
    assert "0 changed" in text


def test_less_memory_shows_up_op_by_op() -> None:
    found = compare(record(), record(24 * 1024))
    tasks = next(change for change in found.totals if change.name == "tasks")
    assert tasks.after > tasks.before
    tiles = {op.name: (op.before, op.after) for op in found.ops}
    grown = [name for name, (old, new) in tiles.items() if old and new and new.tiles > old.tiles]
    assert grown
    text = plain_text(comparison_view(found))
    assert text is not None
    assert all(name in text for name in grown)


@pytest.mark.parametrize(
    ("limit", "after", "broken"),
    [
        ("cycles>+1%", 1010, False),
        ("cycles>+1%", 1011, True),
        ("cycles>-5%", 960, True),
        ("cycles>-5%", 950, False),
        ("cycles>+10", 1010, False),
        ("cycles>+10", 1011, True),
        ("cycles > 1005", 1005, False),
        ("cycles > 1005", 1006, True),
    ],
)
def test_a_limit_is_broken_only_beyond_it(limit: str, after: int, broken: bool) -> None:
    found = with_cycles(1000, after)
    if not broken:
        require(found, (limit,))
        return
    with pytest.raises(LimitError) as caught:
        require(found, (limit,))
    assert caught.value.exit_code == 4
    assert f"from 1,000 to {after:,}" in str(caught.value)


@pytest.mark.parametrize("limit", ["cycles", "cyles>1%", "cycles>many", ">1%"])
def test_a_limit_that_cannot_be_read_is_refused(limit: str) -> None:
    with pytest.raises(InputError, match="expected a figure"):
        require(with_cycles(1, 1), (limit,))


def from_file(name: str, memory: str) -> PlanRecord:
    """A plan of a machine from a file, with bytes at one more memory."""
    made = record()
    traffic = {**made.figures["totals"]["traffic_bytes"], memory: {"read": 3, "write": 4}}
    totals = {**made.figures["totals"], "traffic_bytes": traffic}
    return replace(made, figures={**made.figures, "totals": totals, "source": {"machine": name}})


def test_machines_of_one_name_are_told_apart_by_their_files() -> None:
    text = plain_text(comparison_view(compare(from_file("a.yaml", "x"), from_file("b.yaml", "x"))))
    assert text is not None
    assert "lenet5 on npu_37xx (a.yaml)" in text
    same = plain_text(comparison_view(compare(from_file("a.yaml", "x"), from_file("a.yaml", "x"))))
    assert same is not None
    assert "a.yaml" not in same


def test_a_figure_that_was_not_there_is_new() -> None:
    text = plain_text(
        comparison_view(compare(from_file("a", "old"), from_file("a", "line_buffer")))
    )
    assert text is not None
    rows = {words[0]: words[1:] for line in text.splitlines() if (words := line.split())}
    assert rows["traffic_bytes.line_buffer"] == ["0", "7", "new"]
    assert rows["traffic_bytes.old"] == ["7", "0", "-100.00%"]
