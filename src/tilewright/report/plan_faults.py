"""What is wrong with a plan file that another tool wrote or changed.

A file that we wrote is not looked through: only where reading or using it fails is the fault looked
for, so that it is told as a fault of the file and not as one of ours.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilewright.errors import InputError, Problem

_BOX = [("int", "int")]
_ACCESS = {"buffer": "int", "box": _BOX}
_COST_FIGURES = ("compute_cycles", "stall_cycles", "onload_cycles", "offload_cycles")
_FILE: Mapping[str, Any] = {
    "network": "text",
    "machine": "text",
    "source": {"network": "text", "machine": "text"},
    "spaces": [{"name": "text", "memory": "text", "kind": "text", "size_bytes": "int"}],
    "engines": [{"name": "text", "count": "int"}],
    "routes": [
        {
            "source": "text",
            "target": "text",
            "engine": "text",
            "setup_cycles": "int",
            "bits_per_cycle": "int",
            "ports": ["text"],
            "read_pj_per_byte": "number",
            "write_pj_per_byte": "number",
            "limits": [("text", "int")],
        }
    ],
    "op_list": [
        {
            "name": "text",
            "dims": [("text", "int")],
            "macs": "int",
            **{key: ["text"] for key in ("fused", "reads", "writes")},
        }
    ],
    "mapping_costs": [
        {
            "macs": "int",
            **dict.fromkeys(_COST_FIGURES, "number"),
            "port_stalls": [("text", "number")],
            "energy_pj": [("text", "text", "number")],
            "faster_cycles": "number",
            "wider_cycles": [("text", "number")],
        }
    ],
    "buffer_list": [
        {
            "name": "text",
            "tensor": "text",
            "box": _BOX,
            "space": "text",
            "address": "int",
            "size_bytes": "int",
        }
    ],
    "task_list": [
        {
            "name": "text",
            "kind": "text",
            "engine": "text",
            "start_cycle": "int",
            "end_cycle": "int",
            "instance": "int",
            "reads": [_ACCESS],
            "writes": [_ACCESS],
            "after": ["int"],
            "charges": [("text", "int", "int", "number")],
        }
    ],
    "control_edges": [("int", "int")],
    "given": ["int"],
    "results": ["int"],
}
"""Keys that must be there: a mapping by key, a list of one kind or of fixed length, or a word."""
_WORDS: Mapping[str, tuple[type, ...]] = {"int": (int,), "number": (int, float), "text": (str,)}
_NAMES = {"int": "a whole number", "number": "a number", "text": "a text"}
_MOST_TOLD = 5


@contextmanager
def faults_told(*plans: str | Path) -> Iterator[None]:
    """Tell a failure inside as a fault of one of the plan files, if one has a fault.

    Raises:
        InputError: the first faults of the first such file.
    """
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        for plan in plans:
            path = Path(plan)
            path = path / "plan.json" if path.is_dir() else path
            found = list(_first(plan_faults(json.loads(path.read_text("utf-8")))))
            if found:
                raise InputError(*(Problem(file=str(path), message=m) for m in found)) from error
        raise


def plan_faults(data: Any) -> Iterator[str]:
    """Faults of a plan file, each with its place; of its references only if all else is right."""
    shape = list(_shape_faults(data, _FILE, ""))
    yield from shape
    if not shape:
        yield from _option_faults(data["source"])
        yield from _reference_faults(data)


def _option_faults(source: Mapping[str, Any]) -> Iterator[str]:
    """Of what need not be there: the options with which the network was read."""
    dims, bits = source.get("dims", {}), source.get("bits")
    if not isinstance(dims, dict):
        yield "source.dims: expected an object"
    else:
        for name, size in dims.items():
            yield from _shape_faults(size, "int", f"source.dims.{name}")
    if bits is not None:
        yield from _shape_faults(bits, "int", "source.bits")


def _first(faults: Iterator[str]) -> Iterator[str]:
    for number, fault in enumerate(faults):
        if number == _MOST_TOLD:
            return
        yield fault


def _shape_faults(data: Any, shape: Any, place: str) -> Iterator[str]:
    """Where the data are not what a shape says: see `_FILE`."""
    if isinstance(shape, str):
        if isinstance(data, bool) or not isinstance(data, _WORDS[shape]):
            yield f"{place}: expected {_NAMES[shape]}"
    elif isinstance(shape, dict):
        if not isinstance(data, dict):
            yield f"{place or 'the file'}: expected an object"
            return
        for key, inner in shape.items():
            at = f"{place}.{key}".lstrip(".")
            if key not in data:
                yield f"{at}: is missing"
            else:
                yield from _shape_faults(data[key], inner, at)
    else:
        fixed = isinstance(shape, tuple)
        if not isinstance(data, list) or (fixed and len(data) != len(shape)):
            yield f"{place}: expected a list{f' of {len(shape)}' if fixed else ''}"
            return
        inner = shape if fixed else shape * len(data)
        for number, (item, kind) in enumerate(zip(data, inner, strict=True)):
            yield from _shape_faults(item, kind, f"{place}[{number}]")


def _reference_faults(data: Mapping[str, Any]) -> Iterator[str]:
    """Numbers and names that lead nowhere, and tiles that are none of their op."""
    buffers, tasks = data["buffer_list"], data["task_list"]
    spaces = {space["name"] for space in data["spaces"]}
    engines = {engine["name"] for engine in data["engines"]}
    dims = {op["name"]: dict(op["dims"]) for op in data["op_list"]}
    for number, buffer in enumerate(buffers):
        if buffer["space"] not in spaces:
            yield f"buffer_list[{number}].space: there is no space {buffer['space']!r}"
    for key in ("given", "results"):
        yield from _outside(data[key], len(buffers), key, "buffer")
    for number, edge in enumerate(data["control_edges"]):
        yield from _outside(edge, len(tasks), f"control_edges[{number}]", "task")
    for number, task in enumerate(tasks):
        place = f"task_list[{number}]"
        if task["engine"] not in engines:
            yield f"{place}.engine: there is no engine {task['engine']!r}"
        yield from _outside(task["after"], len(tasks), f"{place}.after", "task")
        for key in ("reads", "writes"):
            numbers = [access["buffer"] for access in task[key]]
            yield from _outside(numbers, len(buffers), f"{place}.{key}", "buffer")
        if task["kind"] == "compute":
            yield from _tile_faults(task, dims.get(task.get("op", ""), {}), place)
            if task.get("mapping") is not None:
                yield from _outside(
                    [task["mapping"]], len(data["mapping_costs"]), f"{place}.mapping", "mapping"
                )


def _outside(numbers: Sequence[int], count: int, place: str, what: str) -> Iterator[str]:
    for number in numbers:
        if not 0 <= number < count:
            yield f"{place}: there is no {what} {number}: there are {count}"


def _tile_faults(task: Mapping[str, Any], sizes: Mapping[str, int], place: str) -> Iterator[str]:
    tile = task.get("tile")
    shape = list(_shape_faults(tile, [("text", "int", "int")], f"{place}.tile"))
    yield from shape
    if shape or not isinstance(tile, list):
        return
    ranges = {loop: (start, stop) for loop, start, stop in tile}
    wrong = [loop for loop, (a, b) in ranges.items() if not 0 <= a < b <= sizes.get(loop, 0)]
    if wrong or ranges.keys() != sizes.keys():
        yield f"{place}.tile: {tile} is no part of the loops {dict(sizes)} of {task.get('op')!r}"
