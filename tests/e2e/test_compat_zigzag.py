"""The API that stands in for ZigZag's: shape, files, messages, and figures that ZigZag made."""

import inspect
import json
import pickle
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from tilewright.compat.zigzag import (
    Evaluations,
    get_hardware_performance_zigzag,
    get_hardware_performance_zigzag_imc,
)
from tilewright.compat.zigzag_results import CostModelEvaluation
from tilewright.document import parse_document
from tilewright.errors import InfeasibleError, InputError

REPOSITORY = Path(__file__).parents[2]
FILES = REPOSITORY / "tests" / "zigzag_files"
BLOCK, BUNTING, GIVEN, HINTED, HERON = (
    str(FILES / f"{name}.yaml") for name in ("block", "bunting", "given", "hinted", "heron")
)
EXPECTED = json.loads((FILES / "expected.json").read_text(encoding="utf-8"))
REGRESSIONS = json.loads((FILES / "regressions.json").read_text(encoding="utf-8"))
FOUR_WAYS = {"rd_out_to_low", "wr_in_by_low", "rd_out_to_high", "wr_in_by_high"}

pytestmark = pytest.mark.usefixtures("both_evaluations")


def run(folder: Path) -> tuple[float, float, Evaluations]:
    result = get_hardware_performance_zigzag(
        BLOCK, BUNTING, GIVEN, lpf_limit=3, dump_folder=str(folder)
    )
    assert len(result) == 3
    return result


def layers(evaluations: Evaluations) -> dict[str, CostModelEvaluation]:
    return {layer.name: cost for cost, (layer, _) in evaluations[0][1]}


def case_name(case: dict[str, Any]) -> str:
    files = (Path(case["accelerator"]).stem, Path(case["mapping"]).stem)
    return "-".join([*files, *(str(value) for value in case["options"].values())])


def assert_zigzags(case: dict[str, Any], files: list[str], folder: Path) -> None:
    *totals, evaluations = get_hardware_performance_zigzag(
        files[0], files[1], files[2], dump_folder=str(folder), **case["options"]
    )
    assert totals == pytest.approx(case["totals"], rel=1e-9)
    costs = layers(evaluations)
    assert list(costs) == [layer["name"] for layer in case["layers"]]
    for told in case["layers"]:
        cost = costs[told["name"]]
        assert cost.energy_total == pytest.approx(told["energy"], rel=1e-9)
        assert cost.mac_energy == pytest.approx(told["mac_energy"], rel=1e-9)
        cycles = {
            "compute": cost.ideal_temporal_cycle,
            "stall": cost.stall_slack_comb,
            "onload": cost.data_onloading_cycle,
            "offload": cost.data_offloading_cycle,
            "drain": cost.systolic_drain_cycle,
            "latency": cost.latency_total2,
        }
        assert cycles == {key: told[key] for key in cycles}


@pytest.mark.parametrize("case", EXPECTED, ids=case_name)
def test_every_figure_is_the_one_that_zigzag_made(case: dict[str, Any], tmp_path: Path) -> None:
    keys = ("workload", "accelerator", "mapping")
    assert_zigzags(case, [str(REPOSITORY / case[key]) for key in keys], tmp_path)


@pytest.mark.parametrize("case", REGRESSIONS, ids=lambda case: case["why"])
def test_what_random_cases_once_showed(case: dict[str, Any], tmp_path: Path) -> None:
    files = []
    for key in ("workload", "accelerator", "mapping"):
        path = tmp_path / f"{key}.yaml"
        path.write_text(json.dumps(case[key]), encoding="utf-8")
        files.append(str(path))
    assert_zigzags(case, files, tmp_path / "results")


def test_a_window_of_nothing_but_padding_is_named(tmp_path: Path) -> None:
    # OY = 2 with stride 3 meets two rows, and both are padding.
    layer = parse_document(Path(BLOCK).read_text(encoding="utf-8"), BLOCK).data[0]
    layer |= {
        "dimension_relations": ["ix=2*ox+1*fx", "iy=3*oy+1*fy"],
        "loop_sizes": [1, 12, 3, 2, 8, 1, 3],
        "pr_loop_sizes": None,
        "padding": [[0, 0], [1, 1]],
    }
    with pytest.raises(
        (InputError, InfeasibleError), match=r"IY = .* no element that is not padding"
    ):
        get_hardware_performance_zigzag([layer], BUNTING, GIVEN, dump_folder=str(tmp_path))


def test_parameters_are_zigzags() -> None:
    parameters = inspect.signature(get_hardware_performance_zigzag).parameters
    keywords = {n: p.default for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    assert list(parameters)[:3] == ["workload", "accelerator", "mapping"]
    assert keywords.pop("dump_folder").startswith("outputs/")
    assert keywords == {
        "temporal_mapping_search_engine": "loma",
        "temporal_mapping_type": "uneven",
        "opt": "latency",
        "pickle_filename": None,
        "lpf_limit": 6,
        "nb_spatial_mappings_generated": 3,
        "in_memory_compute": False,
        "exploit_data_locality": False,
        "enable_mix_spatial_mapping": False,
        "loma_show_progress_bar": True,
    }


def test_the_result_is_two_totals_and_one_entry_with_all_layers(tmp_path: Path) -> None:
    energy, latency, evaluations = run(tmp_path)
    ((total, parts),) = evaluations
    assert energy == total.energy_total == pytest.approx(sum(c.energy_total for c, _ in parts))
    assert latency == total.latency_total2 == sum(c.latency_total2 for c, _ in parts)
    assert total.layer is None
    assert total.layer_ids == (0, 1, 2, 3, 4)
    assert [(cost.layer is layer, others) for cost, (layer, others) in parts] == [(True, [])] * 5


def test_a_cost_offers_what_users_of_zigzag_read(tmp_path: Path) -> None:
    cost = layers(run(tmp_path)[2])["stem"]
    assert cost.energy_total == pytest.approx(cost.mac_energy + cost.mem_energy)
    assert cost.mem_energy == pytest.approx(sum(map(sum, cost.mem_energy_breakdown.values())))
    assert cost.latency_total0 == cost.ideal_temporal_cycle + cost.stall_slack_comb
    assert cost.latency_total0 <= cost.latency_total1 <= cost.latency_total2
    # 1 x 12 x 3 x 8 x 8 x 3 x 3 multiplications on 32 units.
    assert cost.ideal_cycle == 648
    assert cost.mac_spatial_utilization == 648 / cost.ideal_temporal_cycle
    uses = (cost.mac_utilization0, cost.mac_utilization1, cost.mac_utilization2)
    assert uses == tuple(
        648 / t for t in (cost.latency_total0, cost.latency_total1, cost.latency_total2)
    )
    for letter, depth in {"O": 3, "W": 3, "I": 2}.items():
        assert len(cost.mem_energy_breakdown[letter]) == depth
        assert len(cost.temporal_mapping[letter]) == depth
        assert len(cost.spatial_mapping[letter]) == depth + 1
        assert all(set(ways) == FOUR_WAYS for ways in cost.memory_word_access[letter])
        further = cost.mem_energy_breakdown_further[letter]
        assert [sum(ways.values()) for ways in further] == pytest.approx(
            cost.mem_energy_breakdown[letter]
        )
    # Inputs and results share `scratch` and `dram`.
    assert cost.mem_utili_shared["I"][0] == pytest.approx(
        cost.mem_utili_individual["I"][0] + cost.mem_utili_individual["O"][1]
    )
    assert repr(cost).startswith("CostModelEvaluation(stem")


def test_a_layer_is_described_as_in_its_file(tmp_path: Path) -> None:
    layer = layers(run(tmp_path)[2])["pool"].layer
    assert layer is not None
    assert (layer.id, str(layer), layer.type) == (3, "pool", "Pooling")
    assert layer.equation == "O[b][g][oy][ox] = W[fx][fy] * I[b][g][iy][ix]"
    assert layer.layer_dim_sizes == {"B": 1, "G": 12, "OY": 4, "OX": 4, "FX": 2, "FY": 2}
    assert layer.operand_precision == {"O": 16, "W": 0, "I": 8, "O_final": 8}
    assert layer.memory_operand_links == {"O": "O", "W": "I2", "I": "I1"}
    assert layer.spatial_mapping == {"D1": {"G": 8}, "D2": {"FX": 2, "FY": 2}}
    assert layer.layer_operands == ("O", "W", "I")
    assert layer.total_mac_count == 768


def test_loops_of_a_layer_multiply_to_its_size_for_every_operand(tmp_path: Path) -> None:
    for cost in layers(run(tmp_path)[2]).values():
        assert cost.layer is not None
        for letter in cost.layer.layer_operands:
            spatial = [factor for level in cost.spatial_mapping[letter] for _, factor in level]
            temporal = [size for level in cost.temporal_mapping[letter] for _, size in level]
            points = 1.0
            for factor in (*spatial, *temporal):
                points *= factor
            assert points == pytest.approx(cost.layer.total_mac_count)


def test_files_are_left_as_zigzag_leaves_them(tmp_path: Path) -> None:
    energy, latency, evaluations = run(tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    names = {f"{name}_complete.json" for name in layers(evaluations)}
    names |= {"overall_simple.json", "loop_ordering.txt", "list_of_cmes.pickle"}
    assert {path.name for path in folder.iterdir()} == names
    simple = json.loads((folder / "overall_simple.json").read_text(encoding="utf-8"))
    assert simple == {"energy": energy, "latency": latency}
    complete = json.loads((folder / "stem_complete.json").read_text(encoding="utf-8"))
    cost = layers(evaluations)["stem"]
    assert complete["outputs"]["energy"]["energy_total"] == cost.energy_total
    assert complete["outputs"]["latency"]["computation"] == cost.latency_total0
    mac_utilization = complete["outputs"]["spatial"]["mac_utilization"]
    assert mac_utilization["stalls_onloading_offloading"] == cost.mac_utilization2
    assert list(complete["inputs"]) == [
        "accelerator", "layer", "spatial_mapping", "temporal_mapping",
    ]  # fmt: skip
    assert complete["inputs"]["accelerator"]["memory_hierarchy"][1] == (
        "MemoryLevel(instance=result_reg,operands=[O], served_dimensions={D2})"
    )
    with (folder / "list_of_cmes.pickle").open("rb") as file:
        assert pickle.load(file) == list(layers(evaluations).values())


def test_a_run_leaves_no_trace_of_the_one_before(tmp_path: Path) -> None:
    run(tmp_path)
    first = (tmp_path / "loop_ordering.txt").read_text(encoding="utf-8")
    run(tmp_path)
    assert (tmp_path / "loop_ordering.txt").read_text(encoding="utf-8") == first


def test_the_loop_orders_that_are_left_can_be_given_as_a_mapping(tmp_path: Path) -> None:
    energy, latency, _ = run(tmp_path)
    again = get_hardware_performance_zigzag(
        BLOCK, BUNTING, str(tmp_path / "loop_ordering.txt"), dump_folder=str(tmp_path / "again")
    )
    assert again[:2] == (energy, latency)


def test_layers_may_be_given_as_data(tmp_path: Path) -> None:
    data = parse_document(Path(BLOCK).read_text(encoding="utf-8"), BLOCK).data
    result = get_hardware_performance_zigzag(
        data, BUNTING, GIVEN, lpf_limit=3, dump_folder=str(tmp_path)
    )
    assert result[:2] == run(tmp_path)[:2]


def test_an_onnx_model_may_be_given_as_a_file_or_as_a_value(tmp_path: Path) -> None:
    node = helper.make_node("Gemm", ["x", "w"], ["y"], name="product")
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 8])],
        [helper.make_tensor("w", TensorProto.FLOAT, [16, 8], [0.0] * 128)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(tmp_path / "model.onnx"))
    from_value = get_hardware_performance_zigzag(
        model, BUNTING, GIVEN, dump_folder=str(tmp_path / "value")
    )
    from_file = get_hardware_performance_zigzag(
        str(tmp_path / "model.onnx"), BUNTING, GIVEN, dump_folder=str(tmp_path / "file")
    )
    assert from_value[:2] == from_file[:2]
    (name,) = layers(from_value[-1])
    assert name == "product"


@pytest.mark.slow
def test_salsa_is_a_search_of_our_own_that_gives_the_same_answer_twice(tmp_path: Path) -> None:
    first, second = (
        get_hardware_performance_zigzag(
            BLOCK,
            BUNTING,
            GIVEN,
            temporal_mapping_search_engine="salsa",
            dump_folder=str(tmp_path),
        )
        for _ in range(2)
    )
    assert first[:2] == second[:2]
    assert list(layers(first[-1])) == ["stem", "shortcut", "sum", "pool", "classes"]


def test_in_memory_runs_return_clock_and_area(tmp_path: Path) -> None:
    result = get_hardware_performance_zigzag_imc(
        BLOCK, HERON, HINTED, lpf_limit=3, dump_folder=str(tmp_path)
    )
    _, _, clock_ns, area_mm2, evaluations = result
    costs = layers(evaluations)
    assert list(costs) == ["stem", "shortcut", "classes"]  # no Add, no Pooling
    assert (costs["stem"].tclk, costs["stem"].area_total) == (clock_ns, area_mm2)
    assert sum((costs["stem"].mac_energy_breakdown or {}).values()) == pytest.approx(
        costs["stem"].mac_energy
    )
    complete = json.loads((tmp_path / "stem_complete.json").read_text(encoding="utf-8"))
    assert complete["outputs"]["clock"] == {"tclk (ns)": clock_ns}


def test_in_memory_runs_need_such_an_array(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="bunting: its array does not compute in memory"):
        get_hardware_performance_zigzag_imc(BLOCK, BUNTING, GIVEN, dump_folder=str(tmp_path))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"opt": "speed"}, "opt='speed': it is one of energy, latency, EDP"),
        ({"lpf_limit": 0}, "lpf_limit=0: it is 1 or more"),
        ({"nb_spatial_mappings_generated": 0}, "nb_spatial_mappings_generated=0"),
        ({"temporal_mapping_type": "odd"}, "mapping type='odd'"),
        ({"temporal_mapping_search_engine": "luck"}, "search engine='luck'"),
    ],
)
def test_a_wrong_option_is_named(option: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        get_hardware_performance_zigzag(BLOCK, BUNTING, GIVEN, dump_folder=str(tmp_path), **option)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="file: cannot be written"):
        get_hardware_performance_zigzag(BLOCK, BUNTING, GIVEN, dump_folder=str(tmp_path / "file"))


def test_a_layer_that_fits_nowhere_says_so(tmp_path: Path) -> None:
    text = Path(BUNTING).read_text(encoding="utf-8").replace("size: 4000000000", "size: 1000")
    (tmp_path / "small.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InfeasibleError, match="op 'stem' cannot be mapped: memory dram has"):
        get_hardware_performance_zigzag(
            BLOCK, str(tmp_path / "small.yaml"), GIVEN, dump_folder=str(tmp_path)
        )
