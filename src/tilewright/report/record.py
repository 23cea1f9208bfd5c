"""What reports know of a plan: the same from a plan in memory and from its file."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import fsum
from pathlib import Path
from typing import Any

from tilewright.document import read_text, settle
from tilewright.errors import InputError, Problem
from tilewright.machine.model import End, Machine, Memory
from tilewright.mapping.search import Mapped
from tilewright.network.counts import macs
from tilewright.network.graph import Network
from tilewright.planner import Plan
from tilewright.program.model import (
    Access,
    Buffer,
    Charge,
    Engine,
    Program,
    Route,
    Slot,
    Space,
    Task,
    Timetable,
    View,
)
from tilewright.program.transfer_ports import transfer_port
from tilewright.report.cascades import (
    CascadeFigures,
    cascades_of,
    cascades_of_json,
    macs_made_again,
)
from tilewright.report.improved_mapping import improved_cycles
from tilewright.report.together import OpsTogether, together_of, together_of_json
from tilewright.report.workers import left_to_vector

SCHEMA = "tilewright-plan-1"
MOST_BYTES = 2**30
"""A plan of 100,000 tasks takes some 60 MB."""
_WRITE_ONE = "write one with `tilewright plan NETWORK --on MACHINE -o FOLDER`"


@dataclass(frozen=True, slots=True, kw_only=True)
class TileFigures:
    """Where the cycles and the energy of a mapping go."""

    macs: int
    compute_cycles: float
    stall_cycles: float
    onload_cycles: float
    offload_cycles: float
    """Storing results and draining the array."""
    port_stalls: tuple[tuple[str, float], ...]
    """By port (`memory.port`) the cycles by which it holds the array up."""
    energy_pj: tuple[tuple[str, str, float], ...]
    """Operand, memory and pJ; the operand of the memory `array` is empty."""
    faster_cycles: float
    """Cycles of the same mapping with an array twice as fast."""
    wider_cycles: tuple[tuple[str, float], ...]
    """By port (`memory.port`) the cycles if it were twice as wide; ports that matter only."""

    @property
    def cycles(self) -> float:
        """All cycles of the mapping."""
        return fsum(
            (self.compute_cycles, self.stall_cycles, self.onload_cycles, self.offload_cycles)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpFigures:
    """An op with a task of its own, and what is applied to its result in passing."""

    name: str
    kind: str
    worker: str
    fused: tuple[str, ...]
    macs: int
    dims: tuple[tuple[str, int], ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PlanRecord:
    """A timetable, its figures as `plan.json` has them, its mappings and its ops."""

    figures: Mapping[str, Any]
    timetable: Timetable
    tiles: tuple[TileFigures, ...]
    ops: tuple[OpFigures, ...]
    limits: Mapping[tuple[str, str], tuple[tuple[str, int], ...]]
    """By route what its bytes pass, with the bits a cycle of each: engine, ports."""
    cascades: tuple[CascadeFigures, ...] = ()
    together: tuple[OpsTogether, ...] = ()
    macs_twice: int = 0
    """Multiplications that are done again, so that their results need not wait."""

    @property
    def title(self) -> str:
        """Which network on which machine."""
        return f"{self.figures['network']} on {self.figures['machine']}"


def record_of(plan: Plan, figures: Mapping[str, Any]) -> PlanRecord:
    """The record of a plan with its figures."""
    return PlanRecord(
        figures=figures,
        timetable=plan.timetable,
        tiles=tuple(tile_figures(mapped) for mapped in plan.program.mappings),
        ops=tuple(_ops_of(plan)),
        limits=route_limits(plan.machine, plan.program),
        cascades=cascades_of(plan),
        together=together_of(plan),
        macs_twice=macs_made_again(plan),
    )


def record_json(record: PlanRecord) -> dict[str, Any]:
    """The keys of `plan.json` from which a record is read back beside the timetable's."""
    return {
        "op_list": [
            {
                "name": op.name,
                "kind": op.kind,
                "worker": op.worker,
                "fused": op.fused,
                "macs": op.macs,
                "dims": op.dims,
                "reads": op.reads,
                "writes": op.writes,
            }
            for op in record.ops
        ],
        "mapping_costs": [
            {
                "macs": tile.macs,
                "compute_cycles": tile.compute_cycles,
                "stall_cycles": tile.stall_cycles,
                "onload_cycles": tile.onload_cycles,
                "offload_cycles": tile.offload_cycles,
                "port_stalls": tile.port_stalls,
                "energy_pj": tile.energy_pj,
                "faster_cycles": tile.faster_cycles,
                "wider_cycles": tile.wider_cycles,
            }
            for tile in record.tiles
        ],
        "routes": [
            {
                "source": route.source,
                "target": route.target,
                "engine": route.engine,
                "setup_cycles": route.setup_cycles,
                "bits_per_cycle": int(8 * route.bytes_per_cycle),
                "ports": route.ports,
                "read_pj_per_byte": route.read_pj_per_byte,
                "write_pj_per_byte": route.write_pj_per_byte,
                "limits": record.limits[route.source, route.target],
            }
            for route in record.timetable.program.routes
        ],
    }


def read_record(path: str | Path) -> PlanRecord:
    """The record in a `plan.json`, or in a folder that holds one.

    Raises:
        InputError: there is no such file, or it is no plan.
    """
    file = Path(path)
    file = file / "plan.json" if os.path.isdir(file) else file
    settle(file.parent)
    try:
        text = read_text(file, MOST_BYTES)
    except InputError as error:
        raise InputError(*(replace(p, hint=p.hint or _WRITE_ONE) for p in error.problems)) from None
    data: Any = None
    try:
        data = json.loads(text, parse_constant=_no_number)
        _refuse_another_schema(file, data["schema"])
        return record_in(data)
    except RecursionError:
        message = "is no plan that can be read: its brackets are nested too deep"
        raise InputError(Problem(file=str(file), message=message, hint=_WRITE_ONE)) from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        missing = isinstance(error, KeyError)
        if isinstance(data, dict) and not missing:
            from tilewright.report.plan_faults import refuse_faults  # only for what is read

            refuse_faults(file, data)
        message = f"is no plan that can be read: {'no ' if missing else ''}{error}"
        raise InputError(Problem(file=str(file), message=message, hint=_WRITE_ONE)) from None


def _refuse_another_schema(file: Path, schema: object) -> None:
    if schema != SCHEMA:
        message = f"is no plan that can be read: its schema is {schema!r}, and not {SCHEMA!r}"
        raise InputError(Problem(file=str(file), message=message, hint=_WRITE_ONE))


def _no_number(text: str) -> float:
    raise ValueError(f"there is {text} where a number should be")


def tile_figures(mapped: Mapped) -> TileFigures:
    """Where the cycles and the energy of a mapping go."""
    cost, improved = mapped.cost, improved_cycles(mapped)
    return TileFigures(
        macs=cost.macs,
        compute_cycles=cost.compute_cycles,
        stall_cycles=cost.stall_cycles,
        onload_cycles=cost.onload_cycles,
        offload_cycles=cost.offload_cycles + cost.drain_cycles,
        port_stalls=tuple((f"{memory}.{port}", s) for memory, port, s in cost.port_stalls),
        energy_pj=(
            ("", "array", cost.mac_pj),
            *((link.letter, link.memory, link.energy_pj) for link in cost.links),
        ),
        faster_cycles=improved.faster_array,
        wider_cycles=improved.wider_ports,
    )


def _ops_of(plan: Plan) -> Iterator[OpFigures]:
    network: Network = plan.network
    used = dict.fromkeys(task.op for task in plan.program.tasks)
    on_vector = left_to_vector(plan)
    # In strips an op has several stages.
    for stage in {stage.op.name: stage for stage in plan.stages}.values():
        if stage.op.name in used:
            yield OpFigures(
                name=stage.op.name,
                kind=stage.op.kind,
                worker="vector" if stage.op.name in on_vector else stage.worker,
                fused=tuple(op.name for op in stage.fused),
                macs=macs(stage.op, network),
                dims=stage.op.dims,
                reads=tuple(dict.fromkeys(o.tensor for o in stage.inputs)),
                writes=tuple(dict.fromkeys(o.tensor for o in stage.results)),
            )


def route_limits(
    machine: Machine, program: Program
) -> dict[tuple[str, str], tuple[tuple[str, int], ...]]:
    """What can be widened on each route: the engine, the port read and the port written."""
    levels: dict[str, Memory | End] = {end.name: end for end in (*machine.sources, *machine.sinks)}
    levels |= {memory.name: memory for memory in machine.memories}
    dma = {engine.name: engine.bits_per_cycle for engine in machine.dma}
    found = {}
    for route in program.routes:
        bits = dma.get(route.engine, dma.get(route.engine.rpartition(".")[0], 0))
        passed = [(route.engine, bits)] if bits else []
        both = program.space[route.source], program.space[route.target]
        for space, other, reads in ((*both, True), (*both[::-1], False)):
            level, beyond = levels.get(space.memory), levels.get(other.memory)
            if isinstance(level, End):
                passed += [(space.name, level.bits_per_cycle)] if level.bits_per_cycle else []
            elif level is not None and beyond is not None:
                port = transfer_port(machine, level, beyond, reads=reads)
                if port is None:
                    continue
                owner = space.name if space.kind == "external" else space.memory
                passed.append((f"{owner}.{port.name}", port.bits_per_cycle))
        found[route.source, route.target] = tuple(passed)
    return found


def record_in(data: Mapping[str, Any]) -> PlanRecord:
    """The record in the data of a `plan.json`."""
    return PlanRecord(
        figures=data,
        timetable=_timetable(data),
        tiles=tuple(
            TileFigures(
                macs=tile["macs"],
                compute_cycles=tile["compute_cycles"],
                stall_cycles=tile["stall_cycles"],
                onload_cycles=tile["onload_cycles"],
                offload_cycles=tile["offload_cycles"],
                port_stalls=_tuples(tile["port_stalls"]),
                energy_pj=_tuples(tile["energy_pj"]),
                faster_cycles=tile["faster_cycles"],
                wider_cycles=_tuples(tile["wider_cycles"]),
            )
            for tile in data["mapping_costs"]
        ),
        ops=tuple(
            OpFigures(
                name=op["name"],
                kind=op["kind"],
                worker=op["worker"],
                fused=tuple(op["fused"]),
                macs=op["macs"],
                dims=_tuples(op["dims"]),
                reads=tuple(op["reads"]),
                writes=tuple(op["writes"]),
            )
            for op in data["op_list"]
        ),
        limits={
            (route["source"], route["target"]): _tuples(route["limits"]) for route in data["routes"]
        },
        cascades=cascades_of_json(data),
        together=together_of_json(data),
        macs_twice=data.get("strategy", {}).get("macs_made_again", 0),
    )


def _timetable(data: Mapping[str, Any]) -> Timetable:
    """The timetable in a file; mappings stay text."""
    program = Program(
        name=data["network"],
        spaces=tuple(
            Space(**{**space, "reserved": _tuples(space["reserved"])}) for space in data["spaces"]
        ),
        leakage=tuple(data.get("leakage_pj_per_cycle", {}).items()),
        engines=tuple(Engine(**engine) for engine in data["engines"]),
        routes=tuple(_route(route) for route in data["routes"]),
        buffers=tuple(_buffer(buffer) for buffer in data["buffer_list"]),
        tasks=tuple(_task(task) for task in data["task_list"]),
        given=tuple(data["given"]),
        results=tuple(data["results"]),
    )
    return Timetable(
        program=program,
        slots=tuple(
            Slot(
                start_cycle=task["start_cycle"],
                end_cycle=task["end_cycle"],
                instance=task["instance"],
            )
            for task in data["task_list"]
        ),
        addresses=tuple(buffer["address"] for buffer in data["buffer_list"]),
        edges=_tuples(data["control_edges"]),
    )


def _route(route: Mapping[str, Any]) -> Route:
    return Route(
        source=route["source"],
        target=route["target"],
        engine=route["engine"],
        setup_cycles=route["setup_cycles"],
        bytes_per_cycle=Fraction(route["bits_per_cycle"], 8),
        ports=tuple(route["ports"]),
        read_pj_per_byte=route["read_pj_per_byte"],
        write_pj_per_byte=route["write_pj_per_byte"],
    )


def _buffer(buffer: Mapping[str, Any]) -> Buffer:
    view = buffer.get("view")
    return Buffer(
        name=buffer["name"],
        tensor=buffer["tensor"],
        box=_tuples(buffer["box"]),
        space=buffer["space"],
        size_bytes=buffer["size_bytes"],
        view=None
        if view is None
        else View(view["buffer"], None if view["origin"] is None else tuple(view["origin"])),
    )


def _task(task: Mapping[str, Any]) -> Task:
    return Task(
        name=task["name"],
        kind=task["kind"],
        engine=task["engine"],
        cycles=task["end_cycle"] - task["start_cycle"],
        reads=tuple(Access(a["buffer"], _tuples(a["box"])) for a in task["reads"]),
        writes=tuple(Access(a["buffer"], _tuples(a["box"])) for a in task["writes"]),
        after=tuple(task["after"]),
        op=task.get("op", ""),
        fused=tuple(task.get("fused", ())),
        tile=_tuples(task.get("tile", ())),
        mapping=task.get("mapping"),
        setup_cycles=task.get("setup_cycles", 0),
        ports=tuple(task.get("ports", ())),
        charges=tuple(Charge(*charge) for charge in task["charges"]),
    )


def _tuples(rows: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple(tuple(row) for row in rows)
