"""Does a plan file say of ops, tensors and buffers what the network says?

What is written there is read back and compared; products are counted tile by tile.
"""

from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.errors import Problem
from tilewright.network.graph import Index, Network, Op, Operand
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.model import Box, Program
from tilewright.replay.check_taps import products, taps_of
from tilewright.replay.emulate_layout import holds_partial_sums
from tilewright.replay.kernels.tile import Quantisation
from tilewright.replay.values_tflite import stored_quantisations
from tilewright.report.record import PlanRecord


def operator_problems(record: PlanRecord, network: Network) -> Iterator[Problem]:
    """Products, ops, buffers and scales of a plan file that are not the network's.

    What files of earlier versions do not say is not missed.
    """
    figures, program = record.figures, record.timetable.program
    said, done = figures["totals"].get("macs_executed"), products_of(program, network)
    if said is not None and said != done:
        yield Problem(
            message=f"totals.macs_executed of the plan file is {said}, and its tasks come to {done}"
        )
    ops = {op.name: op for op in network.ops}
    for data in (*figures["op_list"], *figures.get("fused_list", ())):
        if data["name"] not in ops:
            yield Problem(message=f"op {data['name']} of the plan file is none of {network.name}")
        elif "attributes" in data:
            yield from _unlike_op(data, ops[data["name"]])
    yield from _wrong_bits(figures["buffer_list"], program, network)
    yield from _wrong_scales(figures["tensors"], network)


def products_of(program: Program, network: Network) -> int:
    """Multiplications of all tasks of a program."""
    ops = {op.name: op for op in network.ops if KIND_CLASSES[op.kind] == "mac"}
    taps = {name: taps_of(op, network) for name, op in ops.items()}
    total = 0
    for task in program.tasks:
        if task.op in ops:
            op, tile = ops[task.op], {dim: (begin, end) for dim, begin, end in task.tile}
            box = tuple([tile.get(dim, (0, size)) for dim, size in op.dims])
            count = products(op, taps[task.op], box)
            for axis, extent in zip(
                op.outputs[0].index or (), network.by_name[op.outputs[0].tensor].shape, strict=False
            ):
                if axis.offset or axis.divisor != 1 or len(axis.terms) > 1:
                    inside, points = _landing(op, axis, extent, box)
                    count = count * inside // max(1, points)
            total += count
    return total


def _landing(op: Op, axis: Index, extent: int, box: Box) -> tuple[int, int]:
    """How many points of some loops land on an axis of the result, and how many there are."""
    places = np.array([axis.offset], dtype=np.int64)
    loops = dict(zip((dim for dim, _ in op.dims), box, strict=True))
    for dim, factor in axis.terms:
        places = np.add.outer(places, factor * np.arange(*loops[dim], dtype=np.int64)).ravel()
    whole = places[places % axis.divisor == 0] // axis.divisor
    return int(((whole >= 0) & (whole < extent)).sum()), len(places)


def _unlike_op(data: Mapping[str, Any], op: Op) -> Iterator[Problem]:
    """An op whose kind, attributes or operands the network has otherwise."""
    known: dict[str, object] = {
        "kind": op.kind,
        "attributes": {key: _plain(value) for key, value in op.attributes},
        "accumulator_bits": op.accumulator_bits,
        "inputs": op.inputs,
        "outputs": op.outputs,
    }
    for key, value in known.items():
        said = data.get(key)
        if (_operands(said) if key in ("inputs", "outputs") else said) != value:
            message = f"op {op.name} of the plan file has the {key} {said}, not {value}"
            yield Problem(message=message)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _operands(data: Any) -> tuple[Operand, ...] | None:
    """Operands as they are written; None if they cannot be read."""
    try:
        return tuple(map(_operand, data))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _operand(data: Mapping[str, Any]) -> Operand:
    index = data["index"]
    return Operand(
        name=data["operand"],
        tensor=data["tensor"],
        index=None if index is None else tuple(map(_axis, index)),
    )


def _axis(data: Mapping[str, Any]) -> Index:
    terms = tuple([(str(dim), int(factor)) for dim, factor in data["terms"]])
    return Index(terms, data.get("offset", 0), data.get("divisor", 1), data.get("reach", 0))


def _wrong_bits(
    buffers: list[Mapping[str, Any]], program: Program, network: Network
) -> Iterator[Problem]:
    """Buffers whose elements are told to be of other bits than their tensor's; sums that wait may
    be wider, as long as there is room for them."""
    for data, buffer in zip(buffers, program.buffers, strict=True):
        tensor, bits = network.by_name.get(buffer.tensor), data.get("bits")
        if tensor is None or bits is None or bits == tensor.bits:
            continue
        count = prod(end - begin for begin, end in buffer.box)
        has_room = tensor.bits < bits and bits * count <= 8 * buffer.size_bytes
        if not (holds_partial_sums(buffer) and has_room):
            yield Problem(
                message=f"buffer {buffer.name} of the plan file has elements of {bits} bits, and "
                f"{tensor.name} of {tensor.bits}"
            )


def _wrong_scales(tensors: list[Mapping[str, Any]], network: Network) -> Iterator[Problem]:
    """Scales and zero points that the network's file gives otherwise."""
    told = {t["name"]: t["quantisation"] for t in tensors if "quantisation" in t}
    path = Path(network.source)
    if not told or path.suffix != ".tflite" or not path.is_file():
        return
    stored = stored_quantisations(network, path)
    for name, data in told.items():
        if name not in stored or not _is_same(data, stored[name]):
            yield Problem(message=f"tensor {name} of the plan file is quantised by other numbers")


def _is_same(data: Mapping[str, Any], known: Quantisation) -> bool:
    scale = np.array(data["scale"], dtype=np.float32)
    zero_point = np.array(data["zero_point"], dtype=np.int64)
    return (
        data["axis"] == known.axis
        and scale.size in (1, known.scale.size)
        and zero_point.size in (1, known.zero_point.size)
        and bool((known.scale.reshape(-1) == scale).all())
        and bool((known.zero_point.reshape(-1) == zero_point).all())
    )
