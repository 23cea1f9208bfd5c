"""What is cut into tiles, and how it was cut: the words that the choice of tiles is made in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from tilewright.network.graph import Op, Operand
from tilewright.once import once
from tilewright.records import quickly_made

Goal = Literal["latency", "energy", "traffic"]

Groups = tuple[list[str], list[str], list[str]]
"""Loops that may be cut: those of the weights, the other ones of the result, and sums."""

TASK_CYCLES = 32
"""What a task costs beside its own work: filling and draining the array, roughly."""

NEARLY = 1.02
"""Among tilings that are as good within this factor, the one with the fewest tasks is taken."""

TOLD = 12
"""A core's own model is asked about this many of the tilings that seem best, and of the largest."""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """An operand of which every task holds a tile in a memory, and how that tile gets there."""

    operand: Operand
    shape: tuple[int, ...]
    bits: int
    memory: str
    bytes_per_cycle: float
    """Of the transfer that brings a tile, or takes it away."""
    setup_cycles: int
    pj_per_byte: float
    constant: bool = False
    result: bool = False


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """For which leads and rooms a choice of tiles is the same: no comparison turns out otherwise.

    The lead comes first, then the rooms of all memories.
    """

    least: tuple[int, ...]
    most: tuple[int, ...]

    def covers(self, measures: tuple[int, ...]) -> bool:
        """Whether these are such a lead and such rooms."""
        for least, measure, most in zip(self.least, measures, self.most, strict=True):
            if not least <= measure <= most:
                return False
        return True

    def narrowed(self, other: "Scope") -> "Scope":
        """What both cover."""
        return Scope(
            least=tuple(map(max, self.least, other.least)),
            most=tuple(map(min, self.most, other.most)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Some loops with the tile lengths that are tried for each, and orders of the tiles."""

    loops: tuple[str, ...]
    choices: tuple[tuple[int, ...], ...]
    orders: tuple[tuple[str, ...], ...]
    leaves_sums: bool
    """Whether tiles may leave partial sums."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of stages that are alike, for the choice of tiles."""

    told: dict[object, dict[int, int | None]] = field(default_factory=dict)
    """What a model of the core has said of the combinations of a trial."""
    cuts: dict[object, list[Cuts]] = field(default_factory=dict)
    """What is tried, by the lengths of the loops."""
    loops: list[tuple[Groups, Mapping[str, str]]] = field(default_factory=list)
    """Loops that may be cut, and those that go around others of them, once they are looked up."""
    chosen: "dict[object, KnownTilings]" = field(default_factory=dict)
    """What was chosen, by all that matters beside leads and rooms."""


@quickly_made
@dataclass(frozen=True, kw_only=True)
class Work:
    """What is to be cut: loops with their lengths, tenants, and the bytes each memory has left.

    `unrolled` says how many steps of a loop the array takes at once; `rate` is points a cycle for
    engines that have no such structure. `alignment` is what addresses are rounded up to.
    """

    op: Op
    lengths: Mapping[str, int]
    tenants: tuple[Tenant, ...]
    room: Mapping[str, int]
    unrolled: Mapping[str, int]
    rate: float = 1.0
    alignment: int = 1
    streamed: tuple[Tenant, ...] = ()
    """Operands that have no place in any memory: every tile reads its part outside, at work."""
    partial: Tenant | None = None
    """Partial sums, which lie in a memory too where sums are cut."""
    partial_bytes_per_cycle: float = 1.0
    at_most: Mapping[str, int] = field(default_factory=dict)
    """Tile lengths that loops should not exceed, to run side by side with other engines."""
    uncut: frozenset[str] = frozenset()
    """Loops that are not cut: tiles would read again what comes once."""
    multiples: Mapping[str, int] = field(default_factory=dict)
    """Of what tile lengths of some loops are multiples, unless they are all of the loop."""
    tile_cycles: Callable[[Mapping[str, int]], int | None] | None = None
    """Cycles of a tile as a model of the core has them; None: they are estimated."""
    known: Known = field(default_factory=Known, compare=False, repr=False)
    """What was found out before about such work: of an op alike, and with the same model."""
    lead_cycles: int = 0
    """How long before the first tile transfers of constants can begin, with nothing else to do."""

    @property
    def measures(self) -> tuple[int, ...]:
        """What a choice of tiles is made for: the lead, and the room of every memory."""
        return (self.lead_cycles, *self.room.values())

    @once
    def key(self) -> object:
        """What a choice of tiles depends on; names do not matter."""
        tenants = tuple(
            (t.operand.index, t.shape, t.bits, t.memory, t.bytes_per_cycle, t.constant, t.result)
            for t in self.tenants
        )
        return (
            self.op.kind,
            tuple(self.lengths.items()),
            tenants,
            tuple((t.operand.index, t.shape, t.bits, t.bytes_per_cycle) for t in self.streamed),
            tuple(self.room.items()),
            tuple(self.unrolled.items()),
            tuple(self.at_most.items()),
            self.uncut,
            tuple(self.multiples.items()),
            self.lead_cycles,
            self.op.coupled,
            tuple(operand.index for operand in self.op.operands),
            self.partial.bits if self.partial is not None else 0,
        )

    @once
    def with_partial_sums(self) -> "Work":
        """The same with partial sums among the tenants, if there are any."""
        if self.partial is None:
            return self
        return replace(self, tenants=(*self.tenants, self.partial))


@quickly_made
@dataclass(frozen=True, kw_only=True)
class Tiling:
    """Tile lengths by loop, and the order of the tiles, outermost loop first.

    `cycles`, `moved_bytes` and `value`, which the goal makes small, are estimates, to compare
    tilings with.
    """

    lengths: Mapping[str, int]
    order: tuple[str, ...]
    cycles: float
    moving_cycles: float
    """Of all transfers, those that begin before the first tile included."""
    moved_bytes: float
    value: float
    doubled: bool
    """Whether two tiles of everything fit, so that one can come while the other is at work."""
    streams: bool = False
    """Whether the array reads constants where they lie outside, past the scratchpads."""

    def is_good(self, goal: Goal, cycles: float) -> bool:
        """Whether time does not count, or it takes no more than these cycles."""
        return goal != "latency" or self.cycles <= cycles


Choice = tuple[Tiling | None, Scope]
"""A tiling, and for which leads and rooms it is the best; None: none fits."""


@dataclass(frozen=True, slots=True)
class KnownTilings:
    """What was chosen for some work with several leads and rooms."""

    best: list[Choice] = field(default_factory=list)
    by_loops: dict[tuple[str, ...], list[Choice]] = field(default_factory=dict)
    """The best where only some loops are cut."""


class Row(NamedTuple):
    """A combination of tile lengths, costed for one order of the tiles."""

    at: int
    """Its number among all combinations, the last loop counting fastest."""
    total: float
    """Tiles in all."""
    computing: float
    """Cycles of computing them, as far as no model of the core is asked."""
    moving: float
    """Cycles of all transfers."""
    left: float
    """Of those, what does not come before the first tile."""
    first: float
    """What the first tile has to wait for."""
    moved_bytes: float
    energy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Combinations that may be the best for one order of the tiles, in ascending order."""

    order: tuple[str, ...]
    doubled: bool
    rows: tuple[Row, ...]


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is tried: the lengths of some loops, and the orders of their tiles."""

    work: Work
    loops: tuple[str, ...]
    choices: tuple[tuple[int, ...], ...]
    """Tile lengths of each of the loops."""
    orders: tuple[tuple[str, ...], ...]
    goal: Goal

    def lengths(self, at: int) -> dict[str, int]:
        """Tile lengths of all loops in one of the combinations."""
        lengths = dict(self.work.lengths)
        for loop, tried in zip(reversed(self.loops), reversed(self.choices), strict=True):
            at, place = divmod(at, len(tried))
            lengths[loop] = tried[place]
        return lengths
