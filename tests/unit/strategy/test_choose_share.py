"""The choice of cascades with a limit of what may be filled: it only gives up sooner."""

import pytest
from tests.cascade_cases import QUICK

from tilewright.machine.limits import with_memory_limits
from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.program.lower import prepare
from tilewright.strategy.choose import ChooseOptions, Chosen, choose
from tilewright.strategy.scene import Scene, scene_of


def scene(network: str, size_bytes: int) -> Scene:
    """On a machine that cannot write anything out."""
    machine = with_memory_limits(load_machine("ethos_u55_128"), (("sram", size_bytes),))
    loaded = load_network(network)
    found = scene_of(prepare(loaded, machine, loaded.ops, QUICK))
    assert found is not None
    return found


def chosen(on: Scene, most_share: float) -> Chosen | None:
    return choose(on, "memory", ChooseOptions(), most_share)


@pytest.mark.parametrize("network", ["lenet5", "ds_cnn", "resnet18"])
def test_what_keeps_to_a_limit_is_what_is_found_without_one(network: str) -> None:
    size = 2 * 1024 * 1024
    free = choose(scene(network, size), "memory", ChooseOptions())
    assert free is not None
    for most in (free.share, 1.1 * free.share, 3 * free.share):
        assert chosen(scene(network, size), most) == free


@pytest.mark.parametrize("network", ["lenet5", "ds_cnn", "resnet18"])
def test_nothing_is_found_that_fills_more_than_a_limit(network: str) -> None:
    size = 2 * 1024 * 1024
    free = choose(scene(network, size), "memory", ChooseOptions())
    assert free is not None
    # A byte of 2 MiB less.
    assert chosen(scene(network, size), free.share - 1 / size) is None


def test_with_a_limit_rows_are_not_made_in_slices() -> None:
    """Whole rows would take 147,328 B of 131,072."""
    on = scene("mobilenetv2", 131_072)
    sliced = choose(on, "memory", ChooseOptions())
    assert sliced is not None
    assert any(cascade.on_demand for cascade in sliced.strategy.cascades)
    assert chosen(on, 0.98) is None
