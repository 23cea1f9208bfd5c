"""The least memory: the smallest scratchpads in which there is a plan, and what to say without one.

Sizes are tried, each with what the choice of cascades proposes; there is no bound that tells which
is the smallest.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.errors import InfeasibleError
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.model import Machine
from tilewright.plan_drafts import Draft, Drafts
from tilewright.plan_model import Plan
from tilewright.program.cascade import PLAIN, Strategy

FIRST_SHARE = 1 / 64
"""Of the scratchpads, where nothing is known of what is needed."""

FIRST_GROWTH = 0.03
"""By how much more than what is believed in is tried first; the next time by twice that more."""

SURELY = 0.9
"""Of what is tried first for a strategy, less than this part is not worth a trial."""

MANY_TIMES = 256
"""A scratchpad so many times as large, to see what would be enough."""

LITTLE_TILES = 15_000
"""A plan of more tiles is not worth the little memory that it saves."""

NEARLY = 1.02
"""Sizes that differ by no more are not told apart."""


def plan_in_least_memory(drafts_on: Callable[[Machine], Drafts], machine: Machine) -> Plan:
    """The plan in the smallest scratchpads, all cut alike, in which one was found.

    Raises:
        InfeasibleError: no strategy fits, even with all there is.
    """
    found = draft_in_least_memory(drafts_on, machine)
    if found is None:
        raise with_what_would_do(_refusal(drafts_on(machine)), drafts_on, machine)
    return drafts_on(machine).finished(found)


def draft_in_least_memory(drafts_on: Callable[[Machine], Drafts], machine: Machine) -> Draft | None:
    """The draft in the smallest scratchpads; None if none fits.

    Sizes are tried upwards from a little more than the choice of cascades believes in, in growing
    steps, and from the first that holds a plan downwards again, with what is chosen there; and
    once more with what is chosen if there is less than that.
    """
    strategies, share = _least(drafts_on(machine), 1.0)
    fails, growth = 0.0, 2 * FIRST_GROWTH
    found = first_within(drafts_on(cut_to(machine, share)), strategies)
    while found is None:
        if share >= 1.0:
            return None
        fails, share, growth = share, min(1.0, share * (1 + growth)), 2 * growth
        found = first_within(drafts_on(cut_to(machine, share)), strategies)
    holds = share
    for wanted in (1.0, 1 / NEARLY):
        at_hand = wanted * holds
        strategies, share = _least(drafts_on(cut_to(machine, at_hand)), at_hand)
        if wanted == 1.0 or share < at_hand:
            between = max(fails, SURELY * share), holds
            smaller, holds = _smallest((drafts_on, machine), strategies, share, between)
            found = smaller or found
        fails = 0.0
    return found


def _smallest(
    where: tuple[Callable[[Machine], Drafts], Machine],
    strategies: Sequence[Strategy],
    share: float,
    between: tuple[float, float],
) -> tuple[Draft | None, float]:
    """The draft in the least memory between two sizes, and its size; the second holds a plan."""
    drafts_on, machine = where
    fails, holds = between
    found: Draft | None = None
    for _ in range(drafts_on(machine).options.memory_trials):
        if not fails * NEARLY < share < holds / NEARLY:
            share = (fails + holds) / 2
        cut = cut_to(machine, share)
        if share < fails * NEARLY or cut == cut_to(machine, holds):
            break
        smaller = first_within(drafts_on(cut), strategies)
        if smaller is None:
            fails = share
        else:
            found, holds = smaller, share
    return found, holds


def _least(drafts: Drafts, whole: float) -> tuple[list[Strategy], float]:
    """Strategies that take little memory, and the part of the scratchpads that is tried for them.

    The machine at hand has the part `whole` of the scratchpads.
    """
    # Where data can wait outside, tiles by themselves take less than cascades.
    waits = drafts.prepared.places.overflow() is not None
    chosen = None if waits else drafts.chosen("memory")
    if chosen is None:
        return [PLAIN], FIRST_SHARE * whole
    return [chosen.strategy, PLAIN], min(1.0, chosen.share * (1 + FIRST_GROWTH)) * whole


def _refusal(drafts: Drafts) -> InfeasibleError:
    """Why there is no plan, even with all there is."""
    plain = drafts.candidate("latency", PLAIN)
    draft = None if plain is None else drafts.draft(plain)
    assert draft is None
    return drafts.refusals[0]


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


def cut_to(machine: Machine, share: float) -> Machine:
    """The machine with a part of its scratchpads."""
    return machine if share >= 1.0 else resized(machine, share)


def resized(machine: Machine, share: float) -> Machine:
    """The machine with scratchpads of another size."""
    limits = [
        (m.name, -int(-m.size_bytes * share // m.alignment_bytes) * m.alignment_bytes)
        for m in machine.memories
        if m.role == "scratchpad"
    ]
    return with_memory_limits(machine, tuple(limits))


def with_what_would_do(
    refusal: InfeasibleError, drafts_on: Callable[[Machine], Drafts], machine: Machine
) -> InfeasibleError:
    """A refusal that also says how much is enough if ops run as cascades; the first one's own hint
    is about an op that runs by itself."""
    pads = [m for m in machine.memories if m.role == "scratchpad"]
    if len(pads) != 1 or drafts_on(machine).prepared.places.overflow() is not None:
        return refusal
    size = pads[0].size_bytes * MANY_TIMES
    chosen = drafts_on(with_memory_limits(machine, ((pads[0].name, size),))).chosen("memory")
    if chosen is None or chosen.share * MANY_TIMES <= 1.0:
        return refusal
    enough = -int(-chosen.share * (1 + FIRST_GROWTH) * size // 1024)
    first, *others = refusal.problems
    hint = f"with ops side by side, row by row, {pads[0].name} of about {enough:,} KiB would do"
    return InfeasibleError(replace(first, hint=hint), *others)
