"""What ZigZag's API hands back, as plain data: costs of a layer, or of all layers together.

Names and meanings are ZigZag's, because its users' scripts read them. Operands, loops and memories
are strings, levels are listed bottom-up, and the four directions of an access are the keys
`rd_out_to_low`, `wr_in_by_low`, `rd_out_to_high` and `wr_in_by_high`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import fsum
from typing import Final

from tilewright.machine.model import Direction
from tilewright.mapping.attach import Levels
from tilewright.mapping.evaluate import LinkCost, Loops, Setup
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.imc import imc_area_mm2, imc_clock_ns, imc_energy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.search import Mapped

DIRECTION_NAMES: Final[Mapping[Direction, str]] = {
    "tl": "rd_out_to_low",
    "fl": "wr_in_by_low",
    "th": "rd_out_to_high",
    "fh": "wr_in_by_high",
}

FourWay = Mapping[str, float]
"""A figure for each of the four directions."""
LoopLevels = tuple[tuple[tuple[str, float], ...], ...]
"""Per level the loops in it, innermost first, each with its size or factor."""


@dataclass(frozen=True, kw_only=True)
class LayerNode:
    """A layer. `spatial_mapping` is the unrolling that was chosen: array dim, loop, factor."""

    id: int
    name: str
    type: str
    equation: str
    dimension_relations: tuple[str, ...]
    layer_dim_sizes: Mapping[str, int]
    pr_layer_dim_sizes: Mapping[str, int]
    operand_precision: Mapping[str, int]
    memory_operand_links: Mapping[str, str]
    spatial_mapping: Mapping[str, Mapping[str, int]]
    total_mac_count: int

    @property
    def layer_operands(self) -> tuple[str, ...]:
        """Operands in the order of the equation, the output first."""
        return tuple(self.memory_operand_links)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True, repr=False)
class CostModelEvaluation:
    """The cost of a layer with its mapping, or of several layers: then there is no `layer`.

    Energy is in pJ, times are in cycles of the array's clock.
    """

    layer: LayerNode | None
    layer_ids: tuple[int, ...]
    accelerator: str
    energy_total: float
    mac_energy: float
    mem_energy: float
    mem_energy_breakdown: Mapping[str, tuple[float, ...]]
    mem_energy_breakdown_further: Mapping[str, tuple[FourWay, ...]]
    memory_word_access: Mapping[str, tuple[FourWay, ...]]
    ideal_cycle: float
    """With every unit busy all the time."""
    ideal_temporal_cycle: float
    """With the chosen unrolling, and without stalls."""
    stall_slack_comb: float
    """Cycles in which the array waits for data during the run."""
    data_onloading_cycle: float
    data_offloading_cycle: float
    systolic_drain_cycle: float
    mem_utili_individual: Mapping[str, tuple[float, ...]]
    """Share of each memory that the operand takes; `mem_utili_shared` with those beside it."""
    mem_utili_shared: Mapping[str, tuple[float, ...]]
    spatial_mapping: Mapping[str, LoopLevels]
    """Per operand the unrolled loops from the array upwards, one level more than memories."""
    spatial_mapping_int: Mapping[str, LoopLevels]
    temporal_mapping: Mapping[str, LoopLevels]
    tclk: float | None = None
    """Clock period of an array that computes in memory, in ns; None for others, as all below."""
    area_total: float | None = None
    """Of the array and one instance of each memory, in mm²."""
    mac_energy_breakdown: Mapping[str, float] | None = None

    @property
    def latency_total0(self) -> float:
        """The run with its stalls."""
        return self.ideal_temporal_cycle + self.stall_slack_comb

    @property
    def latency_total1(self) -> float:
        """`latency_total0` and the loading before it."""
        return self.latency_total0 + self.data_onloading_cycle

    @property
    def latency_total2(self) -> float:
        """`latency_total1` and the storing after it: all cycles."""
        return self.latency_total1 + (self.data_offloading_cycle + self.systolic_drain_cycle)

    @property
    def mac_spatial_utilization(self) -> float:
        """Busy units over all units while the array does not wait."""
        return self.ideal_cycle / self.ideal_temporal_cycle

    @property
    def mac_utilization0(self) -> float:
        """Busy units over all units and the cycles of `latency_total0`."""
        return self.ideal_cycle / self.latency_total0

    @property
    def mac_utilization1(self) -> float:
        """Busy units over all units and the cycles of `latency_total1`."""
        return self.ideal_cycle / self.latency_total1

    @property
    def mac_utilization2(self) -> float:
        """Busy units over all units and the cycles of `latency_total2`."""
        return self.ideal_cycle / self.latency_total2

    def __repr__(self) -> str:
        what = str(self.layer or f"{len(self.layer_ids)} layers")
        return (
            f"CostModelEvaluation({what}, {self.energy_total:.4g} pJ, "
            f"{self.latency_total2:.0f} cycles)"
        )


def evaluation(layer: LayerNode, mapped: Mapped, accelerator: str) -> CostModelEvaluation:
    """The cost of a mapped layer."""
    cost, setup = mapped.cost, mapped.setup
    hierarchy, letters = setup.hierarchy, layer.layer_operands
    energies = _four_ways(hierarchy, {_place(link): link.energy_pj for link in cost.links})
    share = {letter: tuple(f for x, _, f in cost.fill if x == letter) for letter in letters}
    in_memory = hierarchy.array.in_memory is not None
    return CostModelEvaluation(
        layer=layer,
        layer_ids=(layer.id,),
        accelerator=accelerator,
        energy_total=cost.energy_pj,
        mac_energy=cost.mac_pj,
        mem_energy=fsum(link.energy_pj for link in cost.links),
        mem_energy_breakdown={
            letter: tuple(fsum(level.values()) for level in levels)
            for letter, levels in energies.items()
        },
        mem_energy_breakdown_further=energies,
        memory_word_access=_four_ways(
            hierarchy, {_place(link): link.accesses for link in cost.links}
        ),
        ideal_cycle=cost.ideal_cycles,
        ideal_temporal_cycle=cost.compute_cycles,
        stall_slack_comb=cost.stall_cycles,
        data_onloading_cycle=cost.onload_cycles,
        data_offloading_cycle=cost.offload_cycles,
        systolic_drain_cycle=cost.drain_cycles,
        mem_utili_individual=share,
        mem_utili_shared=_shared(hierarchy, share),
        spatial_mapping={x: _tidy(setup.spatial.fractional[x]) for x in letters},
        spatial_mapping_int={x: _tidy(setup.spatial.whole[x]) for x in letters},
        temporal_mapping=dict(_temporal(setup.nest, mapped.loops)),
        tclk=imc_clock_ns(hierarchy.array) if in_memory else None,
        area_total=_area_mm2(hierarchy) if in_memory else None,
        mac_energy_breakdown=_inside(setup) if in_memory else None,
    )


def sum_of(parts: Sequence[CostModelEvaluation], accelerator: str) -> CostModelEvaluation:
    """All layers together, one after the other; levels are added from the lowest on."""
    return CostModelEvaluation(
        layer=None,
        layer_ids=tuple(i for part in parts for i in part.layer_ids),
        accelerator=accelerator,
        energy_total=fsum(part.energy_total for part in parts),
        mac_energy=fsum(part.mac_energy for part in parts),
        mem_energy=fsum(part.mem_energy for part in parts),
        mem_energy_breakdown={
            letter: tuple(fsum(values) for values in zip_longest(*levels, fillvalue=0.0))
            for letter, levels in _by_operand([p.mem_energy_breakdown for p in parts])
        },
        mem_energy_breakdown_further=_added([p.mem_energy_breakdown_further for p in parts]),
        memory_word_access=_added([part.memory_word_access for part in parts]),
        ideal_cycle=fsum(part.ideal_cycle for part in parts),
        ideal_temporal_cycle=fsum(part.ideal_temporal_cycle for part in parts),
        stall_slack_comb=fsum(part.stall_slack_comb for part in parts),
        data_onloading_cycle=fsum(part.data_onloading_cycle for part in parts),
        data_offloading_cycle=fsum(part.data_offloading_cycle for part in parts),
        systolic_drain_cycle=fsum(part.systolic_drain_cycle for part in parts),
        mem_utili_individual={},
        mem_utili_shared={},
        spatial_mapping={},
        spatial_mapping_int={},
        temporal_mapping={},
    )


def _area_mm2(hierarchy: Hierarchy) -> float:
    memories = [memory for memory, _ in hierarchy.levels]
    cells = next((memory.area_mm2 for memory in memories if memory.name == "cells"), 0.0)
    return imc_area_mm2(hierarchy.array, cells) + fsum(memory.area_mm2 for memory in memories)


def _inside(setup: Setup) -> dict[str, float]:
    """Energy by part of an array that computes in memory."""
    energy = imc_energy(setup.nest, setup.hierarchy.array, setup.spatial.unrolling)
    return {
        "local_bl_precharging": energy.precharge_pj,
        "dacs": energy.dac_pj,
        "adcs": energy.adc_pj,
        "mults": energy.multiplier_pj,
        "analog_bl_addition": energy.bit_line_pj,
        "adders_regular": energy.adder_tree_pj,
        "adders_pv": energy.place_value_pj,
        "accumulators": energy.accumulator_pj,
    }


def _place(link: LinkCost) -> tuple[str, int, Direction]:
    return link.letter, link.level, link.direction


def _four_ways(
    hierarchy: Hierarchy, figures: Mapping[tuple[str, int, Direction], float]
) -> dict[str, tuple[FourWay, ...]]:
    """Figures of links as levels of every operand; what no link says is 0."""
    return {
        letter: tuple(
            {name: figures.get((letter, level, way), 0) for way, name in DIRECTION_NAMES.items()}
            for level in range(len(chain))
        )
        for letter, chain in hierarchy.chains.items()
    }


def _shared(
    hierarchy: Hierarchy, share: Mapping[str, tuple[float, ...]]
) -> dict[str, tuple[float, ...]]:
    chains = hierarchy.chains
    sums = {
        index: sum(share[letter][chains[letter].index(index)] for letter in letters)
        for index, (_, letters) in enumerate(hierarchy.levels)
    }
    return {letter: tuple(sums[index] for index in chains[letter]) for letter in share}


def _temporal(nest: LoopNest, loops: Loops) -> Iterator[tuple[str, LoopLevels]]:
    """Loops per level, those that an operand does not depend on handed down to where they cost 0.

    The last level takes what is left, so that every loop stands in one of them.
    """
    for letter, ends in loops.ends:
        operand = next(o for o in nest.operands if o.letter == letter)
        still = nest.irrelevant(operand)
        levels = []
        begin = 0
        for end in ends:
            while end < len(loops.order) and loops.order[end][0] in still:
                end += 1
            levels.append(loops.order[begin : max(begin, end)])
            begin = max(begin, end)
        yield letter, tuple(levels)


def _tidy(levels: Levels) -> LoopLevels:
    """Whole factors as integers."""
    return tuple(
        tuple((loop, int(f) if f == int(f) else f) for loop, f in level) for level in levels
    )


def _by_operand(
    parts: Sequence[Mapping[str, tuple[float, ...]]],
) -> Iterator[tuple[str, list[tuple[float, ...]]]]:
    for letter in _letters(parts):
        yield letter, [part.get(letter, ()) for part in parts]


def _added(parts: Sequence[Mapping[str, tuple[FourWay, ...]]]) -> dict[str, tuple[FourWay, ...]]:
    nothing = dict.fromkeys(DIRECTION_NAMES.values(), 0.0)
    return {
        letter: tuple(
            {name: sum(level[name] for level in together) for name in nothing}
            for together in zip_longest(
                *(part.get(letter, ()) for part in parts), fillvalue=nothing
            )
        )
        for letter in _letters(parts)
    }


def _letters(parts: Sequence[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(letter for part in parts for letter in part))
