"""What a caller may choose about a schedule, and what one run of the simulation obeys."""

from dataclasses import dataclass
from typing import Literal

KeyRule = Literal["slack", "need", "order"]
"""Which transfer goes first: the one with the longest rest of the program behind it, the one whose
data is needed first, or the one that stands first in the order of all tasks."""

EvictionRule = Literal["cost", "distance"]
"""What leaves first: what is cheapest per step of absence, or what is used farthest away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """How much is tried; budgets are counted in simulations, never in seconds."""

    prefetch: bool = True
    lookahead_steps: int = 256
    """How many compute tasks ahead of the current one data may be fetched."""
    window: int = 32
    """How many transfers are considered when the first ones do not fit."""
    portfolio_tasks: int = 100_000
    """How many tasks all simulations under different rules may have together (two at least)."""
    retry_tasks: int = 100_000
    """The same for those that are made before any of them comes to its end."""
    rules_in_vain: int = 6
    """After so many simulations without any gain no more rules are tried."""
    many_rules_tasks: int = 500
    """Programs of at most so many tasks are first simulated with data in the best gaps."""
    gap_permille: int = 2
    """No more rules are tried once a schedule is so close to the lower bound."""
    small_tasks: int = 40
    """Programs of at most so many tasks are searched as well."""
    search_simulations: int = 150
    """How many simulations that search may make."""
    order_sets: int = 2_000
    """How many sets of done tasks a search for an order that fits without spilling may look at."""
    packing_tasks: int = 5_000
    """For programs of at most so many tasks, addresses are also looked for after the run."""
    packing_nodes: int = 20_000
    """How many nodes that search for addresses may have."""
    explain_trials: int = 8
    """How often other sizes of a scratchpad are tried to say which would do if it is too small."""
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of one run."""

    key: KeyRule = "slack"
    eviction: EvictionRule = "cost"
    prefetch: bool = True
    margin: int | None = 1
    """How many durations of a copy before its latest start it is let go; None: at once."""
    guarded: bool = True
    """Nothing is fetched or computed ahead if the tasks before it would lack the room."""
    stores_first: bool = False
    recompute: bool = False
    """A result may leave without being written out if computing it again is faster."""
    addresses_later: bool = False
    """Only bytes are counted during the run, and addresses found when all lives are known."""
    room_percent: int = 100
    """How much of a scratchpad may be planned to be full when data is fetched ahead."""
    by_life: bool = True
    """Data lies beside what leaves at the same time or soon after; otherwise in the best gap."""
    both_ends: bool = True
    """Data fetched ahead takes its gap at the top of the memory, all else at the bottom."""
    lookahead_steps: int = 256
    window: int = 32
