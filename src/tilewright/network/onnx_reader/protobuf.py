"""From an ONNX file to plain values; the only module that knows how protobuf lays a model out."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # has no stubs

from tilewright.errors import InputError, Problem
from tilewright.network.onnx_reader.calls import refuse_endless
from tilewright.network.onnx_reader.elements import ElementType, element_type
from tilewright.network.onnx_reader.model import (
    Attribute,
    Declared,
    Graph,
    Model,
    Node,
    StoredTensor,
    Unreadable,
)
from tilewright.network.onnx_reader.shapes import possible_shape

_OWN_DOMAIN = "ai.onnx"
_MAX_FILE_BYTES = 2**31
_KINDS = onnx.AttributeProto


def load_model(path: Path) -> Model:
    """The model in the file; InputError where it is none. No weights are read."""
    try:
        if path.stat().st_size >= _MAX_FILE_BYTES:
            raise InputError(_too_large(path))
        proto = onnx.load(path, format="protobuf", load_external_data=False)
    except OSError as error:
        raise InputError(_fault(path, error.strerror or str(error))) from error
    except DecodeError as error:
        raise InputError(_not_a_model(path)) from error
    if not proto.HasField("graph"):
        raise InputError(_not_a_model(path))
    proto = _inlined(proto, path)
    opsets = {_domain(entry.domain): entry.version for entry in proto.opset_import}
    # Files older than IR version 3 name no operator set; the first one is meant.
    if proto.ir_version < 3:
        opsets.setdefault("", 1)
    functions = (f"{_domain(f.domain)}.{_text(f.name)}".lstrip(".") for f in proto.functions)
    return Model(
        graph=_graph(proto.graph, path.parent),
        opsets=opsets,
        functions=frozenset(functions),
    )


def load_with_values(path: Path) -> onnx.ModelProto:
    """The whole model, with values that lie beside the file; InputError where they are missing."""
    try:
        return _inlined(onnx.load(path), path)
    except (OSError, RuntimeError, ValueError, DecodeError, onnx.checker.ValidationError) as error:
        first_line = str(error).partition("\n")[0]
        raise InputError(
            _fault(
                path,
                f"the values of its constants cannot be read: {first_line}",
                "external data must lie beside the model; planning alone needs no values",
            )
        ) from error


def _inlined(proto: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    """The model with the bodies of its own functions in place of their calls.

    A function of which ONNX cannot tell that its operators mean the same there stays.
    """
    if not proto.functions:
        return proto
    refuse_endless(proto, str(path))
    from onnx.inliner import inline_local_functions

    try:
        return inline_local_functions(proto)
    except (RuntimeError, onnx.checker.ValidationError) as error:
        first_line = str(error).partition("\n")[0]
        message = f"its functions cannot be put in place of their calls: {first_line}"
        raise InputError(_fault(path, message)) from error


def _fault(path: Path, message: str, hint: str = "") -> Problem:
    return Problem(file=str(path), message=message, hint=hint)


def _too_large(path: Path) -> Problem:
    return _fault(
        path,
        "not an ONNX model: protobuf files are smaller than 2 GiB",
        "store the weights beside the model: onnx.save(..., save_as_external_data=True)",
    )


def _not_a_model(path: Path) -> Problem:
    return _fault(
        path,
        "not an ONNX model: its bytes are no protobuf message with a graph",
        "check that the file was downloaded whole and is no text, archive or Git LFS pointer",
    )


def _text(value: str | bytes) -> str:
    """Protobuf hands out bytes where a string is no valid UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def _domain(value: str | bytes) -> str:
    domain = _text(value)
    return "" if domain == _OWN_DOMAIN else domain


def _graph(proto: onnx.GraphProto, folder: Path) -> Graph:
    faults: list[str] = []
    lost: list[str] = []
    constants: list[StoredTensor] = []
    for tensor in proto.initializer:
        try:
            constants.append(_stored(tensor, folder))
        except ValueError as error:
            faults.append(f"initialiser {_text(tensor.name)!r}: {error}")
            lost.append(_text(tensor.name))
    for sparse in proto.sparse_initializer:
        name = _text(sparse.values.name)
        faults.append(f"initialiser {name!r}: sparse tensors are not read; store it densely")
        lost.append(name)
    known = {constant.name for constant in constants}.union(lost)
    inputs = [value for value in proto.input if _text(value.name) not in known]
    return Graph(
        name=_text(proto.name),
        nodes=tuple(_node(node, i, folder) for i, node in enumerate(proto.node)),
        inputs=tuple(_declared(value) for value in inputs),
        outputs=tuple(_declared(value) for value in proto.output),
        values=tuple(_declared(value) for value in proto.value_info),
        constants=tuple(constants),
        faults=tuple(faults),
        lost=tuple(lost),
    )


def _stored(proto: onnx.TensorProto, folder: Path) -> StoredTensor:
    return StoredTensor(
        name=_text(proto.name),
        shape=possible_shape(tuple(proto.dims)),
        element=element_type(proto.data_type),
        proto=proto,
        folder=folder,
    )


def _declared(proto: onnx.ValueInfoProto) -> Declared:
    tensor = proto.type.tensor_type
    element: ElementType | None = None
    if proto.type.HasField("tensor_type"):
        try:
            element = element_type(tensor.elem_type)
        except ValueError:
            element = None
    has_shape = element is not None and tensor.HasField("shape")
    dims = tuple(_dim(dim) for dim in tensor.shape.dim) if has_shape else None
    return Declared(name=_text(proto.name), element=element, dims=dims)


def _dim(proto: onnx.TensorShapeProto.Dimension) -> int | str | None:
    """A size, a name, or None: exporters write 0 and -1 where they know neither."""
    if proto.HasField("dim_value") and proto.dim_value > 0:
        return proto.dim_value
    return _text(proto.dim_param) or None


def _node(proto: onnx.NodeProto, position: int, folder: Path) -> Node:
    op_type = _text(proto.op_type)
    return Node(
        name=_text(proto.name) or f"{op_type}_{position}",
        op_type=op_type,
        domain=_domain(proto.domain),
        inputs=tuple(map(_text, proto.input)),
        outputs=tuple(map(_text, proto.output)),
        attributes={_text(a.name): _attribute(a, folder) for a in proto.attribute},
    )


def _attribute(proto: onnx.AttributeProto, folder: Path) -> Attribute:
    if proto.ref_attr_name:
        return Unreadable("a parameter of a function")
    if proto.type == _KINDS.TENSOR:
        return _tensor_attribute(proto.t, folder)
    if proto.type == _KINDS.GRAPH:
        return _graph(proto.g, folder)
    read = _PLAIN.get(proto.type)
    return Unreadable("of a kind that is not read") if read is None else read(proto)


def _tensor_attribute(proto: onnx.TensorProto, folder: Path) -> Attribute:
    try:
        return _stored(proto, folder)
    except ValueError as error:
        return Unreadable(f"a tensor that is not read: {error}")


_PLAIN: Mapping[int, Callable[[onnx.AttributeProto], Attribute]] = MappingProxyType(
    {
        _KINDS.INT: lambda proto: proto.i,
        _KINDS.FLOAT: lambda proto: proto.f,
        _KINDS.STRING: lambda proto: _text(proto.s),
        _KINDS.INTS: lambda proto: tuple(proto.ints),
        _KINDS.FLOATS: lambda proto: tuple(proto.floats),
        _KINDS.STRINGS: lambda proto: tuple(map(_text, proto.strings)),
    }
)
