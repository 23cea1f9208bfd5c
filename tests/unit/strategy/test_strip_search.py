"""Looking for stretches to run in strips: when it is of no use to look at all."""

from tests.cascade_cases import prepared

from tilewright.machine.limits import with_memory_limits
from tilewright.machine.load import load_machine
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.strategy.choose import ChooseOptions
from tilewright.strategy.strip_search import USUAL, StripSearch

MAP_BYTES = 8 * 32 * 32


def mean_and_map(*, is_mean_last: bool) -> Network:
    """A map that comes from wide ones and of which the mean is taken.

    If the mean comes first, the map waits for it.
    """
    net = layers.draft("mean", 8)
    data = layers.given(net, "x", (1, 3, 32, 32))
    data = layers.conv(net, "wide", data, 64, layers.square(1))
    data = layers.conv(net, "depthwise", data, 64, layers.square(3, 1, 1, group=64))
    data = layers.conv(net, "map", data, 8, layers.square(1))
    if is_mean_last:
        data = layers.conv(net, "end", data, 8, layers.square(1))
        return net.finish(layers.global_average_pool(net, "mean", data))
    mean = layers.conv(
        net, "scale", layers.global_average_pool(net, "mean", data), 8, layers.square(1)
    )
    return net.finish(layers.add(net, "sum", data, mean))


def search_on(network: Network, size_bytes: int) -> StripSearch:
    machine = with_memory_limits(load_machine("ethos_u55_128"), (("sram", size_bytes),))
    return StripSearch(
        network, network.ops, ChooseOptions(), lambda other, order: prepared(other, machine)
    )


def test_nothing_is_tried_where_a_map_that_has_to_wait_does_not_fit() -> None:
    search = search_on(mean_and_map(is_mean_last=False), MAP_BYTES - 1)
    assert [*search.found()] == []
    assert search.trials_left == USUAL.trials


def test_strips_are_tried_where_it_fits_alone() -> None:
    search = search_on(mean_and_map(is_mean_last=False), MAP_BYTES + 2048)
    next(search.found(), None)
    assert search.trials_left < USUAL.trials


def test_a_map_that_nothing_waits_for_need_not_fit() -> None:
    search = search_on(mean_and_map(is_mean_last=True), MAP_BYTES - 1)
    next(search.found(), None)
    assert search.trials_left < USUAL.trials
