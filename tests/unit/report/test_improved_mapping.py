"""Mappings on better memories, against the cost of the same loops on a machine read as such."""

from dataclasses import replace
from functools import cache

import pytest

from tilewright.machine.load import load_machine
from tilewright.mapping import kernel
from tilewright.mapping.evaluate import Setup, cost_of, evaluate_loops
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.search import Mapped
from tilewright.network.load import load_network
from tilewright.planner import plan
from tilewright.report.improved_mapping import improved_cycles


@cache
def mappings(machine: str) -> tuple[Mapped, ...]:
    return plan(load_network("lenet5"), load_machine(machine)).program.mappings


def with_wider_port(hierarchy: Hierarchy, level: int, number: int) -> Hierarchy:
    memory, held = hierarchy.levels[level]
    ports = list(memory.ports)
    ports[number] = replace(ports[number], bits_per_cycle=2 * ports[number].bits_per_cycle)
    levels = list(hierarchy.levels)
    levels[level] = (replace(memory, ports=tuple(ports)), held)
    return replace(hierarchy, levels=tuple(levels))


def wider_cycles(mapped: Mapped) -> list[tuple[str, float]]:
    """Each port in turn twice as wide, with a setup of its own; those that shorten the mapping."""
    setup = mapped.setup
    found = []
    for level, (memory, _) in enumerate(setup.hierarchy.levels):
        for number, port in enumerate(memory.ports):
            wide = with_wider_port(setup.hierarchy, level, number)
            other = Setup(setup.nest, wide, setup.spatial)
            cycles = cost_of(evaluate_loops(other, mapped.loops)).cycles
            if cycles < mapped.cost.cycles:
                found.append((f"{memory.name}.{port.name}", cycles))
    return found


@pytest.mark.parametrize("machine", ["npu_37xx", "eyeriss_like", "ascend_like"])
def test_a_wider_port_costs_what_a_machine_with_it_costs(machine: str) -> None:
    expected = [wider_cycles(mapped) for mapped in mappings(machine)]
    assert any(expected)
    assert [list(improved_cycles(mapped).wider_ports) for mapped in mappings(machine)] == expected


@pytest.mark.parametrize("machine", ["npu_37xx", "eyeriss_like", "ascend_like"])
def test_no_array_saves_more_than_half_of_its_own_cycles(machine: str) -> None:
    for mapped in mappings(machine):
        saved = mapped.cost.cycles - improved_cycles(mapped).faster_array
        assert saved <= mapped.cost.compute_cycles / 2


@pytest.mark.skipif(not kernel.is_used(), reason="the kernel was not built")
def test_numpy_finds_the_same_cycles() -> None:
    for mapped in mappings("npu_37xx"):
        setup = Setup(mapped.setup.nest, mapped.setup.hierarchy, mapped.setup.spatial)
        setup.__dict__["description"] = None
        assert improved_cycles(replace(mapped, setup=setup)) == improved_cycles(mapped)
