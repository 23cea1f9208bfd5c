"""Networks that fit only if some ops run twice: plans, what commands tell of them, and replays."""

import json
from collections import Counter
from functools import cache
from math import prod

import pytest
from tests.reference_data import ABSENT, REFERENCE_DATA

from tilewright import PlanOptions, load_machine, load_network, plan
from tilewright.errors import InfeasibleError
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import Plan
from tilewright.program.strips import is_repeated
from tilewright.replay.verify import verify
from tilewright.report.plan import plan_figures

MODELS = REFERENCE_DATA / "models"
SIZE_BYTES = 15_000
FEW_BYTES = 9_000
LEAST_BYTES = 3_300


def with_sram(size_bytes: int) -> Machine:
    return with_memory_limits(load_machine("ethos_u55_128"), (("sram", size_bytes),))


def gated(channels: int = 96) -> Network:
    """A wide map of 24,576 B between narrow ones of 2,048 B, to which something is added that is
    made of its mean."""
    net = layers.draft("gated", 8)
    data = layers.given(net, "x", (1, 3, 16, 16))
    narrow = layers.conv(net, "narrow", data, 8, layers.square(3, 1, 1))
    data = layers.conv(net, "wide", narrow, channels, layers.square(1))
    window = layers.square(3, 1, 1, group=channels)
    data = layers.conv(net, "depthwise", data, channels, window)
    mean = layers.global_average_pool(net, "mean", data)
    gate = layers.conv(net, "gate", mean, channels, layers.square(1))
    data = layers.conv(net, "end", layers.add(net, "sum", data, gate), 8, layers.square(1))
    return net.finish(layers.add(net, "residual", data, narrow))


@cache
def found() -> Plan:
    return plan(gated(), with_sram(SIZE_BYTES))


def test_a_map_that_would_wait_for_its_mean_is_made_twice() -> None:
    made = found()
    assert [way.tensor for way in made.again] == ["depthwise"]
    assert made.again[0].ops == ("wide", "depthwise")
    assert made.again[0].readers == ("sum",)
    assert made.network == gated()
    assert made.roofline == plan(gated(), with_sram(100_000)).roofline
    assert made.peak_bytes["sram"] <= SIZE_BYTES
    assert verify(made.timetable, made.network).agrees


def test_only_what_is_said_to_run_again_does() -> None:
    made = found()
    points: Counter[str] = Counter()
    for task in made.program.tasks:
        if task.op and not is_repeated(task):
            points[task.op] += prod(stop - start for _, start, stop in task.tile)
    twice = made.again[0].ops
    assert not made.strips
    for op in made.network.ops:
        times = 2 if op.name in twice else 1
        assert points[op.name] in (times * op.points, 0), op.name
    assert all(points[name] for name in twice)


def test_with_less_room_what_runs_again_also_runs_in_strips() -> None:
    made = plan(gated(), with_sram(FEW_BYTES))
    assert made.again
    assert [strips.ops for strips in made.strips] == [("wide", "depthwise", "sum", "end")]
    assert made.peak_bytes["sram"] <= FEW_BYTES
    assert verify(made.timetable, made.network).agrees


@pytest.mark.slow
def test_a_seventh_of_the_largest_map_is_enough() -> None:
    made = plan(gated(), with_sram(LEAST_BYTES))
    assert {way.tensor for way in made.again} == {"depthwise", "narrow"}
    assert made.strips
    assert made.peak_bytes["sram"] <= LEAST_BYTES < 24_576 // 7
    assert verify(made.timetable, made.network).agrees


@pytest.mark.slow
def test_a_thorough_search_finds_a_plan_where_there_seemed_to_be_none() -> None:
    size_bytes = 2_000
    with pytest.raises(InfeasibleError):
        plan(gated(), with_sram(size_bytes))
    made = plan(gated(), with_sram(size_bytes), PlanOptions(thorough=True))
    assert made.peak_bytes["sram"] <= size_bytes
    assert verify(made.timetable, made.network).agrees


def test_figures_and_the_sentence_tell_what_runs_again() -> None:
    figures = plan_figures(found())
    (way,) = figures["strategy"]["again"]
    assert (way["tensor"], way["ops"], way["readers"]) == (
        "depthwise",
        ("wide", "depthwise"),
        ("sum",),
    )
    assert json.loads(json.dumps(figures["strategy"]))["again"][0]["macs"] == way["macs"] > 0


def u_net() -> Network:
    """Two levels whose maps wait for those that come back; the concatenation of the first has
    13,824 B, of which the map that waits is a third."""
    net = layers.draft("u_net", 8)
    window = layers.square(3, 1, 1)
    data = layers.conv(net, "in", layers.given(net, "x", (1, 3, 24, 24)), 8, window)
    upper = layers.conv(net, "upper", data, 8, window)
    data = layers.max_pool(net, "pool1", upper, layers.square(2, 2))
    lower = layers.conv(net, "lower", layers.conv(net, "down", data, 16, window), 16, window)
    data = layers.conv(
        net, "middle", layers.max_pool(net, "pool2", lower, layers.square(2, 2)), 32, window
    )
    data = layers.concat(net, "join2", [lower, layers.upsample(net, "up2", data, 2)], 1)
    data = layers.upsample(net, "up1", layers.conv(net, "back", data, 16, window), 2)
    data = layers.conv(net, "out", layers.concat(net, "join1", [upper, data], 1), 8, window)
    return net.finish(layers.conv(net, "end", data, 4, layers.square(1)))


def test_a_concatenation_copies_what_would_take_all_its_room_from_the_start() -> None:
    network = u_net()
    made = plan(network, with_sram(20_000))
    assert made.network == network
    assert made.peak_bytes["sram"] <= 20_000
    assert verify(made.timetable, network).agrees
    # The upper map and what joins it are copied into their concatenation.
    assert "join1" in {task.op for task in made.program.tasks}


@pytest.mark.slow
def test_a_concatenation_in_strips_copies_what_others_read_more_of() -> None:
    # The pools read columns of the maps that their concatenations in the same strip do not.
    made = plan(u_net(), with_sram(10_000))
    (strips,) = made.strips
    assert {"upper", "pool1", "join1"} < {*strips.ops}
    assert made.peak_bytes["sram"] <= 10_000
    assert verify(made.timetable, made.network).agrees


def test_ops_with_a_number_sign_in_their_names_are_ops_like_others() -> None:
    net = layers.draft("numbers", 8)
    data = layers.given(net, "x#0", (1, 8, 6, 6))
    network = net.finish(layers.conv(net, "conv#1", data, 8, layers.square(3, 1, 1)))
    made = plan(network, load_machine("ethos_u55_128"))
    assert verify(made.timetable, network).agrees


@pytest.mark.slow
@pytest.mark.skipif(not MODELS.exists(), reason=ABSENT)
@pytest.mark.parametrize(
    ("machine", "size_bytes"), [("ethos_u55_128", 64 * 1024), ("ethos_u55_256", 128 * 1024)]
)
def test_movenet_runs_without_dram(machine: str, size_bytes: int) -> None:
    network = load_network(str(MODELS / "coral_movenet_single_pose_lightning_ptq.tflite"))
    limited = with_memory_limits(load_machine(machine), (("sram", size_bytes),))
    made = plan(network, limited)
    assert made.again
    assert made.peak_bytes["sram"] <= size_bytes
    assert verify(made.timetable, network).agrees


@pytest.mark.slow
@pytest.mark.skipif(not MODELS.exists(), reason=ABSENT)
def test_deeplab_runs_in_128_kib_without_dram() -> None:
    network = load_network(str(MODELS / "coral_deeplabv3_mnv2_dm05_pascal_quant.tflite"))
    made = plan(network, with_sram(128 * 1024))
    assert made.again
    assert any(is_repeated(task) for task in made.program.tasks)
    assert made.peak_bytes["sram"] <= 128 * 1024
