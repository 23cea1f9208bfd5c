"""Tiny models of operators that move data, with shapes worked out by hand."""

from typing import Any

from tests.unit.network.tflite_case import Case, case_of, data, in_steps, opaque, weights
from tests.unit.network.tflite_models import Options, TensorSpec, constant


def _masks(
    begin: int = 0, end: int = 0, ellipsis: int = 0, new: int = 0, shrink: int = 0
) -> Options:
    fields = {"BeginMask": begin, "EndMask": end, "EllipsisMask": ellipsis}
    return ("StridedSliceOptions", {**fields, "NewAxisMask": new, "ShrinkAxisMask": shrink})


def _slices(begin: Any, end: Any, strides: Any, *shape: int) -> dict[str, TensorSpec]:
    return {
        "x": data(*shape),
        "begin": constant(begin),
        "end": constant(end),
        "strides": constant(strides),
    }


_SLICES: dict[str, Case] = {
    "strided slice": case_of(
        "STRIDED_SLICE",
        _slices([0, 1, 0], [2, 6, 5], [1, 2, 3], 2, 7, 5),
        (2, 3, 2),  # 1, 3, 5 of 7 and 0, 3 of 5.
        "slice",
        _masks(),
    ),
    "strided slice backwards": case_of(
        "STRIDED_SLICE",
        _slices([-1, 5], [-3, 0], [-1, -2], 4, 7),
        (2, 3),  # 3, 2 of 4 and 5, 3, 1 of 7.
        "slice",
        _masks(),
    ),
    "strided slice begin and end masks": case_of(
        "STRIDED_SLICE",
        _slices([2, 3, 1], [3, 4, -1], [1, -1, 1], 4, 5, 6),
        (3, 4, 4),  # begin masked: 0..2; end masked, backwards: 3..0; 1..4.
        "slice",
        _masks(begin=1, end=2),
    ),
    "strided slice both masks backwards": case_of(
        "STRIDED_SLICE",
        _slices([0], [0], [-1], 5),
        (5,),
        "slice",
        _masks(begin=1, end=1),
    ),
    "strided slice shrinks": case_of(
        "STRIDED_SLICE",
        _slices([1, -2, 0], [2, 0, 3], [1, 1, 1], 3, 4, 5),
        (3,),  # Element 1 of 3, element 2 of 4, then 0..2.
        "slice",
        _masks(shrink=3),
    ),
    "strided slice ellipsis": case_of(
        "STRIDED_SLICE",
        _slices([1, 0, 2], [3, 0, 4], [1, 1, 1], 3, 4, 5, 6),
        (2, 4, 5, 2),  # The middle entry stands for two whole axes.
        "slice",
        _masks(ellipsis=2),
    ),
    "strided slice new axis": case_of(
        "STRIDED_SLICE",
        _slices([1, 0, 2], [3, 0, 4], [1, 1, 1], 3, 4),
        (2, 1, 2),
        "slice",
        _masks(new=2),
    ),
    "strided slice of the first axes": case_of(
        "STRIDED_SLICE",
        _slices([1], [3], [1], 3, 4, 5),
        (2, 4, 5),
        "slice",
        _masks(),
    ),
    "slice": case_of(
        "SLICE",
        {"x": data(3, 4, 5), "begin": constant([1, 0, 2]), "size": constant([2, -1, 1])},
        (2, 4, 1),
        "slice",
    ),
    "split": in_steps(
        3,
        case_of(
            "SPLIT",
            {"axis": constant(1), "x": data(2, 6, 3)},
            [(2, 2, 3)] * 3,
            "slice",
            ("SplitOptions", {"NumSplits": 3}),
        ),
    ),
    "split v": in_steps(
        3,
        case_of(
            "SPLIT_V",
            {"x": data(2, 6), "sizes": constant([1, -1, 2]), "axis": constant(-1)},
            [(2, 1), (2, 3), (2, 2)],  # 6 - 1 - 2 are left for -1.
            "slice",
            ("SplitVOptions", {"NumSplits": 3}),
        ),
    ),
    "pack": in_steps(
        3,
        case_of(
            "PACK",
            {"x": data(2, 3), "z": data(2, 3)},
            (2, 2, 3),
            "concat",
            ("PackOptions", {"ValuesCount": 2, "Axis": 1}),  # Two reshapes.
        ),
    ),
    "unpack": in_steps(
        3,
        case_of(
            "UNPACK",
            {"x": data(2, 3, 4)},
            [(2, 4)] * 3,
            "slice",
            ("UnpackOptions", {"Num": 3, "Axis": 1}),
        ),
    ),
    "concatenation": case_of(
        "CONCATENATION",
        {"x": data(1, 3, 3, 2), "z": data(1, 3, 3, 5)},
        (1, 3, 3, 7),
        "concat",
        ("ConcatenationOptions", {"Axis": -1}),
    ),
    "pad": case_of(
        "PAD",
        {"x": data(1, 3, 4, 2), "p": constant([[0, 0], [1, 2], [0, 3], [0, 0]])},
        (1, 6, 7, 2),  # 1 + 3 + 2 and 0 + 4 + 3.
        "pad",
    ),
    "pad with a value": case_of(
        "PADV2",
        {
            "x": data(2, 3),
            "p": constant([[1, 0], [0, 2]]),
            "v": constant(7.0, "float32"),
        },
        (3, 5),
        "pad",
    ),
    "mirror pad": opaque(
        case_of(
            "MIRROR_PAD",
            {"x": data(3, 4), "p": constant([[1, 1], [2, 0]])},
            (5, 6),
            "pad",
            ("MirrorPadOptions", {"Mode": 0}),
        )
    ),
    "reverse": case_of("REVERSE_V2", {"x": data(3, 4), "axis": constant([1])}, (3, 4), "reverse"),
}

_DEEP_IMAGE = data(1, 4, 6, 8)
_MOVED: dict[str, Case] = {
    "reshape": case_of("RESHAPE", {"x": data(2, 6), "shape": constant([3, -1])}, (3, 4), "reshape"),
    "reshape by option": case_of(
        "RESHAPE",
        {"x": data(2, 6)},
        (4, 3),
        "reshape",
        ("ReshapeOptions", {"NewShape": [4, 3]}),
    ),
    "squeeze": case_of(
        "SQUEEZE",
        {"x": data(1, 3, 1, 1)},
        (1, 3, 1),
        "reshape",
        ("SqueezeOptions", {"SqueezeDims": [-2]}),
    ),
    "squeeze all": case_of("SQUEEZE", {"x": data(1, 3, 1)}, (3,), "reshape"),
    "expand dims": case_of(
        "EXPAND_DIMS", {"x": data(3, 4), "axis": constant(-1)}, (3, 4, 1), "reshape"
    ),
    "transpose": case_of(
        "TRANSPOSE",
        {"x": data(2, 3, 4, 5), "perm": constant([0, 3, 1, 2])},
        (2, 5, 3, 4),
        "transpose",
    ),
    "broadcast to": case_of(
        "BROADCAST_TO", {"x": data(3, 1), "shape": constant([2, 3, 4])}, (2, 3, 4), "expand"
    ),
    "tile": opaque(
        case_of(
            "TILE",
            {"x": data(2, 3), "times": constant([2, 1])},
            (4, 3),
            "tile",
        )
    ),
    "tile of one": case_of("TILE", {"x": data(1, 3), "times": constant([4, 1])}, (4, 3), "tile"),
    "fill": case_of("FILL", {"shape": constant([2, 3]), "x": data()}, (2, 3), "expand"),
    "depth to space": case_of(
        "DEPTH_TO_SPACE",
        {"x": _DEEP_IMAGE},
        (1, 8, 12, 2),
        "depth_to_space",
        ("DepthToSpaceOptions", {"BlockSize": 2}),
    ),
    "space to depth": case_of(
        "SPACE_TO_DEPTH",
        {"x": _DEEP_IMAGE},
        (1, 2, 3, 32),
        "space_to_depth",
        ("SpaceToDepthOptions", {"BlockSize": 2}),
    ),
    # (4 + 1 + 1) / 2 x (6 + 0 + 0) / 3, and a batch of 2 * 2 * 3.
    "space to batch": case_of(
        "SPACE_TO_BATCH_ND",
        {"x": data(2, 4, 6, 3), "block": constant([2, 3]), "p": constant([[1, 1], [0, 0]])},
        (12, 3, 2, 3),
        "space_to_batch",
    ),
    # 3 * 2 - 1 - 0 x 2 * 3 - 0 - 2, and a batch of 12 / 6.
    "batch to space": case_of(
        "BATCH_TO_SPACE_ND",
        {"x": data(12, 3, 2, 3), "block": constant([2, 3]), "c": constant([[1, 0], [0, 2]])},
        (2, 5, 4, 3),
        "batch_to_space",
    ),
    "resize nearest": case_of(
        "RESIZE_NEAREST_NEIGHBOR",
        {"x": data(1, 3, 2, 2), "size": constant([6, 6])},
        (1, 6, 6, 2),
        "resize",
    ),
    "resize nearest half pixels": case_of(
        "RESIZE_NEAREST_NEIGHBOR",
        {"x": data(1, 3, 2, 2), "size": constant([9, 4])},
        (1, 9, 4, 2),
        "resize",
        ("ResizeNearestNeighborOptions", {"HalfPixelCenters": True}),
    ),
    "resize bilinear": opaque(
        case_of(
            "RESIZE_BILINEAR",
            {"x": data(1, 3, 2, 2), "size": constant([5, 7])},
            (1, 5, 7, 2),
            "resize",
        )
    ),
    "resize to the same size": case_of(
        "RESIZE_BILINEAR",
        {"x": data(1, 3, 2, 2), "size": constant([3, 2])},
        (1, 3, 2, 2),
        "identity",
        ("ResizeBilinearOptions", {"AlignCorners": True}),
    ),
    "gather": opaque(
        case_of(
            "GATHER",
            {"x": data(2, 5, 3), "i": data(4, dtype="int32")},
            (2, 4, 3),
            "gather",
            ("GatherOptions", {"Axis": 1}),
        )
    ),
    "gather in batches": opaque(
        case_of(
            "GATHER",
            {"x": data(2, 5, 3), "i": data(2, 4, dtype="int32")},
            (2, 4, 3),
            "gather",
            ("GatherOptions", {"Axis": 1, "BatchDims": 1}),
        )
    ),
    "gather nd": opaque(
        case_of(
            "GATHER_ND",
            {"x": data(4, 5, 3), "i": data(7, 2, dtype="int32")},
            (7, 3),
            "gather",
        )
    ),
    "embedding lookup": opaque(
        case_of(
            "EMBEDDING_LOOKUP",
            {"i": data(4, dtype="int32"), "w": weights(9, 3)},
            (4, 3),
            "gather",
        )
    ),
    "scatter nd": opaque(
        case_of(
            "SCATTER_ND",
            {
                "i": data(4, 1, dtype="int32"),
                "x": data(4, 3),
                "shape": constant([8, 3]),
            },
            (8, 3),
            "scatter",
        )
    ),
    "update slice": opaque(
        case_of(
            "DYNAMIC_UPDATE_SLICE",
            {"x": data(8, 3), "z": data(2, 3), "i": data(2, dtype="int32")},
            (8, 3),
            "scatter",
        )
    ),
}

MOVE_CASES = {**_SLICES, **_MOVED}
