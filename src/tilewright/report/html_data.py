"""A plan as the compact columns from which `report.html` draws itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from math import fsum, prod
from typing import Any

from tilewright import __version__
from tilewright.mapping.text import mapping_text
from tilewright.planner import Plan
from tilewright.program.model import Task
from tilewright.report.cascades import (
    cascade_json,
    ops_taking_turns,
    rolling_buffers,
    several_ops,
)
from tilewright.report.explain import explanation_json, longest_steps
from tilewright.report.lives import port_holds, purposes
from tilewright.report.machine import peak_macs
from tilewright.report.op_rows import OpRow, op_rows, transfer_owners
from tilewright.report.plan import busiest_engine, tiles_bound_cycles
from tilewright.report.record import PlanRecord
from tilewright.report.together import together_text
from tilewright.report.workers import assumed
from tilewright.schedule.packed import buffer_lives
from tilewright.units import format_bytes

PURPOSES = ("array", "vector", "ahead", "waited", "again", "spill", "store", "move")
ROLES = ("constant", "input", "output", "activation")

MACHINES = "the machine’s bound"


def report_data(plan: Plan) -> dict[str, Any]:
    """All that the report shows; lists of one length are columns of one table."""
    record = plan.record
    rows = op_rows(record, plan.machine.cores[0].array.units)
    tracks = _tracks(plan)
    busiest, share = busiest_engine(plan)
    return {
        "network": plan.network.name,
        "machine": plan.machine.name,
        "version": __version__,
        "objective": plan.options.objective,
        "checked": plan.options.checked,
        "verified": plan.verified,
        "buffer_count": len(plan.program.buffers),
        "clock_hz": plan.machine.clock_hz,
        "cycles": plan.cycles,
        "cards": _cards(plan),
        "busiest": {"name": busiest, "share": share},
        "assumptions": assumed(plan),
        "tracks": [
            {"name": name, "engine": engine, "busy": busy}
            for (engine, _), (name, busy) in tracks.items()
        ],
        "purposes": PURPOSES,
        "roles": ROLES,
        "tasks": _tasks(plan, record, rows, list(tracks)),
        "holds": _holds(plan, list(tracks)),
        "spaces": [
            {"name": s.name, "kind": s.kind, "size": s.size_bytes, "reserved": s.reserved}
            for s in plan.program.spaces
            if s.kind in ("scratchpad", "external")
        ],
        "buffers": _buffers(plan, record),
        "ops": _ops(record, rows),
        "cascades": _cascades(record, rows),
        "together": _together(record, rows),
        "mappings": [
            mapping_text(f"tile {number}", mapped.setup, mapped.loops).split("\n", 1)[1]
            for number, mapped in enumerate(plan.program.mappings)
        ],
        "roofline": _roofline(plan),
        "energy": energy_by_operand(plan, record),
        "graph": _graph(plan, record, rows),
        "drawing": _drawing(plan),
        "why": _why(plan),
    }


def _why(plan: Plan) -> dict[str, Any] | None:
    """The explanation with its longest steps; None where there are too many tasks to replay."""
    found = plan.explanation
    if found is None:
        return None
    steps = tuple(longest_steps(found.path, 60))
    return explanation_json(replace(found, path=steps))


def _cards(plan: Plan) -> list[dict[str, Any]]:
    """The headline figures, each with what no plan can beat and what that is."""
    traffic = outside_traffic(plan)
    energy = fsum(plan.energy_pj.values())
    least = plan.least_bytes
    sizes = {space.memory: space.size_bytes for space in plan.program.spaces}
    kinds = {space.memory: space.kind for space in plan.program.spaces}
    cards = [
        {
            "name": "Latency",
            "unit": "cycles",
            "value": plan.cycles,
            "bound": plan.roofline.cycles,
            "whose": MACHINES,
            "meaning": "no plan of the network on this machine is shorter",
            "also": {
                "bound": tiles_bound_cycles(plan),
                "whose": "these tiles’ bound",
                "meaning": "no schedule of these tiles in this order is shorter",
            },
        },
        {
            "name": "Energy",
            "unit": "pJ",
            "value": energy,
            "bound": plan.roofline.energy_pj,
            "whose": MACHINES,
            "meaning": "every product and operation, and every constant, input and result moved "
            "once, the cheapest way",
        },
        {
            "name": "Outside traffic",
            "unit": "bytes",
            "value": traffic,
            "bound": plan.roofline.traffic_bytes,
            "whose": MACHINES,
            "meaning": "every constant, input and result moved once",
        },
    ]
    for memory, peak in plan.peak_bytes.items():
        if kinds[memory] == "scratchpad" and peak:
            cards.append(
                {
                    "name": f"Peak of {memory}",
                    "unit": "bytes",
                    "value": peak,
                    "bound": least.get(memory, 0),
                    "whose": "these lives’ bound",
                    "capacity": sizes[memory],
                    "meaning": "what no placement of the same lives goes below",
                }
            )
    return cards


def outside_traffic(plan: Plan) -> int:
    """Bytes read from and written to memories, sources and sinks outside the chip."""
    outside = {space.memory for space in plan.program.spaces if space.kind != "scratchpad"}
    return sum(
        read + written
        for memory, (read, written) in plan.traffic_bytes.items()
        if memory in outside
    )


def _tracks(plan: Plan) -> dict[tuple[str, int], tuple[str, int]]:
    """Engine instances and lanes of ports that are used: their name and busy cycles."""
    counts = {engine.name: engine.count for engine in plan.program.engines}
    busy: dict[tuple[str, int], int] = {}
    for task, slot in zip(plan.program.tasks, plan.timetable.slots, strict=True):
        key = task.engine, slot.instance
        busy[key] = busy.get(key, 0) + slot.end_cycle - slot.start_cycle
    for hold in port_holds(plan.timetable):
        key = hold.port, hold.lane
        busy[key] = busy.get(key, 0) + hold.end_cycle - hold.start_cycle
    order = {engine.name: place for place, engine in enumerate(plan.program.engines)}
    return {
        (engine, instance): (
            engine if counts[engine] == 1 else f"{engine} {instance}",
            busy[engine, instance],
        )
        for engine, instance in sorted(busy, key=lambda key: (order[key[0]], key[1]))
    }


def _tasks(
    plan: Plan, record: PlanRecord, rows: Sequence[OpRow], tracks: Sequence[tuple[str, int]]
) -> dict[str, Any]:
    tasks, slots = plan.program.tasks, plan.timetable.slots
    track = {key: number for number, key in enumerate(tracks)}
    op_number = {row.name: number for number, row in enumerate(rows)}
    room: list[list[int]] = [[] for _ in tasks]
    for first, second in plan.timetable.edges:
        room[second].append(first)
    return {
        "name": [task.name for task in tasks],
        "purpose": [PURPOSES.index(purpose) for purpose in purposes(plan.timetable)],
        "track": [track[t.engine, s.instance] for t, s in zip(tasks, slots, strict=True)],
        "start": [slot.start_cycle for slot in slots],
        "cycles": [slot.end_cycle - slot.start_cycle for slot in slots],
        "op": [op_number.get(owner, -1) for owner in transfer_owners(record)],
        "mapping": [-1 if task.mapping is None else task.mapping for task in tasks],
        "after": [task.after for task in tasks],
        "room": room,
        "reads": [_roots(plan, (a.buffer for a in task.reads)) for task in tasks],
        "writes": [_roots(plan, (a.buffer for a in task.writes)) for task in tasks],
        "bytes": [_moved_bytes(task.charges) if task.kind != "compute" else 0 for task in tasks],
        "pj": [round(fsum(charge.energy_pj for charge in task.charges)) for task in tasks],
    }


def _roots(plan: Plan, buffers: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(plan.program.root(buffer) for buffer in buffers))


def _moved_bytes(charges: Sequence[Any]) -> int:
    return max((charge.read_bytes for charge in charges), default=0)


def _holds(plan: Plan, tracks: Sequence[tuple[str, int]]) -> dict[str, list[int]]:
    """Lanes of ports in use, as further slices of the tasks that hold them."""
    track = {key: number for number, key in enumerate(tracks)}
    holds = list(port_holds(plan.timetable))
    return {
        "task": [hold.task for hold in holds],
        "track": [track[hold.port, hold.lane] for hold in holds],
        "start": [hold.start_cycle for hold in holds],
        "cycles": [hold.end_cycle - hold.start_cycle for hold in holds],
    }


def _buffers(plan: Plan, record: PlanRecord) -> dict[str, Any]:
    """Buffers with bytes and addresses of their own; `number` counts as in `plan.json`."""
    program = plan.program
    spaces = [s.name for s in program.spaces if s.kind in ("scratchpad", "external")]
    lives = buffer_lives(plan.timetable)
    kept = [
        number
        for number, buffer in enumerate(program.buffers)
        if buffer.view is None and buffer.space in spaces and number in lives
    ]
    buffers = [program.buffers[number] for number in kept]
    roles = {tensor.name: ROLES.index(tensor.role) for tensor in plan.network.tensors}
    rolling = rolling_texts(plan, record)
    return {
        "number": kept,
        "name": [buffer.name for buffer in buffers],
        "role": [roles[buffer.tensor] for buffer in buffers],
        "space": [spaces.index(buffer.space) for buffer in buffers],
        "address": [plan.timetable.addresses[number] for number in kept],
        "size": [buffer.size_bytes for buffer in buffers],
        "start": [lives[number][0] for number in kept],
        "end": [lives[number][1] for number in kept],
        "box": [
            "×".join(f"{start}:{end}" for start, end in buffer.box) or "scalar"
            for buffer in buffers
        ],
        "rolling": [rolling.get(number, "") for number in kept],
    }


def rolling_texts(plan: Plan, record: PlanRecord) -> dict[int, str]:
    """By rolling buffer how much of its tensor it holds at once."""
    program = plan.program
    made = {op.name: (*op.reads, *op.writes) for op in record.ops}
    words = {
        (tensor, cascade.axis): cascade.along
        for cascade in record.cascades
        for op in cascade.ops
        for tensor in made[op]
    }
    return {
        rolling.buffer: f"{rolling.rows:,} of {rolling.of_rows:,} "
        + words.get((program.buffers[rolling.buffer].tensor, rolling.axis), "rows")
        for rolling in rolling_buffers(program, plan.network)
    }


def _cascades(record: PlanRecord, rows: Sequence[OpRow]) -> list[dict[str, Any]]:
    """Cascades of several ops, by number; in a plan of single pixels, ops that take turns."""
    number = {row.name: place for place, row in enumerate(rows)}
    if not record.cascades:
        return [
            {"numbers": [number[op] for op in ops], "pace": ""}
            for ops in ops_taking_turns(record.timetable)
        ]
    return [
        {
            **cascade_json(cascade),
            "numbers": [number[op] for op in cascade.ops],
            "pace": cascade.pace_text,
        }
        for cascade in several_ops(record.cascades)
    ]


def _together(record: PlanRecord, rows: Sequence[OpRow]) -> dict[str, Any]:
    """A sentence about ops that run together, and a row for each group of them."""
    number = {row.name: place for place, row in enumerate(rows)}
    all_macs = sum(op.macs for op in record.ops)
    return {
        "text": together_text(record.together, len(rows), all_macs, record.macs_twice),
        "groups": [
            {
                "name": group.span_text,
                "numbers": [number[op] for op in group.ops],
                "how": group.how_text,
                "strips": group.strips,
                "layer_by_layer": format_bytes(group.layer_by_layer_bytes),
                "held": format_bytes(group.held_bytes),
                "again": group.again_text,
            }
            for group in record.together
        ],
    }


def _ops(record: PlanRecord, rows: Sequence[OpRow]) -> dict[str, Any]:
    names = (
        "name", "kind", "worker", "fused", "macs", "tiles", "start_cycle", "end_cycle",
        "busy_cycles", "stall_cycles", "idle_cycles", "energy_pj", "traffic_bytes", "utilisation",
        "bound_by", "mapping", "idle_causes",
    )  # fmt: skip
    several = several_ops(record.cascades)
    place = {op: number for number, cascade in enumerate(several) for op in cascade.ops}
    return {
        **{name: [getattr(row, name) for row in rows] for name in names},
        "cascade": [place.get(row.name) for row in rows],
        "pace": [row.cascade.pace_text if row.cascade else "" for row in rows],
    }


def _roofline(plan: Plan) -> dict[str, float]:
    """Multiplications a cycle of all arrays, and bytes a cycle from outside as routes allow."""
    lanes = {engine.name: engine.count for engine in plan.program.engines}
    rates: dict[tuple[str, ...], float] = {}
    for route in plan.program.routes:
        if plan.program.space[route.source].kind in ("external", "source"):
            several = min([lanes[route.engine], *(lanes[port] for port in route.ports)])
            key = (route.engine, *route.ports)
            rates[key] = max(rates.get(key, 0.0), several * float(route.bytes_per_cycle))
    return {
        "macs_per_cycle": peak_macs(plan.machine),
        "bytes_per_cycle": sum(rates.values()),
        "cores": plan.machine.cores[0].count,
        "traffic_bytes": outside_traffic(plan),
    }


def energy_by_operand(plan: Plan, record: PlanRecord) -> list[dict[str, Any]]:
    """By memory the pJ of each operand: I, W, O, multiplications and the vector unit."""
    constants = {t.name for t in plan.network.tensors if t.role == "constant"}
    found: dict[str, dict[str, list[float]]] = {}

    def add(memory: str, operand: str, energy: float) -> None:
        found.setdefault(memory, {}).setdefault(operand, []).append(energy)

    for task in plan.program.tasks:
        left: dict[str, float] = {}
        for charge in task.charges:
            left[charge.memory] = left.get(charge.memory, 0.0) + charge.energy_pj
        if task.mapping is not None:
            for letter, memory, energy in record.tiles[task.mapping].energy_pj:
                add(memory, letter or "multiplications", energy)
                left[memory] = left.get(memory, 0.0) - energy
        shares = _operand_shares(plan, task, constants)
        for memory, energy in left.items():
            # A mapping's rest is partial sums that are read again; rounding leaves next to nothing.
            if memory == "vector":
                add(memory, "vector unit", energy)
            elif abs(energy) > 1e-6:
                for operand, share in shares.items():
                    add(memory, operand, energy * share)
    return _summed(found, plan.leakage_pj)


def _summed(
    found: dict[str, dict[str, list[float]]], leakage: Mapping[str, float]
) -> list[dict[str, Any]]:
    """By memory the sums of its operands' energies, and what it loses."""
    for memory, lost in leakage.items():
        found.setdefault(memory, {})["leakage"] = [lost]
    return [
        {"memory": memory, "operands": {key: fsum(values) for key, values in parts.items()}}
        for memory, parts in found.items()
    ]


def _operand_shares(plan: Plan, task: Task, constants: set[str]) -> dict[str, float]:
    """Whose bytes a task moves, by operand: one transfer may carry weights and activations."""
    if task.mapping is not None or task.kind == "store":
        return {"O": 1.0}
    moved = {"W": 0, "I": 0}
    for access in task.reads:
        buffer = plan.program.buffers[access.buffer]
        elements = prod(end - start for start, end in buffer.box)
        read = prod(end - start for start, end in access.box)
        operand = "W" if buffer.tensor in constants else "I"
        moved[operand] += buffer.size_bytes * read // max(1, elements)
    total = sum(moved.values())
    return {operand: size / total for operand, size in moved.items() if size} or {"I": 1.0}


def _graph(plan: Plan, record: PlanRecord, rows: Sequence[OpRow]) -> dict[str, Any]:
    """Edges between rows of the ops table, through whatever only says where elements lie."""
    number = {row.name: place for place, row in enumerate(rows)}
    owner = {name: op.name for op in record.ops for name in (op.name, *op.fused)}
    makers: dict[str, tuple[int, ...]] = {}
    edges: dict[tuple[int, int], None] = {}
    for op in plan.network.ops:
        before = dict.fromkeys(m for o in op.inputs for m in makers.get(o.tensor, ()))
        here = number.get(owner.get(op.name, ""), -1)
        if here >= 0:
            edges |= dict.fromkeys((maker, here) for maker in before if maker != here)
        made = (here,) if here >= 0 else tuple(before)
        makers |= {o.tensor: made for o in op.outputs}
    return {"edges": list(edges)}


def _drawing(plan: Plan) -> dict[str, Any]:
    """The machine as it is drawn: cores, memories bottom-up, what moves bytes."""
    machine = plan.machine
    core = machine.cores[0]
    return {
        "description": machine.description,
        "core": core.name,
        "cores": core.count,
        "array": core.array.dims,
        "units": core.array.units,
        "lanes": core.vector.lanes if core.vector else None,
        "memories": [_memory(plan, memory) for memory in core.memories],
        "shared": [_memory(plan, memory) for memory in machine.shared],
        "dma": [asdict(engine) for engine in machine.dma],
        "links": [asdict(link) for link in machine.links],
        "sources": [asdict(end) for end in machine.sources],
        "sinks": [asdict(end) for end in machine.sinks],
        "busy": _shares(plan),
    }


def _shares(plan: Plan) -> Mapping[str, float]:
    counts = {engine.name: engine.count for engine in plan.program.engines}
    return {
        name: busy / (counts[name] * max(1, plan.cycles)) for name, busy in plan.busy_cycles.items()
    }


def _memory(plan: Plan, memory: Any) -> dict[str, Any]:
    read, written = plan.traffic_bytes.get(memory.name, (0, 0))
    return {
        "name": memory.name,
        "role": memory.role,
        "bits": memory.size_bits,
        "operands": memory.operands,
        "serves": memory.served_dims,
        "ports": [[port.name, port.kind, port.bits_per_cycle] for port in memory.ports],
        "peak": plan.peak_bytes.get(memory.name),
        "read": read,
        "written": written,
        "pj": plan.energy_pj.get(memory.name, 0.0),
    }
