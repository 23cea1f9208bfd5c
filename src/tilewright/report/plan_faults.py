"""What is wrong with a plan file that another tool wrote or changed.

A replay looks for it before anything else. Other commands trust a file: only where reading or using
it fails is the fault looked for, so that it is told as a fault of the file and not as one of ours.
"""

import json
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

from tilewright.errors import InputError, Problem

_BOX = [("int", "int")]
_ACCESS = {"buffer": "int", "box": _BOX}
_OPERAND = {"operand": "text", "tensor": "text"}
_OPERATOR = {
    "attributes?": {},
    "accumulator_bits?": "int",
    "inputs?": [_OPERAND],
    "outputs?": [_OPERAND],
}
_COST_FIGURES = ("compute_cycles", "stall_cycles", "onload_cycles", "offload_cycles")
_FILE: Mapping[str, Any] = {
    "network": "text",
    "machine": "text",
    "source": {
        "network": "text",
        "machine": "text",
        "dims?": {"*": "int"},
        "bits?": "int or null",
        "memory_limits?": {"*": "count"},
    },
    "tasks": "int",
    "buffers": "int",
    "totals": {
        "cycles": "int",
        "energy_pj": "number",
        "energy_pj_by_memory": {"*": "number"},
        "traffic_bytes": {"*": {"read": "int", "write": "int"}},
        "peak_bytes": {"*": "int"},
        "macs_executed?": "int",
    },
    "bounds?": {
        "machine?": {"cycles": "int", "traffic_bytes": "int", "energy_pj": "number"},
        "these_tiles?": {"cycles": "int", "path_cycles": "int", "engine_cycles": {"*": "int"}},
        "these_lives?": {"peak_bytes": {"*": "int"}},
        "cycles?": "int",
        "path_cycles?": "int",
        "engine_cycles?": {"*": "int"},
        "roofline_cycles?": "int",
        "traffic_bytes?": "int",
        "peak_bytes?": {"*": "int"},
    },
    "spaces": [
        {
            "name": "text",
            "memory": "text",
            "kind": "kind of space",
            "size_bytes": "int",
            "alignment_bytes": "count",
            "core": "int or null",
            "reserved": _BOX,
            "leakage_pj_per_cycle?": "number",
        }
    ],
    "leakage_pj_per_cycle?": {"*": "number"},
    "engines": [{"name": "text", "count": "count"}],
    "routes": [
        {
            "source": "text",
            "target": "text",
            "engine": "text",
            "setup_cycles": "int",
            "bits_per_cycle": "count",
            "ports": ["text"],
            "read_pj_per_byte": "number",
            "write_pj_per_byte": "number",
            "limits": [("text", "int")],
        }
    ],
    "tensors": [
        {
            "name": "text",
            "shape": ["int"],
            "bits": "int",
            "role": "text",
            "quantisation?": {"scale": ["number"], "zero_point": ["int"], "axis": "int"},
        }
    ],
    "op_list": [
        {
            "name": "text",
            "dims": [("text", "int")],
            "macs": "int",
            **{key: ["text"] for key in ("fused", "reads", "writes")},
            **_OPERATOR,
        }
    ],
    "mappings": ["text"],
    "fused_list?": [{"name": "text", "kind": "text", "dims": [("text", "int")], **_OPERATOR}],
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
            "bits?": "count",
        }
    ],
    "task_list": [
        {
            "name": "text",
            "kind": "kind of task",
            "engine": "text",
            "start_cycle": "int",
            "end_cycle": "int",
            "instance": "int",
            "reads": [_ACCESS],
            "writes": [_ACCESS],
            "after": ["int"],
            "charges": [("text", "int", "int", "number")],
            "fused?": ["text"],
            "mapping?": "int",
            "ports?": ["text"],
            "setup_cycles?": "int",
        }
    ],
    "control_edges": [("int", "int")],
    "given": ["int"],
    "results": ["int"],
}
"""Keys that must be there, or may (`?`), or are any (`*`): a mapping by key, a list of one kind or
of fixed length, or a word."""
_KINDS = {
    "kind of space": ("scratchpad", "external", "source", "sink"),
    "kind of task": ("compute", "load", "store", "move"),
}
_NAMES = {
    "int": "a whole number",
    "int or null": "a whole number or null",
    "count": "a whole number from 1 on",
    "number": "a number",
    "text": "a text",
    **{word: f"one of {', '.join(kinds)}" for word, kinds in _KINDS.items()},
}
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
            try:
                refuse_faults(plan, json.loads(_file(plan).read_text("utf-8")))
            except InputError as told:
                raise told from error
        raise


def refuse_faults(plan: str | Path, data: Any) -> None:
    """Raise InputError with the first faults of a plan file, given by what is in it."""
    found = list(islice(plan_faults(data), _MOST_TOLD))
    if found:
        raise InputError(*(Problem(file=str(_file(plan)), message=text) for text in found))


def _file(plan: str | Path) -> Path:
    path = Path(plan)
    return path / "plan.json" if os.path.isdir(path) else path


def plan_faults(data: Any) -> Iterator[str]:
    """Faults of a plan file, each with its place; of its references only if all else is right."""
    shape = list(_shape_faults(data, _FILE, ""))
    yield from shape
    if not shape:
        counts = len(data["mappings"]), len(data["mapping_costs"])
        if counts[0] != counts[1]:
            yield f"mapping_costs: there are {counts[1]}, and {counts[0]} mappings"
        yield from _reference_faults(data)


def _is(word: str, value: Any) -> bool:
    """Whether a value is what a word of `_NAMES` says."""
    if word in _KINDS:
        return value in _KINDS[word]
    if word == "text":
        return isinstance(value, str)
    if value is None:
        return word == "int or null"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if word == "number":
        return isfinite(value)
    return isinstance(value, int) and (word != "count" or value >= 1)


def _shape_faults(data: Any, shape: Any, place: str) -> Iterator[str]:
    """Where the data are not what a shape says: see `_FILE`."""
    if isinstance(shape, str):
        if not _is(shape, data):
            yield f"{place}: expected {_NAMES[shape]}"
    elif isinstance(shape, dict):
        if not isinstance(data, dict):
            yield f"{place or 'the file'}: expected an object"
            return
        inner = dict.fromkeys(data, shape["*"]) if "*" in shape else shape
        for name, kind in inner.items():
            key = name if name in data else name.removesuffix("?")
            at = f"{place}.{key}".lstrip(".")
            if key in data:
                yield from _shape_faults(data[key], kind, at)
            elif key == name:
                yield f"{at}: is missing"
    else:
        fixed = isinstance(shape, tuple)
        if not isinstance(data, list) or (fixed and len(data) != len(shape)):
            yield f"{place}: expected a list{f' of {len(shape)}' if fixed else ''}"
            return
        kinds = shape if fixed else shape * len(data)
        for number, (item, kind) in enumerate(zip(data, kinds, strict=True)):
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
    yield from _route_faults(data["routes"], spaces, engines)
    for number, task in enumerate(tasks):
        yield from _task_faults(data, task, f"task_list[{number}]")
        if task["engine"] not in engines:
            yield f"task_list[{number}].engine: there is no engine {task['engine']!r}"
        for port in task.get("ports", ()):
            if port not in engines:
                yield f"task_list[{number}].ports: there is no engine {port!r}"
        if task["kind"] == "compute":
            sizes = dims.get(task.get("op", ""), {})
            yield from _tile_faults(task, sizes, f"task_list[{number}]")


def _route_faults(
    routes: Sequence[Mapping[str, Any]], spaces: Container[str], engines: Container[str]
) -> Iterator[str]:
    for number, route in enumerate(routes):
        for key in ("source", "target"):
            if route[key] not in spaces:
                yield f"routes[{number}].{key}: there is no space {route[key]!r}"
        for key, name in (("engine", route["engine"]), *(("ports", p) for p in route["ports"])):
            if name not in engines:
                yield f"routes[{number}].{key}: there is no engine {name!r}"


def _task_faults(data: Mapping[str, Any], task: Mapping[str, Any], place: str) -> Iterator[str]:
    """Numbers of a task that lead nowhere, and ends before their start."""
    if task["end_cycle"] < task["start_cycle"]:
        yield f"{place}.end_cycle: {task['end_cycle']} is before start_cycle {task['start_cycle']}"
    yield from _outside(task["after"], len(data["task_list"]), f"{place}.after", "task")
    for key in ("reads", "writes"):
        numbers = [access["buffer"] for access in task[key]]
        yield from _outside(numbers, len(data["buffer_list"]), f"{place}.{key}", "buffer")
        if task["kind"] != "compute" and not numbers:
            yield f"{place}.{key}: a {task['kind']} moves something, and this is empty"
    numbers = [task["mapping"]] if "mapping" in task else []
    yield from _outside(numbers, len(data["mapping_costs"]), f"{place}.mapping", "mapping")


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
