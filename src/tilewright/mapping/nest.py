"""An op as a mapping sees it: loops, operands and which loop moves which operand.

A loop is *relevant* (r) to an operand that it walks through, *irrelevant* (ir) if the operand stays
the same while it runs, and *partially relevant* (pr) if it shares an axis with another loop through
a relation such as `IX = 2*OX + 1*FX`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd, prod

from tilewright.network.graph import Index, Network, Op, Operand
from tilewright.network.kinds import is_mac
from tilewright.network.windows import interleaved
from tilewright.once import once
from tilewright.records import quickly_made

_ARRAY_KINDS = """
conv conv_transpose matmul max_pool average_pool add sub mul max min
"""
ARRAY_KINDS = frozenset(_ARRAY_KINDS.split())
"""Kinds that the array can run; all others are the vector unit's or mere moves."""
_PAIRWISE = frozenset(("add", "sub", "mul", "max", "min"))


def runs_on_array(op: Op, network: Network) -> bool:
    """Whether an op is the array's work: of element-wise ops those that join two activations.

    A bias or scale, which is constant, is applied by the vector unit. Scales and zero points of
    the two that are joined do not count: they follow from the fourth letter on.
    """
    if op.kind not in ARRAY_KINDS:
        return False
    if op.kind not in _PAIRWISE:
        return True
    is_constant = {o.name: network.by_name[o.tensor].role == "constant" for o in op.inputs}
    others = [constant for letter, constant in is_constant.items() if letter not in ("I", "W")]
    joins = not is_constant.get("I", True) and not is_constant.get("W", True)
    return joins and "B" not in is_constant and all(others)


@dataclass(frozen=True, slots=True)
class Relation:
    """`target = Σ coefficient × loop` over two loops; `size` elements lie along the target."""

    target: str
    terms: tuple[tuple[str, int], tuple[str, int]]
    size: int
    is_zigzags: bool = False
    """Whether ZigZag's rule says what is a partial sum (`zigzag_sums.py`), not `revisits.py`."""

    def __str__(self) -> str:
        return f"{self.target} = " + " + ".join(f"{c}*{d}" for d, c in self.terms)


@quickly_made
@dataclass(frozen=True, slots=True)
class NestOperand:
    """An operand: its letter, the index names along its axes, and its bits per element."""

    letter: str
    axes: tuple[str, ...]
    bits: int


@quickly_made
@dataclass(frozen=True, slots=True)
class _Dependence:
    """How an operand depends on the loops of its nest."""

    relations: tuple[Relation, ...]
    relevant: tuple[str, ...]
    irrelevant: tuple[str, ...]


@quickly_made
@dataclass(frozen=True)
class LoopNest:
    """What is mapped. Operands stand in the order of the equation, the result `O` first.

    `operands[0].bits` is the width of a partial sum, `final_bits` that of a finished result.
    """

    dims: tuple[tuple[str, int], ...]
    operands: tuple[NestOperand, ...]
    relations: tuple[Relation, ...]
    final_bits: int

    @once
    def sizes(self) -> dict[str, int]:
        """Loop sizes by name."""
        return dict(self.dims)

    @once
    def letters(self) -> tuple[str, ...]:
        """Letters of the operands."""
        return tuple(operand.letter for operand in self.operands)

    @once
    def points(self) -> int:
        """Points of the nest: what ZigZag counts as multiplications."""
        return prod(size for _, size in self.dims)

    @property
    def inputs(self) -> tuple[NestOperand, ...]:
        """All operands but the result."""
        return self.operands[1:]

    def relations_of(self, operand: NestOperand) -> tuple[Relation, ...]:
        """Relations along the operand's axes; all of the nest's if it has any, as in ZigZag."""
        return self._dependence[operand.letter].relations

    def relevant(self, operand: NestOperand) -> tuple[str, ...]:
        """Loops that walk through the operand alone on their axis, in the order of its axes."""
        return self._dependence[operand.letter].relevant

    def irrelevant(self, operand: NestOperand) -> tuple[str, ...]:
        """Loops under which the operand stays the same."""
        return self._dependence[operand.letter].irrelevant

    @once
    def _dependence(self) -> dict[str, _Dependence]:
        targets = {r.target for r in self.relations}
        every = {name for r in self.relations for name in (r.target, *(d for d, _ in r.terms))}
        result = {}
        for operand in self.operands:
            windowed = not targets.isdisjoint(operand.axes)
            related = every if windowed else set()
            result[operand.letter] = _Dependence(
                relations=self.relations if windowed else (),
                relevant=tuple(
                    a for a in operand.axes if a not in related and self.sizes.get(a, 1) != 1
                ),
                irrelevant=tuple(
                    d
                    for d, size in self.dims
                    if d not in operand.axes and d not in related and size != 1
                ),
            )
        return result


def with_partial_sums(nest: LoopNest, bits: int) -> LoopNest:
    """The nest with partial sums of `bits`, or as wide as a finished result if that is more."""
    result = replace(nest.operands[0], bits=max(bits, nest.final_bits))
    return replace(nest, operands=(result, *nest.inputs))


def window_elements(relation: Relation, first: int, second: int) -> int:
    """Distinct elements along the target when its two loops have these sizes, clipped to it.

    >>> window_elements(Relation("IX", (("OX", 2), ("FX", 1)), 224), 112, 3)
    224
    """
    ca, cb = relation.terms[0][1], relation.terms[1][1]
    common = gcd(ca, cb)
    distinct = first * second - max(0, second - ca // common) * (first - cb // common)
    return min(distinct, relation.size)


def nest_of(op: Op, network: Network) -> LoopNest:
    """The nest of an op of one of the `ARRAY_KINDS`, with the precisions of its tensors.

    Raises:
        ValueError: an index of the op is of a form that mappings do not know.
    """
    if op.kind not in ARRAY_KINDS:
        raise ValueError(f"the array does not run {op.kind}")
    op = scattering(op, network)
    dims = dict(op.dims)
    relations: dict[str, Relation] = {}
    operands = []
    data = [o for o in op.inputs if o.name in ("I", "W")]
    # Convolutions keep the field's order (O, W, I); products and the rest (O, I, W).
    if op.kind in ("conv", "conv_transpose"):
        data = sorted(data, key=lambda o: o.name != "W")
    for operand in (op.outputs[0], *data):
        tensor = network.by_name[operand.tensor]
        axes: list[str] = []
        for axis, index in enumerate(operand.index or ()):
            axes += _axis_names(op, operand, index, (axis, tensor.shape[axis]), relations)
        bits = op.accumulator_bits if operand.name == "O" else tensor.bits
        operands.append(NestOperand(operand.name, tuple(dict.fromkeys(axes)), bits))
    return LoopNest(
        dims=tuple(dims.items()),
        operands=tuple(operands),
        relations=tuple(relations.values()),
        final_bits=network.by_name[op.outputs[0].tensor].bits,
    )


def scattering(op: Op, network: Network) -> Op:
    """The op with the loops of its nest: over its input, if it is a transposed convolution."""
    axes = {axis.loop: axis for axis in interleaved(op, network)}
    if not axes:
        return op
    made, read = {}, {}
    for axis in axes.values():
        made[axis.loop] = Index(((axis.walked, axis.stride), (axis.tap, axis.dilation)))
        read[axis.index] = Index(((axis.walked, 1),))
    loops = [(axes[d].walked, axes[d].steps(n)) if d in axes else (d, n) for d, n in op.dims]
    result, data = op.outputs[0], next(o for o in op.inputs if o.name == "I")
    walks = [made.get(i.terms[0][0], i) if i.terms else i for i in result.index or ()]
    seen = [read.get(i, i) for i in data.index or ()]
    inputs = (replace(data, index=tuple(seen)) if o is data else o for o in op.inputs)
    outputs = (replace(result, index=tuple(walks)), *op.outputs[1:])
    return replace(op, dims=tuple(loops), inputs=tuple(inputs), outputs=outputs)


def mapped_lengths(op: Op, network: Network, lengths: Mapping[str, int]) -> Mapping[str, int]:
    """Lengths of the loops of a tile, and of its windows, under the names of the op's nest."""
    axes = interleaved(op, network)
    if not axes:
        return lengths
    found = dict(lengths)
    names = {i.terms[0][0]: f"O{at}" for at, i in enumerate(op.outputs[0].index or ()) if i.terms}
    for axis in axes:
        if axis.loop in found:
            length = found.pop(axis.loop)
            found |= {axis.walked: axis.steps(length), names[axis.loop]: length}
    return found


def _axis_names(
    op: Op, operand: Operand, index: Index, axis: tuple[int, int], relations: dict[str, Relation]
) -> list[str]:
    """Index names of one axis; a window adds its relation to `relations`."""
    position, extent = axis
    sizes = op.sizes
    terms = [(dim, factor) for dim, factor in index.terms if sizes[dim] != 1]
    if len(terms) <= 1 or _is_mixed_radix(terms, sizes):
        return [dim for dim, _ in index.terms]
    if len(index.terms) != 2 or index.divisor != 1 or any(f < 0 for _, f in index.terms):
        raise ValueError(f"index {index} of {operand.name} cannot be mapped")
    first, second = index.terms
    target = f"I{first[0][1:]}" if first[0][0] == "O" else f"{operand.name}{position}"
    relations[target] = Relation(target, (first, second), extent)
    return [target]


def _is_mixed_radix(terms: list[tuple[str, int]], sizes: dict[str, int]) -> bool:
    """Whether the terms number elements without gaps or repetition: (G, 8), (C, 1) with C = 8."""
    step = 1
    for dim, factor in sorted(terms, key=lambda term: term[1]):
        if factor != step:
            return False
        step *= sizes[dim]
    return True


def zigzag_nest(op: Op, network: Network) -> LoopNest:
    """The nest as ZigZag 3.9 has it: from its own files as written, from others by its rules.

    From ONNX it counts convolutions and matrix products, with 8-bit operands and 16-bit partial
    sums whatever the file says, and takes kernel, stride and padding of x for y and vice versa.
    """
    if op.attribute("zigzag_type"):
        return _as_written(op)
    if not is_mac(op.kind) or op.kind == "conv_transpose":
        raise ValueError(f"ZigZag counts nothing for {op.kind}")
    nest = nest_of(op, network)
    operands = tuple(
        NestOperand(o.letter, o.axes, 16 if o.letter == "O" else 8) for o in nest.operands
    )
    if op.kind == "matmul":
        return LoopNest(nest.dims, operands, (), 8)
    return _zigzag_conv(op, network, operands)


def _zigzag_conv(op: Op, network: Network, operands: tuple[NestOperand, ...]) -> LoopNest:
    """All eight loops in ZigZag's order, those of size 1 too, and windows even for kernels of 1."""
    sizes = op.sizes
    order = ("B", "K", "G", "OX", "OY", "C", "FX", "FY")
    axes = {
        "O": ("B", "G", "K", "OY", "OX"),
        "W": ("G", "K", "C", "FY", "FX"),
        "I": ("B", "G", "C", "IY", "IX"),
    }
    indices = next(o.index for o in op.inputs if o.name == "I") or ()
    shape = network.by_name[op.inputs[0].tensor].shape
    relations = []
    for letter in ("X", "Y"):
        for index, extent in zip(indices, shape, strict=True):
            terms = dict(index.terms)
            if f"O{letter}" in terms:
                factors = (terms[f"O{letter}"], terms.get(f"F{letter}", 1))
                pair = ((f"O{letter}", factors[0]), (f"F{letter}", factors[1]))
                relations.append(Relation(f"I{letter}", pair, extent))
    return LoopNest(
        dims=tuple((dim, sizes.get(dim, 1)) for dim in order),
        operands=tuple(NestOperand(o.letter, axes[o.letter], o.bits) for o in operands),
        relations=tuple(relations),
        final_bits=8,
    )


def written_loops(op: Op) -> tuple[tuple[str, int], ...]:
    """Loops of an op as its ZigZag workload file has them, outermost first; none of other ops."""
    kept = op.attribute("zigzag_loops", ())
    pairs = [str(text).split("=") for text in (kept if isinstance(kept, tuple) else ())]
    return tuple((loop, int(size)) for loop, size in pairs)


def _as_written(op: Op) -> LoopNest:
    """The nest of a layer of a ZigZag workload file, from what the reader kept of it."""
    texts = {key: value for key, value in op.attributes if isinstance(value, tuple)}
    bits = dict(str(text).split("=") for text in texts["zigzag_precision"])
    sizes = dict(str(text).split("=") for text in texts["zigzag_sizes"])
    operands = []
    for text in map(str, texts["zigzag_operands"]):
        letter, _, rest = text.partition("[")
        axes = tuple(rest.removesuffix("]").split("][")) if rest else ()
        operands.append(NestOperand(letter, axes, int(bits[letter])))
    relations = []
    for text in map(str, texts["zigzag_relations"]):
        target, _, sums = text.partition("=")
        (ca, a), (cb, b) = (part.split("*") for part in sums.split("+"))
        if int(sizes[target]) < 1:
            raise ValueError(f"{target} = {sums} reaches no element that is not padding")
        relations.append(Relation(target, ((a, int(ca)), (b, int(cb))), int(sizes[target]), True))
    return LoopNest(
        dims=written_loops(op),
        operands=tuple(operands),
        relations=tuple(relations),
        final_bits=int(bits["O_final"]),
    )
