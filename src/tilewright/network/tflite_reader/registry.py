"""The operators that can be read: what each of them is, and the function that reads it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tilewright.network.tflite_reader import (
    arithmetic,
    lookups,
    products,
    rearrange,
    slices,
)
from tilewright.network.tflite_reader.call import Call, Step, not_known

WORKED_OUT = "constant"
"""Instead of a kind: the reader works the result out and no op is left."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The kind an operator's step has, and the function from a call and that kind to steps.

    The function raises ValueError, in words fit for a user, when the call makes no sense.
    """

    kind: str
    steps: Callable[[Call, str], tuple[Step, ...]]
    n_results: int | None = 1
    """How many tensors the operator makes; None for any number."""


def supported_ops() -> Mapping[str, str]:
    """TFLite's operators and the kind of op each becomes, `constant` for those that leave none."""
    return MappingProxyType({name: reading.kind for name, reading in READINGS.items()})


def _unknown(call: Call, kind: str) -> tuple[Step, ...]:
    raise not_known(f"its result, a {kind},")


_TWO_INPUTS = {
    "ADD": "add",
    "SUB": "sub",
    "MUL": "mul",
    "DIV": "div",
    "FLOOR_DIV": "floor_div",
    "FLOOR_MOD": "mod",
    "POW": "pow",
    "MINIMUM": "min",
    "MAXIMUM": "max",
    "SQUARED_DIFFERENCE": "squared_difference",
    "ATAN2": "atan2",
    "BITWISE_XOR": "bitwise_xor",
    "RIGHT_SHIFT": "bit_shift",
    "EQUAL": "equal",
    "NOT_EQUAL": "not_equal",
    "LESS": "less",
    "LESS_EQUAL": "less_or_equal",
    "GREATER": "greater",
    "GREATER_EQUAL": "greater_or_equal",
    "LOGICAL_AND": "and",
    "LOGICAL_OR": "or",
    "PRELU": "prelu",
}

_ONE_INPUT = {
    "LOGICAL_NOT": "not",
    "RELU": "relu",
    "RELU6": "relu6",
    "LEAKY_RELU": "leaky_relu",
    "ELU": "elu",
    "LOGISTIC": "sigmoid",
    "TANH": "tanh",
    "HARD_SWISH": "hard_swish",
    "GELU": "gelu",
    "EXP": "exp",
    "LOG": "log",
    "SQRT": "sqrt",
    "RSQRT": "rsqrt",
    "SQUARE": "square",
    "ABS": "abs",
    "NEG": "neg",
    "SIGN": "sign",
    "FLOOR": "floor",
    "CEIL": "ceil",
    "ROUND": "round",
    "SIN": "sin",
    "COS": "cos",
    "DEQUANTIZE": "dequantize",
}

_REDUCTIONS = {
    "MEAN": "reduce_mean",
    "SUM": "reduce_sum",
    "REDUCE_MAX": "reduce_max",
    "REDUCE_MIN": "reduce_min",
    "REDUCE_PROD": "reduce_prod",
    "REDUCE_ANY": "reduce_max",
    "REDUCE_ALL": "reduce_min",
}

READINGS: Mapping[str, Reading] = MappingProxyType(
    {
        "CONV_2D": Reading("conv", products.conv_2d),
        "DEPTHWISE_CONV_2D": Reading("conv", products.depthwise_conv_2d),
        "CONV_3D": Reading("conv", products.conv_3d),
        "TRANSPOSE_CONV": Reading("conv_transpose", products.transpose_conv),
        "CONV_3D_TRANSPOSE": Reading("conv_transpose", products.conv_3d_transpose),
        "FULLY_CONNECTED": Reading("matmul", products.fully_connected),
        "BATCH_MATMUL": Reading("matmul", products.batch_matmul),
        "AVERAGE_POOL_2D": Reading("average_pool", products.pool_2d),
        "MAX_POOL_2D": Reading("max_pool", products.pool_2d),
        "L2_POOL_2D": Reading("lp_pool", products.pool_2d),
        **{name: Reading(kind, arithmetic.two_each) for name, kind in _TWO_INPUTS.items()},
        **{name: Reading(kind, arithmetic.one_each) for name, kind in _ONE_INPUT.items()},
        "ADD_N": Reading("add", arithmetic.all_each),
        "SELECT_V2": Reading("where", arithmetic.three_each),
        "RELU_N1_TO_1": Reading("clip", arithmetic.clipped),
        "RELU_0_TO_1": Reading("clip", arithmetic.clipped),
        "QUANTIZE": Reading("quantize", arithmetic.quantize),
        "CAST": Reading("cast", arithmetic.cast),
        "SELECT": Reading("where", arithmetic.select),
        "SOFTMAX": Reading("softmax", arithmetic.along_last),
        "LOG_SOFTMAX": Reading("log_softmax", arithmetic.along_last),
        "L2_NORMALIZATION": Reading("l2_norm", arithmetic.along_last),
        "LOCAL_RESPONSE_NORMALIZATION": Reading("local_response_norm", arithmetic.along_last),
        "CUMSUM": Reading("cumsum", arithmetic.cumsum),
        **{name: Reading(kind, arithmetic.reduction) for name, kind in _REDUCTIONS.items()},
        "ARG_MAX": Reading("arg_max", arithmetic.arg_extreme),
        "ARG_MIN": Reading("arg_min", arithmetic.arg_extreme),
        "TOPK_V2": Reading("top_k", arithmetic.top_k, 2),
        "ONE_HOT": Reading("one_hot", arithmetic.one_hot),
        "CONCATENATION": Reading("concat", slices.concatenation),
        "PACK": Reading("concat", slices.pack),
        "UNPACK": Reading("slice", slices.unpack, None),
        "SPLIT": Reading("slice", slices.split, None),
        "SPLIT_V": Reading("slice", slices.split_v, None),
        "SLICE": Reading("slice", slices.slice_of),
        "STRIDED_SLICE": Reading("slice", slices.strided_slice),
        "PAD": Reading("pad", slices.pad),
        "PADV2": Reading("pad", slices.pad),
        "MIRROR_PAD": Reading("pad", slices.mirror_pad),
        "REVERSE_V2": Reading("reverse", slices.reverse),
        "RESHAPE": Reading("reshape", rearrange.reshape),
        "SQUEEZE": Reading("reshape", rearrange.squeeze),
        "EXPAND_DIMS": Reading("reshape", rearrange.expand_dims),
        "TRANSPOSE": Reading("transpose", rearrange.transpose),
        "BROADCAST_TO": Reading("expand", rearrange.broadcast_to),
        "TILE": Reading("tile", rearrange.tile),
        "FILL": Reading("expand", rearrange.fill),
        "DEPTH_TO_SPACE": Reading("depth_to_space", rearrange.space_blocks),
        "SPACE_TO_DEPTH": Reading("space_to_depth", rearrange.space_blocks),
        "SPACE_TO_BATCH_ND": Reading("space_to_batch", rearrange.space_to_batch),
        "BATCH_TO_SPACE_ND": Reading("batch_to_space", rearrange.batch_to_space),
        "RESIZE_BILINEAR": Reading("resize", rearrange.resize),
        "RESIZE_NEAREST_NEIGHBOR": Reading("resize", rearrange.resize),
        "GATHER": Reading("gather", lookups.gather),
        "GATHER_ND": Reading("gather", lookups.gather_nd),
        "EMBEDDING_LOOKUP": Reading("gather", lookups.embedding_lookup),
        "SCATTER_ND": Reading("scatter", lookups.scatter_nd),
        "DYNAMIC_UPDATE_SLICE": Reading("scatter", lookups.update_slice),
        "SHAPE": Reading(WORKED_OUT, _unknown),
        "RANK": Reading(WORKED_OUT, _unknown),
        "RANGE": Reading(WORKED_OUT, _unknown),
        "DENSIFY": Reading(WORKED_OUT, _unknown),
    }
)
"""Every operator that can be read, by its name in TFLite's schema."""
