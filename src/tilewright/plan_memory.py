"""The least memory: the smallest scratchpads in which there is a plan, and what to say without one.

Sizes are tried, each with what the choice of cascades proposes; there is no bound that tells which
is the smallest.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, log

from tilewright.errors import InfeasibleError
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.model import Machine
from tilewright.plan_drafts import Draft, Drafts
from tilewright.plan_model import Plan
from tilewright.program.cascade import PLAIN, Strategy

FIRST_SHARE = 1 / 64
"""Of the scratchpads, where nothing is known of what is needed."""

FIRST_GROWTH = 0.03
"""By how much more is tried than what was too little; the next time by twice that more."""

SURELY = 0.9
"""Of what is believed in, less than this part hardly ever does."""

FEW_KIB = 16 * 1024
"""Less than that is told in bytes."""

MANY_TIMES = 256
"""A scratchpad so many times as large, to see what would be enough."""

LITTLE_TILES = 15_000
"""A plan of more tiles is not worth the little memory that it saves."""

LITTLE_WORK = 128
"""Nor one whose tiles compute fewer points than this on average, a cycle's work for an array."""

FEW_TILES = 500
"""So many are always worth it."""

FEW_TOO_MANY = 1.5
"""Times as many tiles as that are no reason not to look at smaller sizes."""

DOWNWARDS = 0.98
"""By which factor those get smaller."""

NEARLY = 1.02
"""Sizes that differ by no more are not told apart."""

MOST_CHOICES = 4
"""So often cascades are chosen for still less memory than was believed in."""

MORE_PERCENT = (0, 1, 2, 4)
"""Of the smallest size for which tiles are found: a little more may save many of them."""

WORTH_IN_TILES = 20
"""A per cent less memory is worth so many per cent more tiles, each of which takes time."""

MOST_OVERHEAD = 1.06
"""What a plan takes beyond what it was laid out for says this much of others, at most."""


def plan_in_least_memory(drafts_on: Callable[[Machine], Drafts], machine: Machine) -> Plan:
    """The plan in the smallest scratchpads, all cut alike, in which one was found.

    Raises:
        InfeasibleError: no strategy fits, even with all there is.
    """
    found = draft_in_least_memory(drafts_on, machine)
    drafts = drafts_on(machine)
    if found is None:
        # What has too many tiles to be worth it is still a plan.
        plain = drafts.candidate("latency", PLAIN)
        found = None if plain is None else drafts.draft(plain)
    if found is None:
        raise drafts.refusals[0]
    return drafts.finished(found)


def draft_in_least_memory(drafts_on: Callable[[Machine], Drafts], machine: Machine) -> Draft | None:
    """The draft in the smallest scratchpads, or nearly so if that saves many tiles; None if none
    fits.

    Where tiles can be found for a strategy is quickly seen. Of what is seen, the most promising is
    lowered and gets addresses, and the next as long as it may take less than what was found.
    """
    if not any(memory.role == "scratchpad" for memory in machine.memories):
        return None
    sizes = _Sizes(drafts_on, machine)
    proposals = sizes.all_proposals()
    found = sizes.best_of(proposals)
    growth = FIRST_GROWTH
    largest = max((proposal.size for proposal in proposals), default=1.0)
    while found is None and largest < 1.0:
        # Tiles that were found are no use if their buffers do not get addresses.
        largest, growth = min(1.0, max(sizes.least, largest) * (1 + growth)), 2 * growth
        strategies = dict.fromkeys([*(proposal.strategy for proposal in proposals), PLAIN])
        found = sizes.best_of([p for strategy in strategies for p in sizes.at(largest, strategy)])
    return found


@dataclass(frozen=True, kw_only=True)
class _Proposal:
    """A strategy whose tiles fit in a part of the scratchpads."""

    size: float
    strategy: Strategy
    tiles: int
    drafts: Drafts

    @property
    def cost(self) -> float:
        """What is to be small."""
        return _cost(self.size, self.tiles)


def _cost(size: float, tiles: int) -> float:
    return WORTH_IN_TILES * log(size) + log(max(1, tiles)) if size else -inf


@dataclass(frozen=True)
class _Sizes:
    """Plans for scratchpads of several sizes, as parts of the whole."""

    drafts_on: Callable[[Machine], Drafts]
    machine: Machine
    _drafts: dict[Machine, Drafts] = field(default_factory=dict)
    """What was looked at, by the machine cut to a size."""

    def all_proposals(self) -> list[_Proposal]:
        """Proposals of all strategies, the most promising first."""
        found: list[_Proposal] = []
        believed = self._believed()
        for number, (strategy, share) in reversed([*enumerate(believed)]):
            # It was chosen for less memory than the one before it takes.
            if number and self._is_beaten(strategy, *believed[number - 1]):
                continue
            if share / NEARLY < min([proposal.size for proposal in found], default=inf):
                found += self._proposals(strategy, share)
        if not found:
            found += self._proposals(PLAIN, FIRST_SHARE)
        return sorted(found, key=lambda proposal: (proposal.cost, proposal.size))

    def _is_beaten(self, strategy: Strategy, other: Strategy, share: float) -> bool:
        """Whether a strategy does not fit in a size in which another one does."""
        return not self.at(share, strategy) and bool(self.at(share, other))

    def _believed(self) -> list[tuple[Strategy, float]]:
        """Strategies with less and less memory, and how much the choice of cascades believes in."""
        found: dict[Strategy, float] = {}
        at_hand = 1.0
        for _ in range(MOST_CHOICES):
            drafts = self.drafts_on(cut_to(self.machine, at_hand))
            # Where data can wait outside, tiles by themselves take less than cascades.
            waits = drafts.prepared.places.overflow() is not None
            chosen = None if waits else drafts.chosen("memory")
            if chosen is None or chosen.share >= 1.0:
                break
            share = chosen.share * at_hand
            found.setdefault(chosen.strategy, share)
            if at_hand < 1.0 and share > SURELY * at_hand:
                break
            at_hand = share / NEARLY
        return list(found.items())

    def _proposals(self, strategy: Strategy, share: float) -> list[_Proposal]:
        """The smallest size that a strategy can be laid out for, and a little more."""
        fails: float | None = None
        share, growth = max(share, self.least), FIRST_GROWTH
        found = self.at(share, strategy)
        while not found and share < 1.0:
            fails, share, growth = share, min(1.0, share * (1 + growth)), 2 * growth
            found = self.at(share, strategy)
        lower = SURELY
        while found and fails is None and share:
            less = self._smaller(share, lower)
            smaller = self.at(less, strategy)
            if smaller:
                found, share, lower = smaller, less, lower**2
            else:
                fails = less
        while found and fails and share > fails * NEARLY and not self._is_same(share, fails):
            middle = (fails + share) / 2
            smaller = self.at(middle, strategy)
            if smaller:
                found, share = smaller, middle
            else:
                fails = middle
        return [
            *found,
            *(p for more in MORE_PERCENT[1:] for p in self.at(share * (1 + more / 100), strategy)),
            *(self._still_smaller(strategy, fails) if found and fails else ()),
        ]

    def _still_smaller(self, strategy: Strategy, size: float) -> list[_Proposal]:
        """Sizes below one with a few tiles too many: what has to go out for lack of room may leave
        more of it for tiles."""
        found: list[_Proposal] = []
        while size and (self._tiles(size, strategy) or inf) <= FEW_TOO_MANY * self._most_tiles:
            size = self._smaller(size, DOWNWARDS)
            found += self.at(size, strategy)
        return found

    def _smaller(self, size: float, factor: float) -> float:
        """A size times a factor, as often as it takes to make some scratchpad smaller; 0 where
        each has one unit of its alignment at most."""
        pads = [m for m in cut_to(self.machine, size).memories if m.role == "scratchpad"]
        if all(pad.size_bytes <= pad.alignment_bytes for pad in pads):
            return 0.0
        smaller = size * factor
        while self._is_same(smaller, size):
            smaller *= factor
        return smaller

    def at(self, size: float, strategy: Strategy) -> list[_Proposal]:
        """A strategy in one size, if there are tiles for it that fit and are not too many."""
        tiles = self._tiles(size, strategy)
        if tiles is None or tiles > self._most_tiles:
            return []
        drafts = self._drafts_in(size)
        return [_Proposal(size=size, strategy=strategy, tiles=tiles, drafts=drafts)]

    def _tiles(self, size: float, strategy: Strategy) -> int | None:
        """How many tiles there are in a size; None if it is too small."""
        if size > 1.0:
            return None
        return self._drafts_in(size).tiles("latency", strategy)

    def _drafts_in(self, size: float) -> Drafts:
        machine = cut_to(self.machine, size)
        if machine not in self._drafts:
            self._drafts[machine] = self.drafts_on(machine)
        return self._drafts[machine]

    @cached_property
    def least(self) -> float:
        """The smallest size that is not nothing."""
        pads = [memory for memory in self.machine.memories if memory.role == "scratchpad"]
        return min(pad.alignment_bytes / pad.size_bytes for pad in pads)

    @cached_property
    def _most_tiles(self) -> int:
        ops = self.drafts_on(self.machine).prepared.network.ops
        return min(LITTLE_TILES, max(FEW_TILES, sum(op.points for op in ops) // LITTLE_WORK))

    def best_of(self, proposals: Sequence[_Proposal]) -> Draft | None:
        """The best draft of some proposals, the most promising of which comes first."""
        best: tuple[float, Draft] | None = None
        overhead = 1.0
        for proposal in proposals[: self.drafts_on(self.machine).options.memory_trials]:
            if best is not None and _cost(proposal.size * overhead, proposal.tiles) >= best[0]:
                continue
            draft = self._draft(proposal)
            if draft is not None:
                takes = self._taken_by(draft)
                if proposal.size:
                    overhead = max(1.0, min(MOST_OVERHEAD, takes / proposal.size))
                cost = _cost(takes, proposal.tiles)
                if best is None or cost < best[0]:
                    best = cost, draft
        return None if best is None else best[1]

    def _draft(self, proposal: _Proposal) -> Draft | None:
        """What was laid out for a part of the scratchpads, as tight as it gets in the whole."""
        drafts = proposal.drafts
        if drafts.prepared.places.overflow() is not None:
            return first_within(drafts, [proposal.strategy])
        drafts.explain_nothing()
        candidate = drafts.candidate("latency", proposal.strategy, LITTLE_TILES)
        if candidate is None:
            return None
        spaces = self.drafts_on(self.machine).prepared.places.spaces
        return drafts.draft_in_order(candidate.on(spaces), tight=True)

    def _taken_by(self, draft: Draft) -> float:
        """The part of the scratchpads that a draft takes: up to the highest address in use."""
        sizes = {m.name: m.size_bytes for m in self.machine.memories if m.role == "scratchpad"}
        program = draft.timetable.program
        ends: dict[str, int] = {}
        for buffer, address in zip(program.buffers, draft.timetable.addresses, strict=True):
            if buffer.view is None:
                ends[buffer.space] = max(ends.get(buffer.space, 0), address + buffer.size_bytes)
        memories = {name: program.space[name].memory for name in ends}
        return max(
            (end / sizes[memories[name]] for name, end in ends.items() if memories[name] in sizes),
            default=0.0,
        )

    def _is_same(self, share: float, other: float) -> bool:
        return cut_to(self.machine, share) == cut_to(self.machine, other)


def first_within(drafts: Drafts, strategies: Sequence[Strategy]) -> Draft | None:
    """The draft of the first strategy that fits; why others do not is of no interest."""
    drafts.explain_nothing()
    for strategy in strategies:
        candidate = drafts.candidate("latency", strategy, LITTLE_TILES)
        if candidate is not None:
            draft = drafts.draft_in_order(candidate)
            if draft is None and drafts.prepared.places.overflow() is not None:
                draft = drafts.draft(candidate)
            if draft is not None:
                return draft
    return None


def least_share(drafts: Drafts, most_share: float = inf) -> float:
    """The part of the scratchpads that the choice of cascades believes in; infinite if it finds
    nothing, or nothing that fills no more than this part."""
    chosen = drafts.chosen("memory", most_share=most_share)
    return inf if chosen is None else chosen.share


def cut_to(machine: Machine, share: float) -> Machine:
    """The machine with a part of its scratchpads."""
    return machine if share >= 1.0 else resized(machine, share)


def cut_to_powers(machine: Machine, share: float) -> Machine:
    """The machine with a part of its scratchpads, each rounded up to a power of two times its
    alignment, but no larger than it is."""
    limits = []
    for memory in machine.memories:
        if memory.role == "scratchpad":
            units = max(1, int(memory.size_bytes * share) // memory.alignment_bytes)
            rounded = memory.alignment_bytes << (units - 1).bit_length()
            limits.append((memory.name, min(rounded, memory.size_bytes)))
    return with_memory_limits(machine, tuple(limits))


def resized(machine: Machine, share: float) -> Machine:
    """The machine with scratchpads of another size, rounded up to their alignment, but a part is no
    larger than the whole."""
    limits = []
    for memory in machine.memories:
        if memory.role == "scratchpad":
            units = -int(-memory.size_bytes * share // memory.alignment_bytes)
            most = memory.size_bytes if share <= 1.0 else inf
            limits.append((memory.name, int(min(units * memory.alignment_bytes, most))))
    return with_memory_limits(machine, tuple(limits))


def with_what_would_do(
    refusal: InfeasibleError,
    ways: Iterator[Callable[[Machine], Drafts]],
    machine: Machine,
    *,
    may_look_on: bool,
) -> InfeasibleError:
    """A refusal that also says how much is enough if ops run as cascades, in the best of several
    orders, and whether more could be tried; the first one's own hint is about an op that runs by
    itself."""
    pads = [m for m in machine.memories if m.role == "scratchpad"]
    first_way = next(ways)
    places = first_way(machine).prepared.places
    if len(pads) != 1 or places.overflow() is not None:
        return refusal
    larger = with_memory_limits(machine, ((pads[0].name, pads[0].size_bytes * MANY_TIMES),))
    chosen = [drafts_on(larger).chosen("memory") for drafts_on in (first_way, *ways)]
    shares = [found.share * MANY_TIMES for found in chosen if found is not None]
    if not shares:
        return refusal
    name, enough = pads[0].name, int(min(shares) * (1 + FIRST_GROWTH) * pads[0].size_bytes)
    much = f"{enough:,} B" if enough < FEW_KIB else f"{-(-enough // 1024):,} KiB"
    hint, less = f"{name} of about {much} would do", "and perhaps less, with"
    if min(shares) <= 1.0:
        hint, less = f"a little more of {name} may do", "or"
    hint = f"with ops side by side, row by row, {hint}"
    origin = places.origin("I1")
    if origin is not None and origin.rereadable:
        hint += f", {less} strips or ops that run again"
        hint += "; `--thorough` looks for more of them" if may_look_on else ""
    first, *others = refusal.problems
    return InfeasibleError(replace(first, hint=hint), *others)
