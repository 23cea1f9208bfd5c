"""Do machine, network and mapping file go together? Faults that no single file shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TypeVar

from tilewright.document import dotted, in_file_order, read_document, suggestion
from tilewright.errors import InputError, Problem
from tilewright.machine.load import check_machine, reading_of
from tilewright.machine.model import Core, Machine
from tilewright.machine.reader import MachineReading
from tilewright.mapping.attach import levels_of
from tilewright.mapping.constraints import (
    DEFAULT_LINKS,
    Constraint,
    ConstraintReading,
    constraint_for,
    read_constraints,
)
from tilewright.mapping.ethos_u.configuration import CONFIGURATIONS
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of
from tilewright.mapping.movement import boosts
from tilewright.mapping.nest import (
    LoopNest,
    NestOperand,
    nest_of,
    runs_on_array,
    scattering,
    written_loops,
)
from tilewright.mapping.obstacles import (
    USUAL_BITS,
    constant_problems,
    multiplier_problems,
    narrower_hint,
)
from tilewright.mapping.wires import joined, misfits
from tilewright.network.graph import Network, Op
from tilewright.network.kinds import is_mac
from tilewright.network.load import read_network

T = TypeVar("T")


def all_problems(
    machine: str,
    network: str | None,
    mapping: str | None,
    *,
    dims: Mapping[str, int],
    bits: int | None,
) -> list[Problem]:
    """Everything wrong with the files, each in file order: all errors, then all warnings."""
    found: list[Problem] = []
    reading = _tried(lambda: reading_of(machine), found)
    if reading is not None:
        found += check_machine(reading)
        found += core_model_problems(reading)
    the_machine, the_network, entries = reading.machine if reading else None, None, None
    if network is not None:
        layers = _tried(lambda: read_network(network, dims=dims, bits=bits), found)
        found += layers.problems if layers else ()
        the_network = layers.network if layers else None
    if the_network is not None:
        found += nest_problems(the_network)
    if mapping is not None:
        entries = _tried(lambda: read_constraints(read_document(Path(mapping))), found)
    if entries is not None:
        found += entries.problems
        found += in_file_order([*mapping_problems(entries, the_machine, the_network)])
    if the_machine is not None and the_network is not None and mapping is None:
        found += [
            replace(problem, file=the_machine.source)
            for tell in (multiplier_problems, constant_problems)
            for problem in tell(the_network, the_machine)
        ]
    if reading is not None and the_network is not None:
        found += size_problems(reading, the_network)
    return [p for p in found if p.severity == "error"] + [
        p for p in found if p.severity == "warning"
    ]


def _tried(read: Callable[[], T], found: list[Problem]) -> T | None:
    """What `read` gives, or None with the reasons added to `found`."""
    try:
        return read()
    except InputError as error:
        found.extend(error.problems)
        return None


def mapping_problems(
    reading: ConstraintReading, machine: Machine | None, network: Network | None
) -> Iterator[Problem]:
    """Faults of a mapping file for this machine, and for this network if one is given."""
    for i, constraint in enumerate(reading.constraints):
        if machine is not None:
            yield from _against_array(reading, i, constraint, machine)
    if machine is None or network is None:
        return
    yield from _unknown_loops(reading, network)
    entries = {c.name: c for c in reversed(reading.constraints)}
    seen: set[tuple[str, str]] = set()
    for op in network.ops:
        entry = constraint_for(op, entries)
        if entry is None:
            continue
        for core in machine.cores:
            for problem in _against_op(reading, entry, machine, core, (op, network)):
                key = (entry.name, problem.message.partition("(")[0])
                if key not in seen:
                    seen.add(key)
                    yield problem


def nest_problems(network: Network) -> Iterator[Problem]:
    """Ops for the array whose nest is of a form that no mapping has."""
    for op in network.ops:
        if not runs_on_array(op, network):
            continue
        try:
            nest_of(op, network)
        except ValueError as error:
            yield Problem(message=f"op {op.name!r} cannot be mapped: {error}")


def size_problems(reading: MachineReading, network: Network) -> Iterator[Problem]:
    """Memories that cannot hold one element of what the network multiplies."""
    widest = {"I1": 0, "I2": 0, "O": 0}
    for op in network.ops:
        if not is_mac(op.kind):
            continue
        for operand in (*op.outputs, *op.inputs):
            carrier = dict(DEFAULT_LINKS).get(operand.name)
            if carrier is not None:
                bits = network.by_name[operand.tensor].bits
                widest[carrier] = max(widest[carrier], bits)
    for memory in reading.machine.memories if reading.machine else ():
        need = max(widest[operand] for operand in memory.operands)
        if memory.size_bits < need:
            at = (*reading.places[memory.name], "size")
            yield reading.document.problem(
                at,
                f"{dotted(at)}: {memory.size_bits} bits, and one element of {network.name} "
                f"takes {need}",
                hint=f"{narrower_hint(min(USUAL_BITS, memory.size_bits))}\n"
                f"or write {dotted(at)}: {need} bit",
            )


def core_model_problems(reading: MachineReading) -> Iterator[Problem]:
    """Arrays of another size than the core has whose cycle model is named."""
    for core in reading.machine.cores if reading.machine else ():
        if core.model is None:
            continue
        configuration = CONFIGURATIONS[core.model.configuration]
        macs, units = configuration.macs_per_cycle, core.array.units
        if units not in (macs, macs // configuration.cores):
            inside = ("cores", core.name) if "cores" in reading.document.data else ()
            at = (*inside, "core_model", "configuration")
            yield reading.document.problem(
                at,
                f"{dotted(at)}: {configuration.name} multiplies {macs} times a cycle, and the "
                f"array has {units} multipliers: bounds and energy count with another core than "
                "cycles do",
                severity="warning",
                hint=f"write {dotted((*inside, 'operational_array', 'sizes'))} whose product is "
                f"{macs}, or another configuration",
            )


def _place(reading: ConstraintReading, constraint: Constraint) -> int:
    return reading.constraints.index(constraint)


def _against_array(
    reading: ConstraintReading, i: int, constraint: Constraint, machine: Machine
) -> Iterator[Problem]:
    document = reading.document
    sizes = {dim: size for core in machine.cores for dim, size in core.array.dims}
    for key, dims in (
        ("spatial_mapping", [dim for dim, _ in constraint.spatial]),
        ("spatial_mapping_hint", [dim for dim, _ in constraint.hints]),
    ):
        for dim in dims:
            # Hints for dims that an array lacks are common in shared files, and harmless.
            if dim not in sizes and key == "spatial_mapping":
                message = f"{constraint.name}: {machine.name} has no array dimension {dim}"
                hint = suggestion(dim, list(sizes))
                yield document.problem((i, key, dim), message, hint=hint)
    for dim, pairs in constraint.spatial:
        factor = prod(f for _, f in pairs)
        if dim in sizes and factor > sizes[dim]:
            text = " x ".join(f"{loop} {f}" for loop, f in pairs)
            message = f"{constraint.name}: {text} = {factor} units on {dim}, which has {sizes[dim]}"
            at = (i, "spatial_mapping", dim)
            yield document.problem(at, message, hint=f"write factors of at most {sizes[dim]}")


def _unknown_loops(reading: ConstraintReading, network: Network) -> Iterator[Problem]:
    """Loops that a mapping file unrolls or orders and no op of the network has."""
    known = {dim for op in network.ops for dim, _ in scattering(op, network).dims}
    instead = _loops_instead(network)
    for at, entry, loop, done in _named_loops(reading.constraints):
        if loop in known:
            continue
        why, hint = f"so nothing is {done} here", suggestion(loop, sorted(known))
        if loop in instead:
            why = f"which are read as gathers: with --model zigzag-3.9 alone {loop} is {done} here"
            hint = f"write {instead[loop]} for plans and our own model"
        message = f"{entry}: no op of {network.name} has a loop {loop}, {why}"
        yield reading.document.problem(at, message, severity="warning", hint=hint)


def _named_loops(
    constraints: Sequence[Constraint],
) -> Iterator[tuple[tuple[str | int, ...], str, str, str]]:
    """Place, entry, loop, and what is done with it, of all loops that entries fix."""
    for i, constraint in enumerate(constraints):
        for dim, pairs in constraint.spatial:
            for loop, _ in pairs:
                yield (i, "spatial_mapping", dim), constraint.name, loop, "unrolled"
        for j, (loop, _) in enumerate(constraint.order):
            if loop != "*":
                yield (i, "temporal_ordering", j), constraint.name, loop, "ordered"


def _loops_instead(network: Network) -> dict[str, str]:
    """For loops that ZigZag's files have and no op, the loops that ops have in their place."""
    return {
        written: dim
        for op in network.ops
        for (written, _), (dim, _) in zip(written_loops(op), op.dims, strict=False)
        if written != dim
    }


def _against_op(
    reading: ConstraintReading,
    constraint: Constraint,
    machine: Machine,
    core: Core,
    where: tuple[Op, Network],
) -> Iterator[Problem]:
    """A spatial unrolling wider than the port that feeds it, or one that wires do not serve."""
    op, network = where
    found = _seen(op, network, machine, core, constraint)
    if found is None:
        return
    nest, hierarchy = found
    factors = _factors(nest, hierarchy, constraint)
    together = joined(nest, hierarchy, factors)
    at = (_place(reading, constraint), "spatial_mapping")
    for operand in nest.operands:
        letter = operand.letter
        memory = hierarchy.memory(letter, 0)
        port = hierarchy.port(letter, 0, "fl" if letter == "O" else "tl")
        levels = levels_of(letter, hierarchy, factors)
        elements = boosts(nest, operand, levels, together.get(letter, ()))[0]
        needed = int(elements) * operand.bits
        if port is not None and needed > port.bits_per_cycle:
            yield reading.document.problem(
                at,
                f"{constraint.name}: the unrolling needs {needed} bits of {letter} a cycle "
                f"from {memory.name}, whose port {port.name} has {port.bits_per_cycle} "
                f"(op {op.name})",
                severity="warning",
                hint=_remedy(nest, operand, levels[0], port.bits_per_cycle),
            )
    for letter, way, reason in misfits(nest, hierarchy, factors):
        yield reading.document.problem(
            at,
            f"{constraint.name}: {letter} cannot use the wires {way}, and every unit gets its "
            f"own elements: {reason} (op {op.name})",
            severity="warning",
            hint="unroll other loops, or wire the array for these",
        )


def _seen(
    op: Op, network: Network, machine: Machine, core: Core, constraint: Constraint
) -> tuple[LoopNest, Hierarchy] | None:
    """An op as the core sees it; None if it does not run on the array, or nothing holds it."""
    links = dict(constraint.links)
    try:
        nest = nest_of(op, network)
        return nest, hierarchy_of(machine, core, {x: links[x] for x in nest.letters})
    except (KeyError, ValueError):
        return None  # Mapping it says why.


def _factors(
    nest: LoopNest, hierarchy: Hierarchy, constraint: Constraint
) -> dict[tuple[str, str], float]:
    """What an entry unrolls, as far as the nest has it."""
    return {
        (dim, loop): min(factor, nest.sizes[loop])
        for dim, pairs in constraint.spatial
        for loop, factor in pairs
        if dim in hierarchy.array.sizes and loop in nest.sizes
    }


def _remedy(
    nest: LoopNest, operand: NestOperand, unrolled: Sequence[tuple[str, float]], width: int
) -> str:
    same = nest.irrelevant(operand)
    if any(f * operand.bits > width for loop, f in unrolled if loop not in same):
        return "ZigZag shrinks the unrolling silently; widen the port or unroll less"
    loops = {loop for loop, factor in unrolled if factor > 1}
    if any({loop for loop, _ in r.terms} <= loops for r in nest.relations_of(operand)):
        return "widen the port, unroll less, or let units share elements: `sharing`"
    return "widen the port, or unroll less"
