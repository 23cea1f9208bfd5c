"""Checks a placement by looking at every pair of buffers; shares nothing with what places them."""

from collections.abc import Iterator, Mapping

from tilewright.errors import Problem
from tilewright.placement.problem import Buffer, PlacementProblem


def violations(problem: PlacementProblem, address_of: Mapping[str, int]) -> Iterator[Problem]:
    """Every rule that the addresses break; nothing yielded means that they are right."""
    for buffer in problem.buffers:
        yield from _alone(buffer, address_of[buffer.name], problem.capacity_bytes)
    group_of = {name: number for number, group in enumerate(problem.groups) for name in group}
    for position, second in enumerate(problem.buffers):
        for first in problem.buffers[:position]:
            low, high = address_of[first.name], address_of[second.name]
            if first.name in group_of and group_of[first.name] == group_of.get(second.name):
                if low != high:
                    yield Problem(
                        message=f"{first.name} at {low} and {second.name} at {high} "
                        "belong to one group and must have one address"
                    )
                continue
            begin = max(low, high)
            end = min(low + first.size_bytes, high + second.size_bytes)
            if begin < end:
                yield from _clash(first, second, begin, end)


def _alone(buffer: Buffer, address: int, capacity_bytes: int | None) -> Iterator[Problem]:
    end = address + buffer.size_bytes
    if address < 0:
        yield Problem(message=f"{buffer.name}: its address {address} is negative")
    if address % buffer.alignment_bytes != 0:
        yield Problem(
            message=f"{buffer.name}: its address {address} is no multiple "
            f"of its alignment {buffer.alignment_bytes}"
        )
    if buffer.address is not None and buffer.address != address:
        yield Problem(message=f"{buffer.name}: lies at {address} and is fixed at {buffer.address}")
    if capacity_bytes is not None and end > capacity_bytes:
        yield Problem(
            message=f"{buffer.name}: ends at {end}, {end - capacity_bytes} B beyond the capacity"
        )


def _clash(first: Buffer, second: Buffer, begin: int, end: int) -> Iterator[Problem]:
    for start, stop in first.lives:
        for other_start, other_stop in second.lives:
            from_cycle, to_cycle = max(start, other_start), min(stop, other_stop)
            if from_cycle < to_cycle:
                yield Problem(
                    message=f"{first.name} and {second.name} both hold bytes [{begin}, {end}) "
                    f"in cycles [{from_cycle}, {to_cycle})"
                )
