"""Rows: how the rows of a stage's result depend on rows of what it reads.

Rows are positions along one axis of a tensor; to make a row, a stage reads a window of rows of each
of its inputs, or, where the axis has nothing to do with the input, all of it.

Some results are made of all rows of what is read. A pool over everything keeps the axes of what it
reads; a look-up has others, so that stages that end in one go along `~axis`: an axis of its table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tilewright.network.graph import Network, Op, Operand
from tilewright.program.boxes import meet, shifted, whole
from tilewright.program.model import Box
from tilewright.program.stages import Stage, Storage
from tilewright.records import quickly_made

POOLS = ("average_pool", "max_pool")
PICKS = ("gather", "arg_max", "arg_min")

REDUCING_KINDS = (*POOLS, *PICKS)
"""Kinds of ops whose result can be made of some rows after the other: sums, or the largest, what a
look-up has found so far, or the best and its place."""

SUM_BITS = 32
"""Of the sums that means are made of."""

BEST_BITS = 64
"""Of the best so far, one half, and of its place, the other."""

MOST_COMPARED_BITS = 16
"""Of numbers that are compared for the best."""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class RowRead:
    """Rows of a tensor that a stage reads, as a function of the rows that it makes.

    To make row r it reads rows (factor × r + low) / divisor to (factor × r + high) / divisor.
    """

    tensor: str
    root: str
    axis: int
    factor: int
    low: int
    high: int
    divisor: int
    size: int

    def rows(self, start: int, stop: int) -> tuple[int, int]:
        """The rows that it takes to make rows [start, stop), padding left out."""
        if start >= stop:
            return self.size, self.size
        first = -(-(self.factor * start + self.low) // self.divisor)
        last = (self.factor * (stop - 1) + self.high) // self.divisor
        first = min(max(first, 0), self.size)
        return first, max(first, min(last + 1, self.size))


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class StageRows:
    """The loop of a stage that walks the rows of its result, and what it reads for them."""

    root: str
    axis: int
    loop: str
    size: int
    reads: tuple[RowRead, ...]
    wholes: tuple[str, ...]
    """Tensors that are read as a whole for every row."""
    reduces: bool = False
    """Whether rows are those of what the stage reads, and its result is made of all of them."""


@dataclass
class Rows:
    """The rows of all stages, looked up once for every axis."""

    network: Network
    stages: Sequence[Stage]
    storage: Mapping[str, Storage]
    remembered: dict[tuple[int, int, int], object] = field(default_factory=dict)
    """What others work out about stages that go together: it is the same whatever the sizes of
    scratchpads, for which these rows are looked at again and again."""
    slicings: dict[tuple[int, ...], object] = field(default_factory=dict)
    """How results are made in slices, by the stage that makes one and the axes along which all
    who touch it go."""
    _found: dict[tuple[int, int], StageRows | None] = field(default_factory=dict)
    _makes: dict[tuple[int, str], bool] = field(default_factory=dict)

    def linked(self, first: int, last: int, axis: int) -> dict[int, StageRows] | None:
        """The rows of stages that go through one axis together, from that of the last result.

        With `~axis` it is that of what the last result is made of, where it is made of all rows.
        None if one of them has no such rows, or reads another's result as a whole.
        """
        axes: dict[str, int] = {}
        found: dict[int, StageRows] = {}
        for number in range(last, first - 1, -1):
            root = self.root(number)
            stage = self.of(number, axes.setdefault(root, axis))
            if stage is None:
                return None
            for read in stage.reads:
                if axes.setdefault(read.root, read.axis) != read.axis:
                    return None
            if any(self.makers(name, range(first, last + 1)) for name in stage.wholes):
                return None
            found[number] = stage
        return found

    def of(self, number: int, axis: int) -> StageRows | None:
        """The rows of one stage along an axis of its result, or, as `~axis`, of what it is made of;
        None if it has none."""
        if (number, axis) not in self._found:
            self._found[number, axis] = self._rows(number, axis)
        return self._found[number, axis]

    def axes(self, number: int) -> list[int]:
        """The axes along which a stage has rows: those of its result, and as `~axis` those of what
        it is made of."""
        stage, tensors = self.stages[number], self.network.by_name
        found = [*range(len(tensors[stage.results[0].tensor].shape))]
        if stage.op.kind in PICKS:
            read = range(len(tensors[stage.op.inputs[0].tensor].shape))
            found += [~axis for axis in read if reduced_loop(stage.op, ~axis) is not None]
        return [axis for axis in found if self.of(number, axis) is not None]

    def root(self, number: int) -> str:
        """The storage that a stage's first result lies in."""
        return self.storage[self.stages[number].results[0].tensor].root

    def makers(self, tensor: str, numbers: Iterable[int]) -> tuple[int, ...]:
        """Stages among some whose result lies where a tensor does."""
        return tuple([number for number in numbers if self.makes(number, tensor)])

    def makes(self, number: int, tensor: str) -> bool:
        """Whether a stage's result lies where a tensor does."""
        key = number, tensor
        if key not in self._makes:
            root, place = self._places[tensor]
            other, made = self._places[self.stages[number].results[0].tensor]
            self._makes[key] = other == root and (
                place is None or made is None or meet(place, made)
            )
        return self._makes[key]

    def readers(self, linked: Mapping[int, StageRows]) -> dict[str, list[tuple[int, RowRead]]]:
        """Who reads rows of each storage."""
        found: dict[str, list[tuple[int, RowRead]]] = {}
        for number in sorted(linked):
            for read in linked[number].reads:
                found.setdefault(read.root, []).append((number, read))
        return found

    def private(self, linked: Mapping[int, StageRows]) -> set[str]:
        """Storages that some stages make and read, and nobody else touches."""
        return {root for root in self.readers(linked) if self.is_private(root, linked)}

    def is_private(self, root: str, linked: Mapping[int, StageRows]) -> bool:
        """Whether some stages make and read a storage, and nobody else touches it."""
        users = self.users[root]
        return (
            root not in self._outputs
            and all(n in linked for n in users)
            and any(linked[n].root == root for n in users)
            and any(read.root == root for n in users for read in linked[n].reads)
        )

    def is_used_within(self, root: str, first: int, last: int) -> bool:
        """Whether nobody but the stages `first` to `last` touches a storage."""
        users = self.users[root]
        return first <= users[0] and users[-1] <= last and root not in self._outputs

    @cached_property
    def users(self) -> dict[str, list[int]]:
        """By storage, the stages that read or write it."""
        found: dict[str, list[int]] = {}
        for number, stage in enumerate(self.stages):
            names = [o.tensor for o in (*stage.inputs, *stage.results)]
            for root in dict.fromkeys(self.storage[name].root for name in names):
                found.setdefault(root, []).append(number)
        return found

    @cached_property
    def joined(self) -> frozenset[str]:
        """Storages in which tensors of other names lie."""
        return frozenset([lies.root for name, lies in self.storage.items() if lies.root != name])

    @cached_property
    def _outputs(self) -> set[str]:
        return {self.storage[tensor.name].root for tensor in self.network.outputs}

    @cached_property
    def _places(self) -> dict[str, tuple[str, Box | None]]:
        """By tensor its storage and where it lies there; None: under another shape."""
        found: dict[str, tuple[str, Box | None]] = {}
        for tensor in self.network.tensors:
            lies = self.storage[tensor.name]
            box = None if lies.origin is None else shifted(whole(tensor.shape), lies.origin)
            found[tensor.name] = lies.root, box
        return found

    def _rows(self, number: int, axis: int) -> StageRows | None:
        stage = self.stages[number]
        loop = reduced_loop(stage.op, axis) if may_wait(self.network, stage.op) else None
        reduces = loop is not None
        axis = ~axis if axis < 0 else axis
        if loop is None and self._same_rows(stage.results[0].tensor, axis):
            loop = _row_loop(stage, axis)
        if loop is None:
            return None
        reads, wholes = [], []
        for operand in stage.inputs:
            if self.network.by_name[operand.tensor].role == "constant":
                continue
            along = _axes_with(operand, loop)
            if not along:
                wholes.append(operand.tensor)
                continue
            read = self._read(stage, operand, loop, along[0])
            if len(along) > 1 or read is None:
                return None
            reads.append(read)
        return StageRows(
            root=self.root(number),
            axis=axis,
            loop=loop,
            size=stage.op.sizes[loop],
            reads=tuple(reads),
            wholes=tuple(wholes),
            reduces=reduces,
        )

    def _read(self, stage: Stage, operand: Operand, loop: str, axis: int) -> RowRead | None:
        index = (operand.index or ())[axis]
        factor = dict(index.terms)[loop]
        if factor <= 0 or not self._same_rows(operand.tensor, axis):
            return None
        others = [other * (stage.op.sizes[dim] - 1) for dim, other in index.terms if dim != loop]
        return RowRead(
            tensor=operand.tensor,
            root=self.storage[operand.tensor].root,
            axis=axis,
            factor=factor,
            low=index.offset + sum(min(0, reach) for reach in others),
            high=index.offset + index.reach + sum(max(0, reach) for reach in others),
            divisor=index.divisor,
            size=self.network.by_name[operand.tensor].shape[axis],
        )

    def _same_rows(self, tensor: str, axis: int) -> bool:
        """Whether rows of a tensor are rows of its storage, under the same number."""
        lies = self.storage[tensor]
        if lies.origin is None or axis >= len(lies.origin) or lies.origin[axis]:
            return False
        shape, root = self.network.by_name[tensor].shape, self.network.by_name[lies.root].shape
        return len(shape) == len(root) and shape[axis] == root[axis]


def _row_loop(stage: Stage, axis: int) -> str | None:
    """The loop that alone walks an axis of a stage's only result, one row at a time."""
    index = stage.results[0].index
    if len(stage.results) != 1 or index is None or axis >= len(index):
        return None
    walked, sizes = index[axis], stage.op.sizes
    # A loop of one step moves nothing: the channels of a depthwise convolution are K of G.
    terms = [term for term in walked.terms if sizes[term[0]] > 1]
    if len(terms) != 1 or walked.offset or walked.divisor > 1:
        return None
    loop, factor = terms[0]
    weights, rest, _ = stage.tileable
    return loop if factor == 1 and loop in (*weights, *rest) else None


def unfinished_bits(op: Op) -> int:
    """Bits of an element of a result until all rows are there."""
    if op.kind in ("arg_max", "arg_min"):
        return BEST_BITS
    return max(SUM_BITS, op.accumulator_bits) if op.kind == "average_pool" else op.accumulator_bits


def may_wait(network: Network, op: Op) -> bool:
    """Whether what an op makes of some rows can be kept until the others are there."""
    if op.kind not in ("arg_max", "arg_min"):
        return op.kind in REDUCING_KINDS
    compared = network.by_name[op.inputs[0].tensor]
    return compared.bits <= MOST_COMPARED_BITS and compared.dtype.startswith(("int", "uint"))


def reduced_loop(op: Op, axis: int) -> str | None:
    """The loop along which an op that makes its result of all rows goes through an axis of what it
    reads: the same axis of the result of a pool, or `~axis` of any op."""
    kinds = REDUCING_KINDS if axis < 0 else POOLS
    if op.kind not in kinds or len(op.outputs) != 1:
        return None
    read, made, axis = op.inputs[0].index, op.outputs[0].index, ~axis if axis < 0 else axis
    if read is None or made is None or axis >= len(read):
        return None
    if op.kind in POOLS and len(read) != len(made):
        return None
    if read[axis].offset or read[axis].divisor > 1:
        return None
    terms = [term for term in read[axis].terms if op.sizes[term[0]] > 1]
    walked = {loop for index in made for loop, _ in index.terms}
    if len(terms) != 1 or terms[0][0] in walked or terms[0][1] != 1:
        return None
    return terms[0][0]


def _axes_with(operand: Operand, loop: str) -> list[int]:
    return [
        axis
        for axis, index in enumerate(operand.index or ())
        if any(dim == loop for dim, _ in index.terms)
    ]
