"""The rules under which programs are simulated, in the order in which they are worth a try."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tilewright.schedule.options import Policy, ScheduleOptions


class Rule(NamedTuple):
    """A policy, and whether prefetches are planned from the times of the best run so far.

    Without a policy it is that of the best run.
    """

    policy: Policy | None
    is_replanned: bool = False


_ROOM = (100, 98, 94, 90, 85)
"""Percents of the scratchpads that may be planned to be full."""

_AGAIN = Rule(None, is_replanned=True)


def rules_for(n_tasks: int, options: ScheduleOptions) -> Iterator[Rule]:
    """The rules for a program of so many tasks, the best ones first.

    Over networks on many machines, most is gained by counting bytes only and by planning
    prefetches from real times; the last rules of the list help one program in a hundred.
    """
    base = Policy(
        key="need",
        prefetch=options.prefetch,
        lookahead_steps=options.lookahead_steps,
        window=options.window,
    )
    first = replace(base, by_life=n_tasks > options.many_rules_tasks)
    yield Rule(first)
    second = replace(base, by_life=not first.by_life)
    if n_tasks <= options.packing_tasks:
        yield from _with_addresses_later(base, second)
    else:
        yield from _with_addresses_at_once(base, second)
    yield from _rare(base)


def _with_addresses_later(base: Policy, second: Policy) -> Iterator[Rule]:
    eager, early, late = (replace(base, margin=margin) for margin in (None, 2, 0))
    yield from _counted(base, _ROOM)
    yield _AGAIN
    yield from _counted(eager, _ROOM)
    yield from _counted(early, (100,))
    yield Rule(late)
    yield Rule(second)
    yield Rule(replace(base, prefetch=False))
    yield _AGAIN
    yield Rule(early, is_replanned=True)
    yield Rule(base, is_replanned=True)
    yield from _counted(base, (100, 94), is_replanned=True)
    yield Rule(early)
    yield Rule(eager)
    yield from _counted(replace(base, key="slack"), (100, 94))


def _with_addresses_at_once(base: Policy, second: Policy) -> Iterator[Rule]:
    eager, early, late = (replace(base, margin=margin) for margin in (None, 2, 0))
    yield _AGAIN
    yield Rule(early, is_replanned=True)
    yield Rule(replace(base, prefetch=False))
    yield Rule(replace(base, key="slack"))
    yield Rule(eager)
    yield Rule(replace(early, key="slack"))
    yield Rule(replace(early, by_life=False))
    yield Rule(late)
    yield Rule(second)
    yield _AGAIN
    yield Rule(early)
    yield Rule(early, is_replanned=True)
    yield Rule(base, is_replanned=True)


def _rare(base: Policy) -> Iterator[Rule]:
    slack = replace(base, key="slack")
    yield Rule(replace(base, margin=2, by_life=False))
    yield Rule(replace(base, margin=None, by_life=False))
    yield Rule(slack)
    yield Rule(replace(slack, margin=None))
    yield Rule(replace(base, recompute=True))
    yield Rule(replace(slack, by_life=False))
    yield Rule(replace(base, by_life=False, both_ends=False))
    yield Rule(replace(base, eviction="distance"))
    yield _AGAIN


def _counted(policy: Policy, percents: Sequence[int], is_replanned: bool = False) -> Iterator[Rule]:
    """Addresses come later; the fuller the memory may be, the less likely there are any."""
    for percent in percents:
        yield Rule(replace(policy, addresses_later=True, room_percent=percent), is_replanned)


def of_times_only(policy: Policy) -> Policy:
    """A policy without what makes no difference to the times if nobody waits for room.

    The margin is left out too: what follows from it is known when copies are let go.
    """
    return Policy(
        key=policy.key,
        prefetch=policy.prefetch,
        margin=None,
        guarded=policy.guarded,
        stores_first=policy.stores_first,
        room_percent=policy.room_percent,
        lookahead_steps=policy.lookahead_steps,
        window=policy.window,
    )
