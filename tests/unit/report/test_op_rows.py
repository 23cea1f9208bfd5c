import pytest
from tests.report_plans import small_plan
from tests.report_timetables import by_hand

from tilewright.report.op_rows import op_rows, transfer_owners
from tilewright.report.plan import plan_figures
from tilewright.report.record import OpFigures, PlanRecord, record_of


def figures(name: str) -> OpFigures:
    return OpFigures(
        name=name, kind="add", worker="array", fused=(), macs=0, dims=(), reads=(), writes=()
    )


def test_an_op_has_its_own_work_and_its_transfers() -> None:
    ops = tuple(map(figures, ("second", "first", "third")))
    made = PlanRecord(figures={}, timetable=by_hand(), tiles=(), ops=ops, limits={})
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
