"""Loop nests of the ops that readers meet: dims, indices and the result's shape.

Every function is pure arithmetic on shapes and raises ValueError, in words fit for a user, when the
shapes do not go together. Readers add names, tensors and precisions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from math import prod

from tilewright.network.graph import Index

Shape = tuple[int, ...]
Indices = tuple[Index, ...]

SPATIAL = ("W", "V", "U", "Z", "Y", "X")
"""Letters of the spatial axes; the last is the fastest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """Dims and indices of one op before it has tensors; `inputs` in the order of the op's."""

    dims: tuple[tuple[str, int], ...]
    shape: Shape
    output: Indices | None
    inputs: tuple[Indices | None, ...]
    coupled: tuple[str, ...] = ()


def matmul(
    left: Shape, right: Shape, *, transpose_left: bool = False, transpose_right: bool = False
) -> Nest:
    """A matrix product with NumPy's rules for batch axes and for vectors."""
    if not left or not right:
        raise ValueError("a scalar is no matrix")
    rows, row_label = (left[:-2], "DC") if len(left) > 1 else ((), "C")
    cols, col_label = (right[:-2], "CK") if len(right) > 1 else ((), "C")
    row_label = row_label[::-1] if transpose_left else row_label
    col_label = col_label[::-1] if transpose_right else col_label
    batch = broadcast(rows, cols)
    labels = _batch_labels(len(batch))
    result = labels + (["D"] if len(left) > 1 else []) + (["K"] if len(right) > 1 else [])
    left_labels = labels[len(labels) - len(rows) :] + list(row_label)
    right_labels = labels[len(labels) - len(cols) :] + list(col_label)
    return contraction(left, left_labels, right, right_labels, result)


def einsum(equation: str, left: Shape, right: Shape) -> Nest:
    """A two-operand einsum; labels become B (in all), D (left), K (right) and C (summed)."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    letters = "".join(terms) + output
    if len(terms) != 2 or not letters.isalpha() or not letters.isascii():
        raise ValueError(f"equation {equation!r}: two operands with letters only are needed")
    if not arrow:
        output = "".join(sorted(c for c in set("".join(terms)) if "".join(terms).count(c) == 1))
    if any(len(set(t)) != len(t) for t in (*terms, output)):
        raise ValueError(f"equation {equation!r}: a label repeats within one operand")
    names: dict[str, str] = {}
    for letter in dict.fromkeys("".join(terms)):
        in_left, in_right = letter in terms[0], letter in terms[1]
        group = (
            ("B" if in_left and in_right else "D" if in_left else "K") if letter in output else "C"
        )
        count = sum(name[0] == group for name in names.values())
        names[letter] = group if count == 0 else f"{group}{count + 1}"
    if any(letter not in names for letter in output):
        raise ValueError(f"equation {equation!r}: the result has a label that no operand has")
    left_labels, right_labels, result = ([names[c] for c in t] for t in (*terms, output))
    return contraction(left, left_labels, right, right_labels, result)


def contraction(
    left: Shape,
    left_labels: Sequence[str],
    right: Shape,
    right_labels: Sequence[str],
    result: Sequence[str],
) -> Nest:
    """Σ over the labels that the result lacks; an axis of size 1 is broadcast."""
    sizes: dict[str, int] = {}
    for shape, labels in ((left, left_labels), (right, right_labels)):
        if len(shape) != len(labels):
            raise ValueError(f"{len(labels)} labels for an operand of shape {shape}")
        for label, size in zip(labels, shape, strict=True):
            known = sizes.get(label, 1)
            if 1 not in (known, size) and known != size:
                raise ValueError(f"shapes {left} and {right} do not agree: {known} against {size}")
            sizes[label] = size if known == 1 else known
    order = [*result, *(label for label in sizes if label not in result)]

    def indices(shape: Shape, labels: Sequence[str]) -> Indices:
        return tuple(
            Index(()) if size == 1 and sizes[label] != 1 else Index(((label, 1),))
            for label, size in zip(labels, shape, strict=True)
        )

    return Nest(
        dims=tuple((label, sizes[label]) for label in order),
        shape=tuple(sizes[label] for label in result),
        output=tuple(Index(((label, 1),)) for label in result),
        inputs=(indices(left, left_labels), indices(right, right_labels)),
    )


def elementwise(*shapes: Shape, channels_last: bool = False) -> Nest:
    """One result element from the matching element of each input, with NumPy's broadcasting."""
    shape = broadcast(*shapes)
    names = axis_names(len(shape), channels_last=channels_last)
    return Nest(
        dims=tuple(zip(names, shape, strict=True)),
        shape=shape,
        output=tuple(along_dim(name) for name in names),
        inputs=tuple(_broadcast_index(s, shape, names) for s in shapes),
    )


def along(data: Shape, axes: Sequence[int], *others: Shape, channels_last: bool = False) -> Nest:
    """Element by element, but each result depends on all elements along `axes` (softmax, norms)."""
    names = axis_names(len(data), channels_last=channels_last)
    nest = elementwise(data, *others, channels_last=channels_last)
    if nest.shape != data:
        raise ValueError(f"parameters of shapes {others} do not broadcast into {data}")
    coupled = tuple(names[normal_axis(a, len(data))] for a in axes)
    return Nest(dims=nest.dims, shape=data, output=nest.output, inputs=nest.inputs, coupled=coupled)


def reduce(
    data: Shape, axes: Sequence[int], *, keep_dims: bool, channels_last: bool = False
) -> Nest:
    """One result for all elements along `axes`."""
    names = axis_names(len(data), channels_last=channels_last)
    reduced = {normal_axis(a, len(data)) for a in axes}
    kept = [i for i in range(len(data)) if keep_dims or i not in reduced]
    return Nest(
        dims=tuple(zip(names, data, strict=True)),
        shape=tuple(1 if i in reduced else data[i] for i in kept),
        output=tuple(Index(()) if i in reduced else Index(((names[i], 1),)) for i in kept),
        inputs=(tuple(along_dim(name) for name in names),),
    )


def moved(shape: Shape, *inputs: Indices | None, channels_last: bool = False) -> Nest:
    """Data movement: a nest over the result, with the given index into each input.

    Indices use the names of `axis_names`; None where no affine index says what is read.
    """
    names = axis_names(len(shape), channels_last=channels_last)
    return Nest(
        dims=tuple(zip(names, shape, strict=True)),
        shape=shape,
        output=tuple(along_dim(name) for name in names),
        inputs=inputs,
    )


@lru_cache(maxsize=1024)
def along_dim(name: str) -> Index:
    """The index that runs along one dim; the same object every time, since networks hold many."""
    return Index(((name, 1),))


def anywhere_along(size: int) -> Index:
    """The index into an axis of so many elements where any point may touch any of them."""
    return Index((), reach=max(0, size - 1))


def with_search_loops(nest: Nest) -> Nest:
    """A look-up with a loop S… through every axis of its table (input 0) that it searches.

    With such a loop a part of the table can be looked at after the other.
    """
    table, *others = nest.inputs
    if table is None:
        return nest
    loops = {axis: f"S{axis}" for axis, index in enumerate(table) if index.reach}
    return replace(
        nest,
        dims=(*nest.dims, *((loop, table[axis].reach + 1) for axis, loop in loops.items())),
        inputs=(
            tuple(
                along_dim(loops[axis]) if axis in loops else index
                for axis, index in enumerate(table)
            ),
            *others,
        ),
    )


def axis_names(rank: int, *, channels_last: bool = False) -> tuple[str, ...]:
    """Dim names for the axes of a tensor that is only walked over.

    >>> axis_names(4), axis_names(4, channels_last=True), axis_names(2)
    (('B', 'G', 'OY', 'OX'), ('B', 'OY', 'OX', 'G'), ('D', 'K'))
    """
    if rank <= 3:
        return ("B", "D", "K")[3 - rank :]
    spatial = tuple(f"O{n}" for n in SPATIAL[-(rank - 2) :]) if rank <= 8 else ()
    if not spatial:
        return tuple(f"A{i}" for i in range(rank))
    return ("B", *spatial, "G") if channels_last else ("B", "G", *spatial)


def broadcast(*shapes: Shape) -> Shape:
    """The common shape under NumPy's rules.

    >>> broadcast((4, 1, 3), (2, 1))
    (4, 2, 3)
    """
    result: list[int] = []
    for sizes in zip_longest(*(s[::-1] for s in shapes), fillvalue=1):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            raise ValueError(f"shapes {' and '.join(map(str, shapes))} do not broadcast")
        result.append(wide.pop() if wide else 1)
    return tuple(result[::-1])


def normal_axis(axis: int, rank: int) -> int:
    """The axis counted from the front; negative ones count from the back."""
    if not -rank <= axis < max(rank, 1):
        raise ValueError(f"axis {axis} of a tensor with {rank} axes")
    return axis + rank if axis < 0 else axis


def reshaped(
    elements: int, wanted: Sequence[int], data: Shape, *, zero_copies: bool = True
) -> Shape:
    """The shape a reshape asks for: -1 is what is left, 0 (if `zero_copies`) the input's axis."""
    sizes = list(wanted)
    for i, size in enumerate(sizes):
        if size == 0 and zero_copies:
            if i >= len(data):
                raise ValueError(f"shape {tuple(wanted)} copies axis {i} of {data}, which it lacks")
            sizes[i] = data[i]
    if any(size < -1 for size in sizes) or sizes.count(-1) > 1:
        raise ValueError(f"shape {tuple(wanted)} is not possible")
    rest = prod(size for size in sizes if size != -1)
    if -1 in sizes and rest and elements % rest == 0:
        sizes[sizes.index(-1)] = elements // rest
    if -1 in sizes or prod(sizes) != elements:
        raise ValueError(f"{elements} elements of {data} do not make {tuple(wanted)}")
    return tuple(sizes)


def _batch_labels(count: int) -> list[str]:
    return (["B", "H"] + [f"B{i}" for i in range(3, count + 1)])[:count]


def _broadcast_index(shape: Shape, result: Shape, names: tuple[str, ...]) -> Indices:
    own, sizes = names[len(names) - len(shape) :], result[len(result) - len(shape) :]
    return tuple(
        Index(()) if size == 1 and full != 1 else along_dim(name)
        for name, size, full in zip(own, shape, sizes, strict=True)
    )
