"""What the choice of cascades skips without a look: nothing that it would have taken."""

from dataclasses import replace
from itertools import product

import pytest
from tests.cascade_cases import prepared

from tilewright.machine.limits import with_memory_limits
from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.program.lower import Prepared
from tilewright.strategy import choose as choosing
from tilewright.strategy.choose import NOTHING, Aim, ChooseOptions, choose
from tilewright.strategy.cut_bounds import least_moved
from tilewright.strategy.cuts import Cut, Node, Unit
from tilewright.strategy.scene import Scene, scene_of
from tilewright.strategy.units import Ways

OPTIONS = ChooseOptions(most_stages=5, most_states=3, small_cuts=True)


def on_machine(network: str, sram_bytes: int) -> Prepared:
    machine = with_memory_limits(load_machine("ethos_u65_256"), (("sram", sram_bytes),))
    return prepared(load_network(network), machine)


def scene_on(on: Prepared) -> Scene:
    scene = scene_of(on)
    assert scene is not None
    return scene


@pytest.mark.parametrize(
    "network", ["squeezenet", pytest.param("mobilenetv2", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("aim", ["traffic", "latency", "energy", "memory"])
def test_a_choice_that_skips_nothing_is_the_same(
    network: str, aim: Aim, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = choose(scene_on(on_machine(network, 131_072)), aim, OPTIONS)
    assert found is not None
    monkeypatch.setattr(Ways, "least_cost", lambda ways, kept: NOTHING)
    monkeypatch.setattr(choosing._Chooser, "_least_cut", lambda chooser, number, held: NOTHING)
    monkeypatch.setattr(Cut, "reach", _reach_and_forget_nothing)
    monkeypatch.setattr(choosing._Chooser, "_best_states", _best_of_all_states)
    assert choose(scene_on(on_machine(network, 131_072)), aim, OPTIONS) == found


def _reach_and_forget_nothing(cut: Cut, state: int, node: Node) -> None:
    cut.nodes[state & cut.later] = node


def _best_of_all_states(chooser: choosing._Chooser, cut: int) -> list[tuple[int, Node]]:
    at, roots = chooser.cuts[cut], chooser.scene.roots
    found = sorted(at.nodes.items(), key=lambda item: (item[1].value, sorted(roots(item[0]))))
    return found[: at.most_states]


@pytest.mark.parametrize("sram_bytes", [24_576, 65_536, 1_048_576])
def test_no_way_to_cut_a_stage_takes_less_than_the_least(sram_bytes: int) -> None:
    scene = scene_on(on_machine("mobilenetv2", sram_bytes))
    compared = 0
    for number, held in product(range(0, len(scene.prepared.stages), 3), (0, scene.everything)):
        tiling = scene.tiling(number, held, "traffic")
        if tiling is not None:
            least = scene.least_cut(number, held)
            assert least.size_bytes <= tiling.moved_bytes
            assert least.cycles_with(scene.least_cycles(number, "traffic")) <= tiling.cycles
            compared += 1
    assert compared > 10


def test_what_is_moved_at_least_is_every_element_that_is_certain_to_be_read() -> None:
    """A convolution of 3 x 3 that makes 16 channels of 30 x 30 points, 2 bytes each.

    Of its input as many rows and columns are certain to come as it makes: 30 x 30 of one channel,
    2 x 900 bytes; and 16 x 3 x 3 weights of 2 bytes.
    """
    work = scene_on(on_machine("notes_cnn", 65_536)).residence.work(0)
    assert [tenant.shape for tenant in work.tenants] == [(1, 1, 32, 32), (16, 1, 3, 3)]
    tenants = [replace(t, bytes_per_cycle=2.0, setup_cycles=100) for t in work.tenants]
    least = least_moved(replace(work, tenants=tuple(tenants), lead_cycles=0))
    assert least.size_bytes == 1_800 + 288
    assert least.cycles == 2_088 / 2 + 200
    # 1,244 cycles of moving; beside longer computing only a part of that counts, one eighth and
    # half of the set-ups of the first tiles.
    assert least.cycles_with(10_000.0) == 10_000 + 1_244 / 8 + 100
    assert least.cycles_with(16.0) == 1_244 + 16


def way_to(state: int, *value: float) -> tuple[int, Node]:
    unit = Unit(state, NOTHING, 0.0)
    return state, Node(value, 0.0, NOTHING, None, unit)


def test_a_cut_forgets_what_is_worse_than_its_best_few_states() -> None:
    cut = Cut(later=0b1111, most_states=2)
    for state, value in ((1, 7.0), (2, 5.0), (4, 6.0)):
        assert not cut.is_beaten(state, (value,))
        cut.reach(*way_to(state, value))
    # The two best are 5 and 6: what is as good as the second may still come before it.
    assert cut.is_beaten(8, (6.5,))
    assert not cut.is_beaten(8, (6.0,))
    # A way to a state that is known has to be better.
    assert cut.is_beaten(4, (6.0,))
    assert not cut.is_beaten(4, (5.5,))


def test_states_count_as_the_same_if_they_differ_in_what_nobody_wants_any_more() -> None:
    cut = Cut(later=0b0011, most_states=2)
    cut.reach(*way_to(0b0101, 3.0))
    assert list(cut.nodes) == [0b0001]
    assert cut.is_beaten(0b1001, (3.0,))
