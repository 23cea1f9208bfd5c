"""What tasks are charged, beside what their mappings say."""

from functools import cache
from math import fsum

import pytest

import tilewright
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import Plan, with_memory_limits


def tower() -> Network:
    """Three windows, each with an activation that is applied in passing."""
    net = layers.draft("tower", 8)
    data = layers.given(net, "x", (1, 16, 24, 24))
    for name in ("first", "second", "third"):
        data = layers.relu6(
            net, f"{name}.relu", layers.conv(net, name, data, 16, layers.square(3, 1, 1))
        )
    return net.finish(data)


@pytest.mark.parametrize("machine", ["npu_37xx", "ethos_u55_128", "edge_tpu_like"])
def test_every_element_that_passes_an_activation_is_charged_once(machine: str) -> None:
    """Also where a tile leaves its rows in two places: on two cores, or around a rolling buffer."""
    on = tilewright.load_machine(machine)
    plan = tilewright.plan(tower(), on)
    core = on.cores[0]
    op_pj = core.array.mac_pj if core.vector is None else core.vector.op_pj
    assert plan.energy_pj["vector"] == pytest.approx(3 * 16 * 24 * 24 * op_pj)


def test_an_activation_is_charged_for_rows_around_a_rolling_buffer() -> None:
    on = tilewright.load_machine("ethos_u55_128")
    plan = tilewright.plan(tower(), with_memory_limits(on, (("sram", 14 * 1024),)))
    assert not plan.strips
    split = [t for t in plan.program.tasks if t.fused and len(t.writes) > 1]
    assert split
    assert plan.energy_pj["vector"] == pytest.approx(3 * 16 * 24 * 24 * 0.04)


def test_on_the_vector_unit_one_op_comes_after_the_other() -> None:
    net = layers.draft("chain", 8)
    data = layers.given(net, "x", (1, 8, 4, 4))
    for number in range(40):
        data = layers.relu6(net, f"relu{number}", data)
    on = tilewright.load_machine("edge_tpu_like")
    # A machine that declares no vector unit has one of 16 lanes.
    assert on.cores[0].vector is None
    plan = tilewright.plan(net.finish(data), on)
    tasks = [task for task in plan.program.tasks if task.kind == "compute"]
    assert {len(task.fused) for task in tasks} == {39}
    assert sum(task.cycles for task in tasks) == 40 * 8 * 4 * 4 // 16


@cache
def wide() -> Plan:
    """Weights of 16 bit, which the multipliers of the array do not take."""
    machine = tilewright.load_machine("ethos_u55_128")
    return tilewright.plan(tilewright.load_network("notes_cnn"), machine)


def test_a_tile_that_has_no_mapping_is_charged_for_all_that_it_reads_and_writes() -> None:
    (task, *_) = (task for task in wide().program.tasks if task.name == "conv1")
    sram = [charge for charge in task.charges if charge.memory == "sram"]
    # An image of 32 x 32 and 16 kernels of 3 x 3; 16 maps of 30 x 30; all of two bytes.
    assert [(c.read_bytes, c.write_bytes) for c in sram] == [
        (2 * (32 * 32 + 16 * 3 * 3), 2 * 16 * 30 * 30)
    ]
    assert fsum(c.energy_pj for c in task.charges if c.memory == "vector") == pytest.approx(
        16 * 30 * 30 * 3 * 3 * 0.04
    )
