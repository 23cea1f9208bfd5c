"""Does a task without a mapping take as long and cost as much as what it does?

That is what vector units do, what is rearranged by a transfer, and what runs on a core with a model
of its own; of this last, only what no model goes below. A task may take longer.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum

from tilewright.errors import Problem
from tilewright.machine.model import Machine, VectorUnit
from tilewright.mapping.hierarchy import partial_sum_bits
from tilewright.network.graph import Network, Op
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.model import Access, Box, Program, Route, Task
from tilewright.program.strips import strip_of
from tilewright.replay.check_boxes import shape_of, volume
from tilewright.replay.check_kinds import Kinds
from tilewright.replay.check_model import CoreCycles
from tilewright.replay.check_routes import NOTHING, Amount, charged_amounts, wrong_charges
from tilewright.replay.check_taps import products, taps_of
from tilewright.replay.check_tiles import Tiles, needed_by_tile
from tilewright.replay.check_transfers import CORE
from tilewright.replay.emulate_layout import element_bits, holds_partial_sums
from tilewright.units import packed_bytes

Bytes = tuple[int, int]
"""Read and written."""

ROUNDING = 1e-9
"""Energies are sums of floats, in any order."""

DEFAULT_LANES = 16
"""Of the vector unit of a core that declares none; an operation then costs what a product does."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What a task does."""

    task: Task
    op: Op
    points: int
    """Those at which something is multiplied, of an op that multiplies."""
    passing: int
    """Elements to which fused ops are applied, counted for each of them."""
    model_cycles: int | None
    """What the core's own model says, if it knows."""


def cost_problems(
    program: Program,
    network: Network,
    machine: Machine | None,
    tiles: Tiles,
    asked: tuple[Kinds, Iterable[int]],
) -> Iterator[Problem]:
    """Tasks that are too short for their points and bytes, or charged for others.

    Those with some numbers are asked, beside all kinds that there are.

    Without a machine only bytes are known, and ways, and that what is alike costs the same.
    """
    kinds, numbers = asked
    ops = {op.name: (op, taps_of(op, network)) for op in network.ops}
    known: dict[object, Task] = {}
    has_strips = any(map(strip_of, kinds.examples))
    model = None if machine is None else CoreCycles(program, network, machine, has_strips)
    has_mappings = any(task.mapping is not None for task in kinds.examples)
    for number in numbers:
        task = program.tasks[number]
        if task.op not in tiles.of_op:
            continue
        tile = tiles.box(task.op, number)
        reading = _holding_sums(program, task.reads)
        writing = _holding_sums(program, task.writes)
        sums = any(reading), any(writing)
        told = None if model is None or task.mapping is not None else model.of(task, tile, sums)
        op, taps = ops[task.op]
        passing = _passing(network, task, op, tile)
        work = _Work(task, op, products(op, taps, tile), passing, told)
        is_on_array = task.mapping is not None or any(c.memory == "array" for c in task.charges)
        moved: Mapping[str, Bytes] = {}
        if is_on_array and model is not None:
            yield from _on_array(model, work)
        elif not is_on_array:
            moved = _moved(program, network, work, tile)
            yield from _elsewhere(program, model, work, moved)
        if task.kind == "compute":
            yield from _on_another_unit(work, model, has_mappings)
        if machine is not None and any(sums):
            yield from _narrow_sums(program, machine, task, op)
        kind = task.op, task.fused, strip_of(task), shape_of(tile), passing, task.mapping
        other = known.setdefault((*kind, *moved.items(), reading, writing), task)
        if task.cycles != other.cycles or task.charges != other.charges:
            yield _unlike(task, other)


def _holding_sums(program: Program, accesses: Iterable[Access]) -> tuple[bool, ...]:
    return tuple([holds_partial_sums(program.buffers[access.buffer]) for access in accesses])


def _narrow_sums(program: Program, machine: Machine, task: Task, op: Op) -> Iterator[Problem]:
    """Sums that wait for another task in fewer bits than the array makes them of."""
    if KIND_CLASSES[op.kind] != "mac":
        return
    bits = partial_sum_bits(machine, machine.cores[0], op.accumulator_bits)
    for access in (*task.reads, *task.writes):
        buffer = program.buffers[access.buffer]
        if holds_partial_sums(buffer) and 8 * buffer.size_bytes < bits * volume(buffer.box):
            yield Problem(
                message=f"task {task.name} has sums of {bits} bits, and buffer {buffer.name} has "
                f"{buffer.size_bytes} bytes for {volume(buffer.box)} of them"
            )


def _on_another_unit(
    work: _Work, model: CoreCycles | None, has_mappings: bool
) -> Iterator[Problem]:
    """An array runs by mappings, unless a model says how; then it does everything. Vector units do
    what is no product."""
    task = work.task
    is_modelled = not has_mappings if model is None else model.is_modelled
    if CORE.fullmatch(task.engine):
        if task.mapping is None and not is_modelled:
            yield Problem(message=f"task {task.name} is on {task.engine} and has no mapping")
    elif is_modelled and model is not None and CORE.match(task.engine):
        yield Problem(
            message=f"task {task.name} is on {task.engine}, and {model.machine.name} runs all ops "
            "on its arrays"
        )
    elif KIND_CLASSES[work.op.kind] == "mac" and CORE.match(task.engine):
        yield Problem(
            message=f"task {task.name} does {work.op.name}, a {work.op.kind}, on {task.engine}: "
            "products are an array's work"
        )


def _passing(network: Network, task: Task, op: Op, tile: Box) -> int:
    if not task.fused:
        return 0
    shape = network.by_name[op.outputs[0].tensor].shape
    return len(task.fused) * volume(needed_by_tile(op, op.outputs[0], tile, shape))


def _unlike(task: Task, other: Task) -> Problem:
    """Another cost than that of a task which does as much of the same."""
    return Problem(
        message=f"task {task.name} takes {task.cycles} cycles and {_energy(task):g} pJ, and "
        f"{other.name}, which does as much, {other.cycles} and {_energy(other):g}"
    )


def _energy(task: Task) -> float:
    return fsum(charge.energy_pj for charge in task.charges)


def _on_array(model: CoreCycles, work: _Work) -> Iterator[Problem]:
    """Products take time and energy, and so does what is applied to their sums in passing."""
    task, machine, at_once = work.task, model.machine, model.products_at_once()
    is_mac = KIND_CLASSES[work.op.kind] == "mac"
    if is_mac and task.cycles < -(-work.points // at_once):
        yield Problem(
            message=f"task {task.name} takes {task.cycles} cycles, and {work.points} products, "
            f"{at_once} at once, take {-(-work.points // at_once)}"
        )
    yield from _too_quick(work)
    products_pj = work.points * machine.cores[0].array.mac_pj
    passing_pj = work.passing * _vector_unit(machine).op_pj
    charged = charged_amounts(task)
    for memory, least in (("array", products_pj), ("vector", passing_pj)):
        spent = charged.get(memory, NOTHING)[2]
        if spent < least * (1 - ROUNDING):
            yield Problem(
                message=f"task {task.name} is charged {spent:g} pJ at {memory}, and what it does "
                f"there costs {least:g} pJ"
            )


def _vector_unit(machine: Machine) -> VectorUnit:
    core = machine.cores[0]
    return core.vector or VectorUnit(lanes=DEFAULT_LANES, op_pj=core.array.mac_pj)


def _too_quick(work: _Work) -> Iterator[Problem]:
    if work.model_cycles is not None and work.task.cycles < work.model_cycles:
        yield Problem(
            message=f"task {work.task.name} takes {work.task.cycles} cycles, and the model of its "
            f"core says {work.model_cycles}"
        )


def _elsewhere(
    program: Program, model: CoreCycles | None, work: _Work, moved: Mapping[str, Bytes]
) -> Iterator[Problem]:
    """What rearranges on its way, or runs on a vector unit."""
    task, route = work.task, _route(program, work.task)
    cycles, what = 1, "something"
    if route is not None:
        size_bytes = max((sum(side) for side in zip(*moved.values(), strict=True)), default=0)
        cycles = route.cycles(size_bytes)
        amounts: Mapping[str, Amount] = {
            memory: (r, w, r * route.read_pj_per_byte + w * route.write_pj_per_byte)
            for memory, (r, w) in moved.items()
        }
        what = f"{size_bytes} bytes from {route.source} to {route.target}"
    elif model is None:
        said, sides = charged_amounts(task), {"vector": (0, 0), **moved}
        amounts = {memory: (*both, said.get(memory, NOTHING)[2]) for memory, both in sides.items()}
    else:
        machine = model.machine
        ends = (*machine.sources, *machine.sinks)
        strange = moved.keys() - {memory.name for memory in machine.memories}
        strange -= {end.name for end in ends}
        if strange:
            message = f"task {task.name} touches {min(strange)}, and {machine.name} has none"
            yield Problem(message=message)
            return
        least, amounts = _on_vector_unit(machine, work, moved)
        # The model of a core goes before; beside strips it is not known what it said.
        if not model.is_modelled or (work.model_cycles is None and not model.has_strips):
            operations = work.points + work.passing
            cycles, what = least, f"{operations} operations and what they read and write"
    if task.cycles < cycles:
        message = f"task {task.name} takes {task.cycles} cycles, and {what} take {cycles}"
        yield Problem(message=message)
    yield from _too_quick(work)
    yield from wrong_charges(task, amounts)


def _route(program: Program, task: Task) -> Route | None:
    """The way of a task that rearranges on an engine which is no part of a core."""
    if CORE.match(task.engine) or not task.reads or not task.writes:
        return None
    ends = (program.buffers[side[0].buffer].space for side in (task.reads, task.writes))
    return program.route.get((next(ends), next(ends)))


def _on_vector_unit(
    machine: Machine, work: _Work, moved: Mapping[str, Bytes]
) -> tuple[int, dict[str, Amount]]:
    """Cycles of the slowest part, and what is done where."""
    unit, points = _vector_unit(machine), work.points
    if KIND_CLASSES[work.op.kind] == "move":
        points = sum(volume(access.box) for access in work.task.writes)
    operations = points + work.passing
    cycles = max(1, -(-operations // unit.lanes))
    amounts: dict[str, Amount] = {"vector": (0, 0, operations * unit.op_pj)}
    for name, (read, written) in moved.items():
        reading, writing, is_shared = _widths(machine, name)
        busy = [-(-8 * read // reading), -(-8 * written // writing)]
        cycles = max(cycles, sum(busy) if is_shared else max(busy))
        read_pj, write_pj = _bit_energies(machine, name, reading, writing)
        amounts[name] = (read, written, 8 * read * read_pj + 8 * written * write_pj)
    return cycles, amounts


def _widths(machine: Machine, name: str) -> tuple[int, int, bool]:
    """Bits a cycle that can be read and written, and whether one port does both."""
    for end in (*machine.sources, *machine.sinks):
        if end.name == name:
            (filled,) = [memory for memory in machine.memories if memory.name == end.memory]
            sides = ("fh",) if end in machine.sources else ("th",)
            beside = [p for p in filled.ports if any(use in sides for _, use in p.uses)]
            width = end.bits_per_cycle or max((p.bits_per_cycle for p in beside), default=1)
            return width, width, False
    (memory,) = [memory for memory in machine.memories if memory.name == name]
    ports = memory.ports
    reading = max((p.bits_per_cycle for p in ports if p.kind != "write"), default=1)
    writing = max((p.bits_per_cycle for p in ports if p.kind != "read"), default=1)
    return reading, writing, len(ports) == 1 and ports[0].kind == "read_write"


def _bit_energies(machine: Machine, name: str, reading: int, writing: int) -> tuple[float, float]:
    """Energy of a bit that is read, and of one that is written."""
    for end in (*machine.sources, *machine.sinks):
        if end.name == name:
            return end.pj_per_bit, end.pj_per_bit
    (memory,) = [memory for memory in machine.memories if memory.name == name]
    return memory.read_pj / reading, memory.write_pj / writing


def _moved(program: Program, network: Network, work: _Work, tile: Box) -> dict[str, Bytes]:
    """Bytes that a task reads and writes, by memory; of a table as many as it finds there."""
    op, tables, found_bytes = work.op, [], 0
    if op.kind == "gather":
        tables = [operand.tensor for operand in op.inputs if op.searches(operand)]
        result = network.by_name[op.outputs[0].tensor]
        box = needed_by_tile(op, op.outputs[0], tile, result.shape)
        found_bytes = packed_bytes(volume(box), result.bits)
    moved: dict[str, Bytes] = {}
    for accesses, is_read in ((work.task.reads, True), (work.task.writes, False)):
        for access in accesses:
            buffer = program.buffers[access.buffer]
            memory = program.space[buffer.space].memory
            size = packed_bytes(volume(access.box), element_bits(buffer, network))
            if buffer.tensor in tables:
                size = min(size, found_bytes)
            read, written = moved.get(memory, NOTHING[:2])
            moved[memory] = (read + size, written) if is_read else (read, written + size)
    return moved
