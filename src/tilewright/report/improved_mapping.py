"""A mapping on a better machine: the same loops with a port twice as wide or a faster array."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tilewright.machine.model import Memory, Port
from tilewright.mapping.evaluate import cycles_with_ports
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.search import Mapped


@dataclass(frozen=True, slots=True, kw_only=True)
class ImprovedCycles:
    """Cycles of one mapping where one thing is twice as good."""

    faster_array: float
    wider_ports: tuple[tuple[str, float], ...]
    """By port (`memory.port`); ports that matter only."""


def improved_cycles(mapped: Mapped) -> ImprovedCycles:
    """Cycles of a mapping with an array twice as fast, and with each port twice as wide.

    Memories that each row, column or unit of the array has for itself are part of it, and keep up.
    """
    setup, cost = mapped.setup, mapped.cost
    wider = _with_wider_ports(setup.hierarchy)
    others = [_with_narrower_ports(setup.hierarchy), *(hierarchy for _, hierarchy in wider)]
    narrow_cycles, *wide_cycles = cycles_with_ports(setup, mapped.loops, others)
    # Widths are whole bits, so half of a narrow one is too much; but no more than half of the
    # array's own cycles can be saved.
    least = cost.cycles - cost.compute_cycles / 2
    return ImprovedCycles(
        # An array twice as fast takes half of the cycles that it takes with ports half as wide.
        faster_array=max(least, narrow_cycles / 2),
        wider_ports=tuple(
            (name, cycles)
            for (name, _), cycles in zip(wider, wide_cycles, strict=True)
            if cycles < cost.cycles
        ),
    )


# Tiles of one plan lie in few kinds of hierarchies: each is improved once.
@lru_cache(maxsize=16)
def _with_wider_ports(hierarchy: Hierarchy) -> tuple[tuple[str, Hierarchy], ...]:
    """By port (`memory.port`) the hierarchy in which it is twice as wide."""
    return tuple(
        (f"{memory.name}.{port.name}", _with_port(hierarchy, memory, port))
        for memory, _ in hierarchy.levels
        for port in memory.ports
    )


def _with_port(hierarchy: Hierarchy, memory: Memory, port: Port) -> Hierarchy:
    wide = replace(port, bits_per_cycle=2 * port.bits_per_cycle)
    ports = tuple(wide if other is port else other for other in memory.ports)
    better = replace(memory, ports=ports)
    return replace(
        hierarchy,
        levels=tuple(
            (better if level is memory else level, held) for level, held in hierarchy.levels
        ),
    )


@lru_cache(maxsize=16)
def _with_narrower_ports(hierarchy: Hierarchy) -> Hierarchy:
    """The hierarchy with ports half as wide outside the array."""
    dims = [dim for dim, size in hierarchy.array.dims if size > 1]
    return replace(
        hierarchy,
        levels=tuple(
            (memory if _is_inside(memory, dims) else _slower(memory), held)
            for memory, held in hierarchy.levels
        ),
    )


def _is_inside(memory: Memory, dims: Sequence[str]) -> bool:
    return memory.role == "local" and not set(dims) <= set(memory.served_dims)


def _slower(memory: Memory) -> Memory:
    return replace(memory, ports=tuple(map(_half, memory.ports)))


def _half(port: Port) -> Port:
    width = max(1, port.bits_per_cycle // 2)
    return replace(port, bits_per_cycle=width, granularity_bits=min(port.granularity_bits, width))
