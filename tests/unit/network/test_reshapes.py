"""Reshapes as loop nests: which element of the data each element of the result is."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest
from tests.small_machines import Small, small_machine

from tilewright import plan
from tilewright.network.graph import Index
from tilewright.network.moves import reshape
from tilewright.network.nests import Indices, Shape
from tilewright.network.zoo import layers
from tilewright.replay.verify import verify


def test_an_axis_that_is_split_is_walked_by_all_of_its_parts() -> None:
    nest = reshape((1, 24, 5), (2, 3, 4, 5))
    assert nest.shape == (2, 3, 4, 5)
    assert nest.inputs == (
        (Index(()), Index((("B", 12), ("G", 4), ("OY", 1))), Index((("OX", 1),))),
    )


def position(index: Indices | None, at: Mapping[str, int]) -> tuple[int, ...]:
    """Where the values of loops lead to."""
    assert index is not None
    return tuple(sum(at[dim] * step for dim, step in axis.terms) for axis in index)


@pytest.mark.parametrize(
    ("data", "shape"),
    [
        ((6,), (2, 3)),
        ((1, 6, 4), (1, 2, 1, 3, 4)),
        ((6, 1, 4), (3, 2, 2, 2)),
        ((2, 12), (2, 1, 2, 3, 2, 1)),
        ((3, 2), (1, 3, 1, 2)),
        ((1, 1), (1,)),
    ],
)
@pytest.mark.parametrize("channels_last", [False, True])
def test_every_element_comes_from_its_place(data: Shape, shape: Shape, channels_last: bool) -> None:
    nest = reshape(data, shape, channels_last=channels_last)
    result = np.arange(np.prod(data)).reshape(shape)
    for point in product(*(range(size) for _, size in nest.dims)):
        at = {dim: value for (dim, _), value in zip(nest.dims, point, strict=True)}
        assert result.item(position(nest.output, at)) == np.ravel_multi_index(
            position(nest.inputs[0], at), data
        )


@pytest.mark.parametrize(
    ("data", "shape"), [((2, 3), (6,)), ((4, 6), (6, 4)), ((4, 6), (2, 12)), ((2,), (2, 3))]
)
def test_axes_that_are_joined_are_read_anywhere(data: Shape, shape: Shape) -> None:
    assert reshape(data, shape).inputs == (None,)


def test_a_part_under_another_shape_comes_piece_by_piece() -> None:
    # The part has 16 x 30 B, more than there is room for.
    net = layers.draft("heads", 8)
    data = layers.given(net, "x", (1, 19, 30))
    part = layers.take(net, "part", data, 1, (0, 16))
    network = net.finish(
        layers.softmax(net, "soft", layers.reshape(net, "view", part, (1, 4, 4, 30)))
    )
    found = plan(network, small_machine(Small(size_bytes=300)))
    assert verify(found.timetable, network, machine=found.machine).agrees
