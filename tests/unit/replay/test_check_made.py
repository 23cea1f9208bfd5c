"""Tasks write what their loops lead to, and slices of sums go on from each other."""

from dataclasses import replace
from itertools import product

import pytest
from tests.timetable_builder import DRAM, Draft
from tests.unit.replay.test_check_ops import fused_draft, fused_network

from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import Index, Network
from tilewright.network.nests import Nest, along, along_dim
from tilewright.network.windows import Window
from tilewright.program.model import Access, Box, Timetable
from tilewright.replay.check import problems

TWO = Window(kernel=2, stride=2)
"""Windows beside each other: a row and a tap of the input lead to one row of the result."""
THREE = Window(kernel=3, stride=2)
"""Windows of which the last row is the first row of the next one."""
APART = Window(kernel=2, stride=3, dilation=2)
"""Rows 0 and 2, 3 and 5, 6 and 8: nothing leads to rows 1, 4 and 7."""

Rows = tuple[int, int]
Part = tuple[Rows, Rows, Rows]
"""Rows of the input, taps, and rows of the result that are written."""


def scattering(window: Window) -> Network:
    """A transposed convolution of 3 x 3 elements that walks over them even if windows overlap."""
    size = window.transposed_size(3)
    walked = [Index(((f"I{a}", window.stride), (f"F{a}", window.dilation))) for a in "YX"]
    b, k, c, iy, ix, fy, fx = map(along_dim, ("B", "K", "C", "IY", "IX", "FY", "FX"))
    sizes = {"IY": 3, "IX": 3, "FY": window.kernel, "FX": window.kernel}
    nest = Nest(
        dims=(("B", 1), ("K", 1), ("C", 1), *sizes.items()),
        shape=(1, 1, size, size),
        output=(b, k, *walked),
        inputs=((b, c, iy, ix), (c, k, fy, fx), (k,)),
    )
    builder = NetworkBuilder("scattering")
    builder.tensor("x", (1, 1, 3, 3), bits=8, role="input")
    builder.tensor("w", (1, 1, window.kernel, window.kernel), bits=8, role="constant")
    builder.tensor("b", (1,), bits=32, role="constant")
    builder.op("up", "conv_transpose", nest, ["x", "w", "b"], {"y": (8, "")})
    return builder.finish(["y"])


def up(window: Window, parts: list[Part]) -> tuple[Timetable, Network]:
    """A transposed convolution of 3 x 3 elements in parts, straight from and to the DRAM."""
    network = scattering(window)
    draft = Draft(spaces=(replace(DRAM),))
    size = network.by_name["y"].shape[2]
    boxes: dict[str, Box] = {
        name: tuple((0, axis) for axis in network.by_name[name].shape) for name in "xwby"
    }
    at = {name: draft.buffer(f"{name}@dram", boxes[name], 200 * n) for n, name in enumerate("xwby")}
    draft.buffers[at["b"]] = replace(draft.buffers[at["b"]], size_bytes=4)
    draft.given += [at["x"], at["w"], at["b"]]
    draft.results.append(at["y"])
    for number, (rows, taps, written) in enumerate(parts):
        reads = (
            Access(at["x"], ((0, 1), (0, 1), rows, (0, 3))),
            Access(at["w"], ((0, 1), (0, 1), taps, (0, window.kernel))),
            Access(at["b"], ((0, 1),)),
        )
        ranges = {"IY": rows, "FY": taps}
        tile = tuple((dim, *ranges.get(dim, (0, n))) for dim, n in network.ops[0].dims)
        writes = (Access(at["y"], ((0, 1), (0, 1), written, (0, size))),)
        draft.task(f"up[{number}]", ("core[0]", 9 * number, 9), reads, writes, tile=tile)
    return draft.timetable(), network


def said(window: Window, parts: list[Part]) -> list[str]:
    return [problem.message for problem in problems(*up(window, parts))]


def rows_of(window: Window, rows: Rows, taps: Rows) -> set[int]:
    """Rows of the result to which rows of the input lead, counted out."""
    return {i * window.stride + f * window.dilation for i, f in product(range(*rows), range(*taps))}


def test_parts_that_lie_beside_each_other_are_right() -> None:
    assert said(TWO, [((0, 1), (0, 2), (0, 2)), ((1, 3), (0, 2), (2, 6))]) == []


def test_rows_to_which_nothing_leads_are_anyones() -> None:
    assert said(APART, [((0, 2), (0, 2), (0, 6)), ((2, 3), (0, 2), (6, 9))]) == []
    assert said(APART, [((0, 2), (0, 2), (0, 5)), ((2, 3), (0, 2), (5, 9))]) == [
        "task up[1] (B 0:1, K 0:1, C 0:1, IY 2:3, IX 0:3, FY 0:2, FX 0:2) writes "
        "[0:1, 0:1, 5:9, 0:9] of y and does not make [0:1, 0:1, 5:6, 0:1]"
    ]


def test_parts_whose_rows_lie_between_each_other_write_no_box() -> None:
    """Even rows and odd rows: each claims rows that only the other makes."""
    found = said(TWO, [((0, 3), (0, 1), (0, 6)), ((0, 3), (1, 2), (0, 6))])
    assert len(found) == 2
    assert "up[0]" in found[0]
    assert found[0].endswith(
        "writes [0:1, 0:1, 0:6, 0:6] of y and does not make [0:1, 0:1, 1:2, 0:1]"
    )
    assert found[1].endswith(
        "writes [0:1, 0:1, 0:6, 0:6] of y and does not make [0:1, 0:1, 0:1, 0:1]"
    )


def test_one_part_does_not_write_for_another() -> None:
    """All points are computed once, and all rows are written, but not by who makes them."""
    found = said(TWO, [((0, 1), (0, 2), (0, 6)), ((1, 3), (0, 2), (2, 2))])
    assert any(
        "up[0]" in message and "does not make [0:1, 0:1, 2:3, 0:1]" in message for message in found
    )


def test_windows_that_meet_are_not_cut_apart() -> None:
    found = said(THREE, [((0, 1), (0, 3), (0, 2)), ((1, 3), (0, 3), (2, 7))])
    assert found == [
        "tasks up[0] and up[1] both make [0:1, 0:1, 2:3, 0:1] of y, and are no slices of the same "
        "sums"
    ]


@pytest.mark.parametrize("window", [TWO, THREE, APART])
def test_every_way_to_cut_in_two_is_judged_as_if_rows_were_counted(window: Window) -> None:
    """Cuts between rows of the input or between taps, and rows written by either part."""
    size = 2 * window.stride + window.dilation * (window.kernel - 1) + 1
    cuts = [(((0, n), (0, window.kernel)), ((n, 3), (0, window.kernel))) for n in (1, 2)]
    cuts += [(((0, 3), (0, n)), ((0, 3), (n, window.kernel))) for n in range(1, window.kernel)]
    for (one, other), border in product(cuts, range(1, size)):
        parts = [(*one, (0, border)), (*other, (border, size))]
        first, second = rows_of(window, *one), rows_of(window, *other)
        is_right = not first & second and max(first) < border <= min(second)
        assert (said(window, parts) == []) == is_right, parts


def test_a_slice_of_sums_reads_what_the_one_before_it_left() -> None:
    draft = fused_draft()
    draft.tasks[1] = replace(draft.tasks[1], reads=draft.tasks[1].reads[:2])
    assert (
        "task product[1] adds to the sums of product[0], and does not read [0:2, 0:2] of them"
        in [problem.message for problem in problems(draft.timetable(), fused_network())]
    )


def test_a_slice_of_sums_writes_what_the_one_before_it_left() -> None:
    draft = fused_draft()
    half = ((0, 1), (0, 2))
    draft.tasks[1] = replace(draft.tasks[1], writes=(draft.tasks[1].writes[0]._replace(box=half),))
    assert (
        "task product[1] adds to the sums of product[0], and does not write [1:2, 0:2] of them"
        in [problem.message for problem in problems(draft.timetable(), fused_network())]
    )


def test_a_loop_along_which_all_depends_on_all_is_not_cut() -> None:
    builder = NetworkBuilder("net")
    builder.tensor("x", (2, 4), bits=8, role="input")
    builder.op("soft", "softmax", along((2, 4), (1,)), ["x"], {"y": (8, "")})
    network = builder.finish(["y"])
    draft = Draft(spaces=(DRAM,))
    x, y = draft.buffer("x@dram", ((0, 2), (0, 4)), 0), draft.buffer("y@dram", ((0, 2), (0, 4)), 8)
    draft.given.append(x)
    draft.results.append(y)
    for number, ends in enumerate(((0, 2), (2, 4))):
        box = ((0, 2), ends)
        tile = (("D", 0, 2), ("K", *ends))
        at = ("core[0].vector", 5 * number, 5)
        draft.task(f"soft[{number}]", at, (Access(x, box),), (Access(y, box),), tile=tile)
    assert [problem.message for problem in problems(draft.timetable(), network)] == [
        "task soft[0] sees K 0:2 of soft, a softmax, and has to see K 0:4",
        "task soft[1] sees K 2:4 of soft, a softmax, and has to see K 0:4",
    ]
