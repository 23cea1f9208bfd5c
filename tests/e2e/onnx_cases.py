"""Single nodes, over operators and opsets, whose results ONNX Runtime can compute."""

import numpy as np
from tests.e2e.onnx_case import case, scalar, weights, x
from tests.e2e.onnx_move_cases import MOVES, QUANTISED, RESIZES
from tests.onnx_models import integers, reals

CONVOLUTIONS = [
    case("plain", "Conv", [x(1, 3, 8, 9), weights(4, 3, 3, 3)]),
    case("bias", "Conv", [x(1, 3, 8, 9), weights(4, 3, 3, 3), weights(4)]),
    case("1-D", "Conv", [x(2, 3, 11), weights(5, 3, 4)], {"strides": [3], "pads": [2, 1]}),
    case("3-D", "Conv", [x(1, 2, 5, 6, 7), weights(3, 2, 2, 3, 2)], {"strides": [1, 2, 3]}),
    case("grouped", "Conv", [x(1, 4, 7, 7), weights(6, 2, 3, 3), weights(6)], {"group": 2}),
    case("depthwise", "Conv", [x(1, 4, 7, 7), weights(8, 1, 3, 3)], {"group": 4}),
    case("dilated", "Conv", [x(1, 2, 11, 12), weights(3, 2, 3, 2)], {"dilations": [2, 3]}),
    case("pads", "Conv", [x(1, 2, 6, 5), weights(3, 2, 3, 3)], {"pads": [1, 0, 2, 1]}),
    case(
        "same upper",
        "Conv",
        [x(1, 2, 7, 8), weights(3, 2, 4, 3)],
        {"auto_pad": "SAME_UPPER", "strides": [2, 3]},
    ),
    case(
        "same lower",
        "Conv",
        [x(1, 2, 7, 8), weights(3, 2, 4, 3)],
        {"auto_pad": "SAME_LOWER", "strides": [2, 3]},
    ),
    case("valid", "Conv", [x(1, 2, 7, 8), weights(3, 2, 4, 3)], {"auto_pad": "VALID"}),
    case("transposed", "ConvTranspose", [x(1, 3, 4, 5), weights(3, 2, 3, 3)]),
    case(
        "transposed, strided and grouped",
        "ConvTranspose",
        [x(1, 4, 4, 5), weights(4, 3, 3, 4), weights(6)],
        {"strides": [2, 3], "pads": [1, 0, 0, 1], "group": 2},
    ),
    case(
        "transposed with output padding",
        "ConvTranspose",
        [x(1, 2, 4, 5), weights(2, 2, 3, 3)],
        {"strides": [2, 2], "output_padding": [1, 0], "pads": [1, 1, 1, 1]},
    ),
    case(
        "transposed side by side, and room behind",
        "ConvTranspose",
        [x(1, 2, 4, 5), weights(2, 2, 2, 2)],
        {"strides": [2, 2], "output_padding": [1, 0]},
    ),
    case(
        "transposed side by side, and cropped behind",
        "ConvTranspose",
        [x(1, 2, 4, 5), weights(2, 2, 2, 2)],
        {"strides": [2, 2], "pads": [0, 0, 1, 1]},
    ),
    case(
        "transposed to a shape",
        "ConvTranspose",
        [x(1, 2, 4, 5), weights(2, 2, 3, 3)],
        {"strides": [2, 2], "output_shape": [8, 10]},
    ),
    case(
        "transposed, same upper",
        "ConvTranspose",
        [x(1, 2, 4, 5), weights(2, 2, 4, 3)],
        {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ),
    case(
        "transposed, same lower",
        "ConvTranspose",
        [x(1, 2, 4, 5), weights(2, 2, 4, 3)],
        {"strides": [2, 2], "auto_pad": "SAME_LOWER"},
    ),
    case(
        "transposed and dilated",
        "ConvTranspose",
        [x(1, 2, 4), weights(2, 2, 3)],
        {"dilations": [2], "strides": [3]},
    ),
    *(
        case(
            f"fused with {activation}",
            "com.microsoft.FusedConv",
            [x(1, 3, 5, 6), weights(4, 3, 3, 3), weights(4)],
            {"activation": activation} | ({"activation_params": numbers} if numbers else {}),
        )
        for activation, numbers in (
            ("Relu", []),
            ("LeakyRelu", [0.3]),
            ("HardSigmoid", [0.1, 0.4]),
            ("Clip", [-3.0, 5.0]),
        )
    ),
]

EINSUM_OF_THREE = {"equation": "nld,nde,nl->nle"}

PRODUCTS = [
    case("matrices", "MatMul", [x(3, 4), weights(4, 5)]),
    case("batched", "MatMul", [x(2, 3, 4), x(2, 4, 5)]),
    case("broadcast batch", "MatMul", [x(2, 1, 3, 4), x(5, 4, 6)]),
    case("vector matrix", "MatMul", [x(4), x(2, 4, 5)]),
    case("matrix vector", "MatMul", [x(2, 3, 4), x(4)]),
    case("two vectors", "MatMul", [x(4), x(4)]),
    case("gemm", "Gemm", [x(3, 4), weights(4, 5), weights(5)]),
    case("gemm without bias", "Gemm", [x(3, 4), weights(4, 5)]),
    case(
        "gemm transposed",
        "Gemm",
        [x(4, 3), weights(5, 4), weights(3, 1)],
        {"transA": 1, "transB": 1},
    ),
    case("einsum", "Einsum", [x(2, 3, 4), x(2, 5, 4)], {"equation": "bij,bkj->bik"}),
    case("einsum implicit", "Einsum", [x(3, 4), x(4, 5)], {"equation": "ij,jk"}),
    case("einsum ellipsis", "Einsum", [x(2, 6, 3, 4), x(4, 5)], {"equation": "...ij,jk->...ik"}),
    case("einsum outer", "Einsum", [x(3), x(4)], {"equation": "i,j->ij"}),
    case(
        "einsum attention",
        "Einsum",
        [x(2, 3, 4, 5), x(2, 6, 4, 5)],
        {"equation": "bqhd,bkhd->bhqk"},
    ),
    case("einsum transpose", "Einsum", [x(2, 3, 4)], {"equation": "abc->cab"}),
    case("einsum sum", "Einsum", [x(2, 3, 4)], {"equation": "abc->ca"}),
    case(
        "fused",
        "com.microsoft.FusedMatMul",
        [x(2, 4, 3), x(2, 5, 4)],
        {"transA": 1, "transB": 1, "alpha": 1.0},
    ),
    case(
        "fused, batch inside the rows",
        "com.microsoft.FusedMatMul",
        [x(3, 2, 5, 4), x(6, 2, 5, 4)],
        {"transBatchA": 1, "transBatchB": 1, "transB": 1},
    ),
    case("einsum of three", "Einsum", [x(2, 3, 4), x(2, 4, 5), x(2, 3)], EINSUM_OF_THREE),
    case("einsum of four", "Einsum", [x(2), x(3), x(2, 4), x(4)], {"equation": "a,b,ac,c->ba"}),
]

POOLS = [
    case("max", "MaxPool", [x(1, 2, 7, 8)], {"kernel_shape": [2, 3], "strides": [2, 2]}),
    case(
        "max with indices",
        "MaxPool",
        [x(1, 2, 7, 8)],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        results=2,
    ),
    case(
        "ceil",
        "MaxPool",
        [x(1, 1, 6, 7)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    ),
    case(
        "ceil, last window in the padding",
        "MaxPool",
        [x(1, 1, 4, 5)],
        {"kernel_shape": [1, 2], "strides": [2, 2], "pads": [0, 0, 0, 1], "ceil_mode": 1},
    ),
    case(
        "ceil drops a window that starts behind",
        "MaxPool",
        [x(1, 1, 2, 2)],
        {"kernel_shape": [1, 1], "strides": [2, 2], "ceil_mode": 1},
        opset=22,
    ),
    case(
        "average, ceil and pads",
        "AveragePool",
        [x(1, 1, 5, 7)],
        {
            "kernel_shape": [3, 3],
            "strides": [2, 2],
            "pads": [1, 1, 1, 1],
            "ceil_mode": 1,
        },
        opset=19,
    ),
    case("dilated", "MaxPool", [x(1, 1, 9, 9)], {"kernel_shape": [3, 2], "dilations": [2, 3]}),
    case(
        "dilated average",
        "AveragePool",
        [x(1, 1, 9, 9)],
        {"kernel_shape": [3, 2], "dilations": [2, 3]},
        opset=19,
    ),
    case(
        "same upper",
        "MaxPool",
        [x(1, 1, 7, 6)],
        {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ),
    case(
        "same lower",
        "AveragePool",
        [x(1, 1, 7, 6)],
        {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
    ),
    case(
        "valid",
        "MaxPool",
        [x(1, 1, 7, 6)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "VALID"},
    ),
    case(
        "valid, ceil",
        "MaxPool",
        [x(1, 1, 6, 6)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "VALID", "ceil_mode": 1},
    ),
    case("1-D", "AveragePool", [x(1, 2, 7)], {"kernel_shape": [3]}),
    case("3-D", "MaxPool", [x(1, 2, 4, 5, 6)], {"kernel_shape": [2, 2, 2]}),
    case("lp", "LpPool", [x(1, 2, 7, 7)], {"kernel_shape": [3, 3], "p": 1}),
    case(
        "lp, ceil",
        "LpPool",
        [x(1, 2, 6, 6)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
        opset=18,
    ),
    case("global average", "GlobalAveragePool", [x(1, 2, 5, 7)]),
    case("global max", "GlobalMaxPool", [x(1, 2, 5)]),
    case("global lp", "GlobalLpPool", [x(1, 2, 5, 7)]),
]

POINTWISE = [
    *(
        case(op, op, [x(2, 3, 4), x(3, 1)])
        for op in ("Add", "Sub", "Mul", "Div", "Pow", "Equal", "Less", "GreaterOrEqual", "PRelu")
    ),
    *(
        case(op, op, [x(2, 3, 4)])
        for op in (
            *("Relu", "LeakyRelu", "Elu", "Selu", "Celu", "ThresholdedRelu", "Sigmoid"),
            *("HardSigmoid", "Tanh", "Softplus", "Softsign", "Erf", "Exp", "Log", "Sqrt"),
            *("Reciprocal", "Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Sin", "Atanh"),
            *("IsNaN", "IsInf", "Identity", "Shrink", "Cos", "Tan", "Asin", "Acos", "Atan"),
        )
    ),
    case("HardSwish", "HardSwish", [x(2, 3)], opset=14),
    case("Mish", "Mish", [x(2, 3)], opset=18),
    case("Gelu", "Gelu", [x(2, 3)], opset=20),
    case("Gelu of Microsoft", "com.microsoft.Gelu", [x(2, 3)]),
    case("FastGelu", "com.microsoft.FastGelu", [x(2, 3), weights(3)]),
    case("BiasGelu", "com.microsoft.BiasGelu", [x(2, 3), weights(3)]),
    case("Clip, attributes", "Clip", [x(2, 3)], {"min": 0.0, "max": 6.0}, opset=7),
    case("Clip, max only", "Clip", [x(2, 3), None, scalar(6)]),
    case("Sum of two", "Sum", [x(2, 3), x(3)]),
    case("Max of two", "Max", [x(2, 1), x(3)]),
    case("Sum of three", "Sum", [x(2, 3), x(3), x(1, 1)]),
    case("Max of three", "Max", [x(2, 3), x(3), x(1, 1)]),
    case("Mean of two", "Mean", [x(2, 1), x(3)]),
    case("Min of one", "Min", [x(2, 3)]),
    case("And", "And", [x(2, 3, dtype="bool"), x(3, dtype="bool")]),
    case("Xor", "Xor", [x(2, 1, dtype="bool"), x(3, dtype="bool")]),
    case("Not", "Not", [x(2, 3, dtype="bool")]),
    case("Mod", "Mod", [x(2, 3), x(3)], {"fmod": 1}),
    case(
        "BitShift",
        "BitShift",
        [x(4, dtype="uint8"), integers(1).astype(np.uint8)],
        {"direction": "LEFT"},
    ),
    case("BitwiseAnd", "BitwiseAnd", [x(2, 3, dtype="int32"), x(3, dtype="int32")], opset=18),
    case("Where", "Where", [x(2, 1, dtype="bool"), x(3), x(4, 1, 1)]),
    case("Cast", "Cast", [x(2, 3)], {"to": 7}),
    case("Cast to half", "Cast", [x(2, 3)], {"to": 10}),
    case("CastLike", "CastLike", [x(2, 3), x(1, dtype="int32")], opset=15),
    case("Dropout", "Dropout", [x(2, 3)]),
    case("Dropout with mask", "Dropout", [x(2, 3)], results=2),
    case("old Dropout", "Dropout", [x(2, 3)], {"ratio": 0.5}, opset=7, results=2),
    case("Trilu", "Trilu", [x(2, 3, 3), np.array(1, np.int64)], opset=14),
]

NORMALISATIONS = [
    case("Softmax", "Softmax", [x(2, 3, 4)], {"axis": 1}),
    case("old Softmax", "Softmax", [x(2, 3, 4)], {"axis": 1}, opset=11),
    case("LogSoftmax", "LogSoftmax", [x(2, 3, 4)]),
    case("Hardmax", "Hardmax", [x(2, 3, 4)]),
    case("BatchNormalization", "BatchNormalization", [x(1, 3, 4, 5), *(weights(3),) * 4]),
    case(
        "BatchNormalization of a matrix",
        "BatchNormalization",
        [x(2, 3), *(weights(3),) * 4],
        opset=15,
    ),
    case("InstanceNormalization", "InstanceNormalization", [x(2, 3, 4, 5), weights(3), weights(3)]),
    case(
        "GroupNormalization",
        "GroupNormalization",
        [x(2, 6, 4, 5), weights(6), weights(6)],
        {"num_groups": 3},
        opset=21,
    ),
    case(
        "LayerNormalization",
        "LayerNormalization",
        [x(2, 3, 4), weights(3, 4), weights(3, 4)],
        {"axis": 1},
        opset=17,
        results=3,
    ),
    case("RMSNormalization", "RMSNormalization", [x(2, 3, 4), weights(4)], opset=23),
    case("LpNormalization", "LpNormalization", [x(2, 3, 4)], {"axis": 1, "p": 1}),
    case("MeanVarianceNormalization", "MeanVarianceNormalization", [x(2, 3, 4, 5)]),
    case("LRN", "LRN", [x(1, 7, 4, 5)], {"size": 3}),
    case(
        "SkipLayerNormalization",
        "com.microsoft.SkipLayerNormalization",
        [x(2, 3, 4), x(2, 3, 4), weights(4), weights(4), weights(4)],
    ),
]

REDUCTIONS = [
    *(
        case(op, op, [x(2, 3, 4)], {"axes": [1]}, opset=11)
        for op in (
            *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1"),
            *("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
        )
    ),
    case("all axes", "ReduceMean", [x(2, 3, 4)], {"keepdims": 0}),
    case("axes as input", "ReduceSum", [x(2, 3, 4), integers(-1, 0)], {"keepdims": 0}),
    case("max, axes as input", "ReduceMax", [x(2, 3, 4), integers(-2)], opset=18),
    case("no axes, no-op", "ReduceSum", [x(2, 3, 4), integers()], {"noop_with_empty_axes": 1}),
    case("no axes", "ReduceSum", [x(2, 3, 4)], {"noop_with_empty_axes": 0}),
    case("ArgMax", "ArgMax", [x(2, 3, 4)], {"axis": -1}),
    case("ArgMin", "ArgMin", [x(2, 3, 4)], {"axis": 1, "keepdims": 0}),
    case("TopK", "TopK", [x(2, 7), integers(3)], results=2),
    case("TopK on axis 0", "TopK", [x(5, 3), integers(2)], {"axis": 0, "largest": 0}, results=2),
    case("old TopK", "TopK", [x(2, 7)], {"k": 3}, opset=9, results=2),
    case("CumSum", "CumSum", [x(2, 7), np.array(1, np.int64)]),
    case("OneHot", "OneHot", [x(2, 3, dtype="int64"), np.array(5, np.int64), reals(0, 1)]),
    case(
        "OneHot on axis 0",
        "OneHot",
        [x(2, 3, dtype="int64"), integers(5), reals(0, 1)],
        {"axis": 0},
    ),
]

ALL = [
    (group, item)
    for group, items in (
        ("conv", CONVOLUTIONS),
        ("product", PRODUCTS),
        ("pool", POOLS),
        ("pointwise", POINTWISE),
        ("norm", NORMALISATIONS),
        ("reduce", REDUCTIONS),
        ("move", MOVES),
        ("resize", RESIZES),
        ("quantised", QUANTISED),
    )
    for item in items
]
