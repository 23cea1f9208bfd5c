"""Layouts for one size after the other: what is known of other sizes changes none of them."""

from dataclasses import replace

import pytest
from tests.cascade_cases import QUICK

from tilewright.errors import InfeasibleError
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.network.zoo import layers
from tilewright.program.cascade import PLAIN, Cascade, Strategy
from tilewright.program.layout import Layout
from tilewright.program.lower import Prepared, laid_out, prepare
from tilewright.program.places import places_of

SIZES = [16 + 1680 * step for step in range(24)]
"""From less than a stage needs to more than a small constant asks for to come whole."""


def machine(size_bytes: int) -> Machine:
    return with_memory_limits(load_machine("ethos_u55_128"), (("sram", size_bytes),))


def biased() -> Network:
    """A bias of 512 x 4 B comes whole where that is no more than a 16th of the scratchpad."""
    net = layers.draft("biased", 8)
    data = layers.given(net, "x", (1, 8, 16, 16))
    return net.finish(layers.conv(net, "c", data, 512, layers.square(3, 1, 1)))


def layout(prepared: Prepared, strategy: Strategy) -> Layout | None:
    try:
        return laid_out(prepared, "latency", strategy)
    except InfeasibleError:
        return None


@pytest.mark.parametrize(
    ("network", "strategy"),
    [
        (biased(), replace(PLAIN, gone=())),
        (
            load_network("ds_cnn"),
            Strategy(cascades=(Cascade(first=0, last=4, axis=2, step=1, eager=False),), gone=()),
        ),
    ],
    ids=["plain", "cascade"],
)
@pytest.mark.parametrize("sizes", [SIZES, SIZES[::-1]])
def test_layouts_do_not_depend_on_what_was_laid_out_before(
    network: Network, strategy: Strategy, sizes: list[int]
) -> None:
    prepared = prepare(network, machine(sizes[0]), network.ops, QUICK)
    fitting = 0
    for size in sizes:
        places = places_of(machine(size))
        found = layout(replace(prepared, places=places), strategy)
        alone = layout(prepare(network, machine(size), network.ops, QUICK), strategy)
        assert found == alone
        fitting += found is not None
    assert 0 < fitting < len(sizes)
