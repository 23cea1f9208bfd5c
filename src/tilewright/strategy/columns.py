"""Columns: which columns of every tensor of a stretch of ops it takes to make some of the last one.

The columns of a tensor lie along one axis. To make a column, an op reads a window of columns of its
inputs; what has nothing to do with columns, such as weights, it reads as a whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.network.graph import Network, Op
from tilewright.network.kinds import KIND_CLASSES
from tilewright.program.rows import may_wait, reduced_loop
from tilewright.program.tile import tileable

WIDTH = "OX"
"""The loop over the columns of what a window slides over."""

KEEP_SHAPE = frozenset(("identity", "concat", "slice", "pad", "gather"))
"""Ops which move data, but not from one axis to another."""

Columns = tuple[int, int]
"""Columns [start, stop)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """An input of which columns (factor × c + low) / divisor to (factor × c + high) / divisor are
    read to make column c."""

    operand: int
    tensor: str
    axis: int
    factor: int
    low: int
    high: int
    divisor: int
    size: int

    def columns(self, start: int, stop: int) -> Columns:
        """The columns that are read to make some, padding left out."""
        first = -(-(self.factor * start + self.low) // self.divisor)
        last = (self.factor * (stop - 1) + self.high) // self.divisor
        return max(first, 0), min(last + 1, self.size)


@dataclass(frozen=True, slots=True)
class Walk:
    """How an op goes through columns: the loop over those of its result, and what it reads."""

    op: Op
    loop: str
    reaches: tuple[Reach, ...]
    constants: tuple[tuple[int, int, int], ...] = ()
    """Constants that have to do with columns: the operand, the axis, and steps for each column."""

    @property
    def result(self) -> str:
        """The only tensor that the op makes."""
        return self.op.outputs[0].tensor


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Ops that follow each other, the last of which makes all that is wanted of them."""

    network: Network
    walks: tuple[Walk, ...]
    axes: Mapping[str, int]
    """By tensor that is read or made column by column, the axis of its columns."""
    reduces: bool = False
    """Whether the last result is made of all columns of another tensor, one strip adding to what
    the strip before it has left."""

    @property
    def result(self) -> str:
        """What the last op makes."""
        return self.walks[-1].result

    @property
    def cut(self) -> str:
        """The tensor whose columns are shared out: the last result, or what that is made of."""
        return self.walks[-1].reaches[0].tensor if self.reduces else self.result

    @property
    def columns(self) -> int:
        """How many columns there are to share out."""
        return self.network.by_name[self.cut].shape[self.axes[self.cut]]

    def needed(self, start: int, stop: int) -> dict[str, Columns] | None:
        """The columns of each tensor that it takes to make some of the last result, or to add some
        to it.

        None if for some op there are none: all that it reads is padding.
        """
        found = {self.result: (start, stop)}
        for walk in reversed(self.walks):
            for reach in walk.reaches:
                first, last = reach.columns(*found[walk.result])
                if first >= last:
                    return None
                known = found.get(reach.tensor, (first, last))
                found[reach.tensor] = min(known[0], first), max(known[1], last)
        return found


def stretch_of(network: Network, ops: Sequence[Op]) -> Stretch | None:
    """Ops in their order, as they go through the columns of the last one's result, or of what that
    is made of.

    None if they cannot: one makes something else as well, or there is no such axis, or no window
    slides along it.
    """
    if any(len(op.outputs) != 1 for op in ops):
        return None
    last = ops[-1]
    axes = range(len(network.by_name[last.outputs[0].tensor].shape))
    found = [_along(network, ops, axis, _column_loop(last, axis)) for axis in axes]
    if may_wait(network, last):
        read = range(len(network.by_name[last.inputs[0].tensor].shape))
        loops = [reduced_loop(last, ~axis) for axis in read]
        found += [_along(network, ops, axis, loops[axis], reduces=True) for axis in read]
    for stretch in found:
        if stretch is not None and any(walk.loop == WIDTH for walk in stretch.walks):
            return stretch
    return None


def _along(
    network: Network, ops: Sequence[Op], axis: int, loop: str | None, *, reduces: bool = False
) -> Stretch | None:
    """Ops as they go through an axis of the last one's result along a loop of that one; or, if it
    reduces, of what that one reads first.

    None if they cannot, or one reads all of what another one makes.
    """
    made = {op.outputs[0].tensor for op in ops}
    last = ops[-1].outputs[0].tensor
    axes = {last: axis}
    walks: list[Walk] = []
    for op in reversed(ops):
        result = op.outputs[0].tensor
        if result not in axes:
            return None
        walk = _walk(network, op, loop if result == last else _column_loop(op, axes[result]))
        if walk is None:
            return None
        read = [reach.tensor for reach in walk.reaches]
        if any(o.tensor in made and o.tensor not in read for o in op.inputs):
            return None
        for reach in walk.reaches:
            if axes.setdefault(reach.tensor, reach.axis) != reach.axis:
                return None
        walks.append(walk)
    if reduces:
        del axes[last]
    return Stretch(network=network, walks=tuple(reversed(walks)), axes=axes, reduces=reduces)


def _walk(network: Network, op: Op, loop: str | None) -> Walk | None:
    """How an op goes through columns along a loop; None if it cannot."""
    if loop is None or (KIND_CLASSES[op.kind] == "move" and op.kind not in KEEP_SHAPE):
        return None
    reaches: list[Reach] = []
    constants: list[tuple[int, int, int]] = []
    for number, operand in enumerate(op.inputs):
        walked = [at for at, index in enumerate(operand.index or ()) if loop in dict(index.terms)]
        if not walked:
            continue
        reach = _reach(network, op, number, loop, walked[0]) if len(walked) == 1 else None
        if reach is None or reach.factor <= 0:
            return None
        if network.by_name[operand.tensor].role == "constant":
            constants.append((number, reach.axis, reach.factor))
        else:
            reaches.append(reach)
    return Walk(op, loop, tuple(reaches), tuple(constants))


def _column_loop(op: Op, axis: int) -> str | None:
    """The loop that alone walks an axis of an op's result, one column at a time."""
    index = op.outputs[0].index
    if index is None:
        return None
    # A loop of one step moves nothing: the channels of a depthwise convolution are K of G.
    terms = [term for term in index[axis].terms if op.sizes[term[0]] > 1]
    if len(terms) != 1 or index[axis].offset or index[axis].divisor > 1:
        return None
    loop, factor = terms[0]
    weights, rest, _ = tileable(op)
    return loop if factor == 1 and loop in (*weights, *rest) else None


def _reach(network: Network, op: Op, number: int, loop: str, axis: int) -> Reach:
    operand = op.inputs[number]
    index = (operand.index or ())[axis]
    spans = [factor * (op.sizes[dim] - 1) for dim, factor in index.terms if dim != loop]
    return Reach(
        operand=number,
        tensor=operand.tensor,
        axis=axis,
        factor=dict(index.terms)[loop],
        low=index.offset + sum(min(0, span) for span in spans),
        high=index.offset + index.reach + sum(max(0, span) for span in spans),
        divisor=index.divisor,
        size=network.by_name[operand.tensor].shape[axis],
    )
