"""The placement problem: buffers with lives and sizes, and what a solution says about them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.errors import InputError, Problem
from tilewright.records import quickly_made

Life = tuple[int, int]
"""A half-open interval of cycles."""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """Bytes that stay put while alive; between two lives other buffers may use the place.

    `address` is where it must lie; `hint` is where it would like to lie.
    """

    name: str
    lives: tuple[Life, ...]
    size_bytes: int
    alignment_bytes: int = 1
    address: int | None = None
    hint: int | None = None
    memory: str = ""

    def __post_init__(self) -> None:
        if not _are_in_order(self.lives):
            raise ValueError(f"{self.name}: lives must be non-empty, in order and apart")
        if self.size_bytes < 0 or self.alignment_bytes < 1:
            raise ValueError(f"{self.name}: {self.size_bytes} bytes on {self.alignment_bytes}")
        if self.address is not None and (
            self.address < 0 or self.address % self.alignment_bytes != 0
        ):
            raise ValueError(f"{self.name}: address {self.address} is negative or not aligned")

    @property
    def start_cycle(self) -> int:
        """The first cycle of its first life."""
        return self.lives[0][0]

    @property
    def end_cycle(self) -> int:
        """The cycle after its last life."""
        return self.lives[-1][1]


def _are_in_order(lives: Sequence[Life]) -> bool:
    """Whether there are lives, none empty, and each after the one before."""
    # Nearly all buffers have one life, and there are thousands of them.
    if len(lives) == 1:
        return lives[0][0] < lives[0][1]
    ends = [bound for life in lives for bound in life]
    return bool(ends) and all(start < end for start, end in lives) and ends == sorted(ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementProblem:
    """Buffers of one memory; without a capacity the smallest peak is wanted.

    Each group names buffers that share one place: results written over their inputs, views.
    """

    buffers: tuple[Buffer, ...]
    capacity_bytes: int | None = None
    groups: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        names = [buffer.name for buffer in self.buffers]
        if len(set(names)) < len(names):
            raise ValueError("two buffers have the same name")
        grouped = [name for group in self.groups for name in group]
        if len(set(grouped)) < len(grouped) or not set(grouped) <= set(names):
            raise ValueError("a group names an unknown buffer, or two groups the same one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """An address for every buffer, and what is known about how good that is.

    `bound_bytes` is a peak that no placement can go below; `method` found the placement.
    """

    problem: PlacementProblem
    addresses: tuple[int, ...]
    bound_bytes: int
    method: str
    nodes: int = 0

    @property
    def peak_bytes(self) -> int:
        """The highest end of any buffer."""
        pairs = zip(self.problem.buffers, self.addresses, strict=True)
        return max((address + buffer.size_bytes for buffer, address in pairs), default=0)

    @property
    def proven(self) -> bool:
        """Whether no placement has a lower peak."""
        return self.peak_bytes == self.bound_bytes

    @property
    def fits(self) -> bool:
        """Whether the placement stays within the capacity, if there is one."""
        capacity = self.problem.capacity_bytes
        return capacity is None or self.peak_bytes <= capacity

    @property
    def impossible(self) -> bool:
        """Whether no placement at all stays within the capacity."""
        capacity = self.problem.capacity_bytes
        return capacity is not None and self.bound_bytes > capacity

    def address_of(self) -> dict[str, int]:
        """Every buffer's address by its name."""
        names = (buffer.name for buffer in self.problem.buffers)
        return dict(zip(names, self.addresses, strict=True))


def in_one_memory(
    buffers: Sequence[Buffer], capacities: Mapping[str, int]
) -> dict[str, PlacementProblem]:
    """One problem for each memory that a buffer names; no capacity means the smallest."""
    memories = sorted({buffer.memory for buffer in buffers})
    return {
        memory: PlacementProblem(
            buffers=tuple(buffer for buffer in buffers if buffer.memory == memory),
            capacity_bytes=capacities.get(memory),
        )
        for memory in memories
    }


def without_groups(problem: PlacementProblem) -> tuple[PlacementProblem, tuple[int, ...]]:
    """The problem with one buffer for each group, and which of its buffers stands for each."""
    if not problem.groups:
        return problem, tuple(range(len(problem.buffers)))
    leader = {name: group[0] for group in problem.groups for name in group}
    members: dict[str, list[Buffer]] = {}
    for buffer in problem.buffers:
        members.setdefault(leader.get(buffer.name, buffer.name), []).append(buffer)
    index = {name: position for position, name in enumerate(members)}
    merged = tuple(_merged(name, parts) for name, parts in members.items())
    stands_for = tuple(index[leader.get(b.name, b.name)] for b in problem.buffers)
    return replace(problem, buffers=merged, groups=()), stands_for


def _merged(name: str, parts: Sequence[Buffer]) -> Buffer:
    if len(parts) == 1:
        return parts[0]
    fixed = sorted({part.address for part in parts if part.address is not None})
    if len(fixed) > 1:
        message = f"{name}: a group of buffers is fixed at two addresses, {fixed[0]} and {fixed[1]}"
        raise InputError(Problem(message=message, hint="fix one of them, or take them apart"))
    hints = [part.hint for part in parts if part.hint is not None]
    return replace(
        parts[0],
        name=name,
        lives=_union([life for part in parts for life in part.lives]),
        size_bytes=max(part.size_bytes for part in parts),
        alignment_bytes=math.lcm(*(part.alignment_bytes for part in parts)),
        address=fixed[0] if fixed else None,
        hint=hints[0] if hints else None,
    )


def _union(lives: Sequence[Life]) -> tuple[Life, ...]:
    result: list[Life] = []
    for start, end in sorted(lives):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return tuple(result)


def fixed_clashes(problem: PlacementProblem) -> Iterator[Problem]:
    """Every pair of buffers whose fixed addresses cannot both hold."""
    fixed = [b for b in problem.buffers if b.address is not None and b.size_bytes]
    fixed.sort(key=lambda b: (b.address, b.name))
    for position, first in enumerate(fixed):
        for second in fixed[position + 1 :]:
            first_end = (first.address or 0) + first.size_bytes
            if (second.address or 0) >= first_end:
                break
            if meet(first, second):
                message = (
                    f"{first.name} and {second.name} are alive together, "
                    f"and their fixed addresses {first.address} and {second.address} overlap"
                )
                yield Problem(message=message, hint="move one of them, or let it be placed")


def meet(first: Buffer, second: Buffer) -> bool:
    """Whether two buffers are alive in a common cycle."""
    if first.end_cycle <= second.start_cycle or second.end_cycle <= first.start_cycle:
        return False
    return any(
        start < other_end and other_start < end
        for start, end in first.lives
        for other_start, other_end in second.lives
    )
