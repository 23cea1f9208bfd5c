from dataclasses import replace

import pytest
from tests.report_plans import small_plan
from tests.report_timetables import by_hand

from tilewright.program.model import Program, Slot, Task, Timetable
from tilewright.report.op_rows import cascades, op_rows, transfer_owners
from tilewright.report.plan import plan_figures
from tilewright.report.record import OpFigures, PlanRecord, record_of


def record(queue: str, engines: str = "") -> PlanRecord:
    """Ops named by single letters, one task each, one after the other; engines by digit."""
    engines = engines or "0" * len(queue)
    tasks = tuple(
        Task(name=op, kind="compute", engine=f"core[{engine}]", cycles=1, op=op)
        for op, engine in zip(queue, engines, strict=True)
    )
    slots = tuple(Slot(start_cycle=at, end_cycle=at + 1) for at in range(len(queue)))
    program = Program(name="", spaces=(), engines=(), routes=(), buffers=(), tasks=tasks)
    return PlanRecord(
        figures={},
        timetable=Timetable(program=program, slots=slots, addresses=()),
        tiles=(),
        ops=(),
        limits={},
    )


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("aabbcc", []),
        ("ababcc", ["ab"]),
        ("abcabcd", ["abc"]),
        ("abacbc", ["abc"]),
        ("abadcdc", ["ab", "dc"]),
        ("abcbca", ["abc"]),
    ],
)
def test_ops_whose_tiles_take_turns_are_a_cascade(queue: str, expected: list[str]) -> None:
    assert ["".join(ops) for ops in cascades(record(queue))] == expected


def test_ops_on_different_cores_take_no_turns() -> None:
    assert cascades(record("abab", "0101")) == []


def figures(name: str) -> OpFigures:
    return OpFigures(
        name=name, kind="add", worker="array", fused=(), macs=0, dims=(), reads=(), writes=()
    )


def test_an_op_has_its_own_work_and_its_transfers() -> None:
    made = replace(record(""), timetable=by_hand(), ops=tuple(map(figures, ("second", "first"))))
    made = replace(made, ops=(*made.ops, figures("third")))
    assert transfer_owners(made) == ["first", "first", "second", "second", "third", "third"]
    first, second, third = op_rows(made, None)
    assert (first.name, first.busy_cycles, first.idle_cycles) == ("first", 5, 10)
    assert first.bound_by == "transfers of dma over dram.port"
    assert (second.name, second.busy_cycles, second.idle_cycles) == ("second", 10, 15)
    assert (third.start_cycle, third.end_cycle, third.energy_pj) == (40, 50, 1 + 88)
    assert third.bound_by == "no room in cmx"


def test_the_ops_of_a_plan_add_up_to_the_plan() -> None:
    made = small_plan("lenet5")
    rows = op_rows(record_of(made, plan_figures(made)), made.machine.cores[0].array.units)
    arrays = sum(cycles for name, cycles in made.busy_cycles.items() if name.startswith("core["))
    assert sum(row.busy_cycles for row in rows) == arrays
    assert sum(row.energy_pj for row in rows) == pytest.approx(sum(made.energy_pj.values()))
    read, written = made.traffic_bytes["ddr"]
    assert sum(row.traffic_bytes for row in rows) == read + written
    assert all(row.utilisation is None or 0 < row.utilisation <= 1 for row in rows)
