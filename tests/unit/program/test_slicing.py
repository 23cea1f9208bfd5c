"""Which tensors of a cascade can be made in slices of channels: by who reads them."""

import pytest
from tests.small_machines import Small, small_machine

from tilewright.mapping.search import SearchOptions
from tilewright.network.zoo import layers
from tilewright.program.lower import prepare
from tilewright.program.slicing import slicing

ROWS = 2
"""The axis of rows."""


@pytest.mark.parametrize(
    ("readers", "expected"),
    [
        # Each channel is read for a channel of its own.
        (1, (0, 1, 1)),
        # A second reader may be at other rows by then.
        (2, None),
    ],
)
def test_a_tensor_is_made_in_slices_for_one_reader(
    readers: int, expected: tuple[int, int, int] | None
) -> None:
    net = layers.draft("slices", 8)
    wide = layers.conv(net, "wide", layers.given(net, "x", (1, 4, 8, 8)), 16, layers.square(1))
    window = layers.square(3, 1, 1, group=16)
    made = [layers.conv(net, f"deep{number}", wide, 16, window) for number in range(readers)]
    last = made[0] if readers == 1 else layers.add(net, "sum", made[0], made[1])
    network = net.finish(last)
    machine = small_machine(Small())
    rows = prepare(network, machine, network.ops, SearchOptions(lpf_limit=3)).rows
    linked = rows.linked(0, len(rows.stages) - 1, ROWS)
    assert linked is not None
    found = slicing(rows, linked, 0)
    assert (found and (found.maker, found.reader, found.axis)) == expected
