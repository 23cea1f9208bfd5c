"""Which fields of which options table the reader uses, by operator."""

import re
from dataclasses import dataclass

_CONV = "Padding StrideH StrideW DilationHFactor DilationWFactor FusedActivationFunction"
_CONV_3D = (
    "Padding StrideD StrideH StrideW DilationDFactor DilationHFactor DilationWFactor "
    "FusedActivationFunction"
)
_POOL = "Padding StrideH StrideW FilterHeight FilterWidth FusedActivationFunction"
_FUSED = "FusedActivationFunction"
_RESIZE = "AlignCorners HalfPixelCenters"
_SLICE = "BeginMask EndMask EllipsisMask NewAxisMask ShrinkAxisMask Offset"

_FIELDS = {
    "CONV_2D": ("Conv2DOptions", _CONV),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", _CONV),
    "CONV_3D": ("Conv3DOptions", _CONV_3D),
    "CONV_3D_TRANSPOSE": ("Conv3DOptions", _CONV_3D),
    "TRANSPOSE_CONV": ("TransposeConvOptions", f"Padding StrideH StrideW {_FUSED}"),
    "FULLY_CONNECTED": ("FullyConnectedOptions", f"WeightsFormat KeepNumDims {_FUSED}"),
    "BATCH_MATMUL": ("BatchMatMulOptions", "AdjX AdjY"),
    "AVERAGE_POOL_2D": ("Pool2DOptions", _POOL),
    "MAX_POOL_2D": ("Pool2DOptions", _POOL),
    "L2_POOL_2D": ("Pool2DOptions", _POOL),
    "ADD": ("AddOptions", _FUSED),
    "SUB": ("SubOptions", _FUSED),
    "MUL": ("MulOptions", _FUSED),
    "DIV": ("DivOptions", _FUSED),
    "LEAKY_RELU": ("LeakyReluOptions", "Alpha"),
    "GELU": ("GeluOptions", "Approximate"),
    "SOFTMAX": ("SoftmaxOptions", "Beta"),
    "L2_NORMALIZATION": ("L2NormOptions", _FUSED),
    "LOCAL_RESPONSE_NORMALIZATION": (
        "LocalResponseNormalizationOptions",
        "Radius Bias Alpha Beta",
    ),
    "CONCATENATION": ("ConcatenationOptions", f"Axis {_FUSED}"),
    "PACK": ("PackOptions", "Axis"),
    "UNPACK": ("UnpackOptions", "Axis"),
    "STRIDED_SLICE": ("StridedSliceOptions", _SLICE),
    "MIRROR_PAD": ("MirrorPadOptions", "Mode"),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", "BlockSize"),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", "BlockSize"),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", _RESIZE),
    "RESIZE_NEAREST_NEIGHBOR": ("ResizeNearestNeighborOptions", _RESIZE),
    "RESHAPE": ("ReshapeOptions", "NewShape"),
    "SQUEEZE": ("SqueezeOptions", "SqueezeDims"),
    "GATHER": ("GatherOptions", "Axis BatchDims"),
    "MEAN": ("ReducerOptions", "KeepDims"),
    "SUM": ("ReducerOptions", "KeepDims"),
    "REDUCE_MAX": ("ReducerOptions", "KeepDims"),
    "REDUCE_MIN": ("ReducerOptions", "KeepDims"),
    "REDUCE_PROD": ("ReducerOptions", "KeepDims"),
    "REDUCE_ANY": ("ReducerOptions", "KeepDims"),
    "REDUCE_ALL": ("ReducerOptions", "KeepDims"),
    "CUMSUM": ("CumsumOptions", "Exclusive Reverse"),
    "ONE_HOT": ("OneHotOptions", "Axis"),
}

VECTOR_FIELDS = frozenset({"NewShape", "SqueezeDims"})
"""Fields that hold a list of whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionsTable:
    """One table of the schema: its class, and its fields as the schema and as we name them."""

    schema_class: str
    fields: tuple[tuple[str, str], ...]


def _snake(field: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", field).lower()


OPTIONS_TABLES = {
    operator: OptionsTable(
        schema_class=schema_class,
        fields=tuple((field, _snake(field)) for field in fields.split()),
    )
    for operator, (schema_class, fields) in _FIELDS.items()
}
"""By operator; one that is missing here needs no options."""
