"""Why a nest cannot be mapped, and what would help."""

import pytest

from tilewright.errors import InfeasibleError, InputError
from tilewright.machine.load import load_machine
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.network import MapOptions, map_network
from tilewright.network.load import load_network


def hints(bits: int) -> list[str]:
    with pytest.raises(InfeasibleError) as refused:
        map_network(load_network("lenet5", bits=bits), load_machine("edge_tpu_like"))
    return refused.value.problems[0].hint.splitlines()


def test_elements_wider_than_a_memory_can_be_made_narrower() -> None:
    # One weight of 32 bit, as most networks are exported, in a register of 8.
    assert hints(32) == [
        "--bits 8: as if the network were quantised to 8 bit",
        "or 4 B of rf_1B would do, or a larger memory above it",
    ]


def test_a_loop_order_with_more_of_a_loop_than_is_left_to_time_says_so() -> None:
    # The first convolution is 28 wide, of which half is unrolled over two units.
    entry = Constraint(
        name="default",
        spatial=(("D1", (("OX", 2),)), ("D2", ()), ("D3", ()), ("D4", ())),
        order=(("OX", 28), ("*", None)),
    )
    with pytest.raises(InfeasibleError) as refused:
        map_network(
            load_network("lenet5"), load_machine("edge_tpu_like"), MapOptions(constraints=(entry,))
        )
    assert str(refused.value.problems[0]) == (
        "op 'conv1' cannot be mapped: the temporal_ordering of mapping entry 'default' has OX 28 "
        "in all, and the unrolling leaves 14 of it to time\n"
        "  hint: sizes of OX whose product divides 14, or [OX, '*']"
    )


def test_a_loop_order_that_no_mapping_has_says_which_entry_it_is_from() -> None:
    # OX is 28 = 2 x 2 x 7: no order has four of its factors in a row.
    entry = Constraint(name="Conv", order=(*(("OX", None) for _ in range(4)), ("*", None)))
    with pytest.raises(InfeasibleError) as refused:
        map_network(
            load_network("lenet5"),
            load_machine("edge_tpu_like"),
            MapOptions(constraints=(entry,)),
        )
    assert "agrees with the temporal_ordering of mapping entry 'Conv'" in str(refused.value)


def test_an_entry_that_unrolls_along_what_the_array_lacks_is_refused() -> None:
    entry = Constraint(name="default", spatial=(("D1", (("K", 2),)), ("D5", (("C", 2),))))
    with pytest.raises(InputError) as refused:
        map_network(
            load_network("lenet5"), load_machine("edge_tpu_like"), MapOptions(constraints=(entry,))
        )
    assert str(refused.value.problems[0]) == (
        "mapping entry 'default': edge_tpu_like has no array dimension D5\n"
        "  hint: its dimensions: D1, D2, D3, D4"
    )
