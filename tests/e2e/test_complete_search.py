"""The complete search on layers of real networks: never worse than LOMA, and never below its bound.

benchmarks/complete_search.py compares the whole zoo on the whole library.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

import tilewright
from tilewright.mapping.complete.search import complete
from tilewright.mapping.constraints import DEFAULT_LINKS
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of, partial_sum_bits
from tilewright.mapping.nest import LoopNest, nest_of, runs_on_array, with_partial_sums
from tilewright.mapping.search import Mapped, Objective, SearchOptions, loma

OBJECTIVES: tuple[Objective, ...] = ("latency", "energy")
MACHINES = ("edge_tpu_like", "eyeriss_like", "ethos_u55_128", "npu_37xx", "tpu_like")


def layers(network_name: str, machine_name: str) -> Iterator[tuple[LoopNest, Hierarchy]]:
    """Every different nest of a network that the machine's array runs."""
    network = tilewright.load_network(network_name)
    machine = tilewright.load_machine(machine_name)
    core = machine.cores[0]
    nests = []
    for op in network.ops:
        if runs_on_array(op, network):
            width = partial_sum_bits(machine, core, op.accumulator_bits)
            nests.append(with_partial_sums(nest_of(op, network), width))
    for nest in dict.fromkeys(nests):
        links = {operand.letter: dict(DEFAULT_LINKS)[operand.letter] for operand in nest.operands}
        yield nest, hierarchy_of(machine, core, links)


def first_value(mapped: Mapped, objective: Objective) -> float:
    return mapped.cost.cycles if objective == "latency" else mapped.cost.energy_pj


def compared(network_name: str, machine_name: str, budget: int) -> int:
    """How often the complete search was compared with LOMA; fails where it is worse."""
    count = 0
    for nest, where in layers(network_name, machine_name):
        for objective in OBJECTIVES:
            options = SearchOptions(objective=objective, budget=budget)
            mine = complete(nest, where, None, options)
            for limit in (6, 8):
                theirs = loma(nest, where, None, replace(options, lpf_limit=limit))
                if theirs is None:
                    continue
                assert mine is not None
                assert mine.bound is not None
                value, other = first_value(mine, objective), first_value(theirs, objective)
                assert value <= other * (1 + 1e-12), f"{nest} {objective}"
                assert mine.bound <= value
                assert not mine.proven or value <= mine.bound * (1 + 1e-9)
                count += 1
    return count


@pytest.mark.slow
@pytest.mark.parametrize("machine_name", MACHINES)
def test_it_is_never_worse_than_loma(machine_name: str) -> None:
    assert compared("lenet5", machine_name, budget=2_000) >= 2 * 2 * 5


@pytest.mark.slow
@pytest.mark.parametrize("machine_name", MACHINES)
@pytest.mark.parametrize("network_name", ["ds_cnn", "notes_cnn", "squeezenet", "vit_tiny"])
def test_it_is_never_worse_than_loma_on_more_networks(network_name: str, machine_name: str) -> None:
    assert compared(network_name, machine_name, budget=20_000)


def test_what_it_finds_for_resnet18_on_an_edge_machine_is_proven() -> None:
    nests = list(layers("resnet18", "edge_tpu_like"))[:4]
    for nest, where in nests:
        found = complete(nest, where, None, SearchOptions(budget=20_000))
        assert found is not None
        assert found.proven
