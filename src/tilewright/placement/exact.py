"""Exact placement: the complete search under many orders, and the smallest capacity by bounds."""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from tilewright.placement.problem import Buffer
from tilewright.placement.search import Outcome, Rule, Status, search
from tilewright.placement.sections import Instance

# A search either ends soon or is lost in a bad order. So many short ones are made, and now and then
# longer ones, in Luby's sequence, which loses least when nothing is known about the lengths.
_SHORT_NODES = 1_000
_SHAKES_PERCENT = (60, 10, 30)
_FIRST_SLICE = 20_000
# With so few, one order can be searched to its end, and changing it would only repeat work.
_FEW_BUFFERS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Smallest:
    """The lowest peak found, what it cannot go below, and the nodes that it took."""

    addresses: tuple[int, ...]
    peak_bytes: int
    bound_bytes: int
    nodes: int


def place_within(
    buffers: Sequence[Buffer],
    instance: Instance,
    capacity_bytes: int,
    node_budget: int,
    seed: int = 0,
) -> Outcome:
    """A placement within the capacity, or the proof that there is none, or neither in time."""
    spent = 0
    for rule, nodes in _rules(buffers, instance, seed):
        outcome = search(instance, rule, capacity_bytes, min(nodes, node_budget - spent))
        spent += outcome.nodes
        if outcome.status is not Status.OUT_OF_BUDGET or spent >= node_budget:
            return Outcome(status=outcome.status, nodes=spent, addresses=outcome.addresses)
    raise AssertionError("the rules never end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A peak to improve on, a bound to reach, and the step between possible peaks."""

    peak_bytes: int
    bound_bytes: int
    step_bytes: int


def place_lowest(
    buffers: Sequence[Buffer],
    instance: Instance,
    known: Range,
    node_budget: int,
    seed: int = 0,
) -> Smallest:
    """Lower the peak and raise the bound until they meet or the budget is spent."""
    step = known.step_bytes
    # No placement is below `bound`; below `doubtful` none was found, which proves nothing.
    bound, peak = -(-known.bound_bytes // step) * step, known.peak_bytes
    doubtful, nodes, slice_nodes = bound, 0, _FIRST_SLICE
    addresses: tuple[int, ...] = ()
    while bound < peak and nodes < node_budget:
        if doubtful >= peak:
            doubtful, slice_nodes = bound, 2 * slice_nodes
        # The bound itself is the likeliest answer; after that, halve what is left.
        middle = doubtful + (peak - doubtful) // 2 // step * step
        target = bound if doubtful == bound else min(middle, peak - 1)
        budget = min(slice_nodes, node_budget - nodes)
        outcome = place_within(buffers, instance, target, budget, seed)
        nodes += outcome.nodes
        if outcome.status is Status.FOUND:
            addresses = outcome.addresses
            ends = (a + b.size_bytes for a, b in zip(addresses, buffers, strict=True))
            peak = max(ends)
        elif outcome.status is Status.EXHAUSTED:
            bound = target // step * step + step
            doubtful = max(doubtful, bound)
        else:
            doubtful = target // step * step + step
            if slice_nodes > _FIRST_SLICE:
                # The first pass has seen the whole range; what can still be won is near the peak.
                doubtful = max(doubtful, peak - (peak - bound) // 4 // step * step)
    return Smallest(addresses=addresses, peak_bytes=peak, bound_bytes=bound, nodes=nodes)


def _rules(buffers: Sequence[Buffer], instance: Instance, seed: int) -> Iterator[tuple[Rule, int]]:
    """Orders without end, each with the nodes it may take; from the second round on shaken."""
    chance = random.Random(seed)
    short = _SHORT_NODES if len(buffers) > _FEW_BUFFERS else sys.maxsize
    for turn in count():
        shake_percent = _SHAKES_PERCENT[turn % len(_SHAKES_PERCENT)] if turn else 0
        for keys in _measures(buffers, instance):
            order = _order(keys, chance, shake_percent)
            for lowest_section_first in (False, True):
                rule = Rule(order=order, lowest_section_first=lowest_section_first)
                yield rule, short * _luby(turn + 1)


def _luby(position: int) -> int:
    """1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 … (Luby, Sinclair and Zuckerman, 1993), from position 1 on."""
    bits = position.bit_length()
    if position == (1 << bits) - 1:
        return 1 << (bits - 1)
    return _luby(position - (1 << (bits - 1)) + 1)


def _order(
    keys: Sequence[tuple[int, ...]], chance: random.Random, shake_percent: int
) -> tuple[int, ...]:
    """Indices by descending key; the key's last number is shaken by so many per cent."""
    width = 10 * shake_percent
    shaken = [
        (*key[:-1], key[-1] * (1000 + (chance.randrange(-width, width + 1) if width else 0)))
        for key in keys
    ]
    return tuple(sorted(range(len(keys)), key=lambda j: (*(-k for k in shaken[j]), j)))


def _measures(buffers: Sequence[Buffer], instance: Instance) -> Iterator[list[tuple[int, ...]]]:
    """What to order by, largest first: how long, how large, in how many and how full sections."""
    every = range(len(buffers))
    size = instance.sizes
    length = [sum(end - start for start, end in buffer.lives) for buffer in buffers]
    spread = [len(sections) for sections in instance.sections_of]
    full = [max(instance.totals[s] for s in sections) for sections in instance.sections_of]
    yield [(full[j], length[j]) for j in every]
    yield [(spread[j],) for j in every]
    yield [(spread[j], full[j]) for j in every]
    yield [(spread[j], size[j]) for j in every]
    yield [(length[j],) for j in every]
    yield [(length[j] * size[j],) for j in every]
    yield [(spread[j] * size[j],) for j in every]
    yield [(full[j], size[j]) for j in every]
