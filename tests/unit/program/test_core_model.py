"""Plans for cores whose own model says how long a tile takes."""

from dataclasses import replace

import tilewright
from tilewright.machine.model import Machine
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.core_model import CoreModelCosts, core_model_costs
from tilewright.program.places import places_of
from tilewright.program.stages import Stage
from tilewright.program.tile import TASK_CYCLES, Tenant, Work, choose
from tilewright.program.tile_cost import TileCosts


def network() -> Network:
    net = layers.draft("classifier", 8)
    data = layers.given(net, "data", (1, 64))
    scores = layers.gemm(net, "scores", data, 12)
    return net.finish(layers.softmax(net, "softmax", scores))


def costs(machine: Machine, model: Network) -> CoreModelCosts:
    found = core_model_costs(model, places_of(machine))
    assert found is not None
    return found


def stage(model: Network, number: int) -> Stage:
    return Stage(op=model.ops[number], fused=(), worker="array")


def test_a_task_takes_what_the_model_tells_and_all_run_on_one_engine() -> None:
    plan = tilewright.plan(network(), tilewright.load_machine("ethos_u55_256"))
    tasks = [task for task in plan.program.tasks if task.kind == "compute"]
    assert [task.op for task in tasks] == ["scores", "softmax"]
    assert {task.engine for task in tasks} == {"core[0]"}
    # 64 x 12 weights and 12 scales of 10 B come straight from the flash, a byte a cycle; in the
    # tests of the cycle model the product itself is worked out by hand.
    assert tasks[0].cycles == 64 * 12 + 12 * 10


def test_without_the_model_the_mapping_tells_the_cycles() -> None:
    machine = tilewright.load_machine("ethos_u55_256")
    core = replace(machine.cores[0], model=None)
    plain = replace(machine, cores=(core,))
    assert core_model_costs(network(), places_of(plain)) is None
    tasks = [t for t in tilewright.plan(network(), plain).program.tasks if t.kind == "compute"]
    engines = {task.op: task.engine for task in tasks}
    assert engines == {"scores": "core[0]", "softmax": "core[0].vector"}
    assert tasks[0].cycles != 64 * 12 + 12 * 10


def test_bounds_hold() -> None:
    machine = tilewright.load_machine("ethos_u55_128")
    plan = tilewright.plan(tilewright.load_network("ds_cnn"), machine)
    assert plan.roofline.cycles <= plan.cycles


def test_cut_tiles_take_no_less_than_the_least() -> None:
    model = tilewright.load_network("ds_cnn")
    told = costs(tilewright.load_machine("ethos_u55_256"), model)
    op = model.ops[0]
    least = told.fewest_cycles(op)
    assert least is not None
    for rows in (1, 2, 5, 25):
        tile = told.cycles(Stage(op=op, fused=(), worker="array"), {**op.sizes, "OY": rows})
        assert tile is not None
        assert tile * -(-25 // rows) >= least


def test_an_op_that_the_hardware_cannot_run_is_left_to_the_vector_unit() -> None:
    net = layers.draft("norm", 8)
    data = layers.given(net, "data", (2, 16))
    model = net.finish(layers.layer_norm(net, "norm", data, 1e-5))
    told = costs(tilewright.load_machine("ethos_u55_128"), model)
    assert told.cycles(stage(model, 0), model.ops[0].sizes) is None
    # 32 points on the 4 lanes of the vector unit; its memory port is quicker.
    plan = tilewright.plan(model, tilewright.load_machine("ethos_u55_128"))
    (task,) = [task for task in plan.program.tasks if task.kind == "compute"]
    assert task.cycles >= 8


def test_sums_that_are_cut_take_an_addition_more() -> None:
    model = network()
    places = places_of(tilewright.load_machine("ethos_u55_256"))
    cycles = TileCosts(network=model, places=places, options=SearchOptions()).model_of(
        stage(model, 0)
    )
    assert cycles is not None
    whole, half = cycles({"D": 1, "K": 12, "C": 64}), cycles({"D": 1, "K": 12, "C": 32})
    # The whole is worked out above. Half the channels take 64 cycles less to sum and a quarter of
    # that less in all, but the results go in four times the bytes, and are added to those before.
    assert whole == 181
    assert half is not None
    assert half > 181 - 64 - 16


def product_with_weights(lead_cycles: int, per_tile: int, per_output: int) -> Work:
    """A product of 64 outputs whose weights, 4,096 B at a byte a cycle, come from outside."""
    net = layers.draft("product", 8)
    data = layers.given(net, "data", (1, 64))
    op = net.finish(layers.gemm(net, "scores", data, 64)).ops[0]
    weights = Tenant(
        operand=op.inputs[1],
        shape=(64, 64),
        bits=8,
        memory="sram",
        bytes_per_cycle=1.0,
        setup_cycles=0,
        pj_per_byte=1.0,
        constant=True,
    )
    return Work(
        op=op,
        lengths=op.sizes,
        tenants=(weights,),
        room={"sram": 2**20},
        unrolled={"K": 8, "C": 8},
        tile_cycles=lambda lengths: per_tile + per_output * lengths["K"],
        lead_cycles=lead_cycles,
    )


def test_weights_come_in_slices_where_nothing_else_hides_them() -> None:
    # In one piece: 4,096 cycles of loading before 4,096 of computing can begin.
    found = choose(product_with_weights(0, per_tile=10, per_output=64), "latency")
    assert found is not None
    assert found.lengths["K"] < 64


def test_weights_come_in_one_piece_where_the_stages_before_hide_them() -> None:
    found = choose(product_with_weights(4_096, per_tile=10, per_output=64), "latency")
    assert found is not None
    assert found.lengths["K"] == 64
    assert found.moving_cycles == 4_096
    assert found.cycles == 10 + 64 * 64 + TASK_CYCLES


def test_tiles_that_the_model_finds_dear_are_not_made() -> None:
    found = choose(product_with_weights(0, per_tile=10_000, per_output=1), "latency")
    assert found is not None
    assert found.lengths == {"D": 1, "K": 64, "C": 64}
