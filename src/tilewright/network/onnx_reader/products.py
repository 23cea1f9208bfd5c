"""Matrix products and einsums."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import prod
from string import ascii_letters

from tilewright.network.graph import AttributeValue, Index
from tilewright.network.nests import Indices, Nest, Shape, einsum, matmul, reduce
from tilewright.network.onnx_reader.call import (
    Call,
    Rule,
    Step,
    Value,
    main_step,
    with_operands,
)
from tilewright.network.onnx_reader.composition import Composition
from tilewright.network.onnx_reader.elements import FLOAT32, INT32
from tilewright.network.onnx_reader.shapes import spread


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    return {
        "MatMul": Rule("matmul", _matmul),
        "MatMulInteger": Rule("matmul", _matmul_integer),
        "QLinearMatMul": Rule("matmul", _quantised_matmul),
        "Gemm": Rule("matmul", _gemm),
        "Einsum": Rule("matmul", _einsum),
        "com.microsoft.FusedMatMul": Rule("matmul", _fused_matmul),
        "com.microsoft.FusedGemm": Rule("matmul", _gemm),
        "com.microsoft.MatMulIntegerToFloat": Rule("matmul", _matmul_to_float),
        "com.microsoft.DynamicQuantizeMatMul": Rule("matmul", _dynamic_matmul),
        "com.microsoft.QGemm": Rule("matmul", _quantised_gemm),
    }


def _matmul(call: Call) -> list[Step]:
    nest = matmul(call.shape(0), call.shape(1))
    return [main_step(call, "matmul", nest, [call.value(0), call.value(1)])]


def _matmul_integer(call: Call) -> list[Step]:
    """Operands a, b, no bias, then the zero points of a and b."""
    nest = matmul(call.shape(0), call.shape(1))
    inputs = [call.value(0), call.value(1), None, call.get(2), call.get(3)]
    nest = _with_parameters(nest, inputs, "DK")
    return [main_step(call, "matmul", nest, inputs, element=INT32)]


def _quantised_matmul(call: Call) -> list[Step]:
    """Operands a, b, no bias, then scale and zero point of a, of b and of the result."""
    nest = matmul(call.shape(0), call.shape(3))
    inputs = [call.value(0), call.value(3), None]
    inputs += [call.get(i) for i in (1, 2, 4, 5, 6, 7)]
    nest = _with_parameters(nest, inputs, "DDKKKK")
    return [main_step(call, "matmul", nest, inputs, element=call.value(7).element)]


def _matmul_to_float(call: Call) -> list[Step]:
    """Operands a, b, bias, then scales of a and b, zero points of a and b."""
    nest = matmul(call.shape(0), call.shape(1))
    inputs = [call.value(0), call.value(1), *(call.get(i) for i in (6, 2, 3, 4, 5))]
    nest = _with_parameters(nest, inputs, "DKDK")
    return [main_step(call, "matmul", nest, inputs, element=call.value(2).element)]


def _dynamic_matmul(call: Call) -> list[Step]:
    """Operands a, b, bias, then scale and zero point of b."""
    nest = matmul(call.shape(0), call.shape(1))
    inputs = [call.value(0), call.value(1), *(call.get(i) for i in (4, 2, 3))]
    nest = _with_parameters(nest, inputs, "KK")
    return [main_step(call, "matmul", nest, inputs)]


def _fused_matmul(call: Call) -> list[Step]:
    """A product of flipped or scaled factors; rows may lie outside of the batch axes."""
    left, right = call.shape(0), call.shape(1)
    rows_first = [call.flag("transBatchA"), call.flag("transBatchB")]
    flip_left, flip_right = call.flag("transA"), call.flag("transB")
    if rows_first[0]:
        left = _rows_last(left)
    if rows_first[1]:
        right = _rows_last(right)
    nest = matmul(left, right, transpose_left=flip_left, transpose_right=flip_right)
    places = zip(nest.inputs, rows_first, strict=True)
    inputs = tuple((i[-2], *i[:-2], i[-1]) if i and first else i for i, first in places)
    nest = replace(nest, inputs=inputs)
    attributes: dict[str, AttributeValue] = {
        "alpha": call.number("alpha", 1),
        "transA": int(flip_left),
        "transB": int(flip_right),
    }
    return [main_step(call, "matmul", nest, [call.value(0), call.value(1)], attributes=attributes)]


def _rows_last(shape: Shape) -> Shape:
    """A shape whose first axis is moved behind the batch axes."""
    if len(shape) < 3:
        raise ValueError(f"shape {shape} has no batch axes to lie inside its rows")
    return (*shape[1:-1], shape[0], shape[-1])


def _gemm(call: Call) -> list[Step]:
    nest, attributes = _gemm_nest(call, call.shape(0), call.shape(1))
    attributes["beta"] = call.number("beta", 1)
    if call.node.op_type == "FusedGemm":
        attributes["activation"] = call.text("activation", "")
    inputs = [call.value(0), call.value(1), call.get(2)]
    nest = _with_parameters(nest, inputs, "")
    return [main_step(call, "matmul", nest, inputs, attributes=attributes)]


def _quantised_gemm(call: Call) -> list[Step]:
    """Operands a, b, bias, then scale and zero point of a, of b and of the result."""
    nest, attributes = _gemm_nest(call, call.shape(0), call.shape(3))
    inputs = [call.value(0), call.value(3), call.get(6)]
    inputs += [call.get(i) for i in (1, 2, 4, 5, 7, 8)]
    nest = _with_parameters(nest, inputs, "DDKKKK")
    zero_point = call.get(8)
    element = zero_point.element if zero_point is not None else FLOAT32
    return [main_step(call, "matmul", nest, inputs, element=element, attributes=attributes)]


def _gemm_nest(call: Call, left: Shape, right: Shape) -> tuple[Nest, dict[str, AttributeValue]]:
    if len(left) != 2 or len(right) != 2:
        raise ValueError(f"two matrices are needed, not shapes {left} and {right}")
    flip_left, flip_right = call.flag("transA"), call.flag("transB")
    nest = matmul(left, right, transpose_left=flip_left, transpose_right=flip_right)
    attributes: dict[str, AttributeValue] = {
        "alpha": call.number("alpha", 1),
        "transA": int(flip_left),
        "transB": int(flip_right),
    }
    return nest, attributes


def _with_parameters(nest: Nest, inputs: Sequence[Value | None], along: str) -> Nest:
    """Places a bias under the result, and each scale or zero point behind it.

    `along` has the dim of each of them that has more than one element: rows D or columns K.
    """
    placed = with_operands(nest, inputs[2:3], partial(spread, nest=nest))
    for value, dim in zip(inputs[3:], along, strict=True):
        placed = with_operands(placed, [value], partial(_parameter, nest, dim))
    return placed


def _parameter(nest: Nest, dim: str, shape: Shape) -> Indices | None:
    """One element, or one per row or column; None where it is more than that."""
    if all(size == 1 for size in shape):
        return tuple(Index(()) for _ in shape)
    size = dict(nest.dims).get(dim)
    return (Index(((dim, 1),)),) if shape == (size,) else None


def _einsum(call: Call) -> list[Step]:
    values = call.all_values()
    shapes = [value.shape for value in values]
    equation = plain_equation(call.text("equation"), shapes)
    attributes: dict[str, AttributeValue] = {"equation": equation}
    if len(values) > 1:
        return _pairwise(call, equation, list(values))
    kind, nest, more = _single_operand(equation, shapes[0])
    attributes |= more
    return [main_step(call, kind, nest, values, attributes=attributes)]


def _pairwise(call: Call, equation: str, values: list[Value]) -> list[Step]:
    """Products of two factors until one is left, of those with the fewest points first."""
    inputs, _, output = equation.partition("->")
    terms = inputs.split(",")
    sizes: dict[str, int] = {}
    for term, value in zip(terms, values, strict=True):
        for label, size in zip(term, value.shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    ops = Composition(call)
    while len(values) > 2:
        pairs = combinations(range(len(values)), 2)
        first, second = min(
            pairs, key=lambda p: (prod(sizes[c] for c in {*terms[p[0]], *terms[p[1]]}), p)
        )
        others = [i for i in range(len(values)) if i not in (first, second)]
        needed = {*output, *(label for i in others for label in terms[i])}
        kept = "".join(c for c in dict.fromkeys(terms[first] + terms[second]) if c in needed)
        pair, factors = f"{terms[first]},{terms[second]}->{kept}", [values[first], values[second]]
        nest = einsum(pair, *(value.shape for value in factors))
        made = ops.add("matmul", pair, nest, factors, {"equation": pair})
        terms = [*(terms[i] for i in others), kept]
        values = [*(values[i] for i in others), made]
    last = f"{','.join(terms)}->{output}"
    nest = einsum(last, *(value.shape for value in values))
    return [*ops.steps, main_step(call, "matmul", nest, values, attributes={"equation": last})]


def _single_operand(equation: str, data: Shape) -> tuple[str, Nest, dict[str, AttributeValue]]:
    """An einsum of one operand: a transpose, or a sum over the axes that the result lacks."""
    term, _, output = equation.partition("->")
    if len(set(term)) != len(term) or len(set(output)) != len(output):
        raise ValueError(f"equation {equation!r}: a label repeats within one operand")
    if not set(output) <= set(term):
        raise ValueError(f"equation {equation!r}: the result has a label that no operand has")
    summed = [i for i, label in enumerate(term) if label not in output]
    kept = [label for label in term if label in output]
    order = [kept.index(label) for label in output]
    nest = reduce(data, summed, keep_dims=False)
    assert nest.output is not None
    nest = replace(
        nest,
        shape=tuple(nest.shape[i] for i in order),
        output=tuple(nest.output[i] for i in order),
    )
    if not summed:
        return "transpose", nest, {"perm": tuple(order)}
    return "reduce_sum", nest, {"axes": tuple(summed), "keepdims": 0}


def plain_equation(equation: str, shapes: Sequence[Shape]) -> str:
    """The equation with its result written out and a label for every axis under an ellipsis.

    >>> plain_equation("...ij,jk", [(2, 3, 4), (4, 5)])
    'aij,jk->aik'
    """
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(shapes):
        raise ValueError(f"equation {equation!r} has {len(terms)} operands, not {len(shapes)}")
    free = [letter for letter in ascii_letters if letter not in equation]
    hidden = [
        len(shape) - len(term) + 3 if "..." in term else 0
        for term, shape in zip(terms, shapes, strict=True)
    ]
    if min(hidden) < 0 or max(hidden) > len(free):
        raise ValueError(f"equation {equation!r} does not describe shapes {tuple(shapes)}")
    labels = "".join(free[: max(hidden)])
    terms = [
        term.replace("...", labels[len(labels) - count :], 1)
        for term, count in zip(terms, hidden, strict=True)
    ]
    if arrow:
        output = output.replace("...", labels, 1)
    else:
        counts = Counter("".join(terms))
        output = labels + "".join(sorted(c for c in counts if counts[c] == 1 and c not in labels))
    if not set("".join(terms) + output) <= set(ascii_letters):
        raise ValueError(f"equation {equation!r}: labels must be letters")
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            raise ValueError(f"equation {equation!r} does not describe shapes {tuple(shapes)}")
    return f"{','.join(terms)}->{output}"
