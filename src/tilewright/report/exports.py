"""A plan for other tools: CSV tables, MiniMalloc live ranges, Model Explorer, ONNX for Netron."""

import csv
import io
import json
import os
from collections.abc import Iterable, Sequence
from math import fsum
from pathlib import Path
from typing import Any, Literal, assert_never, get_args

from tilewright.document import make_folder, write_files, write_texts
from tilewright.errors import InputError, Problem, refuse_unknown
from tilewright.report.lives import purposes
from tilewright.report.op_rows import OpRow, op_rows, transfer_owners
from tilewright.report.record import PlanRecord
from tilewright.schedule.packed import buffer_lives

Format = Literal["csv", "minimalloc", "model-explorer", "onnx"]
_METADATA_IR_VERSION = 10
"""The first version of ONNX whose nodes can carry metadata."""
_SHADES = ["#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"]


def export(record: PlanRecord, to: Format, folder: Path) -> list[Path]:
    """Write a plan in another tool's format into a folder, made if need be; the files written.

    Raises:
        InputError: there is no such format, or nothing can be written there; for `onnx`, the
            network was not read from an ONNX file that is still there.
    """
    refuse_unknown("format", to, get_args(Format))
    match to:
        case "csv":
            texts = csv_tables(record)
        case "minimalloc":
            texts = live_ranges(record)
        case "model-explorer":
            data = node_data(record)
            texts = {name: json.dumps(values, indent=1) + "\n" for name, values in data.items()}
        case "onnx":
            return [_save_onnx(record, folder)]
        case _:
            assert_never(to)
    return write_texts(folder, texts)


def csv_tables(record: PlanRecord) -> dict[str, str]:
    """`ops.csv`, `tasks.csv` and `buffers.csv`."""
    return {
        "ops.csv": _table(
            (*_OP_COLUMNS, "cascade"),
            ([*(getattr(r, c) for c in _OP_COLUMNS), _cascade(r)] for r in _rows(record)),
        ),
        "tasks.csv": _table(_TASK_COLUMNS, _task_rows(record)),
        "buffers.csv": _table(_BUFFER_COLUMNS, _buffer_rows(record)),
    }


_OP_COLUMNS = (
    "name", "kind", "worker", "macs", "tiles", "start_cycle", "end_cycle", "busy_cycles",
    "stall_cycles", "idle_cycles", "energy_pj", "traffic_bytes", "bound_by",
)  # fmt: skip
_TASK_COLUMNS = (
    "task", "name", "kind", "purpose", "engine", "instance", "op", "start_cycle", "end_cycle",
    "read_bytes", "energy_pj", "after",
)  # fmt: skip
_BUFFER_COLUMNS = (
    "buffer", "name", "tensor", "space", "address", "size_bytes", "start_cycle", "end_cycle",
    "view_of",
)  # fmt: skip


def _rows(record: PlanRecord) -> list[OpRow]:
    return op_rows(record, None)


def _cascade(row: OpRow) -> str:
    return "" if row.cascade is None else row.cascade.text


def _task_rows(record: PlanRecord) -> Iterable[Sequence[Any]]:
    timetable = record.timetable
    owners, why = transfer_owners(record), purposes(timetable)
    for number, (task, slot) in enumerate(
        zip(timetable.program.tasks, timetable.slots, strict=True)
    ):
        yield (
            number,
            task.name,
            task.kind,
            why[number],
            task.engine,
            slot.instance,
            owners[number],
            slot.start_cycle,
            slot.end_cycle,
            max((c.read_bytes for c in task.charges), default=0) if task.kind != "compute" else "",
            fsum(charge.energy_pj for charge in task.charges),
            " ".join(map(str, task.after)),
        )


def _buffer_rows(record: PlanRecord) -> Iterable[Sequence[Any]]:
    timetable = record.timetable
    lives = buffer_lives(timetable)
    for number, buffer in enumerate(timetable.program.buffers):
        start, end = lives.get(number, ("", ""))
        yield (
            number,
            buffer.name,
            buffer.tensor,
            buffer.space,
            timetable.addresses[number],
            buffer.size_bytes,
            start,
            end,
            "" if buffer.view is None else buffer.view.buffer,
        )


def live_ranges(record: PlanRecord) -> dict[str, str]:
    """By scratchpad a file `NAME.csv` with the columns that MiniMalloc and `place` read."""
    program = record.timetable.program
    lives = buffer_lives(record.timetable)
    texts = {}
    for space in program.spaces:
        if space.kind != "scratchpad":
            continue
        rows = [
            (number, start, end, program.buffers[number].size_bytes)
            for number, (start, end) in sorted(lives.items())
            if program.buffers[number].space == space.name and end > start
        ]
        texts[f"{space.name}.csv"] = _table(("id", "lower", "upper", "size"), rows)
    return texts


def node_data(record: PlanRecord) -> dict[str, dict[str, Any]]:
    """Node data for Model Explorer by file name: a set of values for each figure.

    A set is for the graph that is shown, so that no graph need be named. A node is found by its
    name, or by the names of the tensors that it makes.
    """
    rows = _rows(record)
    keys = {op.name: (op.name, *op.writes) for op in record.ops}
    figures: dict[str, tuple[str, dict[str, float]]] = {
        "cycles.json": ("cycles", {row.name: row.busy_cycles for row in rows}),
        "energy.json": ("energy (pJ)", {row.name: round(row.energy_pj, 1) for row in rows}),
        "waiting.json": ("waiting (cycles)", {row.name: row.idle_cycles for row in rows}),
        "traffic.json": ("outside (bytes)", {row.name: row.traffic_bytes for row in rows}),
    }
    shades = [
        {"stop": place / (len(_SHADES) - 1), "bgColor": shade}
        for place, shade in enumerate(_SHADES)
    ]
    return {
        file: {
            "name": f"{figure}, {record.title}",
            "results": {key: {"value": value} for op, value in values.items() for key in keys[op]},
            "gradient": shades,
        }
        for file, (figure, values) in figures.items()
    }


def _save_onnx(record: PlanRecord, folder: Path) -> Path:
    from tilewright.network.onnx_reader.protobuf import load_with_values

    source = Path(str(record.figures["source"]["network"]))
    if source.suffix != ".onnx" or not os.path.isfile(source):
        message = f"the network was read from {str(source)!r}, which is no ONNX file here"
        hint = "plan an ONNX file, and export in the folder in which it was planned"
        raise InputError(Problem(message=message, hint=hint))
    model = load_with_values(source)
    annotate(model, _rows(record), record.title)
    path = folder / f"{source.stem}-planned.onnx"
    make_folder(folder)
    write_files({path: model.SerializeToString()})
    return path


def annotate(model: Any, rows: Sequence[OpRow], title: str) -> int:
    """Write what ops cost into the metadata of an ONNX model's nodes; how many were found.

    An op is named after its node, or after the node's type and place where the node has no name;
    where a node became several ops, each has a part of its own behind a dot.
    """
    model.ir_version = max(model.ir_version, _METADATA_IR_VERSION)
    exact: dict[str, list[OpRow]] = {}
    parts: dict[str, list[OpRow]] = {}
    for row in rows:
        exact[row.name] = [row]
        parts.setdefault(row.name.rpartition(".")[0], []).append(row)
    for row in rows:
        for name in row.fused:
            exact.setdefault(name, [row])
    found = 0
    for position, node in enumerate(model.graph.node):
        names = [node.name or f"{node.op_type}_{position}", *node.output]
        here = next((exact[name] for name in names if name in exact), parts.get(names[0], []))
        found += bool(here)
        for key, value in _metadata(here, names) if here else ():
            entry = node.metadata_props.add()
            entry.key, entry.value = key, value
    entry = model.metadata_props.add()
    entry.key, entry.value = "tilewright.plan", title
    return found


def _metadata(rows: Sequence[OpRow], names: Sequence[str]) -> list[tuple[str, str]]:
    first = rows[0]
    if first.name not in names and any(name in first.fused for name in names):
        return [("tilewright.applied_to", first.name)]
    return [
        ("tilewright.cycles", str(sum(row.busy_cycles for row in rows))),
        ("tilewright.start_cycle", str(min(row.start_cycle for row in rows))),
        ("tilewright.end_cycle", str(max(row.end_cycle for row in rows))),
        ("tilewright.waiting_cycles", str(sum(row.idle_cycles for row in rows))),
        ("tilewright.energy_pj", f"{fsum(row.energy_pj for row in rows):.6g}"),
        ("tilewright.traffic_bytes", str(sum(row.traffic_bytes for row in rows))),
        ("tilewright.tiles", str(sum(row.tiles for row in rows))),
        ("tilewright.bound_by", ", ".join(dict.fromkeys(row.bound_by for row in rows))),
    ]


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
