"""A stretch of an order as bit masks: what runs before and after it is fixed.

Op i of a region is bit i of a mask. Only tensors that the region can free or make are its values;
the bytes of all others are alive throughout and part of `start_bytes`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.program.order import OrderProblem, live_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A tensor that the region makes or may free: its maker (-1: there at the start), readers."""

    size_bytes: int
    maker: int
    readers: int
    stays: bool
    """Whether it is alive at the end of the region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Ops that may be put in another order among themselves, with the bytes each brings and ends.

    `frees` lists per op (mask of the other readers, bytes): the bytes end with the op if all the
    others are done. `overwrites` is the one such pair whose bytes the op may write over.
    """

    ops: tuple[int, ...]
    start_bytes: int
    end_bytes: int
    waits_for: tuple[int, ...]
    needed_by: tuple[int, ...]
    writes_bytes: tuple[int, ...]
    keeps_bytes: tuple[int, ...]
    frees: tuple[tuple[tuple[int, int], ...], ...]
    overwrites: tuple[tuple[int, int] | None, ...]
    values: tuple[Value, ...]


def cuts(problem: OrderProblem, order: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Half-open stretches of the order, each the same set of ops in every order there is.

    A stretch ends with an op that all earlier ones lead to and all later ones wait for: each
    earlier op has a consumer no later than it, each later op a producer no earlier.
    """
    count = len(order)
    place = {op: at for at, op in enumerate(order)}
    last_producer = [max((place[p] for p in problem.producers[op]), default=-1) for op in order]
    reach_back = [count] * (count + 1)
    for at in range(count - 1, -1, -1):
        reach_back[at] = min(reach_back[at + 1], last_producer[at])
    start, reach = 0, -1
    for at, op in enumerate(order):
        if reach <= at <= reach_back[at + 1]:
            yield start, at + 1
            start = at + 1
        reach = max(reach, min((place[c] for c in problem.consumers[op]), default=count))
    if start < count:
        yield start, count


def region_of(problem: OrderProblem, order: Sequence[int], start: int, end: int) -> Region:
    """The ops at places start to end of the order, everything else staying where it is."""
    ops = tuple(order[start:end])
    local = {op: number for number, op in enumerate(ops)}
    earlier = set(order[:start])
    values = {
        tensor: _value(problem, tensor, local, earlier)
        for op in ops
        for tensor in (*problem.ops[op].reads, *problem.ops[op].writes)
    }
    written = [sum(problem.sizes_bytes[t] for t in problem.ops[op].writes) for op in ops]
    kept = [
        sum(
            values[t].size_bytes
            for t in problem.ops[op].writes
            if values[t].readers or values[t].stays
        )
        for op in ops
    ]
    *_, (begin, _) = live_bytes(problem, order[: start + 1])
    ended = sum(v.size_bytes for v in values.values() if v.maker < 0 and not v.stays)
    stayed = sum(v.size_bytes for v in values.values() if v.maker >= 0 and v.stays)
    return Region(
        ops=ops,
        start_bytes=begin,
        end_bytes=begin - ended + stayed,
        waits_for=tuple(_mask(local, problem.producers[op]) for op in ops),
        needed_by=tuple(_mask(local, problem.consumers[op]) for op in ops),
        writes_bytes=tuple(written),
        keeps_bytes=tuple(kept),
        frees=tuple(
            tuple(
                (values[t].readers & ~(1 << number), values[t].size_bytes)
                for t in problem.ops[op].reads
                if not values[t].stays
            )
            for number, op in enumerate(ops)
        ),
        overwrites=tuple(
            _overwrite(values.get(problem.overwritable[op]), number)
            for number, op in enumerate(ops)
        ),
        values=tuple(values.values()),
    )


def _value(problem: OrderProblem, tensor: int, local: dict[int, int], earlier: set[int]) -> Value:
    readers = problem.readers[tensor]
    return Value(
        size_bytes=problem.sizes_bytes[tensor],
        maker=local.get(problem.makers[tensor], -1),
        readers=_mask(local, readers),
        stays=problem.outlives[tensor]
        or any(reader not in local and reader not in earlier for reader in readers),
    )


def _overwrite(value: Value | None, number: int) -> tuple[int, int] | None:
    if value is None or value.stays:
        return None
    return value.readers & ~(1 << number), value.size_bytes


def _mask(local: dict[int, int], ops: Sequence[int]) -> int:
    mask = 0
    for op in ops:
        if op in local:
            mask |= 1 << local[op]
    return mask


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, lowest first.

    >>> list(bits(0b10110))
    [1, 2, 4]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def floor_bytes(region: Region) -> int:
    """Bytes that every order of the region needs: the largest sum that no order can avoid.

    While an op runs, at least those tensors are alive that were made before it in every order and
    are read by it or, in every order, after it.
    """
    count = len(region.ops)
    before, after = _closures(region)
    everywhere = (1 << count) - 1
    held = region.start_bytes - sum(v.size_bytes for v in region.values if v.maker < 0)
    during = np.full(count, held, dtype=np.int64)
    for value in region.values:
        made = everywhere if value.maker < 0 else after[value.maker]
        used = everywhere if value.stays else 0
        for reader in bits(value.readers):
            used |= before[reader] | 1 << reader
        octets = (made & used).to_bytes(-(-count // 8), "little")
        alive = np.unpackbits(np.frombuffer(octets, np.uint8), count=count, bitorder="little")
        during += alive.astype(np.int64) * value.size_bytes
    for number, overwrite in enumerate(region.overwrites):
        during[number] += region.writes_bytes[number]
        if overwrite is not None and not overwrite[0] & after[number]:
            during[number] -= overwrite[1]
    return int(during.max(initial=0))


def _closures(region: Region) -> tuple[list[int], list[int]]:
    """Per op, all that must run before it and all that must run after it."""
    count = len(region.ops)
    before, after = [0] * count, [0] * count
    for number in range(count):
        for producer in bits(region.waits_for[number]):
            before[number] |= before[producer] | 1 << producer
    for number in range(count - 1, -1, -1):
        for consumer in bits(region.needed_by[number]):
            after[number] |= after[consumer] | 1 << consumer
    return before, after
