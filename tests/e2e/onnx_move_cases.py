"""Single nodes that move, resize or quantise, for comparison with ONNX Runtime."""

import numpy as np
from tests.e2e.onnx_case import case, scalar, weights, x
from tests.onnx_models import Array, Given, integers, reals, zeros

MOVES = [
    case(
        "ReverseSequence, all of each",
        "ReverseSequence",
        [x(3, 2, 4), integers(3, 3)],
        {"time_axis": 0, "batch_axis": 1},
    ),
    case("Reshape", "Reshape", [x(2, 3, 4), integers(0, -1, 2)]),
    case("Reshape, zeros kept", "Reshape", [x(2, 3), integers(3, 2)], {"allowzero": 1}, opset=14),
    case("Reshape to units", "Reshape", [x(2, 3), integers(1, 2, 1, 3)]),
    case("Flatten", "Flatten", [x(2, 3, 4)], {"axis": 2}),
    case("Flatten at 0", "Flatten", [x(2, 3, 4)], {"axis": 0}),
    case("Flatten from behind", "Flatten", [x(2, 3, 4)], {"axis": -1}),
    case("Transpose", "Transpose", [x(2, 3, 4)], {"perm": [2, 0, 1]}),
    case("Transpose without order", "Transpose", [x(2, 3, 4)]),
    case("old Squeeze", "Squeeze", [x(1, 3, 1)], {"axes": [0]}, opset=11),
    case("Squeeze", "Squeeze", [x(1, 3, 1), integers(-1)]),
    case("Squeeze all", "Squeeze", [x(1, 3, 1)]),
    case("old Unsqueeze", "Unsqueeze", [x(2, 3)], {"axes": [0, 3]}, opset=11),
    case("Unsqueeze", "Unsqueeze", [x(2, 3), integers(-1, 1)]),
    case("Concat", "Concat", [x(2, 3), x(2, 5), x(2, 1)], {"axis": -1}),
    case("old Split", "Split", [x(2, 6)], {"axis": 1, "split": [1, 2, 3]}, opset=11, results=3),
    case("equal Split", "Split", [x(6, 2)], opset=11, results=3),
    case("Split", "Split", [x(2, 6), integers(4, 2)], {"axis": 1}, results=2),
    case("uneven Split", "Split", [x(2, 7)], {"axis": 1, "num_outputs": 3}, opset=18, results=3),
    case("old Slice", "Slice", [x(5, 6)], {"starts": [1, 0], "ends": [4, -2]}, opset=9),
    case("Slice", "Slice", [x(5, 6), integers(1), integers(1000), integers(1)]),
    case(
        "Slice with steps",
        "Slice",
        [x(9, 7), integers(1, 0), integers(9, 7), integers(0, 1), integers(3, 2)],
    ),
    case(
        "Slice backwards",
        "Slice",
        [x(9), integers(-1), integers(-(2**63)), integers(0), integers(-2)],
    ),
    case(
        "Slice backwards from far left",
        "Slice",
        [x(9), integers(-20), integers(-30), integers(0), integers(-1)],
    ),
    case(
        "Slice backwards from beyond",
        "Slice",
        [x(9), integers(50), integers(2), integers(0), integers(-3)],
    ),
    case("Slice of nothing", "Slice", [x(9, 2), integers(5), integers(2), integers(0)]),
    case("Slice from beyond", "Slice", [x(9, 2), integers(50), integers(60), integers(0)]),
    case("old Pad", "Pad", [x(2, 3)], {"pads": [1, 0, 0, 2]}, opset=10),
    case("Pad", "Pad", [x(2, 3), integers(1, 0, 0, 2), scalar(3)]),
    case("Pad, cropping", "Pad", [x(4, 5), integers(-1, 1, 0, -2)]),
    case("Pad, reflect", "Pad", [x(4, 5), integers(1, 2, 0, 2)], {"mode": "reflect"}),
    case("Pad, edge", "Pad", [x(4, 5), integers(1, 2, 0, 2)], {"mode": "edge"}),
    case("Pad, axes", "Pad", [x(4, 5, 6), integers(1, 2), None, integers(-2)], opset=18),
    case("DepthToSpace DCR", "DepthToSpace", [x(1, 8, 2, 3)], {"blocksize": 2}),
    case("DepthToSpace CRD", "DepthToSpace", [x(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"}),
    case("SpaceToDepth", "SpaceToDepth", [x(1, 2, 4, 6)], {"blocksize": 2}),
    case("Expand", "Expand", [x(3, 1), integers(2, 1, 4)]),
    case("Tile", "Tile", [x(2, 3), integers(3, 2)]),
    case("Gather", "Gather", [x(5, 3), x(2, 2, dtype="int64")]),
    case("Gather one", "Gather", [x(5, 3), np.array(-2, np.int64)]),
    case("Gather one, keeping its axis", "Gather", [x(5, 3), integers(3)]),
    case("Gather one, as two axes", "Gather", [x(2, 5, 3), np.array([[3]])], {"axis": 1}),
    case("Gather on axis 1", "Gather", [x(2, 5, 3), integers(1, 0)], {"axis": 1}),
    case("Gather every third", "Gather", [x(2, 9, 3), integers(1, 4, -2)], {"axis": 1}),
    case("Gather some", "Gather", [x(2, 5, 3), integers(1, 0, 3)], {"axis": 1}),
    case("GatherElements", "GatherElements", [x(3, 3), x(2, 3, dtype="int64")]),
    case("GatherND", "GatherND", [x(2, 3, 4), x(5, 2, dtype="int64")]),
    case(
        "GatherND with batch", "GatherND", [x(2, 3, 4), x(2, 1, dtype="int64")], {"batch_dims": 1}
    ),
    case("ScatterND", "ScatterND", [x(5, 3), x(2, 1, dtype="int64"), x(2, 3)]),
    case("ScatterElements", "ScatterElements", [x(5, 3), x(2, 3, dtype="int64"), x(2, 3)]),
]

RESIZES = [
    case("Upsample", "Upsample", [x(1, 1, 3, 4), reals(1, 1, 2, 3)], opset=9),
    case("old Upsample", "Upsample", [x(1, 1, 3, 4)], {"scales": [1.0, 1.0, 2.0, 3.0]}, opset=7),
    case("opset 10", "Resize", [x(1, 1, 3, 4), reals(1, 1, 2, 2)], opset=10),
    case("scales", "Resize", [x(1, 1, 3, 4), None, reals(1, 1, 2, 2)], opset=13),
    case(
        "scales with empty region", "Resize", [x(1, 1, 3, 4), reals(), reals(1, 1, 2, 2)], opset=11
    ),
    case("uneven scales", "Resize", [x(1, 1, 10, 7), None, reals(1, 1, 0.7, 1.3)]),
    case(
        "nearest, asymmetric, floor",
        "Resize",
        [x(1, 2, 3, 4), None, reals(1, 1, 3, 2)],
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    case(
        "nearest, asymmetric, rounded",
        "Resize",
        [x(1, 2, 3, 4), None, reals(1, 1, 2, 2)],
        {"coordinate_transformation_mode": "asymmetric"},
    ),
    case("sizes", "Resize", [x(1, 1, 3, 4), None, None, integers(1, 1, 7, 8)], {"mode": "linear"}),
    *(
        case(
            f"whole numbers, {coordinates}, {dtype}",
            "Resize",
            [x(1, 2, 5, 6, dtype=dtype), None, None, integers(1, 2, 9, 4)],
            {"mode": "linear", "coordinate_transformation_mode": coordinates},
        )
        for coordinates in ("half_pixel", "align_corners")
        for dtype in ("uint8", "int8")
    ),
    case("sizes, twice", "Resize", [x(1, 1, 3, 4), None, None, integers(1, 1, 6, 8)]),
    case(
        "axes",
        "Resize",
        [x(1, 1, 3, 4), None, None, integers(7, 8)],
        {"axes": [2, 3], "mode": "cubic"},
        opset=18,
    ),
    case(
        "not larger",
        "Resize",
        [x(1, 1, 30, 44), None, None, integers(17, 19)],
        {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"},
        opset=18,
    ),
    case(
        "not smaller",
        "Resize",
        [x(1, 1, 30, 44), None, None, integers(17, 19)],
        {"axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller"},
        opset=19,
    ),
    case(
        "region",
        "Resize",
        [x(1, 1, 8, 8), reals(0, 0, 0.25, 0.25, 1, 1, 0.75, 1), reals(1, 1, 2, 1)],
        {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"},
    ),
]


def u8(*shape: int) -> Given:
    return x(*shape, dtype="uint8")


SCALE, ZERO = scalar(0.1), scalar(3, "uint8")


def u8_weights(*shape: int) -> Array:
    return (np.abs(weights(*shape)) % 7).astype(np.uint8)


QUANTISED = [
    case("QuantizeLinear", "QuantizeLinear", [x(2, 3), SCALE, ZERO]),
    case("without zero point", "QuantizeLinear", [x(2, 3), SCALE]),
    case("to int8", "QuantizeLinear", [x(2, 3), SCALE, scalar(0, "int8")]),
    case(
        "per channel",
        "QuantizeLinear",
        [x(2, 3, 4), weights(3) + 20, zeros(3, dtype="uint8")],
        {"axis": 1},
    ),
    case("DequantizeLinear", "DequantizeLinear", [u8(2, 3), SCALE, ZERO]),
    case(
        "blocked",
        "DequantizeLinear",
        [u8(2, 6), weights(2, 3), zeros(2, 3, dtype="uint8")],
        {"axis": 1, "block_size": 2},
        opset=21,
    ),
    case("DynamicQuantizeLinear", "DynamicQuantizeLinear", [x(2, 3)], results=3),
    case("ConvInteger", "ConvInteger", [u8(1, 2, 5, 5), u8_weights(3, 2, 3, 3), ZERO]),
    case(
        "QLinearConv",
        "QLinearConv",
        [
            *(u8(1, 2, 5, 5), SCALE, ZERO, u8_weights(3, 2, 3, 3), SCALE, ZERO, SCALE, ZERO),
            np.arange(3, dtype=np.int32),
        ],
        {"pads": [1, 1, 1, 1]},
    ),
    case("MatMulInteger", "MatMulInteger", [u8(2, 4), u8_weights(4, 3), ZERO, ZERO]),
    case(
        "QLinearMatMul",
        "QLinearMatMul",
        [u8(2, 4), SCALE, ZERO, u8_weights(4, 3), SCALE, ZERO, SCALE, ZERO],
    ),
    *(
        case(op, f"com.microsoft.{op}", [u8(2, 4), SCALE, ZERO, u8(4), SCALE, ZERO, SCALE, ZERO])
        for op in ("QLinearAdd", "QLinearMul")
    ),
    *(
        case(op, f"com.microsoft.{op}", [u8(2, 4), SCALE, ZERO, SCALE, ZERO])
        for op in ("QLinearSigmoid", "QLinearLeakyRelu")
    ),
    case(
        "QLinearSoftmax",
        "com.microsoft.QLinearSoftmax",
        [u8(2, 4), SCALE, ZERO, SCALE, ZERO],
        {"opset": 13, "axis": -1},
    ),
    case(
        "QLinearConcat",
        "com.microsoft.QLinearConcat",
        [SCALE, ZERO, u8(2, 4), SCALE, ZERO, u8(2, 3), SCALE, ZERO],
        {"axis": 1},
    ),
    case(
        "QLinearGlobalAveragePool",
        "com.microsoft.QLinearGlobalAveragePool",
        [u8(1, 2, 5, 5), SCALE, ZERO, SCALE, ZERO],
        {"channels_last": 0},
    ),
    case(
        "QLinearAveragePool",
        "com.microsoft.QLinearAveragePool",
        [u8(1, 2, 5, 5), SCALE, ZERO, SCALE, ZERO],
        {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    ),
    case(
        "QGemm",
        "com.microsoft.QGemm",
        [
            *(u8(2, 4), SCALE, ZERO, u8_weights(3, 4), SCALE, ZERO),
            *(np.arange(3, dtype=np.int32), SCALE, ZERO),
        ],
        {"transB": 1},
    ),
    case(
        "MatMulIntegerToFloat",
        "com.microsoft.MatMulIntegerToFloat",
        [u8(2, 4), u8_weights(4, 3), SCALE, SCALE, ZERO, ZERO],
    ),
    case(
        "DynamicQuantizeMatMul",
        "com.microsoft.DynamicQuantizeMatMul",
        [x(2, 4), u8_weights(4, 3), SCALE, ZERO],
    ),
]
