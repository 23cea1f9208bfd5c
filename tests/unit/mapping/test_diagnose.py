"""Why a nest cannot be mapped, and what would help."""

import pytest

from tilewright.errors import InfeasibleError
from tilewright.machine.load import load_machine
from tilewright.mapping.network import map_network
from tilewright.network.load import load_network


def hints(bits: int) -> list[str]:
    with pytest.raises(InfeasibleError) as refused:
        map_network(load_network("lenet5", bits=bits), load_machine("edge_tpu_like"))
    return refused.value.problems[0].hint.splitlines()


def test_elements_wider_than_a_memory_can_be_made_narrower() -> None:
    # One weight of 32 bit, as most networks are exported, in a register of 8.
    assert hints(32) == [
        "4 B of rf_1B would do, or a larger memory above it",
        "or --bits 8: as if the network were quantised to 8 bit",
    ]
