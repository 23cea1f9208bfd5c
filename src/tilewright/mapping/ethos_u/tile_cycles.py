"""Cycles of a tile: those of its steps, each as long as its slowest part."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil

from tilewright.machine.model import Memory
from tilewright.mapping.ethos_u import compiled
from tilewright.mapping.ethos_u.accesses import access_cycles
from tilewright.mapping.ethos_u.blocks import BlockChoice, blocks_that_fit
from tilewright.mapping.ethos_u.configuration import Configuration
from tilewright.mapping.ethos_u.cycles import least_cycles, operation_cycles
from tilewright.mapping.ethos_u.operation import (
    Format,
    MemoryTiming,
    Operation,
    Storage,
    Storages,
)
from tilewright.mapping.ethos_u.step import Step
from tilewright.mapping.ethos_u.translate import Tile, TiledOp, tile_steps
from tilewright.network.graph import Network, Op


@dataclass(frozen=True, kw_only=True)
class EthosU:
    """A member of the family, and where it finds what it works at."""

    configuration: Configuration
    near: MemoryTiming
    """Where feature maps lie while an operation runs, and weights that were brought there."""
    far: MemoryTiming
    """Where other constants come from: tables, numbers of a softmax, weights that stream."""
    formats: Mapping[str, Format]
    """By tensor; linear where nothing is said."""
    known_storages: dict[object, Storages] = field(default_factory=dict, compare=False, repr=False)
    """Where steps find and leave their feature maps: the same for all tiles of an op."""

    def storage(self, tensor: str) -> Storage:
        """Where a tensor lies, and in which format."""
        return Storage(self.near, self.formats.get(tensor, "linear"))

    @cached_property
    def figures(self) -> "array[int]":
        """The member and its memories in the terms of the compiled model."""
        return compiled.member_figures(self.configuration, self.near, self.far)


def memory_timing(memory: Memory) -> MemoryTiming:
    """How fast a memory of a machine is, by its widest port."""
    return MemoryTiming(
        name=memory.name,
        bytes_per_cycle=Fraction(max(port.bits_per_cycle for port in memory.ports), 8),
        burst_bytes=memory.burst_bytes,
        read_latency_cycles=memory.read_latency_cycles,
        write_latency_cycles=memory.write_latency_cycles,
    )


def tile_cycles(tile: Tile, ethos_u: EthosU) -> int | None:
    """Cycles of a tile; None if the hardware cannot run it."""
    steps = tile_steps(tile)
    if not steps:
        return None
    total = 0
    for number, step in enumerate(steps):
        storages = _storages(tile, step, ethos_u, (number == 0, number == len(steps) - 1))
        cycles = _step_cycles(step, ethos_u, storages, tile.of.weight_bits)
        if cycles is None:
            return None
        total += cycles
    return max(1, total)


def fewest_cycles(op: Op, network: Network, ethos_u: EthosU) -> float | None:
    """What an op takes at least, however it is cut; None if the hardware cannot run it."""
    whole = TiledOp(op=op, network=network)
    steps = tile_steps(Tile(of=whole, fused=(), lengths=whole.sizes))
    if not steps:
        return None
    return sum(s.times * least_cycles(s.operation, ethos_u.configuration) for s in steps)


def _storages(tile: Tile, step: Step, ethos_u: EthosU, ends: tuple[bool, bool]) -> Storages:
    """Where a step finds and leaves its feature maps; between two steps they lie linear."""
    read = tile.of.reads
    made = (tile.fused[-1] if tile.fused else tile.of).makes
    key = (read, made, ends, step.second_is_constant, tile.streams)
    found = ethos_u.known_storages.get(key)
    if found is None:
        is_first, is_last = ends
        between = Storage(ethos_u.near)
        inputs = [ethos_u.storage(tensor) for tensor in read]
        second = inputs[-1] if is_first else between
        found = ethos_u.known_storages[key] = Storages(
            input=inputs[0] if is_first else between,
            output=ethos_u.storage(made) if is_last else between,
            second_input=Storage(ethos_u.far) if step.second_is_constant else second,
            scales=ethos_u.far if tile.streams else ethos_u.near,
            weights=ethos_u.far if tile.streams else None,
        )
    return found


def _step_cycles(step: Step, ethos_u: EthosU, storages: Storages, weight_bits: int) -> int | None:
    """Cycles of a step: those of its operation, as often as it is done, and of loading a table."""
    operation = step.operation
    if storages.weights is not None:
        operation = operation._replace(weight_bits=weight_bits)
    once = slowest_part(operation, ethos_u, storages)
    if once is None:
        return None
    cycles = step.times * once
    if step.table_bytes:
        table = step.table_bytes / float(ethos_u.far.bytes_per_cycle)
        cycles += ethos_u.far.read_latency_cycles + ceil(table)
    return cycles


def slowest_part(operation: Operation, ethos_u: EthosU, storages: Storages) -> int | None:
    """Cycles of an operation with the best block: computing and moving data go on side by side."""
    if compiled.is_used():
        try:
            return compiled.cycles(operation, storages, ethos_u.figures)
        except OverflowError:
            # What is too large for it is left to Python.
            pass
    burst_bytes = ethos_u.near.burst_bytes
    blocks = blocks_that_fit(operation, ethos_u.configuration, burst_bytes)
    return min((_with_block(operation, block, ethos_u, storages) for block in blocks), default=None)


def _with_block(
    operation: Operation, block: BlockChoice, ethos_u: EthosU, storages: Storages
) -> int:
    computing = operation_cycles(operation, block, ethos_u.configuration, storages)
    moving = access_cycles(operation, block, ethos_u.configuration, storages)
    return max(computing, *(ceil(busy) for _, busy in moving))
