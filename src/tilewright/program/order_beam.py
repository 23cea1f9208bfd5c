"""A good order of a region too large for the exact search: many partial orders side by side."""

from tilewright.program.order_exact import State, direction_of, in_order, successors
from tilewright.program.order_region import Region

_Taken = tuple[int, "_Taken"] | None
"""The ops taken so far, last first: shared between partial orders, so a step costs no copy."""


def beam(region: Region, floor: int, ceiling: int, states: int) -> tuple[int, ...] | None:
    """The best order below the ceiling that a beam of so many states finds, from either end.

    Of all partial orders of a length, those with the least peak go on, and of these those with
    the fewest bytes alive.
    """
    width = max(1, states // (2 * len(region.ops)))
    best = None
    for forward in (True, False):
        found = _from_one_end(region, (floor, ceiling), width, forward=forward)
        if found is not None:
            ceiling, best = found
    return best


def _from_one_end(
    region: Region, limits: tuple[int, int], width: int, *, forward: bool
) -> tuple[int, tuple[int, ...]] | None:
    floor, ceiling = limits
    way = direction_of(region, floor, forward=forward)
    level: list[tuple[State, _Taken]] = [(way.first, None)]
    for _ in region.ops:
        reached: dict[int, tuple[State, _Taken]] = {}
        for state, taken in level:
            for following in successors(region, way, state, ceiling):
                mask = following[3]
                if mask not in reached or following < reached[mask][0]:
                    reached[mask] = following, ((state[3] ^ mask).bit_length() - 1, taken)
        level = sorted(reached.values(), key=lambda item: item[0])[:width]
    if not level:
        return None
    state, taken = level[0]
    ops = []
    while taken is not None:
        op, taken = taken
        ops.append(op)
    return state[0], in_order(way, ops[::-1])
