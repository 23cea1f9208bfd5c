"""What a plan is, and how it is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from math import fsum
from operator import index
from pathlib import Path
from typing import Any, Literal, SupportsIndex, get_args

from tilewright.errors import InputError, Problem, refuse_unknown
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.placement.pack import PackOptions
from tilewright.program.bounds import NetworkBounds
from tilewright.program.cascade import PLAIN, Strategy
from tilewright.program.model import Program, Timetable
from tilewright.program.stages import Stage
from tilewright.program.tile import Goal
from tilewright.schedule.bounds import Bounds
from tilewright.schedule.options import ScheduleOptions
from tilewright.schedule.packed import Fill
from tilewright.strategy.again import Again
from tilewright.strategy.choose import ChooseOptions
from tilewright.strategy.patches import StripFigures

PlanObjective = Goal | Literal["memory"]
OBJECTIVES = (*get_args(Goal), "memory")
Watcher = Callable[[str], None]
"""Is told each step of planning when it begins."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """How a plan is made. `memory_limits` replaces the sizes of memories: a mapping of names to
    bytes, or pairs of them.

    Raises:
        InputError: there is no such objective, or `memory_limits` are no sizes by name.
    """

    objective: PlanObjective = "latency"
    memory_limits: Mapping[str, int] | tuple[tuple[str, int], ...] = ()
    lpf_limit: int = 6
    """Loop factors that the mapping search of a tile permutes."""
    unrollings: int = 12
    """Unrollings that it tries."""
    order_steps: int = 100_000
    """Steps of the search for a compute order with the least peak memory."""
    schedule: ScheduleOptions = field(
        default_factory=lambda: ScheduleOptions(
            portfolio_tasks=16_000, packing_tasks=500, packing_nodes=2_000
        )
    )
    packing: PackOptions = field(
        default_factory=lambda: PackOptions(
            node_budget=2_000, climb_evaluations=0, largest_exact_part=500
        )
    )
    """How hard addresses are packed again when all lives are known."""
    choose: ChooseOptions = field(default_factory=ChooseOptions)
    """How far the choice of cascades looks."""
    quick_choose: ChooseOptions = field(
        default_factory=lambda: ChooseOptions(most_stages=6, most_states=2)
    )
    """How far it looks if the objective is latency."""
    cascades: bool = True
    """Whether ops may run side by side, some rows at a time."""
    memory_trials: int = 6
    """How often the objective `memory` tries still smaller scratchpads than hold a plan."""
    smaller_tasks: int = 5_000
    """Tiles for ever smaller scratchpads are candidates too, until a program has more tasks, or
    several times as many where they promise much; for `traffic`, whenever less may be moved with
    them."""
    thorough: bool = False
    """Whether plans for smaller scratchpads are all made, too: more memory is then never worse.
    Sizes are m * 2^k with m from 8 to 15, as long as the network is cut into no more than 5,000
    tiles. For the objective `memory`: whether less is looked for, with strips and ops that run
    again. Where nothing fits: whether many strips are looked for, however long that takes."""
    checked: bool = True
    """Whether the plan is checked before it is returned."""

    def __post_init__(self) -> None:
        refuse_unknown("objective", self.objective, OBJECTIVES)
        object.__setattr__(self, "memory_limits", _pairs(self.memory_limits))


def _pairs(limits: object) -> tuple[tuple[str, int], ...]:
    pairs = tuple(limits.items()) if isinstance(limits, Mapping) else limits
    if isinstance(pairs, list | tuple) and all(map(_is_size, pairs)):
        return tuple((name, index(size)) for name, size in pairs)
    message = f"memory_limits: {limits!r} is no mapping of names of memories to bytes"
    raise InputError(Problem(message=message, hint='such as memory_limits={"sram": 65536}'))


def _is_size(pair: object) -> bool:
    return (
        isinstance(pair, list | tuple)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], SupportsIndex)
        and not isinstance(pair[1], bool)
        and index(pair[1]) >= 1
    )


def outside_bytes(program: Program) -> int:
    """Bytes that a program reads and writes outside the scratchpads."""
    outside = {space.memory for space in program.spaces if space.kind != "scratchpad"}
    return sum(
        charge.read_bytes + charge.write_bytes
        for task in program.tasks
        for charge in task.charges
        if charge.memory in outside
    )


@dataclass(frozen=True, kw_only=True, repr=False)
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
    strategy: Strategy = PLAIN
    """Which stages run as cascades, and which tensors wait outside."""
    strips: tuple[StripFigures, ...] = ()
    """Which ops run in strips of columns, and what is computed again for that."""
    again: tuple[Again, ...] = ()
    """What is made a second time instead of waiting."""
    interrupted: bool = False
    """Whether the search was interrupted: a better plan may not have been looked at."""
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
        """Energy by memory, what leaks included; `array` and `vector` are what the units take."""
        parts: dict[str, list[float]] = {}
        for task in self.program.tasks:
            for charge in task.charges:
                parts.setdefault(charge.memory, []).append(charge.energy_pj)
        for memory, lost in self.leakage_pj.items():
            parts.setdefault(memory, []).append(lost)
        return {memory: fsum(values) for memory, values in parts.items()}

    @cached_property
    def leakage_pj(self) -> Mapping[str, float]:
        """What memories lose until the plan ends, by memory, where the machine says how much."""
        return self.program.leakage_pj(self.cycles)

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
    def outside_bytes(self) -> int:
        """Bytes read and written outside the scratchpads."""
        return outside_bytes(self.program)

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
    def record(self) -> Any:
        """What reports know of it."""
        figures = {"network": self.network.name, "machine": self.machine.name}
        return import_module("tilewright.report.record").record_of(self, figures)

    @cached_property
    def remedies(self) -> Any:
        """What would make it shorter; None for long plans."""
        return import_module("tilewright.report.remedies").remedies_of(self)

    @cached_property
    def explanation(self) -> Any:
        """Why it takes as long as it does, as `tilewright explain` has it; None for long plans."""
        return import_module("tilewright.report.explain").explanation_of(self)

    def __repr__(self) -> str:
        text: str = import_module("tilewright.report.plan").plan_line(self)
        return text

    def summary(self) -> Any:
        """A table of the figures that matter, as `print` or a notebook shows it."""
        view = import_module("tilewright.report.plan").plan_view(self)
        return import_module("tilewright.report.notebook").Summary(view)

    def _repr_html_(self) -> str:
        text: str = import_module("tilewright.report.notebook").notebook_html(self)
        return text

    def save(self, folder: str | Path) -> None:
        """Write `plan.json`, `trace.json` and `report.html`."""
        import_module("tilewright.report.plan_files").save(self, Path(folder))
