"""Networks that fit in strips of columns only: plans, what commands tell of them, and replays."""

import json
from functools import cache
from math import prod
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.brought import without_bypass
from tests.reference_data import ABSENT, REFERENCE_DATA

from tilewright import load_machine, load_network, plan, plan_patches
from tilewright.cli import tilewright
from tilewright.errors import InfeasibleError
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.network.kinds import is_mac
from tilewright.network.zoo import layers
from tilewright.plan_patches import Planning
from tilewright.planner import Plan
from tilewright.program.strips import strip_of
from tilewright.replay.verify import verify
from tilewright.strategy.choose import ChooseOptions
from tilewright.strategy.strip_search import USUAL, Effort, StripSearch

MOBILENET = REFERENCE_DATA / "models" / "coral_mobilenet_v2_1.0_224_quant.tflite"
SIZE_BYTES = 1_408
LENET = ["lenet5", "--on", "ethos_u55_128", "--memory-limit", f"sram={SIZE_BYTES} B"]


def macs_of_tasks(found: Plan) -> int:
    """Multiplications, those in padding included, as the tiles of tasks have them."""
    kinds = {op.name: op.kind for op in found.network.ops}
    return sum(
        prod(stop - start for _, start, stop in task.tile)
        for task in found.program.tasks
        if task.kind == "compute" and is_mac(kinds[task.op])
    )


def macs_of_network(found: Plan) -> int:
    return sum(op.points for op in found.network.ops if is_mac(op.kind))


@cache
def lenet() -> Plan:
    return plan(load_network("lenet5"), with_sram("ethos_u55_128", SIZE_BYTES))


def with_sram(machine: str, size_bytes: int) -> Machine:
    """A machine of which all weights take room, so that there is little of it left."""
    return without_bypass(with_memory_limits(load_machine(machine), (("sram", size_bytes),)))


def test_a_network_fits_in_strips_where_it_does_not_else() -> None:
    found = lenet()
    # Strips are only looked for where nothing else fits. The plan is checked, and replayed.
    assert found.strips
    assert found.network == load_network("lenet5")
    assert verify(found.timetable, found.network).agrees
    assert found.peak_bytes["sram"] <= SIZE_BYTES
    names = {name for strips in found.strips for name in strips.ops}
    in_strips = [task for task in found.program.tasks if strip_of(task)]
    assert {name for task in in_strips for name in (task.op, *task.fused)} == names


def test_what_is_computed_again_is_what_tasks_compute_beyond_the_network() -> None:
    found = lenet()
    again = sum(strips.macs_again for strips in found.strips)
    assert again == macs_of_tasks(found) - macs_of_network(found) > 0


@pytest.mark.slow
def test_strips_where_a_plan_without_them_is_slower() -> None:
    network = load_network("lenet5")
    tighter, tight = (plan(network, with_sram("ethos_u55_128", size)) for size in (1_600, 1_800))
    # Without strips there is a plan in 1,800 B, but none in 1,600 B.
    assert tighter.strips
    assert tight.strips
    assert tight.cycles <= tighter.cycles


def u_net(*, turned: bool = False) -> Network:
    """A picture that waits until what is made of it, smaller and with many channels, joins it.

    Where that is turned over first, no row of the sum can be made before all of it is there.
    """
    net = layers.draft("u_net", 8)
    skip = layers.conv(
        net, "skip", layers.given(net, "x", (1, 3, 24, 24)), 4, layers.square(3, 1, 1)
    )
    data = layers.max_pool(net, "pool", skip, layers.square(2, 2))
    data = layers.conv(net, "expand", data, 64, layers.square(1))
    data = layers.conv(net, "depthwise", data, 64, layers.square(3, 1, 1, group=64))
    data = layers.conv(net, "project", data, 4, layers.square(1))
    data = layers.upsample(net, "up", data, 2)
    data = layers.transpose(net, "turn", data, (0, 1, 3, 2)) if turned else data
    data = layers.add(net, "sum", data, skip)
    return net.finish(layers.conv(net, "end", data, 4, layers.square(1)))


@pytest.mark.slow
def test_strips_lead_past_a_tensor_that_waits() -> None:
    found = plan(u_net(turned=True), with_sram("ethos_u55_128", 5_500))
    assert [strips.ops for strips in found.strips] == [("expand", "depthwise", "project")]
    assert verify(found.timetable, found.network).agrees
    assert found.peak_bytes["sram"] <= 5_500


@pytest.mark.slow
def test_strips_go_through_a_picture_that_is_made_larger() -> None:
    found = plan(u_net(), with_sram("ethos_u55_128", 2_500))
    # Skip alone has 2,304 B, of which pool would make 576 B.
    assert [strips.ops[-3:] for strips in found.strips] == [("up", "sum", "end")]
    assert verify(found.timetable, found.network).agrees
    assert found.peak_bytes["sram"] <= 2_500


def pooled() -> Network:
    """Three convolutions, and the mean of their last map, which has 4,608 B."""
    net = layers.draft("pooled", 8)
    data = layers.given(net, "x", (1, 3, 12, 24))
    data = layers.conv(net, "first", data, 8, layers.square(3, 1, 1))
    data = layers.conv(net, "second", data, 8, layers.square(3, 1, 1))
    data = layers.conv(net, "third", data, 16, layers.square(3, 1, 1))
    mean = layers.global_average_pool(net, "mean", data)
    return net.finish(layers.conv(net, "end", mean, 10, layers.square(1)))


@pytest.mark.slow
def test_a_mean_is_added_up_over_strips() -> None:
    found = plan(pooled(), with_sram("ethos_u55_128", 960))
    assert [strips.ops for strips in found.strips] == [("first", "second", "third", "mean")]
    assert verify(found.timetable, found.network).agrees
    assert found.peak_bytes["sram"] <= 960
    # Every column of the map is added once, though others of the first maps are made twice.
    added = [task.tile for task in found.program.tasks if task.op == "mean"]
    points = sum(prod(stop - start for _, start, stop in tile) for tile in added)
    assert points == 16 * 12 * 24


@pytest.mark.slow
@pytest.mark.parametrize("size", [1_000, 1_040])
def test_where_strips_do_not_fit_in_the_end_more_of_them_are_tried(size: int) -> None:
    # Fewer strips seem to fit here, but get no addresses.
    found = plan(pooled(), with_sram("ethos_u55_128", size))
    assert found.peak_bytes["sram"] <= size
    assert verify(found.timetable, found.network).agrees


@pytest.mark.slow
def test_where_strips_take_too_many_tiles_no_more_of_them_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts: list[float] = []
    search = plan_patches._search

    def watched(
        planning: Planning, part: float, options: ChooseOptions, effort: Effort = USUAL
    ) -> StripSearch:
        parts.append(part)
        return search(planning, part, options, effort)

    monkeypatch.setattr(plan_patches, "_search", watched)
    monkeypatch.setattr(plan_patches, "MANY_TILES", 1)
    with pytest.raises(InfeasibleError):
        plan(load_network("lenet5"), with_sram("ethos_u55_128", SIZE_BYTES))
    assert parts
    assert min(parts) > max(plan_patches.LESS)


@pytest.mark.slow
def test_strips_that_would_add_to_differently_cut_sums_are_no_plan() -> None:
    # Here one strip was to make two channels of the mean at a time, and the next one all: a plan
    # that does not pass its check. Another plan would do, or none.
    try:
        found = plan(pooled(), with_sram("ethos_u55_128", 880))
    except InfeasibleError:
        return
    assert verify(found.timetable, found.network).agrees


def test_no_strips_where_there_is_room() -> None:
    assert plan(load_network("lenet5"), with_sram("ethos_u55_128", 16 * 1024)).strips == ()


@pytest.mark.slow
def test_the_command_tells_which_ops_run_in_strips(tmp_path: Path) -> None:
    shown = CliRunner().invoke(tilewright, ["plan", *LENET, "-o", str(tmp_path)])
    assert shown.exit_code == 0, shown.output
    told = next(line for line in shown.output.splitlines() if line.startswith("together"))
    assert "more multiplications at the borders of strips" in told
    row = next(line for line in shown.output.splitlines() if line.startswith(" conv1 to "))
    assert " strips of columns, " in row
    record = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    (strips,) = record["strategy"]["strips"]
    assert strips["ops"][0] == "conv1"
    assert strips["strips"] > 1
    assert strips["macs_again"] > 0
    (together,) = record["strategy"]["together"]
    assert (together["strips"], together["macs_again"]) == (strips["strips"], strips["macs_again"])
    # The first convolution makes 6 x 28 x 28 elements, and the pool behind it a quarter of them.
    assert together["layer_by_layer_bytes"] == 6 * 28 * 28 * 5 // 4
    assert together["held_bytes"] <= SIZE_BYTES
    assert len(record["op_list"]) == len({op["name"] for op in record["op_list"]})
    again = CliRunner().invoke(tilewright, ["replay", str(tmp_path), "--json"])
    assert json.loads(again.output)["agrees"]


@pytest.mark.slow
def test_the_refusal_is_that_of_the_network_if_strips_do_not_help() -> None:
    arguments = [*LENET[:-1], "sram=512 B"]
    shown = CliRunner().invoke(tilewright, ["plan", *arguments])
    assert shown.exit_code == 3
    # The hint speaks of strips, but nothing names one.
    assert "strip 1" not in shown.output
    assert "`--thorough` looks for more of them" in shown.output
    shown = CliRunner().invoke(tilewright, ["plan", *arguments, "--thorough"])
    assert shown.exit_code == 3
    assert "--thorough" not in shown.output


@pytest.mark.slow
@pytest.mark.skipif(not MOBILENET.exists(), reason=ABSENT)
@pytest.mark.parametrize("machine", ["ethos_u55_128", "ethos_u55_256"])
def test_mobilenet_v2_fits_in_64_kib(machine: str) -> None:
    found = plan(load_network(MOBILENET), with_sram(machine, 64 * 1024))
    assert found.peak_bytes["sram"] <= 64 * 1024
    assert sum(strips.macs_again for strips in found.strips) < 0.1 * macs_of_network(found)
