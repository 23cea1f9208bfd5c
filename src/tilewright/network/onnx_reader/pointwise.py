"""Operators that work element by element: arithmetic, comparison, logic, activations, casts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from tilewright.network.graph import AttributeValue
from tilewright.network.nests import Nest, Shape, elementwise
from tilewright.network.onnx_reader.call import (
    Builder,
    Call,
    NodeError,
    Rule,
    Step,
    Value,
    known_number,
    main_step,
    with_operands,
)
from tilewright.network.onnx_reader.elements import BOOL, ElementType, element_type
from tilewright.network.onnx_reader.shapes import spread

_UNARY = """
Relu relu  Sigmoid sigmoid  Tanh tanh  Softplus softplus  Softsign softsign  Erf erf  Mish mish
HardSwish hard_swish  Exp exp  Log log  Sqrt sqrt  Reciprocal reciprocal  Abs abs  Neg neg
Sign sign  Floor floor  Ceil ceil  Round round  Sin sin  Cos cos  Tan tan  Asin asin  Acos acos
Atan atan  Sinh sinh  Cosh cosh  Asinh asinh  Acosh acosh  Atanh atanh  BitwiseNot bitwise_not
LeakyRelu leaky_relu  Elu elu  Selu selu  Celu celu  ThresholdedRelu thresholded_relu
HardSigmoid hard_sigmoid  Swish swish  Shrink shrink  com.microsoft.QuickGelu swish
"""
_PREDICATES = "IsNaN is_nan  IsInf is_inf  Not not"
_ARITHMETIC = """
Add add  Sub sub  Mul mul  Div div  Pow pow  Sum add  Min min  Max max  Mean mean
BitwiseAnd bitwise_and  BitwiseOr bitwise_or  BitwiseXor bitwise_xor
"""
_COMPARISONS = """
Equal equal  Less less  Greater greater  LessOrEqual less_or_equal
GreaterOrEqual greater_or_equal  And and  Or or  Xor xor
"""
_DEFAULTS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "LeakyRelu": {"alpha": 0.01},
        "Elu": {"alpha": 1.0},
        "Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
        "Celu": {"alpha": 1.0},
        "ThresholdedRelu": {"alpha": 1.0},
        "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
        "Swish": {"alpha": 1.0},
        "QuickGelu": {"alpha": 1.702},
        "Shrink": {"bias": 0.0, "lambd": 0.5},
        "IsInf": {"detect_negative": 1.0, "detect_positive": 1.0},
    }
)
"""Attributes that are numbers, with ONNX's defaults."""


def rules() -> dict[str, Rule]:
    """Rules by operator."""
    found = {
        "PRelu": Rule("prelu", _prelu),
        "Clip": Rule("clip", _clip),
        "Gelu": Rule("gelu", _gelu),
        "com.microsoft.Gelu": Rule("gelu", _gelu),
        "com.microsoft.FastGelu": Rule("gelu", _gelu),
        "com.microsoft.BiasGelu": Rule("gelu", _gelu),
        "Where": Rule("where", _where),
        "BitShift": Rule("bit_shift", _bit_shift),
        "Mod": Rule("mod", _mod),
        "Identity": Rule("identity", _unary("identity")),
        "Dropout": Rule("identity", _dropout),
        "Cast": Rule("cast", _cast),
        "CastLike": Rule("cast", _cast_like),
        "Trilu": Rule("trilu", _trilu),
    }
    found |= {name: Rule(kind, _unary(kind)) for name, kind in _pairs(_UNARY)}
    found |= {name: Rule(kind, _unary(kind, BOOL)) for name, kind in _pairs(_PREDICATES)}
    found |= {name: Rule(kind, _variadic(kind)) for name, kind in _pairs(_ARITHMETIC)}
    found |= {name: Rule(kind, _variadic(kind, BOOL)) for name, kind in _pairs(_COMPARISONS)}
    return found


def _pairs(table: str) -> list[tuple[str, str]]:
    words = table.split()
    return list(zip(words[::2], words[1::2], strict=True))


def _unary(kind: str, element: ElementType | None = None) -> Builder:
    def build(call: Call) -> list[Step]:
        nest = elementwise(call.shape(0))
        attributes = _numbers(call)
        inputs = [call.value(0)]
        return [main_step(call, kind, nest, inputs, element=element, attributes=attributes)]

    return build


def _variadic(kind: str, element: ElementType | None = None) -> Builder:
    def build(call: Call) -> list[Step]:
        values = call.all_values()
        nest = _broadcasting(call, [value.shape for value in values])
        return [main_step(call, kind, nest, values, element=element)]

    return build


def _numbers(call: Call) -> dict[str, AttributeValue]:
    defaults = _DEFAULTS.get(call.node.op_type, {})
    return {key: call.number(key, default) for key, default in defaults.items()}


def _broadcasting(call: Call, shapes: Sequence[Shape]) -> Nest:
    """NumPy's broadcasting, or, before opset 7, the second operand under an axis of the first."""
    if call.opset >= 7 or not call.flag("broadcast") or len(shapes) != 2:
        return elementwise(*shapes)
    nest = elementwise(shapes[0])
    axis = call.integer("axis") if "axis" in call.node.attributes else None
    return replace(nest, inputs=(*nest.inputs, spread(shapes[1], nest, axis=axis)))


def _prelu(call: Call) -> list[Step]:
    data, slope = call.shape(0), call.shape(1)
    nest = elementwise(data)
    # Before opset 7 a slope has one element per channel.
    axis = 1 if call.opset < 7 and len(slope) == 1 and len(data) > 1 and slope != (1,) else None
    nest = replace(nest, inputs=(*nest.inputs, spread(slope, nest, axis=axis)))
    return [main_step(call, "prelu", nest, [call.value(0), call.value(1)])]


def _clip(call: Call) -> list[Step]:
    """Bounds that are known become attributes; others stay operands."""
    attributes: dict[str, AttributeValue] = {}
    inputs: list[Value | None] = [call.value(0), None, None]
    for position, key in ((1, "min"), (2, "max")):
        bound = call.get(position)
        if call.opset < 11:
            if key in call.node.attributes:
                attributes[key] = call.number(key, 0)
        elif bound is not None:
            number = known_number(bound)
            if number is None:
                inputs[position] = bound
            else:
                attributes[key] = number
    own = elementwise(call.shape(0))
    nest = with_operands(own, inputs[1:], partial(spread, nest=own))
    return [main_step(call, "clip", nest, inputs, attributes=attributes)]


def _gelu(call: Call) -> list[Step]:
    """GELU; a second operand is a bias, added before."""
    tanh = call.node.op_type == "FastGelu" or call.choice("approximate", _GELUS) == "tanh"
    own = elementwise(call.shape(0))
    values = [call.value(0), call.get(1)]
    nest = with_operands(own, values[1:], partial(spread, nest=own))
    attributes = {"approximate": "tanh" if tanh else "none"}
    return [main_step(call, "gelu", nest, values, attributes=attributes)]


_GELUS = ("none", "tanh")


def _where(call: Call) -> list[Step]:
    values = [call.value(i) for i in range(3)]
    nest = elementwise(*(value.shape for value in values))
    return [main_step(call, "where", nest, values, element=values[1].element)]


def _bit_shift(call: Call) -> list[Step]:
    direction = call.text("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise ValueError(f"attribute 'direction' is {direction!r}, not LEFT or RIGHT")
    nest = elementwise(call.shape(0), call.shape(1))
    values = [call.value(0), call.value(1)]
    return [main_step(call, "bit_shift", nest, values, attributes={"direction": direction})]


def _mod(call: Call) -> list[Step]:
    nest = elementwise(call.shape(0), call.shape(1))
    attributes = {"fmod": call.integer("fmod", 0)}
    values = [call.value(0), call.value(1)]
    return [main_step(call, "mod", nest, values, attributes=attributes)]


def _dropout(call: Call) -> list[Step]:
    """An identity; the mask is all true, a constant."""
    if call.has(2) and call.integer_at(2):
        raise NodeError("it drops elements", "export the model for inference, not for training")
    nest = elementwise(call.shape(0))
    step = main_step(call, "identity", nest, [call.value(0)])
    if not call.output(1):
        return [step]
    element = BOOL if call.opset >= 10 else call.value(0).element
    mask = replace(
        step,
        nest=replace(nest, inputs=()),
        inputs=(),
        outputs=((call.output(1), element),),
        result="1",
    )
    return [step, mask]


def _cast(call: Call) -> list[Step]:
    return [_cast_to(call, element_type(call.integer("to")))]


def _cast_like(call: Call) -> list[Step]:
    return [_cast_to(call, call.value(1).element)]


def _cast_to(call: Call, element: ElementType) -> Step:
    nest = elementwise(call.shape(0))
    attributes = {"to": element.name}
    return main_step(call, "cast", nest, [call.value(0)], element=element, attributes=attributes)


def _trilu(call: Call) -> list[Step]:
    if len(call.shape(0)) < 2:
        raise ValueError(f"shape {call.shape(0)} has no triangle")
    attributes: dict[str, AttributeValue] = {
        "upper": call.integer("upper", 1),
        "k": call.integer_at(1) if call.has(1) else 0,
    }
    nest = elementwise(call.shape(0))
    return [main_step(call, "trilu", nest, [call.value(0)], attributes=attributes)]
