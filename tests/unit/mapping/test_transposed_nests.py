"""A transposed convolution that walks over its result is mapped with loops over its input."""

from tests.e2e.test_transposed_plans import transposed

from tilewright.mapping.nest import mapped_lengths, nest_of, scattering
from tilewright.network.windows import Window
from tilewright.program.tile_cost import tile_nest

NETWORK = transposed(Window(kernel=3, stride=2, pad_begin=1), channels=4, kernels=2, size=6)
"""6 x 6 elements into 12 x 12."""


def test_the_whole_nest_takes_a_step_for_every_input_and_tap() -> None:
    nest = nest_of(NETWORK.ops[0], NETWORK)
    assert nest.sizes == {"B": 1, "K": 2, "C": 4, "IY": 6, "IX": 6, "FY": 3, "FX": 3}
    assert nest.points == 2 * 4 * 6 * 6 * 3 * 3
    assert list(map(str, nest.relations)) == ["O2 = 2*IY + 1*FY", "O3 = 2*IX + 1*FX"]
    assert [relation.size for relation in nest.relations] == [12, 12]
    assert {o.letter: o.axes for o in nest.operands} == {
        "O": ("B", "K", "O2", "O3"),
        "W": ("C", "K", "FY", "FX"),
        "I": ("B", "C", "IY", "IX"),
    }


def test_taps_that_are_apart_are_so_in_the_nest() -> None:
    window = Window(kernel=3, stride=2, dilation=2)
    network = transposed(window, channels=4, kernels=2)
    relations = nest_of(network.ops[0], network).relations
    assert list(map(str, relations)) == ["O2 = 2*IY + 2*FY", "O3 = 2*IX + 2*FX"]


def test_a_tile_takes_half_as_many_steps_as_it_has_rows() -> None:
    op = NETWORK.ops[0]
    lengths = mapped_lengths(op, NETWORK, {**op.sizes, "OY": 4, "OX": 5})
    assert {dim: lengths[dim] for dim in ("IY", "IX", "FY", "K")} == {
        "IY": 2,
        "IX": 3,
        "FY": 3,
        "K": 2,
    }
    tile = tile_nest(nest_of(op, NETWORK), lengths, unfinished=False)
    assert (tile.sizes["IY"], tile.sizes["IX"]) == (2, 3)
    # What is made are the rows of the tile, not all that its windows reach.
    assert [relation.size for relation in tile.relations] == [4, 5]


def test_other_ops_are_mapped_as_they_are() -> None:
    network = transposed(Window(kernel=2, stride=2), channels=4, kernels=2)
    op = network.ops[0]
    assert scattering(op, network) is op
    assert mapped_lengths(op, network, op.sizes) == op.sizes
