"""Ways through a network, from cut to cut: the best few states at every place between stages."""

from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple

from tilewright.records import quickly_made
from tilewright.strategy.room import Usage
from tilewright.strategy.units import Cost, Ways

Slicing = Literal["none", "wait", "forget"]
"""Whether the newest rows of a cascade are made in slices, and others wait or are made again."""

State = int
"""Tensors that are kept, as the bits of `Scene.bits`."""

Value = tuple[float, ...]
"""What is made small, the first number before the others."""


@quickly_made
class Unit(NamedTuple):
    """One stage or a cascade of several, as it leads from one cut to another."""

    kept: State
    """Tensors that it makes and that are kept."""
    cost: Cost
    share: float
    """The part of the scratchpads that it fills."""
    held: State = 0
    """Tensors that are kept while it runs."""
    need: Usage | None = 0
    """Room beside those; None: for tiles that are cut as they fit."""
    cascade: tuple[Ways, int, Slicing] | None = None
    """Its span, the number of its step, and how rows are made, if it is a cascade."""


@quickly_made
class Node(NamedTuple):
    """The best way to a state at a cut."""

    value: Value
    share: float
    """The part of the scratchpads that is filled at most."""
    total: Cost
    """Of all units so far."""
    before: tuple[int, State] | None
    unit: Unit
    """The last one."""


@dataclass(slots=True, kw_only=True)
class Cut:
    """A place between stages, and the best ways to its states.

    Units lead on from the best few states only: what is worse than so many others is forgotten.
    """

    later: State
    """Tensors that are still wanted behind the cut."""
    most_states: int
    nodes: dict[State, Node] = field(default_factory=dict)
    worst: Value = (inf,)
    """What a state must not exceed to be among the best."""

    def is_beaten(self, state: State, value: Value) -> bool:
        """Whether a way to a state with a value is of no use."""
        if value > self.worst:
            return True
        known = self.nodes.get(state & self.later)
        return known is not None and value >= known.value

    def reach(self, state: State, node: Node) -> None:
        """Remember a way that is not beaten."""
        self.nodes[state & self.later] = node
        if len(self.nodes) >= self.most_states and node.value < self.worst:
            values = sorted([node.value for node in self.nodes.values()])
            self.worst = values[self.most_states - 1]


@dataclass(frozen=True, slots=True)
class Spot:
    """A cut and a state from which units are looked at."""

    cut: int
    state: State
    alive: Usage
    share: float
    total: Cost
