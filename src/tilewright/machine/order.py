"""Memories in the wrong order in their file, which says which one is next to the array."""

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.errors import InfeasibleError, Problem
from tilewright.machine.model import Core, Machine, Memory, bottom_up, inversions
from tilewright.units import format_bits


def listed_top_down(machine: Machine, core: Core) -> tuple[Memory, Memory, str] | None:
    """Two memories of a core of which the lower is the larger, and what that means."""
    found = next(inversions(machine.levels(core)), None)
    if found is None:
        return None
    lower, upper, operand = found
    text = (
        f"memories are listed top-down: {lower.name} ({format_bits(lower.size_bits)}) stands "
        f"below {upper.name} ({format_bits(upper.size_bits)}) on the way of {operand}, and the "
        "first listed is taken as the one next to the array"
    )
    return lower, upper, text


@contextmanager
def order_named(machine: Machine) -> Iterator[None]:
    """Let every refusal begin with the order of memories, if that is what looks wrong."""
    try:
        yield
    except InfeasibleError as refusal:
        core = machine.cores[0]
        found = listed_top_down(machine, core)
        if found is None or any(found[2] == problem.message for problem in refusal.problems):
            raise
        right = ", ".join(memory.name for memory in bottom_up(machine.levels(core)))
        first = Problem(message=found[2], hint=f"write memories in the order: {right}")
        raise InfeasibleError(first, *refusal.problems) from None
