"""Shapes, work and indices of single nodes, by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.onnx_models import Array, Case, Given, integers, model, node, reals, saved, single, zeros

from tilewright.network.counts import macs, weight_bytes
from tilewright.network.graph import Index, Network, Op
from tilewright.network.kinds import KIND_CLASSES
from tilewright.network.onnx_reader import read_onnx, supported_ops


def read_case(
    tmp_path: Path,
    op: str,
    operands: tuple[Given | Array | None, ...],
    attributes: dict[str, Any] | None = None,
    opset: int = 13,
) -> Network:
    domain, _, op_type = op.rpartition(".")
    made = Case(
        name=op,
        op=op_type,
        operands=operands,
        attributes=attributes or {},
        opset=opset,
        domain=domain,
    )
    return read_onnx(saved(single(made), tmp_path))


def only(network: Network) -> Op:
    (op,) = network.ops
    return op


def x(*shape: int, dtype: str = "float32") -> Given:
    return Given(shape=shape, dtype=dtype)


def test_a_grouped_convolution_multiplies_only_within_its_groups(tmp_path: Path) -> None:
    network = read_case(tmp_path, "Conv", (x(1, 8, 10, 12), zeros(6, 4, 3, 3)), {"group": 2})
    op = only(network)
    # Valid 3 x 3 windows: 10 - 2 = 8 rows, 12 - 2 = 10 columns. Each of the 6 x 8 x 10 results
    # takes 4 channels x 9 taps.
    assert network.by_name["y0"].shape == (1, 6, 8, 10)
    assert macs(op, network) == 6 * 8 * 10 * 4 * 9
    assert op.sizes == {"B": 1, "G": 2, "K": 3, "C": 4, "OY": 8, "OX": 10, "FY": 3, "FX": 3}
    assert weight_bytes(network) == 4 * 6 * 4 * 9


def test_a_dilated_convolution_reaches_further_with_the_same_work(tmp_path: Path) -> None:
    attributes = {"dilations": [3], "pads": [2, 1], "strides": [2]}
    network = read_case(tmp_path, "Conv", (x(1, 2, 12), zeros(5, 2, 3)), attributes)
    op = only(network)
    # The kernel reaches over 3 x 2 + 1 = 7; (12 + 2 + 1 - 7) // 2 + 1 = 5 positions.
    assert network.by_name["y0"].shape == (1, 5, 5)
    assert macs(op, network) == 5 * 5 * 2 * 3
    assert op.inputs[0].index is not None
    assert op.inputs[0].index[2] == Index((("OX", 2), ("FX", 3)), -2)


def test_a_transposed_convolution_counts_the_taps_that_are_not_cropped(tmp_path: Path) -> None:
    attributes = {"strides": [2], "pads": [1, 1], "output_padding": [1]}
    network = read_case(tmp_path, "ConvTranspose", (x(1, 3, 4), zeros(3, 2, 3)), attributes)
    # (4 - 1) x 2 + 3 - 1 - 1 + 1 = 8. Input i puts taps at 2i - 1, 2i, 2i + 1: all of 4 x 3
    # but the first, at -1, land inside; 3 input and 2 output channels.
    assert network.by_name["y0"].shape == (1, 2, 8)
    assert macs(only(network), network) == 11 * 3 * 2


def test_a_depthwise_convolution_has_one_input_channel_per_group(tmp_path: Path) -> None:
    network = read_case(
        tmp_path, "Conv", (x(1, 4, 5, 5), zeros(4, 1, 3, 3)), {"group": 4, "auto_pad": "SAME_UPPER"}
    )
    assert network.by_name["y0"].shape == (1, 4, 5, 5)
    assert macs(only(network), network) == 4 * 25 * 9


@pytest.mark.parametrize(
    ("size", "pads", "positions"),
    [
        # 3-wide windows, 2 apart: starts 0, 2, 4 are whole in 7; 8 leaves a remainder of 1 at 6.
        (7, [0, 0], 3),
        (8, [0, 0], 4),
        # 5 + 1 + 1: starts -1, 1, 3 are whole, nothing is left.
        (5, [1, 1], 3),
        # 6 + 0 + 1: starts 0, 2, 4; 6 would lie in the padding behind and is left out.
        (6, [0, 1], 3),
    ],
)
def test_ceil_mode_adds_a_window_for_a_remainder(
    tmp_path: Path, size: int, pads: list[int], positions: int
) -> None:
    attributes = {"kernel_shape": [3], "strides": [2], "pads": pads, "ceil_mode": 1}
    network = read_case(tmp_path, "MaxPool", (x(1, 1, size),), attributes)
    assert network.by_name["y0"].shape == (1, 1, positions)


def test_an_einsum_is_a_matrix_product(tmp_path: Path) -> None:
    network = read_case(
        tmp_path, "Einsum", (x(2, 5, 3, 4), x(2, 7, 3, 4)), {"equation": "bqhd,bkhd->bhqk"}
    )
    # For each of 2 x 3 heads, 5 x 7 dot products of length 4.
    assert network.by_name["y0"].shape == (2, 3, 5, 7)
    assert macs(only(network), network) == 2 * 3 * 5 * 7 * 4


def test_an_einsum_with_an_ellipsis_broadcasts_what_it_hides(tmp_path: Path) -> None:
    network = read_case(
        tmp_path, "Einsum", (x(6, 2, 3, 4), x(2, 4, 5)), {"equation": "...ij,...jk"}
    )
    assert network.by_name["y0"].shape == (6, 2, 3, 5)
    assert macs(only(network), network) == 6 * 2 * 3 * 4 * 5


def test_a_batched_product_and_gemm_count_the_summed_axis_once(tmp_path: Path) -> None:
    product = read_case(tmp_path, "MatMul", (x(3, 1, 4, 5), x(7, 5, 6)))
    assert product.by_name["y0"].shape == (3, 7, 4, 6)
    assert macs(only(product), product) == 3 * 7 * 4 * 6 * 5
    gemm = read_case(tmp_path, "Gemm", (x(5, 4), zeros(6, 5), zeros(6)), {"transA": 1, "transB": 1})
    assert gemm.by_name["y0"].shape == (4, 6)
    assert macs(only(gemm), gemm) == 4 * 6 * 5
    assert only(gemm).inputs[2].index == (Index((("K", 1),)),)


def test_slices_say_where_they_start_and_how_they_step(tmp_path: Path) -> None:
    operands = (x(9, 6), integers(-1, 1), integers(-100, 5), integers(0, 1), integers(-3, 2))
    network = read_case(tmp_path, "Slice", operands)
    # Backwards by 3 from 8: 8, 5, 2. Forwards by 2 from 1 to 5: 1, 3.
    assert network.by_name["y0"].shape == (3, 2)
    assert only(network).inputs[0].index == (Index((("D", -3),), 8), Index((("K", 2),), 1))


def test_a_split_is_one_slice_per_result(tmp_path: Path) -> None:
    parts = node("Split", ["x"], ["a", "b", "c"], {"axis": 1, "num_outputs": 3}, name="cut")
    proto = model([parts], {"x": x(2, 8)}, ["a", "b", "c"], opset=18)
    network = read_onnx(saved(proto, tmp_path))
    # Parts of ceil(8 / 3) = 3, the last what is left.
    assert [network.by_name[name].shape for name in "abc"] == [(2, 3), (2, 3), (2, 2)]
    assert [(op.name, op.kind) for op in network.ops] == [
        ("cut.0", "slice"),
        ("cut.1", "slice"),
        ("cut.2", "slice"),
    ]
    assert [op.inputs[0].index and op.inputs[0].index[1].offset for op in network.ops] == [0, 3, 6]


def test_resize_sizes_come_from_scales_sizes_and_ratios(tmp_path: Path) -> None:
    by_scale = read_case(tmp_path, "Resize", (x(1, 1, 10, 7), None, reals(1, 1, 0.7, 1.3)))
    # 10 x 0.7 = 7 in single precision (in double it is 6.9999999), 7 x 1.3 = 9.1.
    assert by_scale.by_name["y0"].shape == (1, 1, 7, 9)
    attributes = {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}
    operands = (x(1, 1, 40, 30), None, None, integers(20, 20))
    by_ratio = read_case(tmp_path, "Resize", operands, attributes, opset=18)
    # The smaller of 20 / 40 and 20 / 30 scales both axes.
    assert by_ratio.by_name["y0"].shape == (1, 1, 20, 15)


def test_a_nearest_resize_by_whole_factors_repeats_elements(tmp_path: Path) -> None:
    network = read_case(tmp_path, "Resize", (x(1, 1, 3, 4), None, reals(1, 1, 2, 3)))
    op = only(network)
    assert network.by_name["y0"].shape == (1, 1, 6, 12)
    assert op.sizes == {"B": 1, "G": 1, "OY": 6, "OX": 12}
    assert op.inputs[0].index is not None
    # Column o reads floor(o / 3), the only whole number from (o - 2) / 3 to o / 3.
    assert op.inputs[0].index[3] == Index((("OX", 1),), offset=-2, divisor=3, reach=2)


def test_a_linear_resize_reads_the_two_rows_around_a_place(tmp_path: Path) -> None:
    operands = (x(1, 1, 4, 4), None, reals(1, 1, 2, 1))
    op = only(read_case(tmp_path, "Resize", operands, {"mode": "linear"}))
    assert op.inputs[0].index is not None
    # Row o lies at o / 2 - 1 / 4, between floor(o / 2 - 1 / 4) and the next one: from (o - 2) / 2
    # to (o + 1) / 2 lie those two, at the upper border the first one alone.
    assert op.inputs[0].index[2] == Index((("OY", 1),), offset=-2, divisor=2, reach=3)
    assert op.inputs[0].index[3] == Index((("OX", 1),))


def test_with_aligned_corners_a_place_goes_on_by_whole_parts(tmp_path: Path) -> None:
    operands = (x(1, 1, 3, 3), None, None, integers(1, 1, 9, 3))
    attributes = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    op = only(read_case(tmp_path, "Resize", operands, attributes))
    assert op.inputs[0].index is not None
    # Row o lies at o * 2 / 8. What is not below (o - 3) / 4 and not above (o + 3) / 4 is the row
    # there, or the two around it.
    assert op.inputs[0].index[2] == Index((("OY", 1),), offset=-3, divisor=4, reach=6)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_resize_to_the_same_size_moves_nothing(mode: str, tmp_path: Path) -> None:
    by_size = (x(1, 1, 4, 5), None, None, integers(1, 1, 4, 5))
    by_scale = (x(1, 1, 4, 5), None, reals(1, 1, 1, 1))
    for operands in (by_size, by_scale):
        op = only(read_case(tmp_path, "Resize", operands, {"mode": mode}))
        assert op.kind == "identity"
        assert op.inputs[0].index == op.outputs[0].index


def test_of_a_cubic_resize_any_element_may_be_read(tmp_path: Path) -> None:
    operands = (x(1, 1, 4, 4), None, reals(1, 1, 2, 1))
    assert only(read_case(tmp_path, "Resize", operands, {"mode": "cubic"})).inputs[0].index is None


def test_softmax_couples_all_axes_behind_its_axis_before_opset_13(tmp_path: Path) -> None:
    old = read_case(tmp_path, "Softmax", (x(2, 3, 4),), {"axis": 1}, opset=11)
    new = read_case(tmp_path, "Softmax", (x(2, 3, 4),), {"axis": 1}, opset=13)
    assert (only(old).coupled, only(new).coupled) == (("D", "K"), ("D",))


def test_a_group_norm_holds_the_channels_of_one_group_whole(tmp_path: Path) -> None:
    operands = (x(1, 6, 4, 5), zeros(6), zeros(6))
    op = only(read_case(tmp_path, "GroupNormalization", operands, {"num_groups": 3}, opset=21))
    assert op.sizes == {"B": 1, "G": 3, "K": 2, "OY": 4, "OX": 5}
    assert op.coupled == ("K", "OY", "OX")
    assert op.inputs[1].index == (Index((("G", 2), ("K", 1))),)


def test_a_local_response_norm_reads_neighbouring_channels(tmp_path: Path) -> None:
    op = only(read_case(tmp_path, "LRN", (x(1, 8, 4, 4),), {"size": 4}))
    # floor(3 / 2) = 1 channel before, ceil(3 / 2) = 2 behind.
    assert op.inputs[0].index is not None
    assert op.inputs[0].index[1] == Index((("G", 1), ("C", 1)), -1)
    assert op.sizes["C"] == 4


def test_scales_and_zero_points_are_no_weights(tmp_path: Path) -> None:
    scale, zero = np.array(0.1, np.float32), np.array(3, np.uint8)
    weights = zeros(4, 3, 3, 3, dtype="uint8")
    scales = reals(1, 2, 3, 4)
    operands = (x(1, 3, 8, 8, dtype="uint8"), scale, zero, weights, scales, zero, scale, zero)
    network = read_case(tmp_path, "QLinearConv", operands)
    op = only(network)
    letters = {operand.name: operand.tensor for operand in op.inputs}
    # No bias: its letter is left out.
    assert letters == {
        "I": "x0",
        "W": "x3",
        "X3": "x1",
        "X4": "x2",
        "X5": "x4",
        "X6": "x5",
        "X7": "x6",
        "X8": "x7",
    }
    assert weight_bytes(network) == 4 * 3 * 9
    assert network.by_name["y0"].dtype == "uint8"
    assert op.accumulator_bits == 32


def test_a_clip_keeps_known_bounds_as_attributes(tmp_path: Path) -> None:
    op = only(read_case(tmp_path, "Clip", (x(2, 3), None, np.array(6, np.float32))))
    assert dict(op.attributes) == {"max": 6.0, "onnx_op": "Clip"}
    assert [operand.name for operand in op.inputs] == ["I"]


def test_reflecting_pads_read_near_where_constant_ones_do(tmp_path: Path) -> None:
    pads = integers(2, 0, 1, 0)
    constant = only(read_case(tmp_path, "Pad", (x(6, 4), pads)))
    reflected = only(read_case(tmp_path, "Pad", (x(6, 4), pads), {"mode": "reflect"}))
    assert constant.inputs[0].index == (Index((("D", 1),), -2), Index((("K", 1),)))
    # Row 0 of the result is row 2 of the input, 4 behind -2; row 8 is row 4, 2 before 6.
    assert reflected.inputs[0].index == (Index((("D", 1),), -4, reach=6), Index((("K", 1),)))


def test_pads_that_cut_or_go_round_may_read_anywhere_along_an_axis(tmp_path: Path) -> None:
    cut = only(
        read_case(
            tmp_path,
            "Pad",
            (
                x(
                    6,
                ),
                integers(2, -1),
            ),
            {"mode": "reflect"},
        )
    )
    assert cut.inputs[0].index == (Index((), reach=5),)
    wide = only(
        read_case(
            tmp_path,
            "Pad",
            (
                x(
                    6,
                ),
                integers(6, 0),
            ),
            {"mode": "edge"},
        )
    )
    assert wide.inputs[0].index == (Index((), reach=5),)


def test_gathering_one_known_row_reads_just_that_row(tmp_path: Path) -> None:
    network = read_case(tmp_path, "Gather", (x(7, 5), np.array(-2, np.int64)))
    assert network.by_name["y0"].shape == (5,)
    # The position is part of the nest: nothing fetches it.
    (row,) = only(network).inputs
    assert row.index == (Index((), 5), Index((("K", 1),)))


def test_gathering_evenly_spaced_known_rows_is_a_slice(tmp_path: Path) -> None:
    op = only(read_case(tmp_path, "Gather", (x(7, 5), integers(-1, 4, 2))))
    assert (op.kind, len(op.inputs)) == ("slice", 1)
    assert op.inputs[0].index == (Index((("D", -2),), 6), Index((("K", 1),)))
    assert op.attribute("starts") == (6, 0)
    assert op.attribute("sizes") == (3, 5)
    assert op.attribute("steps") == (-2, 1)
    uneven = only(read_case(tmp_path, "Gather", (x(7, 5), integers(0, 4, 2))))
    assert (uneven.kind, len(uneven.inputs)) == ("gather", 2)


def test_a_half_precision_tensor_has_16_bits_and_a_bool_8(tmp_path: Path) -> None:
    network = read_case(tmp_path, "Equal", (x(2, 3, dtype="float16"), x(3, dtype="float16")))
    assert (network.by_name["x0"].bits, network.by_name["y0"].bits) == (16, 8)
    assert network.by_name["y0"].dtype == "bool"


def test_old_broadcasting_puts_the_second_operand_under_an_axis(tmp_path: Path) -> None:
    attributes = {"broadcast": 1, "axis": 1}
    op = only(read_case(tmp_path, "Add", (x(2, 3, 4, 5), zeros(3)), attributes, opset=6))
    assert op.inputs[1].index == (Index((("G", 1),)),)


def test_results_of_another_shape_are_ops_of_their_own(tmp_path: Path) -> None:
    quantise = node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"], name="quantise")
    network = read_onnx(saved(model([quantise], {"x": x(2, 3)}, ["y", "scale", "zero"]), tmp_path))
    assert [network.by_name[name].shape for name in ("y", "scale", "zero")] == [(2, 3), (), ()]
    assert [network.by_name[name].dtype for name in ("y", "scale", "zero")] == [
        "uint8",
        "float32",
        "uint8",
    ]
    assert [op.attribute("result", 0) for op in network.ops] == [0, 1, 2]


def test_ops_are_named_after_nodes_or_operators_and_positions(tmp_path: Path) -> None:
    nodes = [
        node("Relu", ["x"], ["a"], name="act"),
        node("Tanh", ["a"], ["b"]),
        node("Exp", ["b"], ["c"], name="act"),
    ]
    network = read_onnx(saved(model(nodes, {"x": x(2, 3)}, ["c"]), tmp_path))
    assert [op.name for op in network.ops] == ["act", "Tanh_1", "act_2"]
    assert [tensor.role for tensor in network.tensors] == [
        "input",
        "activation",
        "activation",
        "output",
    ]


def test_an_op_on_scalars_has_a_loop_of_one_step(tmp_path: Path) -> None:
    op = only(read_case(tmp_path, "Mul", (x(), x())))
    assert op.dims == (("K", 1),)
    assert op.outputs[0].index == ()


def test_every_operator_that_is_listed_becomes_a_kind_that_exists() -> None:
    kinds = supported_ops()
    assert set(kinds.values()) <= {*KIND_CLASSES, "constant"}
    assert kinds["Conv"] == "conv"
    assert kinds["Shape"] == "constant"
    assert kinds["com.microsoft.QLinearAdd"] == "add"
    assert list(kinds) == sorted(kinds)
