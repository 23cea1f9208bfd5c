"""The port of a memory over which a transfer goes, by what lies at the other end of its way."""

from collections.abc import Collection

from tilewright.machine.model import Direction, End, Machine, Memory, Port

READ: tuple[Direction, ...] = ("tl", "th")
WRITE: tuple[Direction, ...] = ("fh", "fl")


def widest_port(
    memory: Memory, directions: tuple[Direction, ...], operands: Collection[str] | None = None
) -> Port | None:
    """The widest port for one of some directions, of some operands or of whatever operand."""
    found = [
        port
        for port in memory.ports
        if any(use in directions and (operands is None or o in operands) for o, use in port.uses)
    ]
    return max(found, key=lambda port: port.bits_per_cycle, default=None)


def outer_port(memory: Memory, *, reads: bool) -> Port | None:
    """The port of an external memory over which transfers go: all that they reach lies below."""
    beside: Direction = "tl" if reads else "fl"
    return widest_port(memory, (beside,)) or widest_port(memory, READ if reads else WRITE)


def transfer_port(
    machine: Machine, memory: Memory, other: Memory | End, *, reads: bool
) -> Port | None:
    """The widest port of a memory for the side on which the other end of a way lies.

    It serves an operand that both ends hold; if none does, any operand; and only if no port has
    that side, the other one. Memories of which neither stands above the other have both sides.
    """
    if memory.role == "external":
        return outer_port(memory, reads=reads)
    either = READ if reads else WRITE
    is_above = _stands_above(machine, other, memory)
    if is_above is None:
        return widest_port(memory, either)
    side: Direction = ("th" if is_above else "tl") if reads else ("fh" if is_above else "fl")
    shared = [operand for operand in memory.operands if operand in other.operands]
    return (
        widest_port(memory, (side,), shared)
        or widest_port(memory, (side,))
        or widest_port(memory, either)
    )


def _stands_above(machine: Machine, other: Memory | End, memory: Memory) -> bool | None:
    """Whether one end of a way stands above the other; None: they stand side by side."""
    if isinstance(other, End) or other.role == "external":
        return True
    if other.name == memory.name or not set(other.operands) & set(memory.operands):
        return None
    names = [level.name for level in machine.levels(machine.cores[0])]
    return names.index(other.name) > names.index(memory.name)
