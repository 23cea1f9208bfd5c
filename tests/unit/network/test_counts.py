"""Points that land on an element of the result, against going through all of them."""

from itertools import product
from random import Random

import pytest

from tilewright.network.counts import points_inside
from tilewright.network.graph import Index
from tilewright.network.windows import ONNX_CONV, Window, conv


def by_going_through(index: Index, sizes: dict[str, int], extent: int) -> int:
    steps = [[factor * step for step in range(sizes[dim])] for dim, factor in index.terms]
    places = [index.offset + sum(point) for point in product(*steps)]
    return sum(p % index.divisor == 0 and 0 <= p // index.divisor < extent for p in places)


def test_points_inside_are_those_of_going_through_all() -> None:
    chance = Random(11)
    whole = nothing = 0
    for _ in range(1_500):
        dims = ("A", "B", "C")[: chance.randint(1, 3)]
        sizes = {dim: chance.randint(1, 6) for dim in dims}
        terms = tuple((dim, chance.choice((1, 1, 2, 3, -1, -2))) for dim in dims)
        divisor = chance.choice((1, 1, 2, 3))
        index = Index(terms, offset=chance.randint(-6, 6), divisor=divisor)
        extent = chance.randint(1, 12)
        expected = by_going_through(index, sizes, extent)
        assert points_inside(index, sizes, extent) == expected
        whole += expected == sizes["A"] * sizes.get("B", 1) * sizes.get("C", 1)
        nothing += expected == 0
    assert whole > 100
    assert nothing > 100


@pytest.mark.parametrize(("inputs", "channels", "groups"), [(6, 4, 4), (4, 6, 4), (4, 4, 0)])
def test_groups_share_input_and_output_channels_evenly(
    inputs: int, channels: int, groups: int
) -> None:
    window = Window(kernel=1)
    with pytest.raises(ValueError, match=f"{channels} output channels in {groups} groups"):
        conv((1, inputs, 5, 5), channels, groups, [window, window], ONNX_CONV)
    assert dict(conv((1, 8, 5, 5), 4, 4, [window, window], ONNX_CONV).dims)["C"] == 2
