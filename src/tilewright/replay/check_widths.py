"""Is no way of transfers wider than the ports at its ends that are for the side it comes from?

A scratchpad has ports that the memory above fills (`fh`) and empties (`th`) and ports for what lies
below (`tl`, `fl`); an external memory has only the latter. Where a side has no port at all, the
other one serves.
"""

from collections.abc import Iterator

from tilewright.errors import Problem
from tilewright.machine.model import End, Machine, Memory
from tilewright.program.model import Program, Space

SIDES = {("read", "above"): "th", ("read", "below"): "tl"}
SIDES |= {("written", "above"): "fh", ("written", "below"): "fl"}


def width_problems(program: Program, machine: Machine) -> Iterator[Problem]:
    """Routes over which more bits go in a cycle than a port at one of their ends lets through."""
    for route in program.routes:
        source, target = program.space[route.source], program.space[route.target]
        bits = 8 * route.bytes_per_cycle
        for space, other, verb in ((source, target, "read"), (target, source, "written")):
            most = _most_bits(machine, space, other, verb)
            if most is not None and bits > most:
                yield Problem(
                    message=f"the way from {route.source} to {route.target} moves {bits} bits a "
                    f"cycle, and {space.name} is {verb} there with {most} at most"
                )


def _most_bits(machine: Machine, space: Space, other: Space, verb: str) -> int | None:
    """The widest port for a side; None: it is a source, or nothing says what its ports are for."""
    memory = next((m for m in machine.memories if m.name == space.memory), None)
    if memory is None or not any(port.uses for port in memory.ports):
        return None
    held = _operands(machine, other)
    uses = [
        (operand in held, direction, port.bits_per_cycle)
        for port in memory.ports
        for operand, direction in port.uses
        if direction in (SIDES[verb, "above"], SIDES[verb, "below"])
    ]
    side = SIDES.get((verb, _place(machine, memory, other)))
    of_side = [(is_held, bits) for is_held, direction, bits in uses if direction == side]
    carried = [bits for is_held, bits in of_side if is_held and memory.role != "external"]
    return max(carried or [b for _, b in of_side] or [b for _, _, b in uses], default=0)


def _operands(machine: Machine, space: Space) -> tuple[str, ...]:
    ends: list[Memory | End] = [*machine.memories, *machine.sources, *machine.sinks]
    return next((end.operands for end in ends if end.name == space.memory), ())


def _place(machine: Machine, memory: Memory, other: Space) -> str:
    """Where the other end lies of a memory: above, below, or beside."""
    if memory.role == "external":
        return "below"
    if other.kind != "scratchpad":
        return "above"
    for operand in memory.operands:
        chain = [level.name for level in machine.chain(machine.cores[0], operand)]
        if other.memory in chain and other.memory != memory.name:
            is_above = chain.index(other.memory) > chain.index(memory.name)
            return "above" if is_above else "below"
    return "beside"
