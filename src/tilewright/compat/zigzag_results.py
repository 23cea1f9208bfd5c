"""What ZigZag's API hands back, as plain data: costs of a layer, and of all layers together.

Names and meanings are ZigZag's, because its users' scripts read them. Operands, loops and memories
are strings, levels are listed bottom-up, and the four directions of an access are the keys
`rd_out_to_low`, `wr_in_by_low`, `rd_out_to_high` and `wr_in_by_high`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import fsum
from typing import Final

from tilewright.machine.model import Direction, Machine
from tilewright.mapping.attach import Levels
from tilewright.mapping.evaluate import Cost, LinkCost, Loops, Setup
from tilewright.mapping.nest import LoopNest

DIRECTION_NAMES: Final[Mapping[Direction, str]] = {
    "tl": "rd_out_to_low",
    "fl": "wr_in_by_low",
    "th": "rd_out_to_high",
    "fh": "wr_in_by_high",
}

FourWay = Mapping[str, float]
"""A figure for each of the four directions."""
PerLevel = Mapping[str, tuple[float, ...]]
LoopLevels = tuple[tuple[tuple[str, float], ...], ...]
"""Per level the loops in it, innermost first, each with its size or factor."""


@dataclass(frozen=True, kw_only=True)
class ZigZagLayer:
    """A layer as ZigZag sees it. `spatial_mapping` is the unrolling that was chosen for it."""

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

    @property
    def output_operand(self) -> str:
        """The first operand."""
        return self.layer_operands[0]

    @property
    def input_operands(self) -> tuple[str, ...]:
        """All operands but the output."""
        return self.layer_operands[1:]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True)
class ZigZagCost:
    """What ZigZag knows of both one layer and a sum of layers. Energy is in pJ."""

    energy_total: float
    mac_energy: float
    mem_energy: float
    mem_energy_breakdown: PerLevel
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


@dataclass(frozen=True, kw_only=True)
class ZigZagEvaluation:
    """One layer with its mapping and its cost: ZigZag's `CostModelEvaluation`."""

    layer: ZigZagLayer
    cost: ZigZagCost


def four_way_sum(parts: Sequence[FourWay]) -> dict[str, float]:
    """The sum of figures, direction by direction."""
    return {name: sum(part[name] for part in parts) for name in DIRECTION_NAMES.values()}
