"""Ops as a program runs them: with what is applied to their result on the way, and without views.

A *stage* is an op with the cheap ops that follow it where nobody else reads between: an activation,
a scale, a requantisation is applied to a result before it is written. Ops that only say where
elements lie (a reshape, a slice, a concatenation) vanish where a view of another tensor will do.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tilewright.mapping.nest import runs_on_array
from tilewright.network.graph import Index, Network, Op, Operand, Tensor
from tilewright.network.kinds import KIND_CLASSES
from tilewright.once import once
from tilewright.program.tile import tileable
from tilewright.records import quickly_made

_IN_PASSING = """
relu relu6 leaky_relu prelu clip batch_norm add sub mul div quantize dequantize requantize cast
"""
FUSED_KINDS = frozenset(_IN_PASSING.split())
"""What the output stage of an array or a vector unit does in passing, constants at most."""

COPIES = "copies"
"""The attribute, 1, of a concatenation whose parts lie elsewhere before it."""

PAIRWISE = frozenset(("add", "sub", "mul", "max", "min"))
Worker = Literal["array", "vector", "move"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One op and those applied to its result before that is written."""

    op: Op
    fused: tuple[Op, ...]
    worker: Worker
    streams: bool = False
    """Whether the array reads its constants where they lie outside, past the scratchpads."""
    multiples: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Of what the tiles of some loops begin at multiples, as the core addresses feature maps."""

    @once
    def streaming(self) -> "Stage":
        """The same with constants that stream."""
        return replace(self, streams=True)

    @once
    def inputs(self) -> tuple[Operand, ...]:
        """The op's inputs and the constants of what is fused, all over the loops of `op`."""
        constants = [_over_loops_of(self.op, f, o) for f in self.fused for o in f.inputs]
        made = {o.tensor for op in (self.op, *self.fused) for o in op.outputs}
        return (*self.op.inputs, *(o for o in constants if o.tensor not in made))

    @once
    def results(self) -> tuple[Operand, ...]:
        """What is written, with where each point of `op`'s nest lands in it."""
        if not self.fused:
            return self.op.outputs
        last = self.fused[-1].outputs[0]
        return (replace(self.op.outputs[0], tensor=last.tensor),)

    def multiple(self, loop: str) -> int:
        """Of what tiles begin at multiples along a loop."""
        return self.multiples.get(loop, 1)

    @once
    def tileable(self) -> tuple[list[str], list[str], list[str]]:
        """Loops that may be cut: those of the weights, the other ones of the result, and sums."""
        return tileable(self.op)

    @once
    def summed(self) -> tuple[tuple[str, int], ...]:
        """Loops, with their sizes, that all lead to the same elements of the result."""
        walked = {
            dim for operand in self.op.outputs for i in operand.index or () for dim, _ in i.terms
        }
        known = all(operand.index is not None for operand in self.op.outputs)
        return tuple([(d, n) for d, n in self.op.dims if d not in walked]) if known else ()


@quickly_made
@dataclass(frozen=True, slots=True)
class Storage:
    """Where a tensor's elements lie: in the storage of `root`, from `origin` on.

    Without an origin they are the root's bytes under another shape.
    """

    root: str
    origin: tuple[int, ...] | None


def _over_loops_of(op: Op, fused: Op, operand: Operand) -> Operand:
    """An operand of a fused op as the loops of the op before it touch it."""
    axes = {
        axis.terms[0][0]: own
        for axis, own in zip(fused.outputs[0].index or (), op.outputs[0].index or (), strict=True)
        if axis.terms
    }
    index = [
        Index(()) if not axis.terms else axes.get(axis.terms[0][0]) for axis in operand.index or ()
    ]
    plain = operand.index is not None and None not in index
    return replace(
        operand, name="B", index=tuple(i for i in index if i is not None) if plain else None
    )


def stages_of(
    network: Network,
    order: Sequence[Op],
    *,
    joins_on_array: bool,
    joined_bits: int | None = None,
) -> tuple[Stage, ...]:
    """The stages, in the given order of ops; views are left in, as stages of their own.

    `joins_on_array`: whether the array also adds (or multiplies) two activations, of `joined_bits`
    an element at most.
    """
    readers = Counter(o.tensor for op in network.ops for o in op.inputs)
    found: list[Stage] = []
    maker: dict[str, int] = {}
    for op in order:
        at = _producer(network, op, maker, readers)
        if at is not None and _fits_behind(network, found[at], op):
            found[at] = replace(found[at], fused=(*found[at].fused, op))
        else:
            at = len(found)
            joins = joins_on_array and (joined_bits is None or _bits(network, op) <= joined_bits)
            found.append(Stage(op=op, fused=(), worker=_worker(network, op, joins)))
        maker.update((o.tensor, at) for o in op.outputs)
    return tuple(found)


def _bits(network: Network, op: Op) -> int:
    """The widest element of what an op joins or makes."""
    joined = (*op.outputs, *(operand for operand in op.inputs if operand.name in ("I", "W")))
    return max(network.by_name[operand.tensor].bits for operand in joined)


def _worker(network: Network, op: Op, joins_on_array: bool) -> Worker:
    if KIND_CLASSES[op.kind] == "move":
        return "move"
    on_array = runs_on_array(op, network) and (joins_on_array or op.kind not in PAIRWISE)
    return "array" if on_array else "vector"


def _producer(
    network: Network, op: Op, maker: Mapping[str, int], readers: Mapping[str, int]
) -> int | None:
    """The stage whose result an op could be applied to in passing: nobody else may want it."""
    if op.kind not in FUSED_KINDS or len(op.outputs) != 1:
        return None
    data = [o for o in op.inputs if network.by_name[o.tensor].role != "constant"]
    if len(data) != 1 or readers[data[0].tensor] != 1 or data[0].index != op.outputs[0].index:
        return None
    if network.by_name[data[0].tensor].role != "activation":
        return None
    return maker.get(data[0].tensor)


def _fits_behind(network: Network, stage: Stage, op: Op) -> bool:
    shape = network.by_name[op.outputs[0].tensor].shape
    made = network.by_name[stage.results[0].tensor].shape
    return (
        stage.worker != "move"
        and len(stage.op.outputs) == 1
        and stage.op.outputs[0].index is not None
        and shape == made
        and all(index.divisor == 1 and len(index.terms) <= 1 for index in op.outputs[0].index or ())
    )


def with_copying_joins(network: Network) -> Network | None:
    """The network with concatenations that copy, where others read a part of them; None if there
    are none."""
    readers = Counter(o.tensor for op in network.ops for o in op.inputs)
    ops = [
        replace(op, attributes=(*op.attributes, (COPIES, 1)))
        if op.kind == "concat" and any(readers[o.tensor] > 1 for o in op.inputs)
        else op
        for op in network.ops
    ]
    return None if ops == [*network.ops] else replace(network, ops=tuple(ops))


def storages(network: Network, stages: Sequence[Stage]) -> tuple[dict[str, Storage], list[Stage]]:
    """Where every tensor lies, and the stages that are left when views are taken out."""
    book = _Book(network)
    left = [stage for stage in stages if not (stage.worker == "move" and book.is_view(stage.op))]
    return book.storage, left


class _Book:
    """Storage by tensor, while views are found one by one."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.storage = {t.name: Storage(t.name, (0,) * len(t.shape)) for t in network.tensors}
        self.fixed = {t.name for t in network.tensors if t.role != "activation"}

    def is_view(self, op: Op) -> bool:
        """Make the result a view if that is possible."""
        match op.kind:
            case "identity" | "reshape" | "transpose":
                return self._same_bytes(op)
            case "slice":
                return self._part(op)
            case "concat":
                return self._joined(op)
            case _:
                return False

    def _same_bytes(self, op: Op) -> bool:
        data = op.inputs[0].tensor
        source, result = self._tensor(data), self._tensor(op.outputs[0].tensor)
        if source.bits != result.bits or source.elements != result.elements:
            return False
        if op.kind == "transpose" and not _keeps_order(op, source):
            return False
        lies = self.storage[data]
        if self._hands_out_what_came_in(result, lies):
            return False
        if result.shape == source.shape:
            self.storage[result.name] = lies
            return True
        if lies.origin is not None and lies.root != data:
            return False
        self.storage[result.name] = Storage(lies.root, None)
        return True

    def _part(self, op: Op) -> bool:
        lies = self.storage[op.inputs[0].tensor]
        begin = _steps(op.inputs[0], op.outputs[0])
        if lies.origin is None or begin is None or min(begin, default=0) < 0:
            return False
        if self._hands_out_what_came_in(self._tensor(op.outputs[0].tensor), lies):
            return False
        origin = tuple(a + b for a, b in zip(lies.origin, begin, strict=True))
        self.storage[op.outputs[0].tensor] = Storage(lies.root, origin)
        return True

    def _joined(self, op: Op) -> bool:
        if op.attribute(COPIES, 0) == 1:
            return False
        result = op.outputs[0].tensor
        parts = [(o.tensor, _steps(o, op.outputs[0])) for o in op.inputs]
        names = [name for name, _ in parts]
        if len(set(names)) != len(names) or not all(
            steps is not None and self._is_free(name) and self._lies_within(name, steps, result)
            for name, steps in parts
        ):
            return False
        for name, steps in parts:
            origin = tuple(-step for step in steps or ())
            for tensor, lies in self.storage.items():
                if lies.root == name and lies.origin is not None:
                    at = tuple(a + b for a, b in zip(lies.origin, origin, strict=True))
                    self.storage[tensor] = Storage(result, at)
        return True

    def _lies_within(self, part: str, steps: Sequence[int], result: str) -> bool:
        """Whether all of a part has its place in a result: others may read more of it."""
        ends = zip(steps, self._tensor(part).shape, self._tensor(result).shape, strict=True)
        return all(step <= 0 and size - step <= whole for step, size, whole in ends)

    def _hands_out_what_came_in(self, result: Tensor, lies: Storage) -> bool:
        """Whether a view would make a result of the network of bytes that were given to it."""
        return result.role == "output" and self._tensor(lies.root).role in ("input", "constant")

    def _is_free(self, name: str) -> bool:
        """Whether a tensor has storage of its own that may become part of another's."""
        return (
            name not in self.fixed
            and self.storage[name].root == name
            and all(lies.origin is not None for lies in self._inside(name))
        )

    def _inside(self, root: str) -> Iterator[Storage]:
        return (lies for lies in self.storage.values() if lies.root == root)

    def _tensor(self, name: str) -> Tensor:
        return self.network.by_name[name]


def _steps(data: Operand, result: Operand) -> tuple[int, ...] | None:
    """By how much positions in the data are ahead of those in the result, if by a fixed amount."""
    if data.index is None or result.index is None or len(data.index) != len(result.index):
        return None
    for mine, own in zip(data.index, result.index, strict=True):
        if mine.terms != own.terms or mine.divisor != 1 or own.divisor != 1:
            return None
        if any(factor != 1 for _, factor in mine.terms) or own.offset:
            return None
    return tuple(index.offset for index in data.index)


def _keeps_order(op: Op, source: Tensor) -> bool:
    """Whether a transposition only moves axes of size 1."""
    index, result = op.inputs[0].index, op.outputs[0].index
    if index is None or result is None:
        return False
    long = [axis.terms for axis, size in zip(index, source.shape, strict=True) if size != 1]
    kept = [axis.terms for axis in result if axis.terms in long]
    return long == kept
