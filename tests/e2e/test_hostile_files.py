"""Files made to hurt: a message and an exit code, and nothing that steers the terminal."""

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import helper

from tilewright import cli_support
from tilewright.cli import tilewright
from tilewright.errors import InputError
from tilewright.network.onnx_reader import read_onnx

OWN = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
ODD_NAME = "conv\x1b]0;title\x07\u202e"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(tilewright, [str(argument) for argument in arguments])


def function(name: str, calls: list[str]) -> onnx.FunctionProto:
    """A function that calls others one after the other."""
    names = ["x", *(f"t{i}" for i in range(len(calls) - 1)), "y"]
    nodes = [
        helper.make_node(call, [names[i]], [names[i + 1]], domain="" if call == "Relu" else "own")
        for i, call in enumerate(calls)
    ]
    return helper.make_function("own", name, ["x"], ["y"], nodes, OWN)


def model_of(folder: Path, functions: list[onnx.FunctionProto], first: str) -> Path:
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in "xy"]
    call = helper.make_node(first, ["x"], ["y"], domain="own")
    graph = helper.make_graph([call], "graph", ends[:1], ends[1:])
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, functions=functions, opset_imports=OWN), path)
    return path


def test_functions_that_are_none_of_these_are_read(tmp_path: Path) -> None:
    functions = [function("twice", ["Relu", "Relu"]), function("four", ["twice", "twice"])]
    assert len(read_onnx(model_of(tmp_path, functions, "four"), dims={}).ops) == 4


def test_a_function_that_calls_itself_is_refused(tmp_path: Path) -> None:
    functions = [function("a", ["Relu", "b"]), function("b", ["a"])]
    with pytest.raises(InputError, match="function 'a' calls itself"):
        read_onnx(model_of(tmp_path, functions, "a"), dims={})


def test_functions_that_call_each_other_very_deep_are_refused(tmp_path: Path) -> None:
    functions = [function("f0", ["Relu"])]
    functions += [function(f"f{i}", [f"f{i - 1}"]) for i in range(1, 3000)]
    with pytest.raises(InputError, match="call each other more than 90 deep"):
        read_onnx(model_of(tmp_path, functions, "f2999"), dims={})


def test_functions_that_grow_without_end_are_refused_before_they_do(tmp_path: Path) -> None:
    functions = [function("f0", ["Relu", "Relu"])]
    functions += [function(f"f{i}", [f"f{i - 1}"] * 2) for i in range(1, 30)]
    with pytest.raises(InputError, match="more than 100,000 nodes"):
        read_onnx(model_of(tmp_path, functions, "f29"), dims={})


def relu(folder: Path, name: str, size: int | str = 4) -> Path:
    ends = [
        helper.make_tensor_value_info(end, onnx.TensorProto.FLOAT, [1, size]) for end in ("x", name)
    ]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], [name], name=name)], "g", ends[:1], ends[1:]
    )
    path = folder / "relu.onnx"
    onnx.save(helper.make_model(graph, opset_imports=OWN[:1], ir_version=8), path)
    return path


@pytest.mark.parametrize("command", ["show", "fit"])
def test_names_from_files_are_escaped_in_tables(tmp_path: Path, command: str) -> None:
    told = run(command, relu(tmp_path, ODD_NAME))
    assert told.exit_code == 0
    assert "\x1b" not in told.stdout
    assert "\u202e" not in told.stdout
    if command == "show":
        assert r"conv\x1b]0;title\x07\u202e" in told.stdout


def test_names_from_files_are_escaped_in_messages(tmp_path: Path) -> None:
    told = run("show", relu(tmp_path, "y", ODD_NAME))
    assert told.exit_code == 2
    assert "\x1b" not in told.stderr
    assert r"--dim conv\x1b]0;title\x07\u202e=" in told.stderr


def test_a_cell_that_is_too_long_is_a_message(tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    file.write_text("id,lower,upper,size\n" + "a" * 200_000 + ",0,1,8\n")
    told = run("place", file)
    assert told.exit_code == 2
    assert "is no CSV that can be read: field larger than field limit" in told.stderr


def test_brackets_that_are_nested_too_deep_are_a_message(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text("[" * 200_000)
    for command in (("replay", file), ("explain", file), ("compare", file, file)):
        told = run(*command)
        assert told.exit_code == 2
        assert "nested too deep" in told.stderr


def test_external_data_at_an_impossible_place_is_a_message(tmp_path: Path) -> None:
    weights = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[4, 4])
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="a" * 5000)
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 4]) for n in "xy"]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [weights])
    path = tmp_path / "model.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=OWN[:1], ir_version=8).SerializeToString()
    )
    told = run("plan", path, "--on", "npe8", "--bits", "8", "--verify")
    assert told.exit_code == 2
    assert "the values of its constants cannot be read" in told.stderr


def test_too_little_memory_is_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    def run_out() -> None:
        raise MemoryError

    for as_json in (False, True):
        with pytest.raises(SystemExit) as ended:
            cli_support.exit_with(run_out, as_json=as_json)
        assert ended.value.code == 3
    told: Any = capsys.readouterr()
    assert "not enough memory on this computer" in told.err
    assert "not enough memory" in json.loads(told.out)["problems"][0]["message"]
