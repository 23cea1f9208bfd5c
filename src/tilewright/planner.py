"""Network and machine to plan: the one place that strings the steps together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from math import fsum
from pathlib import Path
from typing import Any, Literal

from tilewright.errors import InfeasibleError, InputError, Problem
from tilewright.garbage import without_garbage_collection
from tilewright.machine.model import Machine, Memory
from tilewright.mapping.search import Objective, SearchOptions
from tilewright.network.graph import Network, Op
from tilewright.placement.pack import PackOptions
from tilewright.program.bounds import NetworkBounds
from tilewright.program.lower import lower, prepare
from tilewright.program.model import Program, Timetable
from tilewright.program.order_network import problem_of
from tilewright.program.order_search import OrderOptions, least_peak
from tilewright.program.stages import Stage
from tilewright.program.tile import Goal
from tilewright.replay.check import check
from tilewright.schedule.bounds import Bounds, bounds
from tilewright.schedule.control_edges import control_edges
from tilewright.schedule.options import ScheduleOptions
from tilewright.schedule.packed import Fill, packed
from tilewright.schedule.schedule import schedule

PlanObjective = Goal | Literal["memory"]
Watcher = Callable[[str], None]
"""Is told each step of planning when it begins."""

CUTS = 64
"""Sizes of scratchpads that the objective `memory` looks at are this many parts of the whole."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """How a plan is made. `memory_limits` replaces the sizes of memories, in bytes by name."""

    objective: PlanObjective = "latency"
    memory_limits: tuple[tuple[str, int], ...] = ()
    lpf_limit: int = 6
    """Loop factors that the mapping search of a tile permutes."""
    unrollings: int = 12
    """Unrollings that it tries."""
    order_steps: int = 100_000
    """Steps of the search for a compute order with the least peak memory."""
    schedule: ScheduleOptions = field(
        default_factory=lambda: ScheduleOptions(
            portfolio_tasks=16_000, gap_permille=10, packing_tasks=500, packing_nodes=2_000
        )
    )
    packing: PackOptions = field(
        default_factory=lambda: PackOptions(node_budget=2_000, climb_evaluations=0)
    )
    """How hard addresses are packed again when all lives are known."""
    checked: bool = True
    """Whether the plan is checked before it is returned."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every task with its time and engine, every buffer with its address, and the bounds of both.

    `bounds` hold for every schedule of these tiles, `roofline` for every plan of the network.
    """

    network: Network
    machine: Machine
    options: PlanOptions
    stages: tuple[Stage, ...]
    timetable: Timetable
    fills: Mapping[str, Fill]
    """How full each placed space gets, and how full it has to get."""
    bounds: Bounds
    roofline: NetworkBounds
    assumptions: tuple[str, ...]
    verified: bool = False
    """Whether a replay computed what the network computes."""

    @property
    def program(self) -> Program:
        """The scheduled program."""
        return self.timetable.program

    @property
    def cycles(self) -> int:
        """End of the last task."""
        return self.timetable.cycles

    @cached_property
    def energy_pj(self) -> Mapping[str, float]:
        """Energy by memory; `array` and `vector` are what the units themselves take."""
        parts: dict[str, list[float]] = {}
        for task in self.program.tasks:
            for charge in task.charges:
                parts.setdefault(charge.memory, []).append(charge.energy_pj)
        return {memory: fsum(values) for memory, values in parts.items()}

    @cached_property
    def traffic_bytes(self) -> Mapping[str, tuple[int, int]]:
        """Bytes read and written by memory."""
        total: dict[str, tuple[int, int]] = {}
        for task in self.program.tasks:
            for charge in task.charges:
                if charge.memory not in ("array", "vector"):
                    read, written = total.get(charge.memory, (0, 0))
                    total[charge.memory] = read + charge.read_bytes, written + charge.write_bytes
        return total

    @cached_property
    def peak_bytes(self) -> Mapping[str, int]:
        """The highest address in use by memory, over all cores."""
        return self._by_memory({name: fill.peak_bytes for name, fill in self.fills.items()})

    @cached_property
    def least_bytes(self) -> Mapping[str, int]:
        """By memory the bytes that no placement of the same lives goes below, over all cores."""
        return self._by_memory({name: fill.bound_bytes for name, fill in self.fills.items()})

    def _by_memory(self, by_space: Mapping[str, int]) -> dict[str, int]:
        most: dict[str, int] = {}
        for name, size in by_space.items():
            memory = self.program.space[name].memory
            most[memory] = max(most.get(memory, 0), size)
        return most

    @cached_property
    def busy_cycles(self) -> Mapping[str, int]:
        """Cycles by engine in which it works, over all of its instances."""
        busy = {engine.name: 0 for engine in self.program.engines}
        for task in self.program.tasks:
            busy[task.engine] += task.cycles
            for port in task.ports:
                busy[port] += task.cycles - task.setup_cycles
        return busy

    @cached_property
    def explanation(self) -> Any:
        """Why it takes as long as it does, as `tilewright explain` has it; None for long plans."""
        return import_module("tilewright.report.explain").explanation_of(self)

    def summary(self) -> Any:
        """A table of the figures that matter, for a terminal or a notebook."""
        return import_module("tilewright.report.plan").plan_view(self)

    def _repr_html_(self) -> str:
        text: str = import_module("tilewright.report.notebook").notebook_html(self)
        return text

    def save(self, folder: str | Path) -> None:
        """Write `plan.json`, `trace.json` and `report.html`."""
        import_module("tilewright.report.plan_files").save(self, Path(folder))


def plan(
    network: Network,
    machine: Machine,
    options: PlanOptions | None = None,
    watcher: Watcher = lambda step: None,
) -> Plan:
    """The plan of a network on a machine.

    Raises:
        InputError: a memory limit names no memory.
        InfeasibleError: an op does not fit however it is cut, or cannot be mapped.
        LimitError: the plan did not pass its check, which is a fault of Tilewright.
    """
    options = options or PlanOptions()
    limited = with_memory_limits(machine, options.memory_limits)
    with without_garbage_collection():
        if options.objective == "memory":
            return _in_least_memory(network, limited, options, watcher)
        return _planned(network, limited, options, watcher)


def _in_least_memory(
    network: Network, machine: Machine, options: PlanOptions, watcher: Watcher
) -> Plan:
    """The plan in the smallest scratchpads, all cut alike, that still hold one; to a 64th."""
    sizes = {m.name: m.size_bytes for m in machine.memories if m.role == "scratchpad"}
    best = _planned(network, machine, options, watcher)
    fits, fails = CUTS, 0
    while fits - fails > 1:
        middle = (fits + fails) // 2
        limits = tuple((name, size * middle // CUTS) for name, size in sizes.items())
        try:
            best = _planned(network, with_memory_limits(machine, limits), options, watcher)
        except InfeasibleError:
            fails = middle
        else:
            fits = middle
    return replace(best, machine=machine)


def _planned(network: Network, limited: Machine, options: PlanOptions, watcher: Watcher) -> Plan:
    watcher("compute order")
    order = compute_order(network, options.order_steps)
    watcher("tiles and mappings")
    goal: Goal = "latency" if options.objective == "memory" else options.objective
    lowered = lower(prepare(network, limited, order, _search(options)), goal)
    watcher("times")
    least = bounds(lowered.program)
    scheduled = schedule(lowered.program, options.schedule, least)
    watcher("addresses")
    timetable, fills = packed(scheduled, options.packing)
    timetable = replace(timetable, edges=control_edges(timetable))
    if options.checked:
        watcher("check")
        check(timetable, network)
    return Plan(
        network=network,
        machine=limited,
        options=options,
        stages=lowered.stages,
        timetable=timetable,
        fills=fills,
        bounds=least,
        roofline=lowered.bounds,
        assumptions=lowered.assumptions,
    )


def compute_order(network: Network, steps: int) -> tuple[Op, ...]:
    """The ops in the order with the least peak memory that a search of so many steps finds."""
    found = least_peak(
        problem_of(network), OrderOptions(steps=steps, beam_steps=steps, window_steps=steps // 50)
    )
    return tuple(network.ops[number] for number in found.order)


def with_memory_limits(machine: Machine, limits: tuple[tuple[str, int], ...]) -> Machine:
    """The machine with other memory sizes.

    Raises:
        InputError: there is no such memory.
    """
    sizes = dict(limits)
    known = [memory.name for memory in machine.memories]
    for name in sizes:
        if name not in known:
            message = f"--memory-limit: machine {machine.name!r} has no memory {name!r}"
            raise InputError(Problem(message=message, hint=f"it has {', '.join(known)}"))

    def resized(memories: tuple[Memory, ...]) -> tuple[Memory, ...]:
        return tuple(
            replace(m, size_bits=8 * sizes[m.name]) if m.name in sizes else m for m in memories
        )

    if not sizes:
        return machine
    cores = tuple(replace(core, memories=resized(core.memories)) for core in machine.cores)
    return replace(machine, cores=cores, shared=resized(machine.shared))


def _search(options: PlanOptions) -> SearchOptions:
    objective: Objective = "energy" if options.objective == "energy" else "latency"
    return SearchOptions(
        objective=objective, lpf_limit=options.lpf_limit, unrollings=options.unrollings
    )
