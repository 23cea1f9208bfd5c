"""A mapping on a better machine: the same loops with a port twice as wide or a faster array."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilewright.machine.model import Memory, Port
from tilewright.mapping.evaluate import Setup, cost_of, evaluate_loops
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.search import Mapped


def wider_port_cycles(mapped: Mapped) -> Iterator[tuple[str, float]]:
    """Ports (`memory.port`) that hold the mapping up, with its cycles if one was twice as wide."""
    for memory, _ in mapped.setup.hierarchy.levels:
        for port in memory.ports:
            cycles = _cycles(mapped, _with_port(mapped.setup.hierarchy, memory, port))
            if cycles < mapped.cost.cycles:
                yield f"{memory.name}.{port.name}", cycles


def faster_array_cycles(mapped: Mapped) -> float:
    """Cycles with an array twice as fast: half of those with ports half as wide.

    Memories that each row, column or unit of the array has for itself are part of it, and keep up.
    """
    hierarchy = mapped.setup.hierarchy
    dims = [dim for dim, size in hierarchy.array.dims if size > 1]
    slow = replace(
        hierarchy,
        levels=tuple(
            (memory if _is_inside(memory, dims) else _slower(memory), held)
            for memory, held in hierarchy.levels
        ),
    )
    # Widths are whole bits, so half of a narrow one is too much; but no more than half of the
    # array's own cycles can be saved.
    least = mapped.cost.cycles - mapped.cost.compute_cycles / 2
    return max(least, _cycles(mapped, slow) / 2)


def _is_inside(memory: Memory, dims: Sequence[str]) -> bool:
    return memory.role == "local" and not set(dims) <= set(memory.served_dims)


def _slower(memory: Memory) -> Memory:
    return replace(memory, ports=tuple(map(_half, memory.ports)))


def _half(port: Port) -> Port:
    width = max(1, port.bits_per_cycle // 2)
    return replace(port, bits_per_cycle=width, granularity_bits=min(port.granularity_bits, width))


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


def _cycles(mapped: Mapped, hierarchy: Hierarchy) -> float:
    setup = Setup(mapped.setup.nest, hierarchy, mapped.setup.spatial)
    return cost_of(evaluate_loops(setup, mapped.loops)).cycles
