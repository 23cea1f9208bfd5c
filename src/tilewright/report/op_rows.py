"""The ops of a plan with what they cost: cycles, stalls, energy, traffic, and what bounds them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import fsum

from tilewright.program.model import Task
from tilewright.report.cascades import CascadeFigures
from tilewright.report.lives import is_core
from tilewright.report.record import OpFigures, PlanRecord, TileFigures
from tilewright.report.waits import idle_cycles
from tilewright.report.workers import is_on_array


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRow:
    """An op's share of a plan. Transfers belong to the op that waits for them, or that they end."""

    name: str
    kind: str
    worker: str
    fused: tuple[str, ...]
    macs: int
    tiles: int
    start_cycle: int
    end_cycle: int
    busy_cycles: int
    """Over all cores."""
    stall_cycles: int
    """Cycles in its tiles in which a port holds the array up."""
    idle_cycles: int
    """Cycles that its engines stood idle before its tiles."""
    energy_pj: float
    traffic_bytes: int
    """Bytes read from and written to memories outside the chip."""
    utilisation: float | None
    """Multipliers at work over all multipliers and busy cycles; None: not the array's work."""
    bound_by: str
    mapping: int | None
    idle_causes: tuple[tuple[str, int], ...]
    cascade: CascadeFigures | None = None
    """What it runs in, some rows at a time; None: it runs by itself, tile by tile."""


@dataclass
class _Sums:
    """What adds up while tasks are gone through."""

    tiles: int = 0
    start_cycle: int = -1
    end_cycle: int = 0
    busy_cycles: int = 0
    parts: dict[str, float] = field(default_factory=dict)
    energies: list[float] = field(default_factory=list)
    traffic_bytes: int = 0
    points: int = 0
    mapping: int | None = None
    longest: int = -1
    idle: dict[str, int] = field(default_factory=dict)


def op_rows(record: PlanRecord, units: int | None) -> list[OpRow]:
    """A row for every op with a task of its own, by its first start; `units` of an array."""
    owners = transfer_owners(record)
    outside = {s.memory for s in record.timetable.program.spaces if s.kind != "scratchpad"}
    sums = {op.name: _Sums() for op in record.ops}
    for number, task in enumerate(record.timetable.program.tasks):
        total = sums.get(owners[number])
        if total is None:
            continue
        total.energies += [charge.energy_pj for charge in task.charges]
        total.traffic_bytes += sum(
            charge.read_bytes + charge.write_bytes
            for charge in task.charges
            if charge.memory in outside
        )
        if task.kind == "compute":
            _add_tile(record, number, task, total)
    for idle in idle_cycles(record.timetable):
        causes = sums[owners[idle.task]].idle
        causes[idle.cause] = causes.get(idle.cause, 0) + idle.cycles
    inside = {op: cascade for cascade in record.cascades for op in cascade.ops}
    rows = [
        replace(_row(op, sums[op.name], units), cascade=inside.get(op.name)) for op in record.ops
    ]
    return sorted(rows, key=lambda row: (row.start_cycle, row.end_cycle, row.name))


def transfer_owners(record: PlanRecord) -> list[str]:
    """By task its op; for a transfer that of its first reader, or of who made what it stores."""
    tasks = record.timetable.program.tasks
    owners = [task.op for task in tasks]
    for task in tasks:
        for other in task.after:
            if tasks[other].kind != "compute" and not owners[other]:
                owners[other] = task.op
    for number, task in enumerate(tasks):
        if not owners[number]:
            owners[number] = next((owners[other] for other in task.after if owners[other]), "")
    by_tensor = {tensor: op.name for op in reversed(record.ops) for tensor in op.reads}
    for number, task in enumerate(tasks):
        if not owners[number] and task.writes:
            buffer = record.timetable.program.buffers[task.writes[0].buffer]
            owners[number] = by_tensor.get(buffer.tensor, "")
    return owners


def _add_tile(record: PlanRecord, number: int, task: Task, total: _Sums) -> None:
    slot = record.timetable.slots[number]
    cycles = slot.end_cycle - slot.start_cycle
    total.tiles += 1
    first = slot.start_cycle if total.start_cycle < 0 else total.start_cycle
    total.start_cycle = min(first, slot.start_cycle)
    total.end_cycle = max(total.end_cycle, slot.end_cycle)
    total.busy_cycles += cycles
    tile = None if task.mapping is None else record.tiles[task.mapping]
    for part, spent in _parts(task, tile, cycles).items():
        total.parts[part] = total.parts.get(part, 0) + spent
    if tile is not None:
        total.points += tile.macs
        if cycles > total.longest:
            total.longest, total.mapping = cycles, task.mapping


def _parts(task: Task, tile: TileFigures | None, cycles: int) -> Mapping[str, float]:
    """The cycles of a tile by what takes them."""
    if tile is None:
        unit = "array" if is_on_array(task) else "vector unit"
        return {unit if is_core(task.engine) else task.engine: cycles}
    parts = {
        "array": tile.compute_cycles,
        "loading": tile.onload_cycles,
        "storing": tile.offload_cycles,
    }
    if tile.stall_cycles:
        port, _ = max(tile.port_stalls, key=lambda stall: (stall[1], stall[0]))
        parts[port] = tile.stall_cycles
    return parts


def _row(op: OpFigures, total: _Sums, units: int | None) -> OpRow:
    parts = {**total.parts}
    for cause, cycles in total.idle.items():
        parts[cause] = parts.get(cause, 0) + cycles
    inside = ("array", "loading", "storing", "vector unit")
    used = None
    if total.points and units:
        used = total.points / (units * max(1, total.busy_cycles))
    return OpRow(
        name=op.name,
        kind=op.kind,
        worker=op.worker,
        fused=op.fused,
        macs=op.macs,
        tiles=total.tiles,
        start_cycle=max(0, total.start_cycle),
        end_cycle=total.end_cycle,
        busy_cycles=total.busy_cycles,
        stall_cycles=round(sum(c for part, c in total.parts.items() if part not in inside)),
        idle_cycles=sum(total.idle.values()),
        energy_pj=fsum(total.energies),
        traffic_bytes=total.traffic_bytes,
        utilisation=used,
        bound_by=max(parts, key=lambda part: (parts[part], part)) if parts else "",
        mapping=total.mapping,
        idle_causes=tuple(sorted(total.idle.items(), key=lambda item: (-item[1], item[0]))),
    )
