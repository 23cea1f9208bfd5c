"""One tiny model per operator and way of using it, with the result's shape worked out by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.unit.network.tflite_models import ModelSpec, Options, TensorSpec, constant, single

SAME, VALID = 0, 1


@dataclass(frozen=True, kw_only=True)
class Case:
    model: ModelSpec
    kind: str
    """Of the last op."""
    n_ops: int = 1
    is_affine: bool = True
    """Whether its nests alone say what is computed."""


def _case(
    op: str,
    inputs: Mapping[str, TensorSpec],
    shapes: Sequence[tuple[int, ...]] | tuple[int, ...],
    kind: str,
    options: Options | None = None,
    *,
    dtype: str = "float32",
    n_ops: int = 1,
    is_affine: bool = True,
    order: Sequence[str] | None = None,
) -> Case:
    results = [shapes] if isinstance(shapes, tuple) else list(shapes)
    outputs = {
        f"y{i}": TensorSpec(shape=shape, dtype=dtype)  # type: ignore[arg-type]  # one or many
        for i, shape in enumerate(results)
    }
    return Case(
        model=single(op, inputs, outputs, options, order=order),
        kind=kind,
        n_ops=n_ops,
        is_affine=is_affine,
    )


def _data(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape=shape, dtype=dtype)


def _weights(*shape: int) -> TensorSpec:
    return constant(np.arange(np.prod(shape)).reshape(shape) % 5 - 2, "float32")


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


def _masks(
    begin: int = 0, end: int = 0, ellipsis: int = 0, new: int = 0, shrink: int = 0
) -> Options:
    fields = {"BeginMask": begin, "EndMask": end, "EllipsisMask": ellipsis}
    return ("StridedSliceOptions", {**fields, "NewAxisMask": new, "ShrinkAxisMask": shrink})


def _slices(begin: Any, end: Any, strides: Any, *shape: int) -> dict[str, TensorSpec]:
    return {
        "x": _data(*shape),
        "begin": constant(begin),
        "end": constant(end),
        "strides": constant(strides),
    }


def _product_cases() -> dict[str, Case]:
    x = _data(1, 7, 6, 4)
    image = {"x": x, "w": _weights(5, 3, 3, 4), "b": _weights(5)}
    fused: Options = ("FullyConnectedOptions", {"FusedActivationFunction": 1})
    kept: Options = ("FullyConnectedOptions", {"KeepNumDims": True})
    transposed: Options = ("TransposeConvOptions", {"Padding": SAME, "StrideH": 2, "StrideW": 2})
    cropped: Options = ("TransposeConvOptions", {"Padding": VALID, "StrideH": 2, "StrideW": 2})
    steps = {"StrideD": 1, "StrideH": 2, "StrideW": 1, "Padding": SAME}
    return {
        # SAME keeps 7 x 6.
        "conv same": _case("CONV_2D", image, (1, 7, 6, 5), "conv", _conv(SAME)),
        # ceil(7 / 2) x ceil(6 / 2).
        "conv same stride 2": _case("CONV_2D", image, (1, 4, 3, 5), "conv", _conv(SAME, 2)),
        # (7 - 3) + 1 x (6 - 3) + 1.
        "conv valid": _case("CONV_2D", image, (1, 5, 4, 5), "conv", _conv(VALID)),
        # floor((7 - 3) / 2) + 1 x floor((6 - 3) / 2) + 1.
        "conv valid stride 2": _case("CONV_2D", image, (1, 3, 2, 5), "conv", _conv(VALID, 2)),
        # Dilation 2 makes the kernel reach over 5: 7 - 5 + 1 x 6 - 5 + 1.
        "conv valid dilation 2": _case("CONV_2D", image, (1, 3, 2, 5), "conv", _conv(VALID, 1, 2)),
        "conv same dilation 2": _case("CONV_2D", image, (1, 7, 6, 5), "conv", _conv(SAME, 1, 2)),
        # Weights for 2 of 4 channels: 2 groups.
        "conv in groups": _case(
            "CONV_2D",
            {"x": x, "w": _weights(6, 3, 3, 2), "b": _weights(6)},
            (1, 7, 6, 6),
            "conv",
            _conv(SAME),
        ),
        "depthwise multiplier 2": _case(
            "DEPTHWISE_CONV_2D",
            {"x": x, "w": _weights(1, 3, 3, 8), "b": _weights(8)},
            (1, 4, 3, 8),
            "conv",
            _depthwise(SAME, 2, 2),
        ),
        "depthwise valid": _case(
            "DEPTHWISE_CONV_2D",
            {"x": x, "w": _weights(1, 3, 2, 4), "b": _weights(4)},
            (1, 5, 5, 4),
            "conv",
            _depthwise(VALID, 1, 1),
        ),
        "depthwise of one channel": _case(
            "DEPTHWISE_CONV_2D",
            {"x": _data(1, 7, 6, 1), "w": _weights(1, 3, 3, 4), "b": _weights(4)},
            (1, 7, 6, 4),
            "conv",
            _depthwise(SAME, 1, 4),
        ),
        # The shape is given; 4 x 3 doubled.
        "transpose conv same": _case(
            "TRANSPOSE_CONV",
            {"shape": constant([1, 8, 6, 5]), "w": _weights(5, 3, 3, 2), "x": _data(1, 4, 3, 2)},
            (1, 8, 6, 5),
            "conv_transpose",
            transposed,
        ),
        # (4 - 1) * 2 + 3 x (3 - 1) * 2 + 3.
        "transpose conv valid": _case(
            "TRANSPOSE_CONV",
            {
                "shape": constant([1, 9, 7, 5]),
                "w": _weights(5, 3, 3, 2),
                "x": _data(1, 4, 3, 2),
                "b": _weights(5),
            },
            (1, 9, 7, 5),
            "conv_transpose",
            cropped,
        ),
        "conv 3d": _case(
            "CONV_3D",
            {"x": _data(1, 3, 5, 4, 2), "w": _weights(2, 3, 3, 2, 4)},
            (1, 3, 3, 4, 4),
            "conv",
            ("Conv3DOptions", steps),
        ),
        "conv 3d transpose": _case(
            "CONV_3D_TRANSPOSE",
            {
                "shape": constant([1, 3, 6, 4, 2]),
                "w": _weights(1, 3, 3, 2, 4),
                "x": _data(1, 3, 3, 4, 4),
            },
            (1, 3, 6, 4, 2),
            "conv_transpose",
            ("Conv3DOptions", steps),
        ),
        "fully connected": _case(
            "FULLY_CONNECTED",
            {"x": _data(2, 6), "w": _weights(3, 6), "b": _weights(3)},
            (2, 3),
            "matmul",
            kept,
        ),
        # 2 * 4 rows of 6.
        "fully connected rows": _case(
            "FULLY_CONNECTED",
            {"x": _data(2, 4, 6), "w": _weights(3, 6), "b": _weights(3)},
            (8, 3),
            "matmul",
        ),
        "fully connected keeps axes": _case(
            "FULLY_CONNECTED",
            {"x": _data(2, 4, 6), "w": _weights(3, 6)},
            (2, 4, 3),
            "matmul",
            kept,
        ),
        # 1 * 2 * 2 * 3 elements in rows of 12.
        "fully connected flattens": _case(
            "FULLY_CONNECTED",
            {"x": _data(1, 2, 2, 3), "w": _weights(5, 12), "b": _weights(5)},
            (1, 5),
            "matmul",
            n_ops=2,
        ),
        "fully connected with relu": _case(
            "FULLY_CONNECTED",
            {"x": _data(2, 6), "w": _weights(3, 6)},
            (2, 3),
            "matmul",
            fused,
            is_affine=False,
        ),
        "batch matmul": _case(
            "BATCH_MATMUL",
            {"x": _data(2, 3, 4, 5), "z": _data(2, 3, 5, 6)},
            (2, 3, 4, 6),
            "matmul",
        ),
        "batch matmul transposed": _case(
            "BATCH_MATMUL",
            {"x": _data(3, 5, 4), "z": _data(3, 6, 5)},
            (3, 4, 6),
            "matmul",
            ("BatchMatMulOptions", {"AdjX": True, "AdjY": True}),
        ),
        "batch matmul broadcast": _case(
            "BATCH_MATMUL",
            {"x": _data(2, 4, 5), "w": _weights(5, 6)},
            (2, 4, 6),
            "matmul",
        ),
        # ceil(7 / 2) x ceil(6 / 2); floor((7 - 3) / 2) + 1 x floor((6 - 2) / 2) + 1.
        "average pool same": _case(
            "AVERAGE_POOL_2D", {"x": x}, (1, 4, 3, 4), "average_pool", _pool(SAME, 3, 3, 2)
        ),
        "max pool valid": _case(
            "MAX_POOL_2D", {"x": x}, (1, 3, 3, 4), "max_pool", _pool(VALID, 3, 2, 2)
        ),
        "l2 pool": _case(
            "L2_POOL_2D", {"x": x}, (1, 7, 6, 4), "lp_pool", _pool(SAME, 3, 3, 1), is_affine=False
        ),
    }


def _slice_cases() -> dict[str, Case]:
    return {
        "strided slice": _case(
            "STRIDED_SLICE",
            _slices([0, 1, 0], [2, 6, 5], [1, 2, 3], 2, 7, 5),
            (2, 3, 2),  # 1, 3, 5 of 7 and 0, 3 of 5.
            "slice",
            _masks(),
        ),
        "strided slice backwards": _case(
            "STRIDED_SLICE",
            _slices([-1, 5], [-3, 0], [-1, -2], 4, 7),
            (2, 3),  # 3, 2 of 4 and 5, 3, 1 of 7.
            "slice",
            _masks(),
        ),
        "strided slice begin and end masks": _case(
            "STRIDED_SLICE",
            _slices([2, 3, 1], [3, 4, -1], [1, -1, 1], 4, 5, 6),
            (3, 4, 4),  # begin masked: 0..2; end masked, backwards: 3..0; 1..4.
            "slice",
            _masks(begin=1, end=2),
        ),
        "strided slice both masks backwards": _case(
            "STRIDED_SLICE",
            _slices([0], [0], [-1], 5),
            (5,),
            "slice",
            _masks(begin=1, end=1),
        ),
        "strided slice shrinks": _case(
            "STRIDED_SLICE",
            _slices([1, -2, 0], [2, 0, 3], [1, 1, 1], 3, 4, 5),
            (3,),  # Element 1 of 3, element 2 of 4, then 0..2.
            "slice",
            _masks(shrink=3),
        ),
        "strided slice ellipsis": _case(
            "STRIDED_SLICE",
            _slices([1, 0, 2], [3, 0, 4], [1, 1, 1], 3, 4, 5, 6),
            (2, 4, 5, 2),  # The middle entry stands for two whole axes.
            "slice",
            _masks(ellipsis=2),
        ),
        "strided slice new axis": _case(
            "STRIDED_SLICE",
            _slices([1, 0, 2], [3, 0, 4], [1, 1, 1], 3, 4),
            (2, 1, 2),
            "slice",
            _masks(new=2),
        ),
        "strided slice of the first axes": _case(
            "STRIDED_SLICE",
            _slices([1], [3], [1], 3, 4, 5),
            (2, 4, 5),
            "slice",
            _masks(),
        ),
        "slice": _case(
            "SLICE",
            {"x": _data(3, 4, 5), "begin": constant([1, 0, 2]), "size": constant([2, -1, 1])},
            (2, 4, 1),
            "slice",
        ),
        "split": _case(
            "SPLIT",
            {"axis": constant(1), "x": _data(2, 6, 3)},
            [(2, 2, 3)] * 3,
            "slice",
            ("SplitOptions", {"NumSplits": 3}),
            n_ops=3,
        ),
        "split v": _case(
            "SPLIT_V",
            {"x": _data(2, 6), "sizes": constant([1, -1, 2]), "axis": constant(-1)},
            [(2, 1), (2, 3), (2, 2)],  # 6 - 1 - 2 are left for -1.
            "slice",
            ("SplitVOptions", {"NumSplits": 3}),
            n_ops=3,
        ),
        "pack": _case(
            "PACK",
            {"x": _data(2, 3), "z": _data(2, 3)},
            (2, 2, 3),
            "concat",
            ("PackOptions", {"ValuesCount": 2, "Axis": 1}),
            n_ops=3,  # Two reshapes.
        ),
        "unpack": _case(
            "UNPACK",
            {"x": _data(2, 3, 4)},
            [(2, 4)] * 3,
            "slice",
            ("UnpackOptions", {"Num": 3, "Axis": 1}),
            n_ops=3,
        ),
        "concatenation": _case(
            "CONCATENATION",
            {"x": _data(1, 3, 3, 2), "z": _data(1, 3, 3, 5)},
            (1, 3, 3, 7),
            "concat",
            ("ConcatenationOptions", {"Axis": -1}),
        ),
        "pad": _case(
            "PAD",
            {"x": _data(1, 3, 4, 2), "p": constant([[0, 0], [1, 2], [0, 3], [0, 0]])},
            (1, 6, 7, 2),  # 1 + 3 + 2 and 0 + 4 + 3.
            "pad",
        ),
        "pad with a value": _case(
            "PADV2",
            {
                "x": _data(2, 3),
                "p": constant([[1, 0], [0, 2]]),
                "v": constant(7.0, "float32"),
            },
            (3, 5),
            "pad",
        ),
        "mirror pad": _case(
            "MIRROR_PAD",
            {"x": _data(3, 4), "p": constant([[1, 1], [2, 0]])},
            (5, 6),
            "pad",
            ("MirrorPadOptions", {"Mode": 0}),
            is_affine=False,
        ),
        "reverse": _case(
            "REVERSE_V2", {"x": _data(3, 4), "axis": constant([1])}, (3, 4), "reverse"
        ),
    }


def _rearrange_cases() -> dict[str, Case]:
    x = _data(1, 4, 6, 8)
    return {
        "reshape": _case(
            "RESHAPE", {"x": _data(2, 6), "shape": constant([3, -1])}, (3, 4), "reshape"
        ),
        "reshape by option": _case(
            "RESHAPE",
            {"x": _data(2, 6)},
            (4, 3),
            "reshape",
            ("ReshapeOptions", {"NewShape": [4, 3]}),
        ),
        "squeeze": _case(
            "SQUEEZE",
            {"x": _data(1, 3, 1, 1)},
            (1, 3, 1),
            "reshape",
            ("SqueezeOptions", {"SqueezeDims": [-2]}),
        ),
        "squeeze all": _case("SQUEEZE", {"x": _data(1, 3, 1)}, (3,), "reshape"),
        "expand dims": _case(
            "EXPAND_DIMS", {"x": _data(3, 4), "axis": constant(-1)}, (3, 4, 1), "reshape"
        ),
        "transpose": _case(
            "TRANSPOSE",
            {"x": _data(2, 3, 4, 5), "perm": constant([0, 3, 1, 2])},
            (2, 5, 3, 4),
            "transpose",
        ),
        "broadcast to": _case(
            "BROADCAST_TO", {"x": _data(3, 1), "shape": constant([2, 3, 4])}, (2, 3, 4), "expand"
        ),
        "tile": _case(
            "TILE",
            {"x": _data(2, 3), "times": constant([2, 1])},
            (4, 3),
            "tile",
            is_affine=False,
        ),
        "tile of one": _case("TILE", {"x": _data(1, 3), "times": constant([4, 1])}, (4, 3), "tile"),
        "fill": _case("FILL", {"shape": constant([2, 3]), "x": _data()}, (2, 3), "expand"),
        "depth to space": _case(
            "DEPTH_TO_SPACE",
            {"x": x},
            (1, 8, 12, 2),
            "depth_to_space",
            ("DepthToSpaceOptions", {"BlockSize": 2}),
        ),
        "space to depth": _case(
            "SPACE_TO_DEPTH",
            {"x": x},
            (1, 2, 3, 32),
            "space_to_depth",
            ("SpaceToDepthOptions", {"BlockSize": 2}),
        ),
        # (4 + 1 + 1) / 2 x (6 + 0 + 0) / 3, and a batch of 2 * 2 * 3.
        "space to batch": _case(
            "SPACE_TO_BATCH_ND",
            {"x": _data(2, 4, 6, 3), "block": constant([2, 3]), "p": constant([[1, 1], [0, 0]])},
            (12, 3, 2, 3),
            "space_to_batch",
        ),
        # 3 * 2 - 1 - 0 x 2 * 3 - 0 - 2, and a batch of 12 / 6.
        "batch to space": _case(
            "BATCH_TO_SPACE_ND",
            {"x": _data(12, 3, 2, 3), "block": constant([2, 3]), "c": constant([[1, 0], [0, 2]])},
            (2, 5, 4, 3),
            "batch_to_space",
        ),
        "resize nearest": _case(
            "RESIZE_NEAREST_NEIGHBOR",
            {"x": _data(1, 3, 2, 2), "size": constant([6, 6])},
            (1, 6, 6, 2),
            "resize",
        ),
        "resize nearest half pixels": _case(
            "RESIZE_NEAREST_NEIGHBOR",
            {"x": _data(1, 3, 2, 2), "size": constant([9, 4])},
            (1, 9, 4, 2),
            "resize",
            ("ResizeNearestNeighborOptions", {"HalfPixelCenters": True}),
        ),
        "resize bilinear": _case(
            "RESIZE_BILINEAR",
            {"x": _data(1, 3, 2, 2), "size": constant([5, 7])},
            (1, 5, 7, 2),
            "resize",
            is_affine=False,
        ),
        "gather": _case(
            "GATHER",
            {"x": _data(2, 5, 3), "i": _data(4, dtype="int32")},
            (2, 4, 3),
            "gather",
            ("GatherOptions", {"Axis": 1}),
            is_affine=False,
        ),
        "gather in batches": _case(
            "GATHER",
            {"x": _data(2, 5, 3), "i": _data(2, 4, dtype="int32")},
            (2, 4, 3),
            "gather",
            ("GatherOptions", {"Axis": 1, "BatchDims": 1}),
            is_affine=False,
        ),
        "gather nd": _case(
            "GATHER_ND",
            {"x": _data(4, 5, 3), "i": _data(7, 2, dtype="int32")},
            (7, 3),
            "gather",
            is_affine=False,
        ),
        "embedding lookup": _case(
            "EMBEDDING_LOOKUP",
            {"i": _data(4, dtype="int32"), "w": _weights(9, 3)},
            (4, 3),
            "gather",
            is_affine=False,
        ),
        "scatter nd": _case(
            "SCATTER_ND",
            {
                "i": _data(4, 1, dtype="int32"),
                "x": _data(4, 3),
                "shape": constant([8, 3]),
            },
            (8, 3),
            "scatter",
            is_affine=False,
        ),
        "update slice": _case(
            "DYNAMIC_UPDATE_SLICE",
            {"x": _data(8, 3), "z": _data(2, 3), "i": _data(2, dtype="int32")},
            (8, 3),
            "scatter",
            is_affine=False,
        ),
    }


def _arithmetic_cases() -> dict[str, Case]:
    x = _data(1, 3, 4, 5)
    axes = constant([1, 2])
    kept: Options = ("ReducerOptions", {"KeepDims": True})
    return {
        "add": _case("ADD", {"x": x, "z": _data(4, 1)}, (1, 3, 4, 5), "add"),
        "add n": _case("ADD_N", {"x": x, "y": x, "z": x}, (1, 3, 4, 5), "add", is_affine=False),
        "mul": _case("MUL", {"x": _data(2, 1), "w": _weights(3)}, (2, 3), "mul"),
        "sub": _case("SUB", {"w": _weights(3), "x": _data(2, 1)}, (2, 3), "sub"),
        "maximum": _case("MAXIMUM", {"x": x, "z": _data(5)}, (1, 3, 4, 5), "max"),
        "less": _case(
            "LESS", {"x": x, "z": _data(5)}, (1, 3, 4, 5), "less", dtype="bool", is_affine=False
        ),
        "relu": _case("RELU", {"x": x}, (1, 3, 4, 5), "relu"),
        "clip": _case("RELU_N1_TO_1", {"x": x}, (1, 3, 4, 5), "clip", is_affine=False),
        "prelu": _case("PRELU", {"x": x, "w": _weights(1, 1, 5)}, (1, 3, 4, 5), "prelu"),
        "leaky relu": _case(
            "LEAKY_RELU",
            {"x": x},
            (1, 3, 4, 5),
            "leaky_relu",
            ("LeakyReluOptions", {"Alpha": 0.25}),
            is_affine=False,
        ),
        "softmax": _case(
            "SOFTMAX",
            {"x": x},
            (1, 3, 4, 5),
            "softmax",
            ("SoftmaxOptions", {"Beta": 1.0}),
            is_affine=False,
        ),
        "l2 norm": _case("L2_NORMALIZATION", {"x": x}, (1, 3, 4, 5), "l2_norm", is_affine=False),
        "cast": _case("CAST", {"x": x}, (1, 3, 4, 5), "cast", dtype="int32"),
        "select": _case(
            "SELECT",
            {"c": _data(3, dtype="bool"), "x": _data(3, 4), "z": _data(3, 4)},
            (3, 4),
            "where",
        ),
        "select v2": _case(
            "SELECT_V2",
            {"c": _data(4, dtype="bool"), "x": _data(3, 1), "z": _data(1)},
            (3, 4),
            "where",
        ),
        "sum": _case("SUM", {"x": x, "axes": axes}, (1, 5), "reduce_sum"),
        "reduce max keeps axes": _case(
            "REDUCE_MAX", {"x": x, "axes": constant(-1)}, (1, 3, 4, 1), "reduce_max", kept
        ),
        "mean": _case("MEAN", {"x": x, "axes": axes}, (1, 5), "reduce_mean", is_affine=False),
        "arg max": _case(
            "ARG_MAX",
            {"x": x, "axis": constant(-1)},
            (1, 3, 4),
            "arg_max",
            ("ArgMaxOptions", {"OutputType": 2}),
            dtype="int32",
            is_affine=False,
        ),
        "cumsum": _case(
            "CUMSUM", {"x": _data(3, 4), "axis": constant(1)}, (3, 4), "cumsum", is_affine=False
        ),
        "one hot": _case(
            "ONE_HOT",
            {
                "i": _data(2, 3, dtype="int32"),
                "depth": constant(4),
                "on": constant(1.0, "float32"),
                "off": constant(0.0, "float32"),
            },
            (2, 3, 4),
            "one_hot",
            ("OneHotOptions", {"Axis": -1}),
            is_affine=False,
        ),
    }


CASES = {**_product_cases(), **_slice_cases(), **_rearrange_cases(), **_arithmetic_cases()}
