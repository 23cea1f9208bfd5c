"""Mapping a whole network: every op on a core, equal nests searched once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import ceil, fsum
from typing import Literal

from tilewright.errors import InfeasibleError, InputError, Problem
from tilewright.machine.leakage import leakage_of_one_core
from tilewright.machine.model import Core, Machine, VectorUnit
from tilewright.machine.order import order_named
from tilewright.mapping.attach import attach
from tilewright.mapping.constraints import DEFAULT_LINKS, Constraint, constraint_for
from tilewright.mapping.evaluate import Setup, cost_of, evaluate_loops
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of, partial_sum_bits
from tilewright.mapping.nest import (
    LoopNest,
    nest_of,
    runs_on_array,
    with_partial_sums,
    zigzag_nest,
)
from tilewright.mapping.obstacles import refuse_too_wide
from tilewright.mapping.search import Mapped, SearchOptions, loma
from tilewright.mapping.text import GivenMapping, given_loops, mapping_text
from tilewright.network.counts import macs
from tilewright.network.graph import Network, Op
from tilewright.network.kinds import KIND_CLASSES, is_mac

Model = Literal["tilewright", "zigzag-3.9"]
_DEFAULT_OPTIONS = SearchOptions()
Search = Callable[[LoopNest, Hierarchy, Constraint | None, SearchOptions], Mapped | None]


@dataclass(frozen=True, kw_only=True)
class MappedOp:
    """One op with its cost; `mapped` is None where the array is not at work."""

    name: str
    kind: str
    macs: int
    engine: Literal["array", "vector", "move"]
    cycles: float
    energy_pj: float
    mapped: Mapped | None = None

    def text(self) -> str:
        """The mapping as a loop nest that can be read back; empty where the array is idle."""
        return mapping_text(self.name, self.mapped.setup, self.mapped.loops) if self.mapped else ""

    @property
    def bound_by(self) -> str:
        """What takes most of its time: array, vector, a port, loading or storing."""
        if self.mapped is None:
            return self.engine
        cost = self.mapped.cost
        parts = {
            "array": cost.compute_cycles,
            "loading": cost.onload_cycles,
            "storing": cost.offload_cycles + cost.drain_cycles,
            "stall": cost.stall_cycles,
        }
        largest = max(parts, key=lambda part: parts[part])
        if largest != "stall":
            return largest
        memory, port, _ = max(cost.port_stalls, key=lambda stall: stall[2])
        return f"{memory}.{port}"


@dataclass(frozen=True, kw_only=True)
class MappedNetwork:
    """All ops of a network with their mappings on one core, run one after the other."""

    network: Network
    machine: Machine
    model: Model
    options: SearchOptions
    ops: tuple[MappedOp, ...]
    searched: int
    """Nests that were searched; equal ones are searched once."""

    @property
    def cycles(self) -> float:
        """Cycles of all ops, one after the other."""
        return fsum(op.cycles for op in self.ops)

    @property
    def energy_pj(self) -> float:
        """Energy of all ops, and what the memories of the core leak meanwhile."""
        return fsum([*(op.energy_pj for op in self.ops), self.leakage_pj])

    @property
    def leakage_pj(self) -> float:
        """What the memories of the core lose, where the machine says so; ZigZag counts none."""
        if self.model != "tilewright":
            return 0.0
        return leakage_of_one_core(self.machine, self.machine.cores[0], self.cycles)

    def _repr_html_(self) -> str:
        text: str = import_module("tilewright.report.notebook").notebook_html(self)
        return text

    def op(self, name: str) -> MappedOp:
        """The op of that name."""
        return next(op for op in self.ops if op.name == name)

    @property
    def candidates(self) -> int:
        """Mappings that were costed."""
        seen = {id(op.mapped): op.mapped.candidates for op in self.ops if op.mapped}
        return sum(seen.values())


def default_vector_unit(core: Core) -> VectorUnit:
    """What serves where a machine declares none: 16 lanes, each as dear as a multiplication."""
    return VectorUnit(lanes=16, op_pj=core.array.mac_pj)


@dataclass(frozen=True, kw_only=True)
class MapOptions:
    """How a network is mapped: by which model, with which search, under which constraints.

    `given` mappings are costed as they are. `tops` names the top memory of operands, per op: what
    is resident there is not fetched from above (op name, then letter, then memory).
    """

    search: Search = loma
    options: SearchOptions = _DEFAULT_OPTIONS
    model: Model = "tilewright"
    constraints: tuple[Constraint, ...] = ()
    given: Mapping[str, GivenMapping] | None = None
    tops: Mapping[str, Mapping[str, str]] | None = None


def map_network(
    network: Network,
    machine: Machine,
    how: MapOptions | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> MappedNetwork:
    """The best mapping of every op on the machine's first core, one op at a time.

    Raises:
        InfeasibleError: some ops have no mapping; every one of them says why.
    """
    with order_named(machine):
        return _mapped_network(network, machine, how or MapOptions(), progress)


def _mapped_network(
    network: Network, machine: Machine, how: MapOptions, progress: Callable[[int, int], None]
) -> MappedNetwork:
    if how.model == "tilewright" and not how.constraints:
        refuse_too_wide(network, machine)
    mapper = _Mapper(network, machine, how)
    for number, op in enumerate(network.ops):
        mapper.add(op)
        progress(number + 1, len(network.ops))
    if mapper.refused:
        raise InfeasibleError(*(_of_ops(why, ops) for why, ops in mapper.refused.items()))
    return MappedNetwork(
        network=network,
        machine=machine,
        model=how.model,
        options=how.options,
        ops=tuple(mapper.ops),
        searched=len(mapper.cache),
    )


def _of_ops(reason: Problem, names: list[str]) -> Problem:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return replace(reason, message=f"op {names[0]!r}{more} cannot be mapped: {reason.message}")


@dataclass
class _Mapper:
    network: Network
    machine: Machine
    how: MapOptions
    cache: dict[object, Mapped | None] = field(default_factory=dict)
    ops: list[MappedOp] = field(default_factory=list)
    hierarchies: dict[object, Hierarchy] = field(default_factory=dict)
    refused: dict[Problem, list[str]] = field(default_factory=dict)
    """Ops by the reason that they have no mapping."""

    def add(self, op: Op) -> None:
        core, zigzag = self.machine.cores[0], self.how.model == "zigzag-3.9"
        if zigzag and not (op.attribute("zigzag_type") or is_mac(op.kind)):
            return
        if not zigzag and not runs_on_array(op, self.network):
            self.ops.append(_off_the_array(op, core))
            return
        entries = {c.name: c for c in reversed(self.how.constraints)}
        constraint = constraint_for(op, entries)
        _refuse_unknown_dims(self.machine, constraint)
        try:
            nest = (zigzag_nest if zigzag else nest_of)(op, self.network)
            if not zigzag:
                width = partial_sum_bits(self.machine, core, op.accumulator_bits)
                nest = with_partial_sums(nest, width)
            tops = (self.how.tops or {}).get(op.name)
            hierarchy = self._hierarchy(core, _links(nest, constraint), tops)
            mapped = self._mapped(op, nest, hierarchy, constraint)
        except ValueError as error:
            self.refused.setdefault(Problem(message=str(error)), []).append(op.name)
            return
        if mapped is None:
            from tilewright.mapping.diagnose import why_not

            self.refused.setdefault(why_not(nest, hierarchy, constraint), []).append(op.name)
            return
        self.ops.append(
            MappedOp(
                name=op.name,
                kind=op.kind,
                macs=nest.points if zigzag else macs(op, self.network),
                engine="array",
                cycles=mapped.cost.cycles,
                energy_pj=mapped.cost.energy_pj,
                mapped=mapped,
            )
        )

    def _hierarchy(
        self, core: Core, links: Mapping[str, str], tops: Mapping[str, str] | None
    ) -> Hierarchy:
        """One and the same for all ops that see the memories in the same way."""
        key = (core.name, tuple(links.items()), tuple((tops or {}).items()))
        if key not in self.hierarchies:
            self.hierarchies[key] = hierarchy_of(
                self.machine, core, links, tops, as_zigzag=self.how.model == "zigzag-3.9"
            )
        return self.hierarchies[key]

    def _mapped(
        self, op: Op, nest: LoopNest, hierarchy: Hierarchy, constraint: Constraint | None
    ) -> Mapped | None:
        given = (self.how.given or {}).get(op.name)
        if given is not None:
            return costed(nest, hierarchy, given, self.how.options)
        key = (nest, hierarchy, _fixed(constraint))
        if key not in self.cache:
            self.cache[key] = self.how.search(nest, hierarchy, constraint, self.how.options)
        return self.cache[key]


def costed(
    nest: LoopNest, hierarchy: Hierarchy, given: GivenMapping, options: SearchOptions
) -> Mapped | None:
    """A given mapping with its cost; None if a direction it needs has no port.

    Raises:
        ValueError: the mapping does not belong to this nest or these memories.
    """
    spatial = attach(nest, hierarchy, given.unrolling, round_off=options.round_off)
    loops = given_loops(given, nest, hierarchy)
    batch = evaluate_loops(Setup(nest, hierarchy, spatial), loops)
    if not batch.fits[0]:
        return None
    return Mapped(setup=batch.setup, loops=loops, cost=cost_of(batch), candidates=1)


def _links(nest: LoopNest, constraint: Constraint | None) -> Mapping[str, str]:
    links = dict(constraint.links if constraint is not None else DEFAULT_LINKS)
    missing = [o.letter for o in nest.operands if o.letter not in links]
    if missing:
        entry = constraint.name if constraint else "default"
        message = f"mapping entry {entry!r}: memory_operand_links has no operand {missing[0]}"
        hint = "write memory_operand_links: {O: O, W: I2, I: I1}"
        raise InputError(Problem(message=message, hint=hint))
    return {o.letter: links[o.letter] for o in nest.operands}


def _refuse_unknown_dims(machine: Machine, constraint: Constraint | None) -> None:
    """Raise InputError if an entry unrolls along what no array has: it was made for another one."""
    known = [dim for core in machine.cores for dim, _ in core.array.dims]
    unknown = [dim for dim, _ in constraint.spatial if dim not in known] if constraint else []
    if constraint and unknown:
        message = f"mapping entry {constraint.name!r}: {machine.name} has no array dimension "
        hint = f"its dimensions: {', '.join(dict.fromkeys(known))}"
        raise InputError(Problem(message=message + unknown[0], hint=hint))


def _fixed(constraint: Constraint | None) -> object:
    """What of a constraint decides a search; its name does not."""
    if constraint is None:
        return None
    return constraint.spatial, constraint.hints, constraint.order, constraint.links


def _off_the_array(op: Op, core: Core) -> MappedOp:
    """An op of the vector unit, or a move, which is free until a program places it."""
    if KIND_CLASSES[op.kind] == "move":
        return MappedOp(
            name=op.name, kind=op.kind, macs=0, engine="move", cycles=0.0, energy_pj=0.0
        )
    vector = core.vector or default_vector_unit(core)
    return MappedOp(
        name=op.name,
        kind=op.kind,
        macs=0,
        engine="vector",
        cycles=float(ceil(op.points / vector.lanes)),
        energy_pj=op.points * vector.op_pj,
    )
