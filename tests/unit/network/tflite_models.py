"""Tiny TFLite files, written with the schema's own builder functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import flatbuffers  # type: ignore[import-untyped]  # ships no types
import numpy as np

TYPE_NUMBERS = {
    "float32": 0,
    "float16": 1,
    "int32": 2,
    "uint8": 3,
    "int64": 4,
    "text": 5,
    "bool": 6,
    "int16": 7,
    "int8": 9,
    "int4": 17,
}


@dataclass(frozen=True, kw_only=True)
class TensorSpec:
    shape: tuple[int, ...]
    dtype: str = "float32"
    data: bytes = b""
    signature: tuple[int, ...] | None = None
    name: str | None = None
    """None: the key under which the model has it."""
    is_variable: bool = False
    behind_at: tuple[int, int] | None = None
    """Where its data lies behind the flatbuffer, and how many bytes."""
    quantisation: tuple[float, int] | None = None
    """Scale and zero point."""


Options = tuple[str, Mapping[str, int | float | bool | Sequence[int]]]


@dataclass(frozen=True, kw_only=True)
class OperatorSpec:
    op: str
    inputs: tuple[str | int, ...]
    """Keys of tensors; a number is written as it is."""
    outputs: tuple[str | int, ...]
    options: Options | None = None
    custom_code: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    tensors: Mapping[str, TensorSpec]
    operators: tuple[OperatorSpec, ...]
    inputs: tuple[str | int, ...]
    outputs: tuple[str | int, ...]
    version: int = 3
    extra_subgraphs: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)
    """Constants as arrays, for whoever computes with them."""

    def save(self, folder: Path, name: str = "model.tflite") -> Path:
        path = folder / name
        path.write_bytes(model_bytes(self))
        return path


def constant(values: Any, dtype: str = "int32", name: str | None = None) -> TensorSpec:
    array = np.asarray(values, dtype=dtype)
    return TensorSpec(shape=array.shape, dtype=dtype, data=array.tobytes(), name=name)


def single(
    op: str,
    inputs: Mapping[str, TensorSpec],
    outputs: Mapping[str, TensorSpec],
    options: Options | None = None,
    *,
    order: Sequence[str] | None = None,
) -> ModelSpec:
    """A model of one operator; inputs without data are the model's inputs."""
    return ModelSpec(
        tensors={**inputs, **outputs},
        operators=(
            OperatorSpec(
                op=op,
                inputs=tuple(order or inputs),
                outputs=tuple(outputs),
                options=options,
            ),
        ),
        inputs=tuple(key for key, spec in inputs.items() if not spec.data),
        outputs=tuple(outputs),
        values=arrays(inputs),
    )


def chain(*ops: str, names: tuple[str, ...]) -> ModelSpec:
    """Operators one behind the other on tensors with these names."""
    keys = [f"key{i}" for i in range(len(names))]
    if len(set(names)) == len(names) and all(names):
        keys = list(names)
    return ModelSpec(
        tensors={
            key: TensorSpec(shape=(2, 3), name=name) for key, name in zip(keys, names, strict=True)
        },
        operators=tuple(
            OperatorSpec(op=op, inputs=(keys[i],), outputs=(keys[i + 1],))
            for i, op in enumerate(ops)
        ),
        inputs=(keys[0],),
        outputs=(keys[-1],),
    )


def arrays(tensors: Mapping[str, TensorSpec]) -> dict[str, Any]:
    return {
        key: np.frombuffer(spec.data, dtype=spec.dtype).reshape(spec.shape)
        for key, spec in tensors.items()
        if spec.data and spec.dtype != "int4"
    }


def model_bytes(model: ModelSpec) -> bytes:
    builder = flatbuffers.Builder(1024)
    codes = list(dict.fromkeys((o.op, o.custom_code) for o in model.operators))
    indices = {key: i for i, key in enumerate(model.tensors)}

    def numbers(keys: Sequence[str | int]) -> list[int]:
        return [key if isinstance(key, int) else indices[key] for key in keys]

    buffers = [_table(builder, "Buffer", {})]
    buffers += [_buffer(builder, spec) for spec in model.tensors.values()]
    tensors = [
        _tensor(builder, key, spec, i + 1 if spec.data or spec.behind_at else 0)
        for i, (key, spec) in enumerate(model.tensors.items())
    ]
    operators = []
    for spec in model.operators:
        options = _options(builder, spec.options) if spec.options else None
        fields: dict[str, Any] = {
            "OpcodeIndex": codes.index((spec.op, spec.custom_code)),
            "Inputs": _int_vector(builder, numbers(spec.inputs)),
            "Outputs": _int_vector(builder, numbers(spec.outputs)),
        }
        if spec.options is not None:
            fields["BuiltinOptionsType"] = _number("BuiltinOptions", spec.options[0])
            fields["BuiltinOptions"] = options
        operators.append(_table(builder, "Operator", fields))
    graph = _table(
        builder,
        "SubGraph",
        {
            "Tensors": _offset_vector(builder, tensors),
            "Inputs": _int_vector(builder, numbers(model.inputs)),
            "Outputs": _int_vector(builder, numbers(model.outputs)),
            "Operators": _offset_vector(builder, operators),
        },
    )
    others = [_table(builder, "SubGraph", {}) for _ in range(model.extra_subgraphs)]
    code_tables = [_code(builder, *code) for code in codes]
    root = _table(
        builder,
        "Model",
        {
            "Version": model.version,
            "OperatorCodes": _offset_vector(builder, code_tables),
            "Subgraphs": _offset_vector(builder, [graph, *others]),
            "Buffers": _offset_vector(builder, buffers),
        },
    )
    builder.Finish(root, file_identifier=b"TFL3")
    return bytes(builder.Output())


def _number(enumeration: str, name: str) -> int:
    number: int = getattr(getattr(import_module(f"tflite.{enumeration}"), enumeration), name)
    return number


def _code(builder: Any, op: str, custom_code: str) -> Any:
    number = _number("BuiltinOperator", op)
    fields: dict[str, Any] = {"BuiltinCode": number, "DeprecatedBuiltinCode": min(number, 127)}
    fields["Version"] = 2 if op == "BROADCAST_TO" else 1  # LiteRT has no first version of it.
    if custom_code:
        fields["CustomCode"] = builder.CreateString(custom_code)
    return _table(builder, "OperatorCode", fields)


def _tensor(builder: Any, key: str, spec: TensorSpec, buffer: int) -> Any:
    fields: dict[str, Any] = {
        "Shape": _int_vector(builder, spec.shape),
        "Type": TYPE_NUMBERS[spec.dtype],
        "Buffer": buffer,
        "Name": builder.CreateString(key if spec.name is None else spec.name),
        "IsVariable": spec.is_variable,
    }
    if spec.signature is not None:
        fields["ShapeSignature"] = _int_vector(builder, spec.signature)
    if spec.quantisation is not None:
        scale, zero = spec.quantisation
        numbers = {
            "Scale": builder.CreateNumpyVector(np.array([scale], np.float32)),
            "ZeroPoint": builder.CreateNumpyVector(np.array([zero], np.int64)),
        }
        fields["Quantization"] = _table(builder, "QuantizationParameters", numbers)
    return _table(builder, "Tensor", fields)


def _buffer(builder: Any, spec: TensorSpec) -> Any:
    if spec.behind_at is not None:
        start, size = spec.behind_at
        return _table(builder, "Buffer", {"Offset": start, "Size": size})
    if not spec.data:
        return _table(builder, "Buffer", {})
    return _table(builder, "Buffer", {"Data": builder.CreateByteVector(spec.data)})


def _options(builder: Any, options: Options) -> Any:
    name, fields = options
    return _table(
        builder,
        name,
        {
            key: _int_vector(builder, value) if isinstance(value, Sequence) else value
            for key, value in fields.items()
        },
    )


def _table(builder: Any, name: str, fields: Mapping[str, Any]) -> Any:
    module = import_module(f"tflite.{name}")
    getattr(module, f"{name}Start")(builder)
    for key, value in fields.items():
        getattr(module, f"{name}Add{key}")(builder, value)
    return getattr(module, f"{name}End")(builder)


def _int_vector(builder: Any, numbers: Sequence[int]) -> Any:
    builder.StartVector(4, len(numbers), 4)
    for number in reversed(numbers):
        builder.PrependInt32(number)
    return builder.EndVector()


def _offset_vector(builder: Any, offsets: Sequence[Any]) -> Any:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()
