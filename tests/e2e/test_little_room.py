"""Plans where there is little room and data have nowhere to wait: more of it is not slower."""

import pytest

from tilewright import load_machine, load_network, plan
from tilewright.machine.limits import with_memory_limits

SMALL_STEPS = pytest.mark.xfail(
    reason="with maps cut between bricks the search stops at a plan of few tasks", strict=True
)


@pytest.mark.parametrize(
    ("network", "machine", "sizes"),
    [
        ("lenet5", "ethos_u55_128", (2208, 2512, 3008, 4000)),
        ("lenet5", "ethos_u55_256", (2208, 2512, 3008, 4000)),
        pytest.param(
            "notes_cnn",
            "ethos_u55_128",
            (16512, 17904, 25040),
            marks=[pytest.mark.slow, SMALL_STEPS],
        ),
        pytest.param("notes_cnn", "ethos_u55_256", (16512, 17904, 25040), marks=pytest.mark.slow),
    ],
)
def test_cascades_leave_room_for_tiles(network: str, machine: str, sizes: tuple[int, ...]) -> None:
    # Cascades that fill the scratchpad were chosen for some of these, and tiny tiles for the rest.
    plans = [
        plan(
            load_network(network),
            with_memory_limits(load_machine(machine), (("sram", size_bytes),)),
        )
        for size_bytes in sizes
    ]
    cycles = [found.cycles for found in plans]
    assert cycles == sorted(cycles, reverse=True)
    # In the least of these a network as a whole would not fit by far.
    assert plans[0].strategy.cascades


@pytest.mark.parametrize(
    ("less", "more"),
    [
        pytest.param(5_264, 5_696, marks=SMALL_STEPS),
        (9_760, 10_544),
        *(
            pytest.param(*pair, marks=pytest.mark.slow)
            for pair in [(11_376, 12_288), (19_504, 21_072)]
        ),
    ],
)
def test_a_small_network_also_runs_in_strips_where_it_fits_without_but_poorly(
    less: int, more: int
) -> None:
    # Strips were found in the smaller sizes alone, or tiles for still less room.
    network, machine = load_network("notes_cnn"), load_machine("ethos_u55_128")
    small, large = (
        plan(network, with_memory_limits(machine, (("sram", size_bytes),))).cycles
        for size_bytes in (less, more)
    )
    assert large <= small


@pytest.mark.slow
def test_cascades_of_many_stages_are_tried_where_short_ones_do_not_fit() -> None:
    # In the smaller one nothing fits but what takes least memory, for the sake of which it is slow.
    network, machine = load_network("resnet18"), load_machine("ethos_u55_128")
    small, large = (
        plan(network, with_memory_limits(machine, (("sram", size_bytes),))).cycles
        for size_bytes in (228_544, 372_176)
    )
    assert large < 0.7 * small
