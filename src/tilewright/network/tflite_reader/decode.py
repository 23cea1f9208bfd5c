"""From the bytes of a flatbuffer to plain values, trusting nothing that stands in them."""

import struct
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from mmap import mmap
from typing import Any

from tilewright.network.tflite_reader.options import OPTIONS_TABLES, VECTOR_FIELDS, OptionsTable
from tilewright.network.tflite_reader.raw import (
    MAX_RANK,
    OptionValue,
    RawModel,
    RawOperator,
    RawTensor,
)

IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3

# Networks of billions of weights stay far below each; beyond, a file is broken, not big.
MAX_TENSORS = 60_000
MAX_OPERATORS = 15_000
MAX_OPERANDS = 60_000
MAX_NAME_BYTES = 32 * 2**20

# What flatbuffers' accessors raise where offsets or lengths point nowhere.
_GARBAGE = (struct.error, IndexError, TypeError, OverflowError, ValueError)

# A table without fields: reading it gives the schema's defaults.
_EMPTY_TABLE = struct.pack("<HHi", 4, 4, 4)
_EMPTY_TABLE_POSITION = 4


class FormatError(Exception):
    """The bytes are not a TFLite model; the message says what is wrong with them."""


class _Budget:
    """What may still be read before a file counts as broken: vectors can share their bytes, so
    the size of the file is no limit.
    """

    def __init__(self) -> None:
        self.operands = MAX_OPERANDS
        self.name_bytes = MAX_NAME_BYTES

    def spend_operands(self, count: int) -> None:
        self.operands -= count
        if self.operands < 0:
            raise FormatError(f"operators have more than {MAX_OPERANDS:,} inputs and outputs")

    def spend_name(self, count: int) -> None:
        self.name_bytes -= count
        if self.name_bytes < 0:
            raise FormatError(f"names take more than {MAX_NAME_BYTES:,} bytes")


def decode(content: bytes | mmap) -> RawModel:
    """The main subgraph of a TFLite file; raises FormatError. Needs the `tflite` package."""
    if len(content) < 8 or content[4:8] != IDENTIFIER:
        raise FormatError(
            f"bytes 4 to 8 are not {IDENTIFIER.decode()!r}, which every TFLite model has there"
        )
    try:
        return _model(content)
    except _GARBAGE as error:
        raise FormatError("an offset or a length in it points outside the file") from error


def _model(content: bytes | mmap) -> RawModel:
    model = _schema("Model").GetRootAs(content, 0)
    if model.Version() != SCHEMA_VERSION:
        raise FormatError(f"schema version {model.Version()}; only {SCHEMA_VERSION} is known")
    if model.SubgraphsLength() == 0:
        raise FormatError("it has no subgraph")
    if model.BuffersLength():
        # No tensor needs the empty buffer, but it tends to lie last: it shows a missing end.
        model.Buffers(0).DataLength()
    graph = model.Subgraphs(0)
    budget = _Budget()
    return RawModel(
        tensors=tuple(_tensors(content, model, graph, budget)),
        operators=tuple(_operators(model, graph, budget)),
        inputs=_indices(graph, "Inputs", budget),
        outputs=_indices(graph, "Outputs", budget),
        n_subgraphs=model.SubgraphsLength(),
    )


def _tensors(content: bytes | mmap, model: Any, graph: Any, budget: _Budget) -> Iterator[RawTensor]:
    count = graph.TensorsLength()
    if count > MAX_TENSORS:
        raise FormatError(f"{count:,} tensors, more than {MAX_TENSORS:,}")
    for i in range(count):
        tensor = graph.Tensors(i)
        name = tensor.Name() or b""
        budget.spend_name(len(name))
        yield RawTensor(
            name=name.decode("utf-8", errors="replace"),
            shape=_short_vector(tensor, "Shape", f"tensor {i}"),
            signature=_short_vector(tensor, "ShapeSignature", f"tensor {i}"),
            type_number=tensor.Type(),
            data=_buffer(content, model, tensor.Buffer(), i),
            is_variable=bool(tensor.IsVariable()),
            is_sparse=tensor.Sparsity() is not None,
        )


def _buffer(content: bytes | mmap, model: Any, number: int, tensor: int) -> memoryview:
    if number == 0:
        return memoryview(b"")
    if number >= model.BuffersLength():
        raise FormatError(
            f"tensor {tensor}: its data is in buffer {number} of {model.BuffersLength()}"
        )
    buffer = model.Buffers(number)
    start, size = buffer.Offset(), buffer.Size()
    if start > 1:  # The schema reserves 0 and 1; from 2 on, the data lies behind the flatbuffer.
        if start + size > len(content):
            raise FormatError(f"buffer {number}: ends at byte {start + size:,}, behind the file")
        return memoryview(content)[start : start + size]
    return memoryview(b"") if buffer.DataIsNone() else memoryview(buffer.DataAsNumpy())


def _operators(model: Any, graph: Any, budget: _Budget) -> Iterator[RawOperator]:
    count = graph.OperatorsLength()
    if count > MAX_OPERATORS:
        raise FormatError(f"{count:,} operators, more than {MAX_OPERATORS:,}")
    names: dict[int, str] = {}
    for i in range(count):
        operator = graph.Operators(i)
        code = operator.OpcodeIndex()
        if code >= model.OperatorCodesLength():
            raise FormatError(f"operator {i}: code {code} of {model.OperatorCodesLength()}")
        if code not in names:
            names[code] = _operator_name(model.OperatorCodes(code), budget)
        options, fault = _options(operator, OPTIONS_TABLES.get(names[code]))
        yield RawOperator(
            name=names[code],
            inputs=_indices(operator, "Inputs", budget),
            outputs=_indices(operator, "Outputs", budget),
            options=options,
            fault=fault,
        )


def _operator_name(code: Any, budget: _Budget) -> str:
    # The first 127 operators stand in a field of one byte, which later files fill as well.
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    name = _names("BuiltinOperator").get(number, f"BUILTIN_{number}")
    if name != "CUSTOM":
        return name
    custom = code.CustomCode() or b""
    budget.spend_name(len(custom))
    return f"CUSTOM {custom[:100].decode('utf-8', errors='replace')}".strip()


def _options(
    operator: Any, table: OptionsTable | None
) -> tuple[tuple[tuple[str, OptionValue], ...], str]:
    """The options the reader uses, with defaults where the file has none, and what is wrong."""
    if table is None:
        return (), ""
    kind = operator.BuiltinOptionsType()
    found = _names("BuiltinOptions").get(kind, f"options of type {kind}")
    if kind != 0 and found != table.schema_class:
        return (), f"carries {found} where {table.schema_class} belong"
    options = _schema(table.schema_class)()
    union = operator.BuiltinOptions() if kind else None
    if union is None:
        options.Init(_EMPTY_TABLE, _EMPTY_TABLE_POSITION)
    else:
        options.Init(union.Bytes, union.Pos)
    return tuple((ours, _option(options, field)) for field, ours in table.fields), ""


def _option(options: Any, field: str) -> OptionValue:
    if field in VECTOR_FIELDS:
        return _short_vector(options, field, field)
    value: OptionValue = getattr(options, field)()
    return value


def _indices(owner: Any, field: str, budget: _Budget) -> tuple[int, ...]:
    budget.spend_operands(getattr(owner, f"{field}Length")())
    return _vector(owner, field)


def _short_vector(owner: Any, field: str, where: str) -> tuple[int, ...]:
    length = getattr(owner, f"{field}Length")()
    if length > MAX_RANK:
        raise FormatError(f"{where}: {length:,} axes, more than {MAX_RANK}")
    return _vector(owner, field)


def _vector(owner: Any, field: str) -> tuple[int, ...]:
    if getattr(owner, f"{field}IsNone")():
        return ()
    return tuple(getattr(owner, f"{field}AsNumpy")().tolist())


@cache
def _schema(name: str) -> Any:
    """A class of the schema. A module each: the package's own names hide modules by classes."""
    return getattr(import_module(f"tflite.{name}"), name)


@cache
def _names(enumeration: str) -> dict[int, str]:
    """The names of an enumeration of the schema by their numbers."""
    members = vars(_schema(enumeration)).items()
    return {number: name for name, number in members if isinstance(number, int)}
