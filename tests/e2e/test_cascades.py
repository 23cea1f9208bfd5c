"""Plans with cascades of real networks: on several cores, and with whole numbers, exactly."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.cascade_cases import Cascaded, cascaded, prepared, runs
from tests.e2e.test_replay import Array, quantised_files, reference
from tests.small_machines import Small, small_machine

from tilewright.errors import InfeasibleError
from tilewright.machine.load import load_machine
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.network.resampling import resized
from tilewright.network.zoo import layers
from tilewright.program.cascade import Cascade
from tilewright.program.model import Buffer
from tilewright.replay.check import problems
from tilewright.replay.emulate import replay
from tilewright.replay.emulate_compare import agreements
from tilewright.replay.kernels.whole import computed
from tilewright.replay.values import Values, values_of
from tilewright.replay.verify import verify

NCHW_HEIGHT, NHWC_HEIGHT = 2, 1
LONGEST = 9
STEP_BY_STEP, WITH_ROOM_AHEAD, ROW_BY_ROW = (True, False), (True, True), (False, False)
"""Whether a cascade is eager, and whether it has room for the next step."""


def in_cascades(
    network: Network, machine_name: str, axis: int, step: int, way: tuple[bool, bool]
) -> Cascaded:
    """A plan in which all stages that can do so run some rows at a time, up to nine together."""
    machine = load_machine(machine_name)
    eager, ahead = way
    found = [
        Cascade(first=first, last=last, axis=axis, step=step, eager=eager, ahead=ahead)
        for first, last in runs(prepared(network, machine).rows, axis, LONGEST)
    ]
    return cascaded(network, machine, *found)


def assert_replays(made: Cascaded, values: Values, expected: dict[str, Array]) -> None:
    assert made.lowered.layout.rings
    assert problems(made.timetable, made.network) == []
    found = replay(made.timetable, made.network, values, expected=expected)
    assert [str(problem) for problem in found.problems] == []
    assert all(agreement.agrees for agreement in agreements(found.outputs, expected))


@pytest.mark.parametrize("rows", [2, 3])
def test_a_pool_may_see_rows_that_are_all_padding(rows: int) -> None:
    # Three rows below the last one are in the window, each of which is a step of the cascade.
    net = layers.draft("below", 8)
    data = layers.conv(net, "conv", layers.given(net, "x", (1, 3, rows, 6)), 4, layers.square(1))
    window = layers.Filter(kernel=(rows + 3, 1), pads=(0, 0, 3, 0))
    network = net.finish(layers.max_pool(net, "pool", data, window))
    cascade = Cascade(first=0, last=1, axis=NCHW_HEIGHT, step=1, eager=False)
    made = cascaded(network, small_machine(Small(kind="ends")), cascade)
    assert any(("FY", rows, rows + 1) in task.tile for task in made.lowered.program.tasks)
    assert verify(made.timetable, network).agrees


def ring_buffers(made: Cascaded) -> list[Buffer]:
    """Buffers of which later rows are views."""
    program = made.lowered.program
    rolling = {root for _, root in made.lowered.layout.rings}
    viewed = {buffer.view.buffer for buffer in program.buffers if buffer.view is not None}
    return [program.buffers[n] for n in sorted(viewed) if program.buffers[n].tensor in rolling]


def cores_of(made: Cascaded, stages: Sequence[int]) -> set[str]:
    """The engines of the arrays on which some stages run."""
    names = [made.lowered.stages[number].op.name for number in stages]
    tasks = made.timetable.program.tasks
    return {task.engine for task in tasks if task.op in names and "vector" not in task.engine}


@pytest.mark.parametrize(
    ("name", "machine", "step"),
    [
        ("resnet18", "npu_37xx", 4),
        *(
            pytest.param(name, machine, step, marks=pytest.mark.slow)
            for name in ("resnet18", "mobilenetv2", "squeezenet", "tiny_yolov3")
            for machine in ("npu_37xx", "npu_40xx")
            for step in (1, 2, 5)
        ),
    ],
)
def test_cores_go_through_a_cascade_together(name: str, machine: str, step: int) -> None:
    network, values, expected = reference(name)
    made = in_cascades(network, machine, NCHW_HEIGHT, step, STEP_BY_STEP)
    assert_replays(made, values, expected)
    assert len(cores_of(made, list(made.lowered.layout.flows))) > 1
    spaces = {buffer.space for buffer in ring_buffers(made)}
    assert len(spaces) > 1


SMALL_BYTES = 340_000
"""Files of networks that are quick to replay are no larger."""


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(STEP_BY_STEP, id="step_by_step"),
        pytest.param(WITH_ROOM_AHEAD, id="with_room_ahead", marks=pytest.mark.slow),
        pytest.param(ROW_BY_ROW, id="row_by_row", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("machine", ["ethos_u55_128", "npu_37xx"])
@pytest.mark.parametrize("path", list(quantised_files()))
def test_a_cascade_of_a_quantised_network_computes_every_number_exactly(
    path: Path, machine: str, way: tuple[bool, bool]
) -> None:
    if way != STEP_BY_STEP and path.stat().st_size > SMALL_BYTES:
        pytest.skip("only small networks are run in every way")
    network = load_network(path)
    values = values_of(network, path, seed=1)
    expected = computed(network, values.arrays, values.quantisation)
    if all(len(tensor.shape) < 4 for tensor in network.inputs):
        pytest.skip("there are no rows in this network")
    try:
        made = in_cascades(network, machine, NHWC_HEIGHT, 2, way)
    except InfeasibleError as refused:
        with pytest.raises(InfeasibleError):
            cascaded(network, load_machine(machine))
        pytest.skip(f"it has no plan without cascades either: {str(refused)[:200]}")
    assert_replays(made, values, expected)


def larger(mode: str) -> Network:
    """A picture of 8 x 8 made twice as high and wide between two convolutions."""
    net = layers.draft("larger", 8)
    data = layers.given(net, "x", (1, 4, 8, 8))
    data = layers.conv(net, "before", data, 4, layers.square(3, 1, 1))
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": "half_pixel",
        "nearest_mode": "round_prefer_floor",
    }
    nest = resized(data.shape, (1, 4, 16, 16), attributes)
    data = net.builder.op("up", "resize", nest, [data.name], {"up": (8, "")}, attributes=attributes)
    return net.finish(layers.conv(net, "behind", data, 4, layers.square(3, 1, 1)))


@pytest.mark.parametrize(("mode", "rows_before"), [("nearest", 1), ("linear", 2)])
def test_a_picture_that_is_made_larger_goes_row_by_row(mode: str, rows_before: int) -> None:
    network = larger(mode)
    cascade = Cascade(first=0, last=2, axis=NCHW_HEIGHT, step=1, eager=True, ahead=False)
    made = cascaded(network, small_machine(Small(size_bytes=1024)), cascade)
    assert problems(made.timetable, network) == []
    assert verify(made.timetable, network).agrees
    # Rows of 4 channels: one of 8 columns, or the two around a place; three of 16 for a window.
    held = {buffer.tensor: buffer.size_bytes for buffer in ring_buffers(made)}
    assert (held["before"], held["up"]) == (rows_before * 4 * 8, 3 * 4 * 16)
