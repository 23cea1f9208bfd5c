"""A seeded hill climb over the order in which buffers are placed by first fit."""

import random
from collections.abc import Sequence

from tilewright.placement.fit import first_fit
from tilewright.placement.heuristics import Candidate, greedy_orders, peak_bytes
from tilewright.placement.meetings import Meetings, meetings_of
from tilewright.placement.problem import Buffer


def hill_climb(
    buffers: Sequence[Buffer], enough_bytes: int, *, evaluations: int, seed: int
) -> Candidate:
    """The best placement after so many orders; stops early at `enough_bytes`."""
    meetings = meetings_of(buffers)
    assert meetings is not None
    chance = random.Random(seed)
    starts = [(first_fit(buffers, o, meetings), o) for _, o in greedy_orders(buffers)]
    addresses, order = min(starts, key=lambda pair: peak_bytes(buffers, pair[0]))
    best, best_peak = addresses, peak_bytes(buffers, addresses)
    peak = best_peak
    for _ in range(evaluations):
        if best_peak <= enough_bytes:
            break
        changed = _changed(buffers, addresses, order, meetings, chance)
        tried = first_fit(buffers, changed, meetings)
        tried_peak = peak_bytes(buffers, tried)
        if tried_peak <= peak or chance.random() < 0.02:
            addresses, order, peak = tried, changed, tried_peak
        if tried_peak < best_peak:
            best, best_peak = tried, tried_peak
    return Candidate(method="hill climb", addresses=tuple(best), peak_bytes=best_peak)


def _changed(
    buffers: Sequence[Buffer],
    addresses: Sequence[int],
    order: Sequence[int],
    meetings: Meetings,
    chance: random.Random,
) -> list[int]:
    """The order with a buffer that reaches the top, or one that it meets, moved forward."""
    peak = peak_bytes(buffers, addresses)
    top = [j for j, b in enumerate(buffers) if addresses[j] + b.size_bytes == peak]
    one = chance.choice(top)
    moved = chance.choice([one, *meetings.of(one)])
    changed = list(order)
    place = changed.index(moved)
    del changed[place]
    changed.insert(chance.randrange(place + 1), moved)
    return changed
