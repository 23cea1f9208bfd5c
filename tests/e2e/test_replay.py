"""Plans of real networks, run on the emulated machine, against ONNX Runtime and TFLite."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import numpy_helper
from tests.e2e.onnx_cases import ALL
from tests.e2e.test_kernels_onnx import assert_same, feed_of, is_defined
from tests.e2e.test_onnx_shapes import session
from tests.onnx_models import Case, Given, integers, node, saved, single
from tests.onnx_models import model as onnx_model
from tests.reference_data import ABSENT, REFERENCE_DATA
from tests.zoo_export import feeds, run, to_onnx

from tilewright.errors import InfeasibleError
from tilewright.machine.load import load_machine
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.planner import Plan, PlanOptions, plan
from tilewright.program.lower import lower, prepare
from tilewright.program.model import Program, Timetable
from tilewright.replay.emulate import replay
from tilewright.replay.emulate_compare import agreements
from tilewright.replay.kernels.whole import computed
from tilewright.replay.timing import timing
from tilewright.replay.values import Values, values_of
from tilewright.schedule.control_edges import control_edges
from tilewright.schedule.schedule import schedule

Array = npt.NDArray[Any]
ALIGNMENT = 64
SCALES = {"x scale": 0.02, "c scale": 0.03, "v scale": 0.01, "m scale": 0.2}

SIZES: dict[str, dict[str, int]] = {
    "lenet5": {},
    "ds_cnn": {},
    "notes_cnn": {},
    "gpt2_block": {"past": 31},
    "resnet18": {"size": 64},
    "mobilenetv2": {"size": 64},
    "squeezenet": {"size": 64},
    "tiny_yolov3": {"size": 64},
    "vit_tiny": {"size": 32},
}
LARGE: dict[str, dict[str, int]] = {
    "alexnet": {},
    "resnet50": {"size": 64},
    "tiny_yolov2": {"size": 64},
    "bert_base": {"sequence": 8},
}
QUICK = ("lenet5", "ds_cnn")
LARGE_MODELS = ("deeplab", "mobilenet", "movenet", "mcunet", "person_detect", "ssd_slim")
MACHINES = ("edge_tpu_like", "npu_40xx", "ethos_u55_128", "tpu_like")


@cache
def reference(name: str) -> tuple[Network, Values, dict[str, Array]]:
    """A network of the zoo, values from a seed, and every tensor that ONNX Runtime computes."""
    network = load_network(name, dims={**SIZES, **LARGE}[name])
    stored = to_onnx(network, seed=1).graph.initializer
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in stored}
    values = Values(arrays={**constants, **feeds(network, 1)})
    return network, values, run(network, seed=1)


def quantised_files() -> Iterator[Any]:
    """Real TFLite networks, the large ones marked as slow."""
    found = sorted((REFERENCE_DATA / "models").glob("*.tflite"))
    for path in found:
        slow = any(part in path.stem for part in LARGE_MODELS)
        yield pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if slow else [])
    if not found:
        yield pytest.param(None, id="none", marks=pytest.mark.skip(reason=ABSENT))


def planned(network: Network, machine_name: str, share: int) -> Plan:
    """A plan with a share of every scratchpad; skips where there is none."""
    machine = load_machine(machine_name)
    limits = tuple(
        (memory.name, memory.size_bytes // share)
        for memory in machine.memories
        if memory.role == "scratchpad"
    )
    options = PlanOptions(lpf_limit=4, memory_limits=limits if share > 1 else ())
    try:
        return plan(network, machine, options)
    except InfeasibleError as error:
        pytest.skip(f"it does not fit: {str(error)[:200]}")


def assert_replays(made: Plan, values: Values, expected: dict[str, Array]) -> None:
    found = replay(made.timetable, made.network, values, expected=expected)
    assert [str(problem) for problem in found.problems] == []
    assert all(agreement.agrees for agreement in agreements(found.outputs, expected))
    for memory, (read, written) in made.traffic_bytes.items():
        traffic = found.traffic[memory]
        assert (memory, traffic.read_bytes, traffic.write_bytes) == (memory, read, written)
    for memory, energy_pj in made.energy_pj.items():
        assert found.traffic[memory].energy_pj == pytest.approx(energy_pj, rel=1e-9)


@pytest.mark.parametrize("share", [1, 4])
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name in (*SIZES, *LARGE)
    ],
)
def test_a_plan_computes_what_onnx_runtime_computes(name: str, machine: str, share: int) -> None:
    network, values, expected = reference(name)
    made = planned(network, machine, share)
    assert_replays(made, values, expected)
    # Nothing is slower than planned, so nothing can end later.
    assert timing(made.timetable) <= made.cycles


@pytest.mark.parametrize("machine", ["ethos_u55_128", "edge_tpu_like"])
@pytest.mark.parametrize("path", list(quantised_files()))
def test_a_plan_of_a_quantised_network_computes_every_number_exactly(
    path: Path, machine: str
) -> None:
    # That these kernels are TFLite's is tested in test_kernels_tflite.py.
    network = load_network(path)
    values = values_of(network, path, seed=1)
    expected = computed(network, values.arrays, values.quantisation)
    made = planned(network, machine, 1)
    assert_replays(made, values, expected)


def spilling() -> tuple[Program, Timetable]:
    """A program, and its timetable in scratchpads that hold just the largest task's buffers."""
    network = reference("gpt2_block")[0]
    options = SearchOptions(lpf_limit=4)
    machine = load_machine("tpu_like")
    program = lower(prepare(network, machine, network.ops, options), "latency").program
    need: dict[str, int] = {}
    for task in program.tasks:
        used: dict[str, dict[int, int]] = {}
        for access in (*task.reads, *task.writes):
            root = program.root(access.buffer)
            buffer = program.buffers[root]
            used.setdefault(buffer.space, {})[root] = buffer.size_bytes + ALIGNMENT
        for space, sizes in used.items():
            need[space] = max(need.get(space, 0), sum(sizes.values()))
    spaces = tuple(
        replace(space, size_bytes=need[space.name]) if space.kind == "scratchpad" else space
        for space in program.spaces
    )
    timetable = schedule(replace(program, spaces=spaces))
    return program, replace(timetable, edges=control_edges(timetable))


@pytest.mark.slow
def test_a_plan_that_writes_buffers_out_and_fetches_them_again_computes_the_same() -> None:
    network, values, expected = reference("gpt2_block")
    program, timetable = spilling()
    added = range(len(program.tasks), len(timetable.program.tasks))
    assert len(added) > 10
    assert replay(timetable, network, values, expected=expected).problems == ()
    for number in added:
        task = timetable.program.tasks[number]
        idle = replace(task, reads=(), writes=(), charges=())
        tasks = timetable.program.tasks
        without = (*tasks[:number], idle, *tasks[number + 1 :])
        wrong = replace(timetable, program=replace(timetable.program, tasks=without))
        found = replay(wrong, network, values)
        assert found.problems, f"{task.name} is missing, and nobody notices"


def quantised_models() -> dict[str, onnx.ModelProto]:
    """The same small network with quantisers around its ops, and with quantised ops."""
    random = np.random.default_rng(5)
    scale = {name: np.array(value, np.float32) for name, value in SCALES.items()}
    constants: dict[str, Array | onnx.TensorProto] = {
        **scale,
        "zero": np.array(0, np.int8),
        "zeros": np.zeros(8, np.int8),
        "w": random.integers(-127, 128, (8, 3, 3, 3)).astype(np.int8),
        "w scale": random.uniform(0.002, 0.01, 8).astype(np.float32),
        "b": random.integers(-500, 500, 8).astype(np.int32),
        "v": random.integers(-127, 128, (128, 5)).astype(np.int8),
        "shape": integers(1, -1),
    }
    pads = {"pads": [1, 1, 1, 1], "strides": [2, 2]}
    first = node("QuantizeLinear", ["x", "x scale", "zero"], ["x q"])
    around = [
        first,
        node("DequantizeLinear", ["x q", "x scale", "zero"], ["x r"]),
        node("DequantizeLinear", ["w", "w scale", "zeros"], ["w r"], {"axis": 0}),
        node("Conv", ["x r", "w r"], ["c"], pads),
        node("Relu", ["c"], ["r"]),
        node("QuantizeLinear", ["r", "c scale", "zero"], ["r q"]),
        node("DequantizeLinear", ["r q", "c scale", "zero"], ["r r"]),
        node("Reshape", ["r r", "shape"], ["f"]),
        node("DequantizeLinear", ["v", "v scale", "zero"], ["v r"]),
        node("MatMul", ["f", "v r"], ["m"]),
        node("QuantizeLinear", ["m", "m scale", "zero"], ["y"]),
    ]
    inside = [
        first,
        node(
            "QLinearConv",
            ["x q", "x scale", "zero", "w", "w scale", "zeros", "c scale", "zero", "b"],
            ["c"],
            pads,
        ),
        node("Reshape", ["c", "shape"], ["f"]),
        node(
            "QLinearMatMul",
            ["f", "c scale", "zero", "v", "v scale", "zero", "m scale", "zero"],
            ["y"],
        ),
    ]
    given = {"x": Given(shape=(1, 3, 8, 8))}
    return {
        "around": onnx_model(around, given, ["y"], constants),
        "inside": onnx_model(inside, given, ["y"], constants),
    }


@pytest.mark.parametrize("style", ["around", "inside"])
@pytest.mark.parametrize("machine", ["edge_tpu_like", "npu_40xx"])
def test_a_plan_of_a_quantised_onnx_model_computes_every_number_exactly(
    style: str, machine: str, tmp_path: Path
) -> None:
    proto = quantised_models()[style]
    path = saved(proto, tmp_path)
    network = load_network(path)
    values = values_of(network, path, seed=2)
    made = planned(network, machine, 1)
    found = replay(made.timetable, network, values)
    assert [str(problem) for problem in found.problems] == []
    (expected,) = session(proto).run(["y"], {"x": values.arrays["x"]})
    assert len(np.unique(expected)) > 3
    np.testing.assert_array_equal(found.outputs["y"], expected)


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["edge_tpu_like", "npu_40xx"])
@pytest.mark.parametrize(("group", "case"), ALL, ids=[f"{g}: {c.name}" for g, c in ALL])
def test_a_plan_of_one_op_computes_what_onnx_runtime_computes(
    group: str, case: Case, machine: str, tmp_path: Path
) -> None:
    proto = single(case)
    path = saved(proto, tmp_path)
    # These arrays take operands of 8 bits; addresses change with that, values do not.
    network = load_network(path, bits=8 if group in ("conv", "product") else None)
    feed = feed_of(case, 0)
    values = Values(arrays={**values_of(network, path).arrays, **feed})
    names = [tensor.name for tensor in network.outputs]
    expected = dict(zip(names, session(proto).run(names, feed), strict=True))
    found = replay(planned(network, machine, 1).timetable, network, values)
    assert [str(problem) for problem in found.problems] == []
    for name in names:
        if is_defined(case, int(name.removeprefix("y"))):
            assert_same(name, found.outputs[name], expected[name])


def test_the_replay_sees_a_wrong_weight() -> None:
    network, values, expected = reference("lenet5")
    arrays = dict(values.arrays)
    name = next(t.name for t in network.tensors if t.role == "constant")
    arrays[name] = arrays[name] + np.float32(0.01)
    found = replay(planned(network, "tpu_like", 1).timetable, network, Values(arrays=arrays))
    assert not all(agreement.agrees for agreement in agreements(found.outputs, expected))
