"""What memories lose while a plan runs: counted once, everywhere in the same way."""

from dataclasses import replace
from math import fsum
from pathlib import Path

import pytest
from tests.machine_builder import Data, machine_of, marked, messages, sound_machine

from tilewright.machine.leakage import leakage_pj_per_cycle
from tilewright.machine.load import load_machine
from tilewright.mapping.network import MapOptions, map_network
from tilewright.network.load import load_network
from tilewright.plan_sizes import value_of
from tilewright.planner import Plan, PlanOptions, plan
from tilewright.report.html_data import energy_by_operand
from tilewright.report.plan import plan_figures
from tilewright.report.plan_machine import machine_problems
from tilewright.report.plan_totals import total_problems, totals_of
from tilewright.report.record import read_record


def leaking(bank: float = 0.0, reg: float = 0.0) -> Data:
    data = marked(sound_machine()) | {"clock": "1 MHz"}
    data["memories"]["bank"]["leakage_pw_per_bit"] = bank
    data["memories"]["reg"]["leakage_pw_per_bit"] = reg
    return data


def planned(data: Data, objective: str = "latency") -> Plan:
    options = PlanOptions(objective=objective)  # type: ignore[arg-type]  # one of a few words
    return plan(load_network("lenet5"), machine_of(data), options)


@pytest.fixture(scope="module")
def tight() -> Plan:
    return planned(leaking())


@pytest.fixture(scope="module")
def leaky() -> Plan:
    return planned(leaking(bank=3, reg=500))


def test_leakage_by_hand() -> None:
    machine = machine_of(leaking(bank=3, reg=500))
    reg, bank, ddr = machine.memories
    core = machine.cores[0]
    # 64 KiB at 3 pW a bit are 1,572,864 pW: in a cycle of 1 us, 1.572864 pJ.
    assert leakage_pj_per_cycle(machine, core, bank) == pytest.approx(1.572864)
    # Four registers of 8 bit, since they serve D1 of 8 x 4 units: 16,000 pW.
    assert leakage_pj_per_cycle(machine, core, reg) == pytest.approx(0.016)
    assert leakage_pj_per_cycle(machine, core, ddr) == 0.0


def test_a_plan_takes_what_leaks_until_it_ends(tight: Plan, leaky: Plan) -> None:
    assert leaky.timetable.slots == tight.timetable.slots
    lost = {"reg": 0.016 * leaky.cycles, "bank": 1.572864 * leaky.cycles}
    assert leaky.leakage_pj == pytest.approx(lost)
    assert tight.leakage_pj == {}
    for memory, energy in leaky.energy_pj.items():
        assert energy == pytest.approx(tight.energy_pj[memory] + lost.get(memory, 0.0))


def test_every_core_leaks_and_what_they_share_once() -> None:
    data = leaking(bank=3, reg=500) | {"core_count": 2}
    data["memories"]["ddr"] |= {"shared": True, "leakage_pw_per_bit": 0.001}
    made = planned(data)
    # 256 MiB at 0.001 pW a bit.
    per_cycle = {"reg": 2 * 0.016, "bank": 2 * 1.572864, "ddr": 2**31 * 1e-9}
    assert made.leakage_pj == pytest.approx({m: p * made.cycles for m, p in per_cycle.items()})


def test_everything_that_adds_energy_up_agrees(tight: Plan, leaky: Plan, tmp_path: Path) -> None:
    total = fsum(leaky.energy_pj.values())
    assert plan_figures(leaky)["totals"]["energy_pj"] == total
    assert totals_of(leaky.timetable)["energy_pj"] == pytest.approx(total)
    shown = energy_by_operand(leaky, leaky.record)
    assert fsum(v for row in shown for v in row["operands"].values()) == pytest.approx(total)
    lost_pj = (1.572864 + 0.016) * leaky.roofline.cycles
    assert leaky.roofline.energy_pj - tight.roofline.energy_pj == pytest.approx(lost_pj)
    assert leaky.roofline.energy_pj <= total
    as_energy = replace(leaky, options=PlanOptions(objective="energy"))
    assert value_of(as_energy)[0] == pytest.approx(total)
    leaky.save(tmp_path)
    record = read_record(tmp_path)
    assert record.timetable.program.leakage_pj(leaky.cycles) == leaky.leakage_pj
    assert list(total_problems(record)) == []
    assert list(machine_problems(record, leaky.machine)) == []


def test_a_machine_that_leaks_otherwise_is_another_one(leaky: Plan, tmp_path: Path) -> None:
    leaky.save(tmp_path)
    record = read_record(tmp_path)
    told = [p.message for p in machine_problems(record, machine_of(leaking(bank=3, reg=400)))]
    assert any("leakage_pj_per_cycle" in message for message in told)
    told = [p.message for p in machine_problems(record, machine_of(leaking(bank=2, reg=500)))]
    assert any("leakage_pj_per_cycle" in message for message in told)


def test_the_plan_of_least_energy_is_no_slow_one_where_much_leaks() -> None:
    # So much leaks that energy is as good as time.
    quick = planned(leaking(bank=3e6))
    frugal = planned(leaking(bank=3e6), "energy")
    assert fsum(frugal.energy_pj.values()) <= fsum(quick.energy_pj.values())
    assert frugal.options.objective == "energy"


def test_a_mapping_takes_what_leaks_on_its_core_and_zigzag_counts_none() -> None:
    network, machine = load_network("lenet5"), machine_of(leaking(bank=3, reg=500))
    found = map_network(network, machine)
    assert found.leakage_pj == pytest.approx((1.572864 + 0.016) * found.cycles)
    assert found.energy_pj == fsum([*(op.energy_pj for op in found.ops), found.leakage_pj])
    exact = map_network(network, machine, MapOptions(model="zigzag-3.9"))
    assert exact.leakage_pj == 0.0


def test_leakage_without_a_clock_is_warned_of() -> None:
    data = leaking(bank=3)
    del data["clock"]
    (message,) = messages(data)
    assert message.startswith("warning: memories.bank.leakage_pw_per_bit: is not counted")
    assert (
        leakage_pj_per_cycle(
            machine_of(data), machine_of(data).cores[0], machine_of(data).memories[1]
        )
        == 0
    )


def test_the_library_leaks_on_seneca_only() -> None:
    # Eight register files of 1 kbit at 600 pW a bit, and 2 Mbit at 10, at 500 MHz.
    machine = load_machine("seneca")
    core = machine.cores[0]
    rates = [leakage_pj_per_cycle(machine, core, m) for m in machine.memories]
    assert rates == pytest.approx([8 * 1024 * 600 / 500e6, 2**21 * 10 / 500e6])
