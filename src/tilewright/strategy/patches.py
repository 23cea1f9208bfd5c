"""Patches: stretches of a network strip by strip, each strip some columns of their last result.

Every strip has ops and tensors of its own, cut to the columns that it needs. Columns near a border
between two strips are needed by both, and computed by both. What comes out is an ordinary network,
whose strips are joined where they end: everything else works on it as on any other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.network.counts import macs
from tilewright.network.graph import (
    SUMS_SO_FAR,
    UNFINISHED,
    Index,
    Network,
    Op,
    Operand,
    Role,
    Tensor,
)
from tilewright.program.rows import unfinished_bits
from tilewright.program.strips import strip_name
from tilewright.strategy.columns import Columns, Stretch, Walk

Strips = tuple[tuple[Stretch, int], ...]
"""Stretches of ops, and how many strips each has."""

LETTERS = ("I", "W", "B")
"""Of the first inputs of an op that moves data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorStrip:
    """What a tensor of the rewritten network is: another one from `start` along `axis` on."""

    tensor: str
    axis: int
    start: int
    unfinished: bool = False
    """Whether other strips have yet to add to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpStrip:
    """What an op of the rewritten network is: another one from `start` of a loop on."""

    op: str
    loop: str
    start: int
    strip: int
    """1 for the first strip of the op's stretch, and for all that go on with what it began."""
    goes_on: bool = False
    """Whether it adds to what the strip before it has left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StripFigures:
    """Ops that run in strips of columns of `tensor`, which lie along `axis`."""

    ops: tuple[str, ...]
    tensor: str
    axis: int
    strips: int
    macs_again: int
    """Multiplications beyond those of the ops as they are."""


@dataclass(frozen=True, kw_only=True)
class Patches:
    """A network, and the same with some stretches in strips; tensors and ops of these by name."""

    original: Network
    network: Network
    strips: Strips
    tensors: Mapping[str, TensorStrip]
    ops: Mapping[str, OpStrip]

    @cached_property
    def figures(self) -> tuple[StripFigures, ...]:
        """What there is to tell about each stretch."""
        parts: dict[str, list[Op]] = {}
        for op in self.network.ops:
            if op.name in self.ops:
                parts.setdefault(self.ops[op.name].op, []).append(op)
        return tuple(
            StripFigures(
                ops=(names := tuple(walk.op.name for walk in stretch.walks)),
                tensor=stretch.cut,
                axis=stretch.axes[stretch.cut],
                strips=count,
                macs_again=sum(self._macs_again(parts[name]) for name in names),
            )
            for stretch, count in self.strips
        )

    def _macs_again(self, parts: Sequence[Op]) -> int:
        """Multiplications in strips of an op, of columns that a strip before them has made."""
        columns = []
        for op in parts:
            start, loop = self.ops[op.name].start, self.ops[op.name].loop
            columns.append(range(start, start + op.sizes[loop]))
        made, distinct = sum(map(len, columns)), len(set().union(*columns))
        return sum(macs(op, self.network) for op in parts) * (made - distinct) // made


def patched(
    network: Network,
    order: Sequence[Op],
    strips: Strips,
    *,
    two_of_each: bool = False,
) -> Patches | None:
    """The network with stretches of its ops, which follow each other in an order, in strips.

    None if there are more strips than columns, or strips that have nothing to compute. With
    `two_of_each` only two strips in the middle of each stretch are there: the others are alike, and
    mostly need no more memory than the second of them, which finds what the first has made.
    """
    found = [_cut(stretch, count, two_of_each=two_of_each) for stretch, count in strips]
    cuts = [cut for cut in found if cut is not None]
    names = [*network.by_name, *(part.name for cut in cuts for _, part in cut.strip_tensors())]
    if len(cuts) < len(strips) or len(set(names)) < len(names):
        return None
    first = {cut.stretch.walks[0].op.name: cut for cut in cuts}
    inside = {walk.op.name for cut in cuts for walk in cut.stretch.walks}
    ops: list[Op] = []
    for op in order:
        if op.name in first:
            ops += first[op.name].ops()
        elif op.name not in inside:
            ops.append(op)
    return Patches(
        original=network,
        network=Network(
            name=network.name,
            tensors=tuple(_touched(network, ops, cuts)),
            ops=tuple(ops),
            source=network.source,
        ),
        strips=strips,
        tensors={name: part for cut in cuts for name, part in cut.tensor_strips()},
        ops={name: part for cut in cuts for name, part in cut.op_strips()},
    )


def _touched(network: Network, ops: Sequence[Op], cuts: Sequence["_Cut"]) -> Iterator[Tensor]:
    """All tensors that ops touch, those of strips beside those that they are parts of."""
    touched = {operand.tensor for op in ops for operand in op.operands}
    strips: dict[str, list[Tensor]] = {}
    for cut in cuts:
        for whole, strip in cut.strip_tensors():
            strips.setdefault(whole, []).append(strip)
    for tensor in network.tensors:
        yield from strips.get(tensor.name, ())
        if tensor.name in touched:
            yield tensor


def _cut(stretch: Stretch, count: int, *, two_of_each: bool) -> "_Cut | None":
    """A stretch in strips that are as wide as each other, give or take a column."""
    if count > stretch.columns:
        return None
    strips: list[tuple[int, Mapping[str, Columns]]] = []
    middle = count // 2
    for number in range(middle - 1, middle + 1) if two_of_each else range(count):
        start, stop = (stretch.columns * n // count for n in (number, number + 1))
        needed = stretch.needed(start, stop)
        if needed is None:
            return None
        strips.append((number + 1, needed))
    return _Cut(stretch, strips)


@dataclass(frozen=True)
class _Cut:
    """A stretch, and by the number of a strip the columns of each tensor that it needs."""

    stretch: Stretch
    strips: Sequence[tuple[int, Mapping[str, Columns]]]

    @cached_property
    def _made(self) -> frozenset[str]:
        return frozenset(walk.result for walk in self.stretch.walks)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Inputs of the network of which every strip gets its own columns."""
        tensors = self.stretch.network.by_name
        return tuple(name for name in self.stretch.axes if tensors[name].role == "input")

    @cached_property
    def _whole(self) -> tuple[str, ...]:
        """Tensors that are made before the stretch, as a whole."""
        own = (*self._made, *self.inputs)
        return tuple(name for name in self.stretch.axes if name not in own)

    def ops(self) -> Iterator[Op]:
        """All ops, strip after strip; in the end the strips of the last result become one, unless
        every strip adds to it."""
        for strip, needed in self.strips:
            for name in self._whole:
                yield self._view(name, strip, needed[name])
            for walk in self.stretch.walks:
                op = self._op(walk, strip, needed)
                is_reducing = self.stretch.reduces and walk.result == self.stretch.result
                yield self._reducing(op, strip) if is_reducing else op
        if not self.stretch.reduces:
            yield self._join()

    def op_strips(self) -> Iterator[tuple[str, OpStrip]]:
        """Ops of the strips, and what they are."""
        for strip, needed in self.strips:
            for walk in self.stretch.walks:
                start, _ = needed[walk.result]
                name = strip_name(walk.op.name, strip)
                part = OpStrip(op=walk.op.name, loop=walk.loop, start=start, strip=strip)
                if self.stretch.reduces and walk.result == self.stretch.result:
                    part = replace(part, strip=1, goes_on=strip > self.strips[0][0])
                yield name, part

    def tensor_strips(self) -> Iterator[tuple[str, TensorStrip]]:
        """Tensors of the strips, and what they are."""
        for strip, needed in self.strips:
            for name, axis in self.stretch.axes.items():
                part = TensorStrip(tensor=name, axis=axis, start=needed[name][0])
                yield self._named(name, strip), part
        for name, sums in self._sums():
            yield sums.name, TensorStrip(tensor=name, axis=0, start=0, unfinished=True)

    def strip_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Tensors of the strips, each with the name of the one that it is a part of."""
        for strip, needed in self.strips:
            for name, axis in self.stretch.axes.items():
                tensor = self.stretch.network.by_name[name]
                start, stop = needed[name]
                shape = (*tensor.shape[:axis], stop - start, *tensor.shape[axis + 1 :])
                role: Role = "input" if name in self.inputs else "activation"
                named = self._named(name, strip)
                yield name, replace(tensor, name=named, shape=shape, role=role)
        yield from self._sums()

    def _sums(self) -> Iterator[tuple[str, Tensor]]:
        """What all strips but the last leave for the next one to add to."""
        name, op = self.stretch.result, self.stretch.walks[-1].op
        tensor = self.stretch.network.by_name[name]
        for strip, _ in self.strips[:-1] if self.stretch.reduces else ():
            named = self._named(name, strip)
            bits = unfinished_bits(op)
            yield name, replace(tensor, name=named, bits=bits, role="activation", dtype="")

    def _named(self, tensor: str, strip: int) -> str:
        # What comes from before a stretch may be read in other strips by others.
        if tensor not in self._made:
            tensor = f"{tensor} for {self.stretch.walks[0].op.name}"
        return strip_name(tensor, strip)

    def _op(self, walk: Walk, strip: int, needed: Mapping[str, Columns]) -> Op:
        """An op with its loop cut to a strip's columns, indices from where its tensors start."""
        op = walk.op
        start, stop = needed[walk.result]
        inputs = list(op.inputs)
        for reach in walk.reaches:
            by = reach.factor * start - reach.divisor * needed[reach.tensor][0]
            named = replace(inputs[reach.operand], tensor=self._named(reach.tensor, strip))
            inputs[reach.operand] = _moved(named, reach.axis, by)
        for number, axis, factor in walk.constants:
            inputs[number] = _moved(inputs[number], axis, factor * start)
        return replace(
            op,
            name=strip_name(op.name, strip),
            dims=tuple([(d, stop - start if d == walk.loop else size) for d, size in op.dims]),
            inputs=tuple(inputs),
            outputs=(replace(op.outputs[0], tensor=self._named(walk.result, strip)),),
        )

    def _reducing(self, op: Op, strip: int) -> Op:
        """The last op, which goes on from what the strip before it has left."""
        first, last = self.strips[0][0], self.strips[-1][0]
        name, result = self.stretch.result, op.outputs[0]
        if strip > first:
            so_far = Operand(
                name=SUMS_SO_FAR, tensor=self._named(name, strip - 1), index=result.index
            )
            op = replace(op, inputs=(*op.inputs, so_far))
        if strip < last:
            return replace(op, attributes=(*op.attributes, (UNFINISHED, 1)))
        return replace(op, outputs=(replace(result, tensor=name),))

    def _view(self, name: str, strip: int, columns: Columns) -> Op:
        """A slice: the columns of a tensor that a strip needs, where they lie."""
        start, stop = columns
        part = self._named(name, strip)
        return self._move(name, stop - start, "slice", part, [(name, start)])

    def _join(self) -> Op:
        """A concatenation: the last result, of which every strip makes its columns in place."""
        name = self.stretch.result
        parts = [(self._named(name, strip), -needed[name][0]) for strip, needed in self.strips]
        return self._move(name, self.stretch.columns, "concat", name, parts)

    def _move(
        self, whole: str, columns: int, kind: str, result: str, parts: Sequence[tuple[str, int]]
    ) -> Op:
        """An op that puts columns of tensors in their place, so many of which the result has."""
        tensor, axis = self.stretch.network.by_name[whole], self.stretch.axes[whole]
        shape = (*tensor.shape[:axis], columns, *tensor.shape[axis + 1 :])
        loops = [f"D{number}" for number in range(len(shape))]
        plain = tuple([Index(((loop, 1),)) for loop in loops])
        inputs = []
        for number, (name, offset) in enumerate(parts):
            index = (*plain[:axis], replace(plain[axis], offset=offset), *plain[axis + 1 :])
            letter = LETTERS[number] if number < len(LETTERS) else f"X{number}"
            inputs.append(Operand(name=letter, tensor=name, index=index))
        return Op(
            name=f"{result} {kind}",
            kind=kind,
            dims=tuple(zip(loops, shape, strict=True)),
            inputs=tuple(inputs),
            outputs=(Operand(name="O", tensor=result, index=plain),),
            accumulator_bits=tensor.bits,
            attributes=(("axis", axis),),
        )


def _moved(operand: Operand, axis: int, by: int) -> Operand:
    """An operand that is read further along an axis."""
    index = list(operand.index or ())
    index[axis] = replace(index[axis], offset=index[axis].offset + by)
    return replace(operand, index=tuple(index))
