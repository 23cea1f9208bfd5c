"""Which elements a tile touches."""

from itertools import product

import pytest

from tilewright.network import moves, windows
from tilewright.network.graph import Index, Operand, Tensor
from tilewright.network.nests import anywhere_along
from tilewright.program.boxes import (
    Footprint,
    around,
    contains,
    covering,
    elements,
    is_empty,
    overlap,
    shifted,
    size_bytes,
    touched,
    whole,
)


def operand(*index: Index) -> Operand:
    return Operand(name="I", tensor="x", index=index)


def rows_of(window: windows.Window, rows: tuple[int, int], size: int) -> tuple[int, int]:
    """Input rows that a tile of a convolution's result rows reads."""
    nest = windows.conv(
        (1, 1, size, 1), 1, 1, [window, windows.Window(kernel=1)], windows.ONNX_CONV
    )
    found = Operand(name="I", tensor="x", index=nest.inputs[0])
    ranges = {dim: (0, length) for dim, length in nest.dims} | {"OY": rows}
    return touched(found, ranges, (1, 1, size, 1))[2]


SAME = windows.Window(kernel=3, pad_begin=1, pad_end=1)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((0, 4), (0, 5)),  # from -1, which is padding, to 3 + 1
        ((4, 8), (3, 9)),  # a row before, a row behind
        ((8, 12), (7, 12)),  # to 12, which is padding
        ((0, 12), (0, 12)),
    ],
)
def test_a_halo_ends_at_the_border(rows: tuple[int, int], expected: tuple[int, int]) -> None:
    assert rows_of(SAME, rows, 12) == expected


def test_a_stride_and_a_dilation_widen_the_halo() -> None:
    # Row 2 starts at 2 * 2 - 1 = 3; row 3 at 5, and its last tap is 2 * 2 = 4 further.
    window = windows.Window(kernel=3, stride=2, dilation=2, pad_begin=1, pad_end=1)
    assert rows_of(window, (2, 4), 20) == (3, 10)


def test_a_look_up_touches_all_of_the_axis_that_it_searches() -> None:
    looked_up = operand(anywhere_along(48), Index((("K", 1),)))
    assert touched(looked_up, {"D": (0, 1), "K": (8, 16)}, (48, 34)) == ((0, 48), (8, 16))


def test_a_reach_counts_before_it_is_divided() -> None:
    # Element 5 of the result lies at 5 / 2 of the input and may touch what is up to 3 / 2 further.
    halves = operand(Index((("OX", 1),), divisor=2, reach=3))
    assert touched(halves, {"OX": (5, 6)}, (20,)) == ((3, 5),)


def test_a_tile_of_padding_alone_touches_nothing() -> None:
    window = windows.Window(kernel=1, pad_begin=3)
    assert is_empty(touched(operand(Index((("OY", 1),), -3)), {"OY": (0, 2)}, [4]))
    assert rows_of(window, (0, 2), 4) == (0, 0)


def test_parts_of_a_concatenation_are_touched_where_the_result_holds_them() -> None:
    nest = moves.concat([(2, 3), (2, 5)], 1)
    first, second = (Operand(name="I", tensor="x", index=index) for index in nest.inputs)
    names = [dim for dim, _ in nest.dims]
    ranges = {names[0]: (0, 2), names[1]: (2, 6)}
    assert touched(first, ranges, (2, 3)) == ((0, 2), (2, 3))
    assert touched(second, ranges, (2, 5)) == ((0, 2), (0, 3))


def test_a_divisor_keeps_whole_positions_only() -> None:
    # (a + 1) / 2 for a = 0 … 4: 1 and 2 are reached by a = 1 and a = 3.
    index = Index((("A", 1),), 1, 2)
    assert touched(operand(index), {"A": (0, 5)}, [9]) == ((1, 3),)


def test_a_backward_index_and_an_unknown_one() -> None:
    assert touched(operand(Index((("A", -1),), 9)), {"A": (2, 5)}, [10]) == ((5, 8),)
    anywhere = Operand(name="I", tensor="x", index=None)
    assert touched(anywhere, {"A": (2, 5)}, [10, 3]) == ((0, 10), (0, 3))


def test_touched_is_the_box_around_all_positions_cut_at_the_border() -> None:
    for stride, dilation, pad, start in product((1, 2, 3), (1, 2), (0, 2), (0, 1, 4)):
        index = Index((("O", stride), ("F", dilation)), -pad)
        ranges = {"O": (start, start + 3), "F": (0, 2)}
        at = [stride * o + dilation * f - pad for o in range(start, start + 3) for f in range(2)]
        expected = max(0, min(at)), min(17, max(at) + 1)
        assert touched(operand(index), ranges, [17]) == (expected,)


def test_arithmetic_of_boxes() -> None:
    one, other = ((0, 4), (2, 6)), ((3, 9), (0, 3))
    assert overlap(one, other) == ((3, 4), (2, 3))
    assert around(one, other) == ((0, 9), (0, 6))
    assert around(((5, 5), (0, 3)), one) == one
    assert around(one, ((5, 5), (0, 3))) == one
    assert is_empty(overlap(one, ((4, 5), (2, 6))))
    assert elements(one) == 16
    assert shifted(one, (1, -2)) == ((1, 5), (0, 4))
    assert contains(whole((4, 6)), one)
    assert not contains(one, whole((4, 6)))


def test_bytes_are_packed() -> None:
    nibbles = Tensor(name="x", shape=(3, 3), bits=4, role="activation")
    assert size_bytes(((0, 3), (0, 3)), nibbles) == 5
    assert size_bytes(((0, 1), (0, 3)), nibbles) == 2


@pytest.mark.parametrize(
    ("boxes", "expected"),
    [
        # What nobody reads between two cores goes to the one before it.
        ([((0, 3), (0, 4)), ((5, 8), (0, 4))], [((0, 5), (0, 4)), ((5, 8), (0, 4))]),
        # A halo stays, and the last row and column have a place.
        ([((0, 5), (0, 3)), ((3, 7), (0, 3))], [((0, 5), (0, 4)), ((3, 8), (0, 4))]),
        # A core that reads nothing keeps nothing.
        ([((0, 0), (0, 4)), ((1, 8), (1, 4))], [((0, 0), (0, 4)), ((0, 8), (0, 4))]),
        # Two corners leave two others: the first core keeps everything.
        ([((0, 4), (0, 2)), ((4, 8), (2, 4))], [((0, 8), (0, 4)), ((4, 8), (2, 4))]),
    ],
)
def test_boxes_grow_until_they_cover_a_tensor(
    boxes: list[tuple[tuple[int, int], ...]], expected: list[tuple[tuple[int, int], ...]]
) -> None:
    assert covering(boxes, (8, 4)) == expected


def test_a_tile_of_nothing_but_padding_has_no_solid_box_however_often_it_is_asked_for() -> None:
    """Rows 0 and 1 of a window of one row lie two rows above the tensor: only padding."""
    footprint = Footprint(operand(Index((("OY", 1),), -2)), (5,))
    for _ in range(2):
        assert footprint.solid_box({"OY": (0, 2)}) is None
        assert footprint.solid_box({"OY": (1, 4)}) == footprint.box({"OY": (1, 4)}) == ((0, 2),)
