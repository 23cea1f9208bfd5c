"""One tiny model per operator and way of using it, with the result's shape worked out by hand."""

from tests.unit.network.tflite_case import Case, case_of, data, in_steps, opaque, weights
from tests.unit.network.tflite_models import Options, constant
from tests.unit.network.tflite_move_cases import MOVE_CASES

SAME, VALID = 0, 1


def _conv(padding: int, stride: int = 1, dilation: int = 1) -> Options:
    fields = {"StrideH": stride, "StrideW": stride}
    fields |= {"DilationHFactor": dilation, "DilationWFactor": dilation}
    return ("Conv2DOptions", {"Padding": padding, **fields})


def _depthwise(padding: int, stride: int, multiplier: int) -> Options:
    fields = {"StrideH": stride, "StrideW": stride, "DepthMultiplier": multiplier}
    return ("DepthwiseConv2DOptions", {"Padding": padding, **fields})


def _pool(padding: int, height: int, width: int, stride: int) -> Options:
    fields = {"StrideH": stride, "StrideW": stride, "FilterHeight": height, "FilterWidth": width}
    return ("Pool2DOptions", {"Padding": padding, **fields})


_IMAGE = data(1, 7, 6, 4)
_CONV_INPUTS = {"x": _IMAGE, "w": weights(5, 3, 3, 4), "b": weights(5)}
_WITH_RELU: Options = ("FullyConnectedOptions", {"FusedActivationFunction": 1})
_KEEP_NUM_DIMS: Options = ("FullyConnectedOptions", {"KeepNumDims": True})
_DOUBLED_SAME: Options = ("TransposeConvOptions", {"Padding": SAME, "StrideH": 2, "StrideW": 2})
_DOUBLED_VALID: Options = ("TransposeConvOptions", {"Padding": VALID, "StrideH": 2, "StrideW": 2})
_STEPS_3D = {"StrideD": 1, "StrideH": 2, "StrideW": 1, "Padding": SAME}
_PRODUCTS: dict[str, Case] = {
    # SAME keeps 7 x 6.
    "conv same": case_of("CONV_2D", _CONV_INPUTS, (1, 7, 6, 5), "conv", _conv(SAME)),
    # ceil(7 / 2) x ceil(6 / 2).
    "conv same stride 2": case_of("CONV_2D", _CONV_INPUTS, (1, 4, 3, 5), "conv", _conv(SAME, 2)),
    # (7 - 3) + 1 x (6 - 3) + 1.
    "conv valid": case_of("CONV_2D", _CONV_INPUTS, (1, 5, 4, 5), "conv", _conv(VALID)),
    # floor((7 - 3) / 2) + 1 x floor((6 - 3) / 2) + 1.
    "conv valid stride 2": case_of("CONV_2D", _CONV_INPUTS, (1, 3, 2, 5), "conv", _conv(VALID, 2)),
    # Dilation 2 makes the kernel reach over 5: 7 - 5 + 1 x 6 - 5 + 1.
    "conv valid dilation 2": case_of(
        "CONV_2D", _CONV_INPUTS, (1, 3, 2, 5), "conv", _conv(VALID, 1, 2)
    ),
    "conv same dilation 2": case_of(
        "CONV_2D", _CONV_INPUTS, (1, 7, 6, 5), "conv", _conv(SAME, 1, 2)
    ),
    # Weights for 2 of 4 channels: 2 groups.
    "conv in groups": case_of(
        "CONV_2D",
        {"x": _IMAGE, "w": weights(6, 3, 3, 2), "b": weights(6)},
        (1, 7, 6, 6),
        "conv",
        _conv(SAME),
    ),
    "depthwise multiplier 2": case_of(
        "DEPTHWISE_CONV_2D",
        {"x": _IMAGE, "w": weights(1, 3, 3, 8), "b": weights(8)},
        (1, 4, 3, 8),
        "conv",
        _depthwise(SAME, 2, 2),
    ),
    "depthwise valid": case_of(
        "DEPTHWISE_CONV_2D",
        {"x": _IMAGE, "w": weights(1, 3, 2, 4), "b": weights(4)},
        (1, 5, 5, 4),
        "conv",
        _depthwise(VALID, 1, 1),
    ),
    "depthwise of one channel": case_of(
        "DEPTHWISE_CONV_2D",
        {"x": data(1, 7, 6, 1), "w": weights(1, 3, 3, 4), "b": weights(4)},
        (1, 7, 6, 4),
        "conv",
        _depthwise(SAME, 1, 4),
    ),
    # The shape is given; 4 x 3 doubled.
    "transpose conv same": case_of(
        "TRANSPOSE_CONV",
        {"shape": constant([1, 8, 6, 5]), "w": weights(5, 3, 3, 2), "x": data(1, 4, 3, 2)},
        (1, 8, 6, 5),
        "conv_transpose",
        _DOUBLED_SAME,
    ),
    # (4 - 1) * 2 + 3 x (3 - 1) * 2 + 3.
    "transpose conv valid": case_of(
        "TRANSPOSE_CONV",
        {
            "shape": constant([1, 9, 7, 5]),
            "w": weights(5, 3, 3, 2),
            "x": data(1, 4, 3, 2),
            "b": weights(5),
        },
        (1, 9, 7, 5),
        "conv_transpose",
        _DOUBLED_VALID,
    ),
    "conv 3d": case_of(
        "CONV_3D",
        {"x": data(1, 3, 5, 4, 2), "w": weights(2, 3, 3, 2, 4)},
        (1, 3, 3, 4, 4),
        "conv",
        ("Conv3DOptions", _STEPS_3D),
    ),
    "conv 3d transpose": case_of(
        "CONV_3D_TRANSPOSE",
        {
            "shape": constant([1, 3, 6, 4, 2]),
            "w": weights(1, 3, 3, 2, 4),
            "x": data(1, 3, 3, 4, 4),
        },
        (1, 3, 6, 4, 2),
        "conv_transpose",
        ("Conv3DOptions", _STEPS_3D),
    ),
    "fully connected": case_of(
        "FULLY_CONNECTED",
        {"x": data(2, 6), "w": weights(3, 6), "b": weights(3)},
        (2, 3),
        "matmul",
        _KEEP_NUM_DIMS,
    ),
    # 2 * 4 rows of 6.
    "fully connected rows": case_of(
        "FULLY_CONNECTED",
        {"x": data(2, 4, 6), "w": weights(3, 6), "b": weights(3)},
        (8, 3),
        "matmul",
    ),
    "fully connected keeps axes": case_of(
        "FULLY_CONNECTED",
        {"x": data(2, 4, 6), "w": weights(3, 6)},
        (2, 4, 3),
        "matmul",
        _KEEP_NUM_DIMS,
    ),
    # 1 * 2 * 2 * 3 elements in rows of 12.
    "fully connected flattens": in_steps(
        2,
        case_of(
            "FULLY_CONNECTED",
            {"x": data(1, 2, 2, 3), "w": weights(5, 12), "b": weights(5)},
            (1, 5),
            "matmul",
        ),
    ),
    "fully connected with relu": opaque(
        case_of(
            "FULLY_CONNECTED",
            {"x": data(2, 6), "w": weights(3, 6)},
            (2, 3),
            "matmul",
            _WITH_RELU,
        )
    ),
    "batch matmul": case_of(
        "BATCH_MATMUL",
        {"x": data(2, 3, 4, 5), "z": data(2, 3, 5, 6)},
        (2, 3, 4, 6),
        "matmul",
    ),
    "batch matmul transposed": case_of(
        "BATCH_MATMUL",
        {"x": data(3, 5, 4), "z": data(3, 6, 5)},
        (3, 4, 6),
        "matmul",
        ("BatchMatMulOptions", {"AdjX": True, "AdjY": True}),
    ),
    "batch matmul broadcast": case_of(
        "BATCH_MATMUL",
        {"x": data(2, 4, 5), "w": weights(5, 6)},
        (2, 4, 6),
        "matmul",
    ),
    # ceil(7 / 2) x ceil(6 / 2); floor((7 - 3) / 2) + 1 x floor((6 - 2) / 2) + 1.
    "average pool same": case_of(
        "AVERAGE_POOL_2D", {"x": _IMAGE}, (1, 4, 3, 4), "average_pool", _pool(SAME, 3, 3, 2)
    ),
    "max pool valid": case_of(
        "MAX_POOL_2D", {"x": _IMAGE}, (1, 3, 3, 4), "max_pool", _pool(VALID, 3, 2, 2)
    ),
    "l2 pool": opaque(
        case_of("L2_POOL_2D", {"x": _IMAGE}, (1, 7, 6, 4), "lp_pool", _pool(SAME, 3, 3, 1))
    ),
}

_SMALL_IMAGE = data(1, 3, 4, 5)
_HEIGHT_AND_WIDTH = constant([1, 2])
_KEEP_DIMS: Options = ("ReducerOptions", {"KeepDims": True})
_ARITHMETIC: dict[str, Case] = {
    "add": case_of("ADD", {"x": _SMALL_IMAGE, "z": data(4, 1)}, (1, 3, 4, 5), "add"),
    "add n": opaque(
        case_of(
            "ADD_N", {"x": _SMALL_IMAGE, "y": _SMALL_IMAGE, "z": _SMALL_IMAGE}, (1, 3, 4, 5), "add"
        )
    ),
    "mul": case_of("MUL", {"x": data(2, 1), "w": weights(3)}, (2, 3), "mul"),
    "sub": case_of("SUB", {"w": weights(3), "x": data(2, 1)}, (2, 3), "sub"),
    "maximum": case_of("MAXIMUM", {"x": _SMALL_IMAGE, "z": data(5)}, (1, 3, 4, 5), "max"),
    "less": opaque(
        case_of("LESS", {"x": _SMALL_IMAGE, "z": data(5)}, (1, 3, 4, 5), "less", dtype="bool")
    ),
    "relu": case_of("RELU", {"x": _SMALL_IMAGE}, (1, 3, 4, 5), "relu"),
    "clip": opaque(case_of("RELU_N1_TO_1", {"x": _SMALL_IMAGE}, (1, 3, 4, 5), "clip")),
    "prelu": case_of("PRELU", {"x": _SMALL_IMAGE, "w": weights(1, 1, 5)}, (1, 3, 4, 5), "prelu"),
    "leaky relu": opaque(
        case_of(
            "LEAKY_RELU",
            {"x": _SMALL_IMAGE},
            (1, 3, 4, 5),
            "leaky_relu",
            ("LeakyReluOptions", {"Alpha": 0.25}),
        )
    ),
    "softmax": opaque(
        case_of(
            "SOFTMAX",
            {"x": _SMALL_IMAGE},
            (1, 3, 4, 5),
            "softmax",
            ("SoftmaxOptions", {"Beta": 1.0}),
        )
    ),
    "l2 norm": opaque(case_of("L2_NORMALIZATION", {"x": _SMALL_IMAGE}, (1, 3, 4, 5), "l2_norm")),
    "cast": case_of("CAST", {"x": _SMALL_IMAGE}, (1, 3, 4, 5), "cast", dtype="int32"),
    "select": case_of(
        "SELECT",
        {"c": data(3, dtype="bool"), "x": data(3, 4), "z": data(3, 4)},
        (3, 4),
        "where",
    ),
    "select v2": case_of(
        "SELECT_V2",
        {"c": data(4, dtype="bool"), "x": data(3, 1), "z": data(1)},
        (3, 4),
        "where",
    ),
    "sum": case_of("SUM", {"x": _SMALL_IMAGE, "axes": _HEIGHT_AND_WIDTH}, (1, 5), "reduce_sum"),
    "reduce max keeps axes": case_of(
        "REDUCE_MAX",
        {"x": _SMALL_IMAGE, "axes": constant(-1)},
        (1, 3, 4, 1),
        "reduce_max",
        _KEEP_DIMS,
    ),
    "mean": opaque(
        case_of("MEAN", {"x": _SMALL_IMAGE, "axes": _HEIGHT_AND_WIDTH}, (1, 5), "reduce_mean")
    ),
    "arg max": opaque(
        case_of(
            "ARG_MAX",
            {"x": _SMALL_IMAGE, "axis": constant(-1)},
            (1, 3, 4),
            "arg_max",
            ("ArgMaxOptions", {"OutputType": 2}),
            dtype="int32",
        )
    ),
    "cumsum": opaque(case_of("CUMSUM", {"x": data(3, 4), "axis": constant(1)}, (3, 4), "cumsum")),
    "one hot": opaque(
        case_of(
            "ONE_HOT",
            {
                "i": data(2, 3, dtype="int32"),
                "depth": constant(4),
                "on": constant(1.0, "float32"),
                "off": constant(0.0, "float32"),
            },
            (2, 3, 4),
            "one_hot",
            ("OneHotOptions", {"Axis": -1}),
        )
    ),
}

CASES = {**_PRODUCTS, **MOVE_CASES, **_ARITHMETIC}
