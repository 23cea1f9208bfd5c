"""Ops made of nests alone, without a network around them."""

from tilewright.network.graph import Op, Operand
from tilewright.network.nests import Nest


def op_of(kind: str, nest: Nest) -> Op:
    """An op that reads I, W and B, as far as its nest has inputs, and writes O."""
    return Op(
        name="op",
        kind=kind,
        dims=nest.dims,
        inputs=tuple(
            Operand(name=name, tensor=name, index=index)
            for name, index in zip(("I", "W", "B"), nest.inputs, strict=False)
        ),
        outputs=(Operand(name="O", tensor="O", index=nest.output),),
        accumulator_bits=32,
        coupled=nest.coupled,
    )
