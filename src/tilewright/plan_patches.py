"""Plans in strips: where nothing else fits, stretches of a network run some columns at a time.

Stretches are looked for with estimates. With strips, the network is a network like any other; the
plan that is found for it becomes one of the network itself, and is checked as such.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

from tilewright.machine.model import Machine
from tilewright.network.graph import Network, Op
from tilewright.plan_drafts import Draft, Drafts
from tilewright.plan_memory import cut_to
from tilewright.plan_model import Plan
from tilewright.program.lower import Prepared
from tilewright.replay.check import check
from tilewright.strategy.patches import Patches, patched
from tilewright.strategy.strip_search import StripSearch
from tilewright.strategy.unpatched import unpatched, unpatched_stages, unpatched_strategy

LIKELY = 0.97
"""What is thought to fit into this part of the scratchpads mostly does so in the end."""

MOST_PLANS = 2
"""If it does not, other stretches are tried, so many times in all."""

MANY_TILES = 50_000
"""A plan of more tiles is not worth the time that it takes to make it."""


@dataclass(frozen=True, kw_only=True)
class Planning:
    """A network on a machine, and how drafts of its plans are made."""

    network: Network
    machine: Machine
    order: tuple[Op, ...]
    """That of the ops."""
    drafts_on: Callable[[Machine], Drafts]
    """Drafts without strips, on the machine or on one with other sizes."""
    drafts_of: Callable[[Network, tuple[Op, ...]], Callable[[Machine], Drafts]]
    """The same of another network, its ops in an order."""


def plan_in_strips(planning: Planning, part: float) -> Plan | None:
    """The plan of a network with stretches in strips, if a part of the scratchpads seems to be
    enough for that and not without; None if there is none.

    Raises:
        LimitError: the plan did not pass its check, which is a fault of Tilewright.
    """
    drafts = planning.drafts_on(planning.machine)
    if not _may_help(drafts):
        return None
    drafts.watcher("strips")
    smaller = cut_to(planning.machine, part)

    def prepared_of(network: Network, order: tuple[Op, ...]) -> Prepared:
        # Without strips much is known already.
        is_whole = order == planning.order
        on = planning.drafts_on if is_whole else planning.drafts_of(network, order)
        return on(smaller).prepared

    search = StripSearch(planning.network, planning.order, drafts.options.choose, prepared_of)
    for strips in islice(search.found(), MOST_PLANS):
        patches = patched(planning.network, planning.order, strips)
        plan = None if patches is None else _plan_of(patches, planning, drafts)
        if plan is not None:
            return plan
    return None


def _may_help(drafts: Drafts) -> bool:
    """Whether all has to stay in scratchpads, and columns of inputs can be read several times."""
    places = drafts.prepared.places
    origin = places.origin("I1")
    if places.overflow() is not None or not drafts.options.cascades:
        return False
    return origin is not None and origin.kind == "source" and origin.rereadable


def _plan_of(patches: Patches, planning: Planning, whole: Drafts) -> Plan | None:
    """The plan of a network in strips as one of the network itself, checked."""
    found = _unchecked(planning.drafts_of(patches.network, patches.network.ops)(planning.machine))
    timetable = None if found is None else unpatched(found.timetable, patches)
    if found is None or timetable is None:
        return None
    if whole.options.checked:
        whole.watcher("check")
        check(timetable, patches.original)
    return replace(
        found,
        network=patches.original,
        options=whole.options,
        stages=unpatched_stages(found.stages, patches),
        timetable=timetable,
        roofline=whole.prepared.bounds,
        strategy=unpatched_strategy(found.strategy, patches),
        strips=patches.figures,
    )


def _unchecked(drafts: Drafts) -> Plan | None:
    """The best plan of what the choice of cascades proposes, not checked."""
    drafts.explain_nothing()
    drafts.options = replace(drafts.options, checked=False)
    best: Draft | None = None
    proposals = [drafts.chosen("memory"), drafts.chosen(drafts.goal)]
    for strategy in [chosen.strategy for chosen in proposals if chosen is not None]:
        candidate = drafts.candidate(drafts.goal, strategy, MANY_TILES)
        if candidate is None:
            continue
        found = drafts.draft(candidate, best)
        if found is None and best is None:
            found = drafts.draft_in_order(candidate, tight=True)
        best = found or best
    return None if best is None else drafts.finished(best)
