"""The order problem of a network: its ops and the bytes of its activations."""

from collections.abc import Sequence
from typing import Final

from tilewright.network.graph import Network, Op, Tensor
from tilewright.program.order import OrderOp, OrderProblem

SMALL: Final = 256
"""Ops that make no more than this part of the largest tensor can wait for nothing."""

_SAME_BYTES: Final = ("identity", "reshape")
_ELEMENT_WISE_KINDS = """
add sub mul div pow mod min max mean atan2 bit_shift prelu where
and or xor not bitwise_and bitwise_or bitwise_xor bitwise_not
relu relu6 leaky_relu elu selu celu thresholded_relu clip shrink
sigmoid hard_sigmoid hard_swish swish mish tanh softplus softsign gelu erf
exp log sqrt rsqrt reciprocal abs neg sign floor ceil round square squared_difference floor_div
sin cos tan asin acos atan sinh cosh asinh acosh atanh
quantize dequantize requantize cast
"""
_ELEMENT_WISE: Final = frozenset(_ELEMENT_WISE_KINDS.split())


def problem_of(
    network: Network, *, in_place: bool = True, inputs_wait: bool = True
) -> OrderProblem:
    """Which orders the network's ops may have, and the bytes of the tensors between them.

    Constants are left out: they are copied when their op needs them, whatever the order; and so are
    inputs, unless `inputs_wait` for the last op that reads them. With `in_place`, element-wise ops
    and reshapes may write over what they are the last to read.
    """
    left_out = ("constant",) if inputs_wait else ("constant", "input")
    tensors = [tensor for tensor in network.tensors if tensor.role not in left_out]
    number = {tensor.name: position for position, tensor in enumerate(tensors)}
    return OrderProblem(
        ops=tuple(
            OrderOp(
                name=op.name,
                reads=_numbers([operand.tensor for operand in op.inputs], number),
                writes=_numbers([operand.tensor for operand in op.outputs], number),
                in_place=in_place and _may_overwrite(op, network),
            )
            for op in network.ops
        ),
        sizes_bytes=tuple(tensor.size_bytes for tensor in tensors),
        inputs=_with_role(tensors, "input"),
        outputs=_with_role(tensors, "output"),
    )


def small_ops_first(network: Network, order: Sequence[Op]) -> tuple[Op, ...]:
    """The order with ops that make next to nothing as early as they can run.

    Between two others they would keep these from running side by side.
    """
    largest = max((t.size_bytes for t in network.tensors if t.role == "activation"), default=0)
    known = {t.name for t in network.tensors if t.role in ("input", "constant")}
    found: list[Op] = []
    left = list(order)
    while left:
        ready = (
            at
            for at, op in enumerate(left)
            if _made_bytes(network, op) * SMALL <= largest
            and all(operand.tensor in known for operand in op.inputs)
        )
        found.append(left.pop(next(ready, 0)))
        known.update(operand.tensor for operand in found[-1].outputs)
    return tuple(found)


def _made_bytes(network: Network, op: Op) -> int:
    return sum(network.by_name[operand.tensor].size_bytes for operand in op.outputs)


def _with_role(tensors: list[Tensor], role: str) -> tuple[int, ...]:
    return tuple(number for number, tensor in enumerate(tensors) if tensor.role == role)


def _numbers(names: list[str], number: dict[str, int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(number[name] for name in names if name in number))


def _may_overwrite(op: Op, network: Network) -> bool:
    """Whether every point of the op reads, of the first tensor of its result's size, only that
    element in whose place it writes."""
    result = op.outputs[0]
    size = network.by_name[result.tensor].size_bytes
    read = [operand.tensor for operand in op.inputs]
    alike = (
        network.by_name[name]
        for name in read
        if network.by_name[name].role != "constant" and network.by_name[name].size_bytes == size
    )
    first = next(alike, None)
    if first is None:
        return False
    if op.kind in _SAME_BYTES:
        return True
    return op.kind in _ELEMENT_WISE and all(
        operand.index == result.index for operand in op.inputs if operand.tensor == first.name
    )
