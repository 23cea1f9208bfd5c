"""The files of a plan: `plan.json` to execute, `trace.json` and `report.html` to look at."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilewright import __version__
from tilewright.document import write_texts
from tilewright.garbage import without_garbage_collection
from tilewright.mapping.text import mapping_text
from tilewright.network.graph import Network
from tilewright.planner import Plan
from tilewright.program.boxes import elements
from tilewright.program.model import Access, Buffer, Task
from tilewright.replay.emulate_layout import holds_partial_sums
from tilewright.report.cascades import rolling_buffers
from tilewright.report.html_report import report_html
from tilewright.report.operators import operator_json, tensors_json
from tilewright.report.plan import plan_figures
from tilewright.report.record import SCHEMA, record_json
from tilewright.report.trace import trace_events


def save(plan: Plan, folder: Path) -> list[Path]:
    """Write `plan.json`, `trace.json` and `report.html` into a folder, made if need be.

    Raises:
        InputError: they cannot be written there.
    """
    with without_garbage_collection():
        texts = {
            "plan.json": json.dumps(plan_json(plan), separators=(",", ":")) + "\n",
            "trace.json": json.dumps(trace_events(plan), separators=(",", ":")) + "\n",
            "report.html": report_html(plan),
        }
    return write_texts(folder, texts)


def plan_json(plan: Plan) -> dict[str, Any]:
    """The whole plan; docs/reference/plan-files.md describes every key."""
    program, timetable = plan.program, plan.timetable
    used = sorted({task.op for task in program.tasks if task.op})
    return {
        "schema": SCHEMA,
        "tilewright_version": __version__,
        **plan_figures(plan),
        "source": plan_source(plan),
        "spaces": [
            {
                "name": space.name,
                "memory": space.memory,
                "kind": space.kind,
                "size_bytes": space.size_bytes,
                "alignment_bytes": space.alignment_bytes,
                "core": space.core,
                "reserved": space.reserved,
                "rereadable": space.rereadable,
                "leakage_pj_per_cycle": space.leakage_pj_per_cycle,
            }
            for space in program.spaces
        ],
        "leakage_pj_per_cycle": dict(program.leakage),
        "engines": [{"name": engine.name, "count": engine.count} for engine in program.engines],
        "tensors": list(tensors_json(plan.network)),
        "ops": used,
        "mappings": [
            mapping_text(f"mapping {number}", mapped.setup, mapped.loops)
            for number, mapped in enumerate(program.mappings)
        ],
        "buffer_list": [
            _buffer(buffer, address, plan.network)
            for buffer, address in zip(program.buffers, timetable.addresses, strict=True)
        ],
        "task_list": [
            {
                **_task(task),
                "start_cycle": slot.start_cycle,
                "end_cycle": slot.end_cycle,
                "instance": slot.instance,
            }
            for task, slot in zip(program.tasks, timetable.slots, strict=True)
        ],
        "control_edges": timetable.edges,
        "given": program.given,
        "results": program.results,
        "rolling_buffers": [asdict(rolling) for rolling in rolling_buffers(program, plan.network)],
        **_with_operators(record_json(plan.record), plan.network),
    }


def _with_operators(data: dict[str, Any], network: Network) -> dict[str, Any]:
    """The keys of a record; ops, and those applied in passing, with what it takes to run them."""
    ops = {op.name: op for op in network.ops}
    own = [op | operator_json(ops[op["name"]]) for op in data["op_list"]]
    fused = dict.fromkeys(name for op in own for name in op["fused"])
    passing = [
        {"name": name, "kind": ops[name].kind, "dims": ops[name].dims, **operator_json(ops[name])}
        for name in fused
    ]
    return {**data, "op_list": own, "fused_list": passing}


def plan_source(plan: Plan) -> dict[str, Any]:
    """Where network and machine of a plan came from, and how they were changed for it."""
    return {
        "network": plan.network.source,
        "dims": dict(plan.network.dims),
        "bits": plan.network.bits,
        "machine": plan.machine.source,
        "memory_limits": dict(plan.options.memory_limits),
    }


def _buffer(buffer: Buffer, address: int, network: Network) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": buffer.name,
        "tensor": buffer.tensor,
        "box": buffer.box,
        "space": buffer.space,
        "address": address,
        "size_bytes": buffer.size_bytes,
        "bits": _bits(buffer, network),
    }
    if buffer.view is not None:
        data["view"] = {"buffer": buffer.view.buffer, "origin": buffer.view.origin}
    return data


def _bits(buffer: Buffer, network: Network) -> int:
    """Bits of an element; sums that wait are as wide as there is room for."""
    bits, count = network.by_name[buffer.tensor].bits, elements(buffer.box)
    if count and holds_partial_sums(buffer):
        return max(bits, 8 * buffer.size_bytes // count)
    return bits


def _task(task: Task) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": task.name,
        "kind": task.kind,
        "engine": task.engine,
        "reads": [_access(access) for access in task.reads],
        "writes": [_access(access) for access in task.writes],
        "after": task.after,
        "charges": [[c.memory, c.read_bytes, c.write_bytes, c.energy_pj] for c in task.charges],
    }
    if task.op:
        data |= {"op": task.op, "fused": task.fused, "tile": task.tile}
    if task.mapping is not None:
        data["mapping"] = task.mapping
    if task.ports:
        data |= {"ports": task.ports, "setup_cycles": task.setup_cycles}
    return data


def _access(access: Access) -> dict[str, Any]:
    return {"buffer": access.buffer, "box": access.box}
