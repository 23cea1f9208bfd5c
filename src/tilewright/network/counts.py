"""Counting a network exactly: multiplications, bytes of weights, distinct elements touched."""

from collections.abc import Mapping
from dataclasses import replace
from math import gcd, prod

from tilewright.network.graph import Index, Network, Op
from tilewright.network.kinds import is_mac
from tilewright.network.windows import interleaved

_MAX_STEPS = 2**24


def macs(op: Op, network: Network) -> int:
    """Multiplications the op has to do; 0 for kinds that do not multiply and accumulate.

    Taps that read padding count (hardware does them, and published figures include them); points
    that land outside the output do not, and neither do those of a transposed convolution at which
    no window reaches the output.
    """
    return tile_macs(op, network, {dim: (0, size) for dim, size in op.dims})


def tile_macs(op: Op, network: Network, ranges: Mapping[str, tuple[int, int]]) -> int:
    """The multiplications of some ranges of an op's loops, counted as `macs` counts them all."""
    if not is_mac(op.kind):
        return 0
    lengths = {dim: end - begin for dim, (begin, end) in ranges.items()}
    total = prod(lengths.values())
    if not total:
        return 0
    index, shape = op.outputs[0].index, network.by_name[op.outputs[0].tensor].shape
    for axis, extent in zip(index or (), shape if index is not None else (), strict=True):
        inside = points_inside(_from_starts(axis, ranges), lengths, extent)
        total = total * inside // prod(lengths[dim] for dim, _ in axis.terms)
    for crossed in interleaved(op, network):
        inside = points_inside(_from_starts(crossed.index, ranges), lengths, crossed.size)
        total = total * inside // (lengths[crossed.loop] * lengths[crossed.tap])
    return total


def _from_starts(index: Index, ranges: Mapping[str, tuple[int, int]]) -> Index:
    """An index with loops that count from where their ranges begin."""
    first = sum(factor * ranges[dim][0] for dim, factor in index.terms)
    return replace(index, offset=index.offset + first)


def active_points(op: Op, shape: tuple[int, ...]) -> int:
    """Points of the nest that touch an element of the result, which has the given shape."""
    index = op.outputs[0].index
    if index is None:
        return op.points
    sizes = op.sizes
    total = op.points
    for axis, extent in zip(index, shape, strict=True):
        inside = points_inside(axis, sizes, extent)
        total = total * inside // prod(sizes[dim] for dim, _ in axis.terms)
    return total


def points_inside(index: Index, sizes: dict[str, int], extent: int) -> int:
    """How many combinations of the index's loops land on one of `extent` elements.

    >>> points_inside(Index((("IX", 1), ("FX", -1))), {"IX": 32, "FX": 3}, 30)
    90
    """
    combinations = prod(sizes[dim] for dim, _ in index.terms)
    low = index.offset + sum(min(0, f * (sizes[dim] - 1)) for dim, f in index.terms)
    high = index.offset + sum(max(0, f * (sizes[dim] - 1)) for dim, f in index.terms)
    if combinations == 0 or (index.divisor == 1 and low >= 0 and high < extent):
        return combinations
    longest = max(index.terms, key=lambda term: (sizes[term[0]], term))
    others = [term for term in index.terms if term != longest]
    if prod(sizes[dim] for dim, _ in others) > _MAX_STEPS:
        raise ValueError(f"the nest around index {index} is too large to be counted")
    starts = [index.offset]
    for dim, factor in others:
        starts = [start + factor * i for start in starts for i in range(sizes[dim])]
    dim, factor = longest
    return sum(_landing(start, factor, sizes[dim], extent, index.divisor) for start in starts)


def weight_bytes(network: Network) -> int:
    """Bytes of the constants that are multiplied (weights; not biases, tables or shapes)."""
    names = {
        operand.tensor
        for op in network.ops
        if is_mac(op.kind)
        for operand in op.inputs
        if operand.name in ("W", "I") and network.by_name[operand.tensor].role == "constant"
    }
    return sum(network.by_name[name].size_bytes for name in sorted(names))


def constant_bytes(network: Network) -> int:
    """Bytes of all constants that some op reads, biases included."""
    return sum(t.size_bytes for t in network.tensors if t.role == "constant")


def _landing(start: int, factor: int, count: int, extent: int, divisor: int) -> int:
    """How many i in [0, count) give a whole (start + factor·i) / divisor in [0, extent)."""
    if factor < 0:
        start, factor = start + factor * (count - 1), -factor
    common = gcd(factor, divisor)
    if start % common:
        return 0
    step = divisor // common
    first = -(start // common) * pow(factor // common, -1, step) % step
    low = max(first, -(start // factor))
    low += (first - low) % step
    end = min(count, -(-(extent * divisor - start) // factor))
    return max(0, -(-(end - low) // step))
