"""What is computed: tensors, and ops as loop nests with affine indexing.

A network is the value every reader returns and every later step starts from. It holds no weights:
values are read again, from the same source, by whoever needs them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from math import prod
from typing import Literal

from tilewright.units import packed_bytes

Role = Literal["input", "output", "constant", "activation"]
AttributeValue = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]

BIAS = "B"
"""The letter of an operand that is added to complete sums, of kinds that make sums."""

SUMS_SO_FAR = "S"
"""The letter of an operand from which an op's sums go on; no reader makes one."""

UNFINISHED = "unfinished"
"""The attribute, 1, of an op that leaves sums for another one to go on from."""

MAX_SIZE = 2**40
"""No dim and no axis may be longer: beyond it a file is broken, not big."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A value that is produced once, or given, and read any number of times."""

    name: str
    shape: tuple[int, ...]
    bits: int
    role: Role
    dtype: str = ""
    """Element type as the file names it (`float32`, `int8`); empty where a file gives only bits."""

    def __post_init__(self) -> None:
        if not 0 < self.bits <= 1024:
            raise ValueError(f"tensor {self.name!r}: {self.bits} bits per element")
        if any(not 0 <= size <= MAX_SIZE for size in self.shape):
            raise ValueError(f"tensor {self.name!r}: shape {self.shape} is not possible")

    @property
    def elements(self) -> int:
        """Number of elements; 1 for a scalar."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes taken when elements are densely packed."""
        return packed_bytes(self.elements, self.bits)


@dataclass(frozen=True, slots=True)
class Index:
    """A position along one axis: (Σ coefficient × loop + offset) / divisor.

    A point of the nest whose position lies outside the axis, or is not a whole number, touches no
    element there: it reads padding, and where the *output* is not touched there is no work at all.
    With a `reach` a point may touch every position from this one to (… + reach) / divisor: those
    that data decide, of a look-up along an axis, or those around its place, of a resize. Of a
    result it makes them all: a transposed convolution leaves gaps between its windows.
    """

    terms: tuple[tuple[str, int], ...]
    offset: int = 0
    divisor: int = 1
    reach: int = 0

    def __str__(self) -> str:
        parts = [dim if factor == 1 else f"{factor}*{dim}" for dim, factor in self.terms]
        text = " + ".join(parts) or "0"
        if self.offset:
            text += f" {'-' if self.offset < 0 else '+'} {abs(self.offset)}"
        text = text.replace("+ -1*", "- ").replace("+ -", "- ")
        if self.reach:
            text += f" + 0..{self.reach}"
        return text if self.divisor == 1 else f"({text}) / {self.divisor}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A tensor as one op sees it: the operand's letter, and where each point of the nest lands.

    `index` has one entry per axis of the tensor; None means that any element may be touched by any
    point (a look-up, a reshape that no affine index describes).
    """

    name: str
    tensor: str
    index: tuple[Index, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One loop nest. `outputs[0]` is the result; further outputs share its dims.

    Operands carry the letters of the field: `O` the result, `I` the first input, `W` the second
    (weights, or the other matrix or summand), `B` a bias. `coupled` names the dims along which the
    result depends on all elements (softmax, normalisation): a tile holds them whole.
    """

    name: str
    kind: str
    dims: tuple[tuple[str, int], ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    accumulator_bits: int
    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    coupled: tuple[str, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        """Loop sizes by dim."""
        return dict(self.dims)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Outputs, then inputs."""
        return self.outputs + self.inputs

    @property
    def points(self) -> int:
        """Points of the loop nest, those that touch no output included.

        A look-up takes one step for what it finds, however many places there are to look at.
        """
        searched = self.searched
        return prod(size for dim, size in self.dims if dim not in searched)

    @property
    def searched(self) -> tuple[str, ...]:
        """Loops of a look-up through the axes of its table in which it may find what it takes."""
        if self.kind != "gather":
            return ()
        walked = {dim for o in self.outputs for axis in o.index or () for dim, _ in axis.terms}
        return tuple(dim for dim, _ in self.dims if dim not in walked)

    def searches(self, operand: Operand) -> bool:
        """Whether data decide which elements of an operand are touched, along an axis or at all.

        Of a look-up that is its table: positions of several axes are read together, all of them.
        What reaches around the steps of a loop is a window: it is known what lies in it.
        """
        if self.kind == "gather" and operand.name != "I":
            return False
        loops = self.searched
        return operand.index is None or any(
            (axis.reach and not axis.terms) or any(dim in loops for dim, _ in axis.terms)
            for axis in operand.index
        )

    @property
    def goes_on(self) -> bool:
        """Whether its sums begin with those that another op has left."""
        return any(operand.name == SUMS_SO_FAR for operand in self.inputs)

    @property
    def is_unfinished(self) -> bool:
        """Whether it leaves its sums to another op."""
        return self.attribute(UNFINISHED, 0) == 1

    def attribute(self, key: str, default: AttributeValue = "") -> AttributeValue:
        """The attribute's value, or `default`."""
        return dict(self.attributes).get(key, default)


@dataclass(frozen=True, kw_only=True)
class Network:
    """Ops in topological order and every tensor they touch, inputs first."""

    name: str
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    source: str = ""
    """The file or zoo entry it was read from."""
    dims: tuple[tuple[str, int], ...] = ()
    """Sizes that its dynamic dims, or options of the zoo, were given when it was read."""
    bits: int | None = None
    """Bits that were asked for, if any were."""

    def __post_init__(self) -> None:
        if len(self.by_name) != len(self.tensors):
            raise ValueError(f"network {self.name!r}: tensor names repeat")
        known = {t.name for t in self.tensors if t.role in ("input", "constant")}
        for op in self.ops:
            missing = [o.tensor for o in op.inputs if o.tensor not in known]
            if missing:
                raise ValueError(f"op {op.name!r} reads {missing[0]!r} before it is made")
            known.update(o.tensor for o in op.outputs)
        if known != self.by_name.keys():
            lost = sorted(known.symmetric_difference(self.by_name))
            raise ValueError(f"network {self.name!r}: {lost[0]!r} is declared and made by no op")

    @cached_property
    def by_name(self) -> Mapping[str, Tensor]:
        """Tensors by name."""
        return {tensor.name: tensor for tensor in self.tensors}

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Tensors given from outside, in the order of the file."""
        return tuple(t for t in self.tensors if t.role == "input")

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Tensors handed out, in the order of the file."""
        return tuple(t for t in self.tensors if t.role == "output")

    def _repr_html_(self) -> str:
        text: str = import_module("tilewright.report.notebook").notebook_html(self)
        return text
