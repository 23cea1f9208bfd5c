"""Loops within another loop of the same axis: the kernels within the groups of a convolution.

Where a tile has a single group, tiles of its kernels are boxes of the result too.
"""

from collections.abc import Iterable, Mapping

from tilewright.network.graph import Index, Op, Operand


def nested(op: Op) -> dict[str, str]:
    """Loops that walk the weights but not the data, each with the loop that goes around it."""
    if len(op.outputs) != 1 or op.outputs[0].index is None:
        return {}
    sizes, axes = op.sizes, op.outputs[0].index
    found: dict[str, str] = {}
    for number, axis in enumerate(axes):
        pair = _pair(axis, sizes)
        others = _loops(other for at, other in enumerate(axes) if at != number)
        if pair is not None and not any(dim in others or dim in op.coupled for dim in pair):
            inner, outer = pair
            if inner in _walked(op, "W") and inner not in _walked(op, "I"):
                found[inner] = outer
    return found


def one_box(lengths: Mapping[str, int], op: Op) -> bool:
    """Whether nested loops are cut only where the loops around them take one step in a tile."""
    return all(
        lengths[inner] == op.sizes[inner] or lengths[outer] == 1
        for inner, outer in nested(op).items()
    )


def _pair(axis: Index, sizes: Mapping[str, int]) -> tuple[str, str] | None:
    """The inner and the outer loop of an axis that has two, one going on where the other ends."""
    terms = sorted((factor, dim) for dim, factor in axis.terms if sizes[dim] > 1)
    if len(terms) != 2 or axis.divisor != 1 or axis.reach:
        return None
    (short, inner), (long, outer) = terms
    return (inner, outer) if short == 1 and sizes[inner] <= long else None


def _walked(op: Op, name: str) -> dict[str, None]:
    operands: list[Operand] = [o for o in op.inputs if o.name == name]
    return _loops(axis for operand in operands for axis in operand.index or ())


def _loops(axes: Iterable[Index]) -> dict[str, None]:
    return {dim: None for axis in axes for dim, _ in axis.terms}
