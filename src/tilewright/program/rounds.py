"""Going round stages until nothing changes, without looking at all of them every time."""

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush


def go_round(count: int, look: Callable[[int], Iterable[int]]) -> None:
    """Look at all numbers below `count` in their order; a look tells which others depend on it.

    Those behind are looked at in the same round, those before in the next one. What comes out is
    the same as if every round went over all numbers.

    >>> seen = []
    >>> def look(number):
    ...     seen.append(number)
    ...     return {2: [0, 3]}.get(number, ()) if len(seen) < 4 else ()
    >>> go_round(4, look)
    >>> seen
    [0, 1, 2, 3, 0]
    """
    left = {*range(count)}
    while left:
        queue, queued, left = sorted(left), left, set()
        while queue:
            number = heappop(queue)
            for other in look(number):
                if other < number:
                    left.add(other)
                elif other not in queued:
                    queued.add(other)
                    heappush(queue, other)


def inverted(names: Sequence[Iterable[str]]) -> dict[str, list[int]]:
    """By name the numbers of the lists that have it.

    >>> inverted([["a", "b"], ["b"]])
    {'a': [0], 'b': [0, 1]}
    """
    found: dict[str, list[int]] = {}
    for number, some in enumerate(names):
        for name in some:
            found.setdefault(name, []).append(number)
    return found
