"""Cycles of a tile: those of its steps, each as long as its slowest part."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from tilewright.machine.model import Memory
from tilewright.mapping.ethos_u.accesses import access_cycles
from tilewright.mapping.ethos_u.blocks import choose_block
from tilewright.mapping.ethos_u.configuration import Configuration
from tilewright.mapping.ethos_u.cycles import least_cycles, operation_cycles
from tilewright.mapping.ethos_u.operation import Format, MemoryTiming, Storage, Storages
from tilewright.mapping.ethos_u.step import Step
from tilewright.mapping.ethos_u.translate import Tile, tile_steps
from tilewright.network.graph import Network, Op


@dataclass(frozen=True, kw_only=True)
class EthosU:
    """A member of the family, and where it finds what it works at."""

    configuration: Configuration
    near: MemoryTiming
    """Where feature maps and weights lie while an operation runs."""
    far: MemoryTiming
    """Where constants of the hardware's own come from: tables, and numbers of a softmax."""
    formats: Mapping[str, Format]
    """By tensor; linear where nothing is said."""

    def storage(self, tensor: str) -> Storage:
        """Where a tensor lies, and in which format."""
        return Storage(self.near, self.formats.get(tensor, "linear"))


def memory_timing(memory: Memory) -> MemoryTiming:
    """How fast a memory of a machine is, by its widest port."""
    return MemoryTiming(
        name=memory.name,
        bytes_per_cycle=Fraction(max(port.bits_per_cycle for port in memory.ports), 8),
        burst_bytes=memory.burst_bytes,
        read_latency_cycles=memory.read_latency_cycles,
        write_latency_cycles=memory.write_latency_cycles,
    )


def tile_cycles(tile: Tile, network: Network, ethos_u: EthosU) -> int | None:
    """Cycles of a tile; None if the hardware cannot run it."""
    steps = tile_steps(tile, network)
    if not steps:
        return None
    total = 0
    for number, step in enumerate(steps):
        storages = _storages(tile, step, ethos_u, (number == 0, number == len(steps) - 1))
        cycles = _step_cycles(step, ethos_u, storages)
        if cycles is None:
            return None
        total += cycles
    return max(1, total)


def fewest_cycles(op: Op, network: Network, ethos_u: EthosU) -> float | None:
    """What an op takes at least, however it is cut; None if the hardware cannot run it."""
    steps = tile_steps(Tile(op=op, fused=(), lengths=op.sizes), network)
    if not steps:
        return None
    return sum(s.times * least_cycles(s.operation, ethos_u.configuration) for s in steps)


def _storages(tile: Tile, step: Step, ethos_u: EthosU, ends: tuple[bool, bool]) -> Storages:
    """Where a step finds and leaves its feature maps; between two steps they lie linear."""
    is_first, is_last = ends
    between = Storage(ethos_u.near)
    inputs = [ethos_u.storage(operand.tensor) for operand in tile.op.inputs[:2]]
    result = (tile.op, *tile.fused)[-1].outputs[0]
    second = inputs[-1] if is_first else between
    return Storages(
        input=inputs[0] if is_first else between,
        output=ethos_u.storage(result.tensor) if is_last else between,
        second_input=Storage(ethos_u.far) if step.second_is_constant else second,
        scales=ethos_u.near,
    )


def _step_cycles(step: Step, ethos_u: EthosU, storages: Storages) -> int | None:
    """Cycles of a step: computing and moving feature maps go on side by side."""
    configuration = ethos_u.configuration
    block = choose_block(step.operation, configuration)
    if block is None:
        return None
    computing = operation_cycles(step.operation, block, configuration, storages)
    moving = access_cycles(step.operation, block, configuration, storages)
    cycles = step.times * max(computing, *(ceil(busy) for _, busy in moving))
    if step.table_bytes:
        table = step.table_bytes / float(ethos_u.far.bytes_per_cycle)
        cycles += ethos_u.far.read_latency_cycles + ceil(table)
    return cycles
