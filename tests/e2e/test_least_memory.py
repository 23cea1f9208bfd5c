"""The objective `memory`: sizes that hold a plan, at a price in tiles that they are worth."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.machine_builder import machine_of, marked, sound_machine
from tests.small_machines import Kind, Small, small_machine

import tilewright
from tilewright import plan_memory
from tilewright.machine.model import Machine
from tilewright.network.zoo import layers
from tilewright.planner import PlanOptions, plan
from tilewright.replay.verify import verify
from tilewright.report.plan import plan_view
from tilewright.report.tables import plain_text

CASES = [
    ("lenet5", "ethos_u55_128"),
    ("ds_cnn", "ethos_u55_128"),
    ("notes_cnn", "ethos_u55_256"),
    ("ds_cnn", "npe8"),
    ("lenet5", "edge_tpu_like"),
]


def least(network: str, machine: str) -> tilewright.Plan:
    options = PlanOptions(objective="memory", checked=False)
    return plan(tilewright.load_network(network), tilewright.load_machine(machine), options)


def scratchpads(made: tilewright.Plan) -> dict[str, int]:
    pads = {memory.name for memory in made.machine.memories if memory.role == "scratchpad"}
    return {name: peak for name, peak in made.peak_bytes.items() if name in pads}


@pytest.mark.parametrize(("network", "machine"), CASES)
def test_there_is_a_plan_in_the_size_that_was_found(network: str, machine: str) -> None:
    made = least(network, machine)
    limits = tuple(scratchpads(made).items())
    found = plan(made.network, made.machine, PlanOptions(memory_limits=limits))
    assert all(found.peak_bytes[name] <= size for name, size in limits)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["ds_cnn", "lenet5"])
def test_a_thorough_search_finds_plans_in_less_memory_that_compute_the_same(network: str) -> None:
    usual = least(network, "ethos_u55_128")
    options = PlanOptions(objective="memory", thorough=True)
    made = plan(usual.network, tilewright.load_machine("ethos_u55_128"), options)
    assert made.peak_bytes["sram"] < 0.9 * usual.peak_bytes["sram"]
    assert made.machine == usual.machine
    assert verify(made.timetable, made.network).agrees


def test_a_plan_says_where_less_memory_was_not_looked_for() -> None:
    made = least("lenet5", "ethos_u55_128")
    usual = made.options
    others = [replace(usual, thorough=True), replace(usual, objective="latency")]
    texts = [plain_text(plan_view(replace(made, options=o))) for o in (usual, *others)]
    assert ["--thorough" in (text or "") for text in texts] == [True, False, False]


def test_a_machine_without_scratchpads_has_a_plan_too() -> None:
    machine = small_machine(Small(kind="none"))
    made = plan(tilewright.load_network("lenet5"), machine, PlanOptions(objective="memory"))
    assert scratchpads(made) == {}


@pytest.mark.slow
def test_a_network_whose_last_product_has_many_channels_runs_in_a_part_of_its_largest_tensor() -> (
    None
):
    # One channel of a thousand at a time would be 13,000 tiles, more than a plan is given.
    made = least("squeezenet", "ethos_u55_128")
    largest = max(tensor.size_bytes for tensor in made.network.tensors if tensor.role != "constant")
    assert made.peak_bytes["sram"] < largest / 5


def test_a_little_memory_is_not_worth_many_times_the_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = least("notes_cnn", "npe8")
    monkeypatch.setattr(plan_memory, "WORTH_IN_TILES", 1_000)
    tight = least("notes_cnn", "npe8")
    sizes = [max(plan.peak_bytes.values()) for plan in (tight, usual)]
    assert sizes[0] < sizes[1] < 1.05 * sizes[0]
    assert len(usual.program.tasks) < len(tight.program.tasks) / 2


@pytest.mark.parametrize("machine", ["npu_40xx", "npu_30xx", "ethos_u55_128"])
def test_an_op_of_next_to_no_work_has_a_plan_too(machine: str) -> None:
    net = layers.draft("tiny", 8)
    layers.activation(net, "relu", layers.given(net, "x", (1, 4, 2, 2)), "relu")
    made = plan(
        net.builder.finish(["relu"]),
        tilewright.load_machine(machine),
        PlanOptions(objective="memory"),
    )
    assert made.cycles > 0


def test_a_plan_with_too_many_tiles_is_better_than_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_memory, "LITTLE_TILES", 1)
    assert least("lenet5", "ethos_u55_128").cycles > 0


def test_cores_whose_memories_are_all_shared_have_a_plan() -> None:
    data = marked(sound_machine())
    del data["memories"]["reg"]
    data["memories"]["bank"] |= {"role": "scratchpad"}
    data["cores"] = {"c": {"operational_array": data.pop("operational_array"), "count": 3}}
    machine = machine_of(data)
    made = plan(tilewright.load_network("lenet5"), machine)
    assert made.peak_bytes["bank"] <= 64 * 1024


@pytest.mark.parametrize("kind", ["weights", "streamed", "one"])
@pytest.mark.parametrize("alignment_bytes", [1, 64])
def test_the_search_ends_where_hardly_a_byte_is_needed(
    kind: Kind, alignment_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A ReLU has no weights: a scratchpad that holds nothing else stays empty.
    seen: list[float] = []
    monkeypatch.setattr(plan_memory, "cut_to", _counted(seen))
    net = layers.draft("tiny", 8)
    layers.activation(net, "relu", layers.given(net, "x", (1, 4, 2, 2)), "relu")
    machine = small_machine(Small(kind=kind, size_bytes=1024, alignment_bytes=alignment_bytes))
    made = plan(net.builder.finish(["relu"]), machine, PlanOptions(objective="memory"))
    assert (sum(scratchpads(made).values()) == 0) is (kind == "weights")
    assert verify(made.timetable, made.network).agrees


def _counted(seen: list[float]) -> Callable[[Machine, float], Machine]:
    cut_to = plan_memory.cut_to

    def counted(machine: Machine, share: float) -> Machine:
        seen.append(share)
        assert len(seen) < 2_000
        return cut_to(machine, share)

    return counted
