"""Patches: stretches of a network strip by strip, each strip some columns of their last result.

Every strip has ops and tensors of its own, cut to the columns that it needs. Columns near a border
between two strips are needed by both, and computed by both. What comes out is an ordinary network,
whose strips are joined where they end: everything else works on it as on any other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.network.counts import macs
from tilewright.network.graph import Index, Network, Op, Operand, Role, Tensor
from tilewright.program.strips import strip_name
from tilewright.strategy.columns import Columns, Stretch, Walk

LETTERS = ("I", "W", "B")
"""Of the first inputs of an op that moves data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorStrip:
    """What a tensor of the rewritten network is: another one from `start` along `axis` on."""

    tensor: str
    axis: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpStrip:
    """What an op of the rewritten network is: another one from `start` of a loop on."""

    op: str
    loop: str
    start: int
    strip: int
    """1 for the first strip of the op's stretch."""


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
    stretches: tuple[tuple[Stretch, int], ...]
    """With how many strips each has."""
    tensors: Mapping[str, TensorStrip]
    ops: Mapping[str, OpStrip]

    @cached_property
    def figures(self) -> tuple[StripFigures, ...]:
        """What there is to tell about each stretch."""
        before = {op.name: macs(op, self.original) for op in self.original.ops}
        now = dict.fromkeys(before, 0)
        for op in self.network.ops:
            if op.name in self.ops:
                now[self.ops[op.name].op] += macs(op, self.network)
        return tuple(
            StripFigures(
                ops=(names := tuple(walk.op.name for walk in stretch.walks)),
                tensor=stretch.result,
                axis=stretch.axes[stretch.result],
                strips=strips,
                macs_again=sum(now[name] - before[name] for name in names),
            )
            for stretch, strips in self.stretches
        )


def patched(
    network: Network, order: Sequence[Op], stretches: Sequence[tuple[Stretch, int]]
) -> Patches | None:
    """The network with stretches of its ops, which follow each other in an order, in strips.

    None if there are more strips than columns, or strips that have nothing to compute.
    """
    found = [_cut(stretch, count) for stretch, count in stretches]
    cuts = [cut for cut in found if cut is not None]
    names = [*network.by_name, *(part.name for cut in cuts for _, part in cut.strip_tensors())]
    if len(cuts) < len(stretches) or len(set(names)) < len(names):
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
        stretches=tuple(stretches),
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


def _cut(stretch: Stretch, count: int) -> "_Cut | None":
    """A stretch in strips that are as wide as each other, give or take a column."""
    if count > stretch.columns:
        return None
    ends = [stretch.columns * number // count for number in range(count + 1)]
    strips = [stretch.needed(*ends[number : number + 2]) for number in range(count)]
    needed = [strip for strip in strips if strip is not None]
    return _Cut(stretch, needed) if len(needed) == count else None


@dataclass(frozen=True)
class _Cut:
    """A stretch, and by strip the columns of each tensor that it needs."""

    stretch: Stretch
    strips: Sequence[Mapping[str, Columns]]

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
        """All ops, strip after strip; in the end the strips of the last result become one."""
        for strip in range(len(self.strips)):
            for name in self._whole:
                yield self._view(name, strip)
            for walk in self.stretch.walks:
                yield self._op(walk, strip)
        yield self._join()

    def op_strips(self) -> Iterator[tuple[str, OpStrip]]:
        """Ops of the strips, and what they are."""
        for strip, needed in enumerate(self.strips):
            for walk in self.stretch.walks:
                start, _ = needed[walk.result]
                name = strip_name(walk.op.name, strip + 1)
                yield name, OpStrip(op=walk.op.name, loop=walk.loop, start=start, strip=strip + 1)

    def tensor_strips(self) -> Iterator[tuple[str, TensorStrip]]:
        """Tensors of the strips, and what they are."""
        for strip, needed in enumerate(self.strips):
            for name, axis in self.stretch.axes.items():
                part = TensorStrip(tensor=name, axis=axis, start=needed[name][0])
                yield self._named(name, strip), part

    def strip_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Tensors of the strips, each with the name of the one that it is a part of."""
        for strip, needed in enumerate(self.strips):
            for name, axis in self.stretch.axes.items():
                tensor = self.stretch.network.by_name[name]
                start, stop = needed[name]
                shape = (*tensor.shape[:axis], stop - start, *tensor.shape[axis + 1 :])
                role: Role = "input" if name in self.inputs else "activation"
                named = self._named(name, strip)
                yield name, replace(tensor, name=named, shape=shape, role=role)

    def _named(self, tensor: str, strip: int) -> str:
        # What one stretch makes in strips, the next one may read in other strips.
        return strip_name(f"{tensor} for" if tensor in self._whole else tensor, strip + 1)

    def _op(self, walk: Walk, strip: int) -> Op:
        """An op with its loop cut to a strip's columns, indices from where its tensors start."""
        op, needed = walk.op, self.strips[strip]
        start, stop = needed[walk.result]
        inputs = list(op.inputs)
        for reach in walk.reaches:
            operand = op.inputs[reach.operand]
            index = list(operand.index or ())
            by = reach.factor * start - reach.divisor * needed[reach.tensor][0]
            index[reach.axis] = replace(index[reach.axis], offset=index[reach.axis].offset + by)
            named = self._named(reach.tensor, strip)
            inputs[reach.operand] = replace(operand, tensor=named, index=tuple(index))
        return replace(
            op,
            name=strip_name(op.name, strip + 1),
            dims=tuple([(d, stop - start if d == walk.loop else size) for d, size in op.dims]),
            inputs=tuple(inputs),
            outputs=(replace(op.outputs[0], tensor=self._named(walk.result, strip)),),
        )

    def _view(self, name: str, strip: int) -> Op:
        """A slice: the columns of a tensor that a strip needs, where they lie."""
        start, stop = self.strips[strip][name]
        part = self._named(name, strip)
        return self._move(name, stop - start, "slice", part, [(name, start)])

    def _join(self) -> Op:
        """A concatenation: the last result, of which every strip makes its columns in place."""
        name = self.stretch.result
        parts = [
            (self._named(name, strip), -needed[name][0]) for strip, needed in enumerate(self.strips)
        ]
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
        )
