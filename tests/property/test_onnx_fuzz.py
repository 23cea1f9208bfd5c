"""Whatever the bytes of a file are, reading it gives a sound network or an InputError."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper
from tests.e2e.onnx_cases import ALL
from tests.onnx_models import Given, integers, model, node, single, zeros
from tests.random_cases import examples

from tilewright.errors import InputError, Problem
from tilewright.network.graph import MAX_SIZE, Network
from tilewright.network.onnx_reader import read_onnx, supported_ops

EXAMPLES = int(os.environ.get("TILEWRIGHT_FUZZ", examples(200)))
OPERATORS = sorted(name for name in supported_ops() if "." not in name)
SIZES = (0, -1, 1, 2, 3, 5, 7, 64, -7, 2**16 + 1, 2**31, 2**40, 2**40 + 1, 2**62, -(2**63))
NUMBERS = (0.0, -1.0, 0.5, 1e-45, 3e38, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    "",
    "NOTSET",
    "SAME_LOWER",
    "ij,jk->ik",
    "...i,...->i",
    "reflect",
    "linear",
    "\0",
    "é" * 99,
)


def _torch_flatten() -> onnx.ModelProto:
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["batch"]),
        node("Unsqueeze", ["batch", "zero"], ["list"]),
        node("Concat", ["list", "rest"], ["wanted"], {"axis": 0}),
        node("Reshape", ["x", "wanted"], ["flat"]),
        node("Range", ["zero_scalar", "batch_scalar", "one_scalar"], ["steps"]),
        node("Tile", ["steps", "rest_tile"], ["tiled"]),
        node("ConstantOfShape", ["list"], ["filled"]),
        node("Cast", ["tiled"], ["real"], {"to": 1}),
        node("Gemm", ["flat", "w"], ["y"]),
    ]
    constants = {
        "zero": integers(0),
        "rest": integers(-1),
        "zero_scalar": integers(0).reshape(()),
        "batch_scalar": integers(2).reshape(()),
        "one_scalar": integers(1).reshape(()),
        "rest_tile": integers(3),
        "w": zeros(60, 4),
    }
    return model(nodes, {"x": Given(shape=(2, 3, 4, 5))}, ["y"], constants)


def _branching() -> onnx.ModelProto:
    branch = helper.make_graph(
        [node("Relu", ["x"], ["r"])], "branch", [], [onnx.ValueInfoProto(name="r")]
    )
    nodes = [
        node("Size", ["x"], ["size"]),
        node("Cast", ["size"], ["yes"], {"to": 9}),
        node("If", ["yes"], ["y"], {"then_branch": branch, "else_branch": branch}),
        node("Split", ["y"], ["a", "b"], {"axis": 1}),
        node("Add", ["a", "b"], ["z"]),
    ]
    return model(nodes, {"x": Given(shape=(2, 4))}, ["z"])


CORPUS = [_torch_flatten(), _branching(), *(single(case) for _, case in ALL)]


Mutation = Callable[[onnx.ModelProto, int, int], None]


T = TypeVar("T")


def _pick(items: Sequence[T], number: int) -> T:
    return items[number % len(items)]


def _change_input_dim(proto: onnx.ModelProto, where: int, what: int) -> None:
    dims = [dim for value in proto.graph.input for dim in value.type.tensor_type.shape.dim]
    if dims:
        _pick(dims, where).dim_value = _pick(SIZES, what)


def _add_input_dims(proto: onnx.ModelProto, where: int, what: int) -> None:
    if proto.graph.input:
        shape = _pick(proto.graph.input, where).type.tensor_type.shape
        for _ in range(_pick((1, 2, 14, 3000), what)):
            shape.dim.add(dim_value=1 + what % 3)


def _change_stored_dims(proto: onnx.ModelProto, where: int, what: int) -> None:
    if proto.graph.initializer:
        tensor = _pick(proto.graph.initializer, where)
        if tensor.dims and what % 2:
            tensor.dims[what % len(tensor.dims)] = _pick(SIZES, what // 2)
        else:
            tensor.dims.append(_pick(SIZES, what // 2))


def _change_stored_type(proto: onnx.ModelProto, where: int, what: int) -> None:
    if proto.graph.initializer:
        _pick(proto.graph.initializer, where).data_type = what % 31


def _change_stored_values(proto: onnx.ModelProto, where: int, what: int) -> None:
    """Sizes, axes and indices that are stored become wild ones."""
    if proto.graph.initializer:
        tensor = _pick(proto.graph.initializer, where)
        count = len(tensor.raw_data) // 8
        wild = (_pick(SIZES, what + i) for i in range(min(count, 8)))
        tensor.raw_data = b"".join(n.to_bytes(8, "little", signed=True) for n in wild)
        tensor.data_type = onnx.TensorProto.INT64


def _change_attribute(proto: onnx.ModelProto, where: int, what: int) -> None:
    attributes = [a for n in proto.graph.node for a in n.attribute]
    if attributes:
        attribute = _pick(attributes, where)
        _fill(attribute, attribute.name, what)


def _add_attribute(proto: onnx.ModelProto, where: int, what: int) -> None:
    if proto.graph.node:
        names = "axis axes keepdims group pads strides kernel_shape auto_pad equation mode to k"
        name = _pick(names.split(), what)
        _fill(_pick(proto.graph.node, where).attribute.add(), name, what // 16)


def _fill(attribute: onnx.AttributeProto, name: str, what: int) -> None:
    kind, value = what % 8, what // 8
    attribute.Clear()
    attribute.name = name
    if kind < 3:
        attribute.CopyFrom(helper.make_attribute(name, _pick(SIZES, value)))
    elif kind < 6:
        sizes = [_pick(SIZES, value + i * 7) for i in range(1 + value % 5)]
        attribute.CopyFrom(helper.make_attribute(name, sizes))
    elif kind == 6:
        attribute.CopyFrom(helper.make_attribute(name, _pick(TEXTS, value)))
    else:
        attribute.CopyFrom(helper.make_attribute(name, _pick(NUMBERS, value)))
        attribute.type = onnx.AttributeProto.AttributeType.ValueType(value % 15)


def _change_operator(proto: onnx.ModelProto, where: int, what: int) -> None:
    if proto.graph.node:
        _pick(proto.graph.node, where).op_type = _pick(OPERATORS, what)


def _change_wiring(proto: onnx.ModelProto, where: int, what: int) -> None:
    names = [name for n in proto.graph.node for name in (*n.input, *n.output)]
    names += [tensor.name for tensor in proto.graph.initializer]
    if names and proto.graph.node:
        changed = _pick(proto.graph.node, where)
        wires = changed.output if what % 5 == 0 and changed.output else changed.input
        if what % 3 == 0 or not wires:
            wires.append(_pick(names, what // 3))
        else:
            wires[where % len(wires)] = _pick(["", *names], what // 3)


def _drop_or_repeat(proto: onnx.ModelProto, where: int, what: int) -> None:
    lists = (proto.graph.node, proto.graph.initializer, proto.graph.input, proto.graph.output)
    items = _pick(lists, what)
    if items:
        position = where % len(items)
        if what // 4 % 2:
            del items[position]
        else:
            items.append(items[position])


def _change_opset(proto: onnx.ModelProto, where: int, what: int) -> None:
    _pick(proto.opset_import, where).version = _pick((1, 5, 6, 7, 9, 10, 11, 18, 28, -3), what)


MUTATIONS: Sequence[Mutation] = (
    _change_input_dim,
    _add_input_dims,
    _change_stored_dims,
    _change_stored_type,
    _change_stored_values,
    _change_stored_values,
    _change_attribute,
    _change_attribute,
    _add_attribute,
    _change_operator,
    _change_operator,
    _change_wiring,
    _drop_or_repeat,
    _change_opset,
)
numbers = st.integers(0, 2**20)
changes = st.lists(st.tuples(st.sampled_from(MUTATIONS), numbers, numbers), max_size=6)
cuts = st.lists(st.tuples(numbers, st.binary(max_size=9), st.integers(0, 40)), max_size=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def check_reading(content: bytes, folder: Path) -> None:
    path = folder / "model.onnx"
    path.write_bytes(content)
    start = time.process_time()
    problems: tuple[Problem, ...] = ()
    network: Network | None = None
    try:
        network = read_onnx(path)
    except InputError as error:
        problems = error.problems
    assert time.process_time() - start < 10
    assert all(problem.message and problem.file for problem in problems)
    if network is None:
        assert problems
    else:
        check_soundness(network)


def check_soundness(network: Network) -> None:
    """Every index fits its tensor and uses dims of its op."""
    for op in network.ops:
        assert all(0 <= size <= MAX_SIZE for size in op.sizes.values()), op
        for operand in op.operands:
            if operand.index is not None:
                assert len(operand.index) == len(network.by_name[operand.tensor].shape), op
                assert {d for i in operand.index for d, _ in i.terms} <= op.sizes.keys(), op


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(chosen=st.sampled_from(range(len(CORPUS))), mutations=changes)
def test_models_with_wild_fields_are_read_or_refused(
    folder: Path, chosen: int, mutations: list[tuple[Mutation, int, int]]
) -> None:
    proto = onnx.ModelProto()
    proto.CopyFrom(CORPUS[chosen])
    for mutation, where, what in mutations:
        mutation(proto, where, what)
    check_reading(proto.SerializeToString(), folder)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(chosen=st.sampled_from(range(len(CORPUS))), replacements=cuts, truncated=st.booleans())
def test_files_with_wild_bytes_are_read_or_refused(
    folder: Path, chosen: int, replacements: list[tuple[int, bytes, int]], truncated: bool
) -> None:
    content = CORPUS[chosen].SerializeToString()
    for position, inserted, removed in replacements:
        at = position % (len(content) + 1)
        content = content[:at] + inserted + content[at + removed % 5 :]
    if truncated and replacements:
        content = content[: replacements[0][0] % (len(content) + 1)]
    check_reading(content, folder)
