"""What `import tilewright` offers: values, files and names alike; messages at once."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tilewright


@pytest.fixture(scope="module")
def plan() -> tilewright.Plan:
    return tilewright.plan("lenet5", "edge_tpu_like")


def test_networks_and_machines_are_given_by_name(plan: tilewright.Plan) -> None:
    network = tilewright.load_network("lenet5")
    machine = tilewright.load_machine("edge_tpu_like")
    assert tilewright.plan(network, machine).cycles == plan.cycles
    assert tilewright.map_network("lenet5", "edge_tpu_like").network == network
    assert tilewright.fit("lenet5").network == network


def test_a_plan_is_a_line_and_its_summary_a_table(plan: tilewright.Plan) -> None:
    assert "\n" not in repr(plan)
    assert repr(plan).startswith("<Plan of lenet5 on edge_tpu_like for latency: ")
    told = str(plan.summary())
    assert told.startswith("lenet5 on edge_tpu_like\nobjective ")
    assert told.splitlines()[2].split() == ["cycles", f"{plan.cycles:,}"]
    assert plan._repr_html_() == plan.summary()._repr_html_()


def test_the_objective_is_an_argument() -> None:
    assert tilewright.plan("lenet5", "edge_tpu_like", objective="traffic").options.objective == (
        "traffic"
    )


def test_an_objective_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(tilewright.InputError) as caught:
        tilewright.plan("lenet5", "edge_tpu_like", objective="speed")  # type: ignore[arg-type]  # that is the point
    (problem,) = caught.value.problems
    assert problem.message == "no objective 'speed'"
    assert problem.hint == "there are latency, energy, traffic, memory"


def test_an_objective_of_mapping_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(tilewright.InputError, match="no objective 'speed'"):
        tilewright.SearchOptions(objective="speed")  # type: ignore[arg-type]  # that is the point


def test_a_plan_and_its_file_are_the_same_to_whoever_looks(
    plan: tilewright.Plan, tmp_path: Path
) -> None:
    plan.save(tmp_path)
    assert tilewright.replay(plan).agrees
    assert tilewright.replay(tmp_path).agrees
    assert tilewright.explain(plan).path == tilewright.explain(tmp_path).path
    assert all(change.share == 0 for change in tilewright.compare(plan, tmp_path).totals)
    written = tilewright.export(plan, "csv", tmp_path / "tables")
    again = tilewright.export(tmp_path, "csv", tmp_path / "again")
    assert [p.read_bytes() for p in written] == [p.read_bytes() for p in again]


def test_a_wrong_plan_raises(plan: tilewright.Plan, tmp_path: Path) -> None:
    plan.save(tmp_path)
    file = tmp_path / "plan.json"
    file.write_text(file.read_text().replace('"energy_pj":', '"energy_pj":1', 1))
    with pytest.raises(tilewright.LimitError):
        tilewright.replay(file)


def refused(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(tilewright.InputError) as caught:
        call()
    (problem,) = caught.value.problems
    return problem.message, problem.hint


def test_arguments_that_changed_places_are_told_apart() -> None:
    told = "'edge_tpu_like' is a machine and 'lenet5' is a network: the network comes first, "
    for function in (tilewright.plan, tilewright.map_network, tilewright.fit):
        name = getattr(function, "__name__", "")
        assert refused(partial(function, "edge_tpu_like", "lenet5")) == (
            told + "then the machine",
            f"tilewright.{name}('lenet5', 'edge_tpu_like')",
        )


def test_arguments_of_another_type_are_refused() -> None:
    plan: Any = tilewright.plan
    load: Any = tilewright.load_network
    machine = tilewright.load_machine("npe8")
    assert refused(lambda: plan("lenet5", "npe8", "energy")) == (
        "options is PlanOptions, and not 'energy'",
        "objective='energy'",
    )
    assert refused(lambda: plan(machine, "npe8")) == (
        "network is a Network, a file or a name, and not of type Machine",
        "",
    )
    assert refused(lambda: plan("lenet5", None))[0].startswith("machine is a Machine, a file")
    assert refused(lambda: load("lenet5", bits="8")) == (
        "bits: '8' is no whole number",
        "such as bits=8",
    )
    assert refused(lambda: load("lenet5", dims={"batch": "2"}))[0] == (
        "dims: 'batch': '2' is no size by name"
    )
    assert refused(lambda: load("lenet5", dims=["batch"]))[0] == (
        "dims: ['batch'] is no mapping of names to sizes"
    )


def test_memory_limits_are_a_mapping_or_pairs() -> None:
    options: Any = tilewright.PlanOptions
    pairs = (("sram_2MB", 4000),)
    assert options(memory_limits={"sram_2MB": 4000}) == options(memory_limits=pairs)
    for wrong in ({"sram_2MB": "4 KiB"}, "sram_2MB", 4000, {"sram_2MB": 0}, (("sram_2MB",),)):
        message, hint = refused(partial(options, memory_limits=wrong))
        assert message == f"memory_limits: {wrong!r} is no mapping of names of memories to bytes"
        assert hint == 'such as memory_limits={"sram": 65536}'


def test_a_format_that_is_none_is_refused(plan: tilewright.Plan, tmp_path: Path) -> None:
    with pytest.raises(tilewright.InputError, match="no format 'foo'") as caught:
        tilewright.export(plan, "foo", tmp_path)  # type: ignore[arg-type]  # that is the point
    assert caught.value.problems[0].hint == "there are csv, minimalloc, model-explorer, onnx"


def test_a_workload_whose_sizes_do_not_fit_cannot_be_replayed(tmp_path: Path) -> None:
    layers = [
        f"""
- id: {number}
  operator_type: Conv
  equation: O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]
  dimension_relations: [ix=1*ox+1*fx, iy=1*oy+1*fy]
  loop_dims: [B, K, C, OY, OX, FY, FX]
  loop_sizes: [1, 8, {channels}, 4, 4, 1, 1]
  operand_precision: {{W: 8, I: 8, O: 16, O_final: 8}}
  operand_source: {{I: 0, W: {number}}}"""
        for number, channels in enumerate((3, 9))
    ]
    path = tmp_path / "layers.yaml"
    path.write_text("".join(layers))
    made = tilewright.plan(path, "edge_tpu_like")
    with pytest.raises(tilewright.InputError, match=r"cannot be replayed: .* 128 elements do not"):
        tilewright.replay(made)


class _Interrupts:
    """Interrupts a search when it comes to a step for the n-th time."""

    def __init__(self, step: str, times: int) -> None:
        self.step, self.left = step, times

    def __call__(self, step: str) -> None:
        self.left -= step == self.step
        if self.left == 0:
            self.left = -1
            raise KeyboardInterrupt


@pytest.mark.parametrize("objective", ["latency", "energy", "memory"])
def test_an_interrupted_search_gives_the_best_plan_so_far(objective: str) -> None:
    options = tilewright.PlanOptions(objective=objective)  # type: ignore[arg-type]  # of those above
    found = tilewright.plan("lenet5", "edge_tpu_like", options, _Interrupts("addresses", 1))
    assert found.interrupted
    assert found.options.objective == objective
    assert tilewright.replay(found).agrees
    assert "the search had not ended" in str(found.summary())
    assert not tilewright.plan("lenet5", "edge_tpu_like", options).interrupted


def test_a_search_that_has_nothing_yet_is_simply_interrupted() -> None:
    with pytest.raises(KeyboardInterrupt):
        tilewright.plan("lenet5", "edge_tpu_like", watcher=_Interrupts("times", 1))
