"""Loop orders to try: prime factors of the loops, and all their different arrangements."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import factorial, prod

import numpy as np

from tilewright.mapping import kernel
from tilewright.mapping.batch import Ints, Orders

Loop = tuple[str, int]


def prime_factors(number: int) -> list[int]:
    """Prime factors, smallest first.

    >>> prime_factors(56)
    [2, 2, 2, 7]
    """
    factors = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors + ([number] if number > 1 else [])


def loop_factors(
    loops: Sequence[Loop], first: str, limit: int | None, fixed: Sequence[Loop] = ()
) -> list[Loop]:
    """Loops split into prime factors, merged again until at most `limit` are left.

    The loop with most factors gives up its two smallest for their product, the first of several
    such loops first; a loop is never dropped. A `fixed` factor stays as it is. Where nothing is
    left to do in time, one loop of size 1 over `first` stands for it.

    >>> loop_factors([("K", 8), ("C", 6)], "K", 3)
    [('K', 8), ('C', 2), ('C', 3)]
    """
    factors = {name: prime_factors(size) for name, size in loops}
    kept: dict[str, list[int]] = {name: [] for name in factors}
    for name, size in fixed:
        left = list(factors.get(name, ()))
        for prime in prime_factors(size):
            if prime not in left:
                break
            left.remove(prime)
        else:
            factors[name], kept[name] = left, [*kept[name], size]
    if not factors:
        return [(first, 1)]
    if limit is not None:
        while sum(map(len, factors.values())) + len(fixed) > max(limit, len(factors)):
            name = max(factors, key=lambda n: len(factors[n]) + len(kept[n]))
            if len(factors[name]) < 2:
                break
            smallest, second, *rest = factors[name]
            factors[name] = sorted([*rest, smallest * second])
    return [(name, f) for name, parts in factors.items() for f in sorted([*parts, *kept[name]])]


def count_orders(factors: Sequence[Loop]) -> int:
    """How many different orders there are.

    >>> count_orders([("K", 2), ("K", 2), ("C", 3)])
    3
    """
    return factorial(len(factors)) // prod(factorial(n) for n in Counter(factors).values())


def all_orders(factors: Sequence[Loop]) -> Orders:
    """Every different order, in cool-lex order, so that of equals the first is always the same."""
    kinds = sorted(set(factors))
    numbers = tuple(sorted(kinds.index(f) for f in factors))
    return orders_from_kinds(kinds, _arrangements(numbers, count_orders(factors)))


def ascending_orders(factors: Sequence[Loop]) -> Orders:
    """Every different order in which the factors of each loop stand smallest first.

    >>> ascending_orders([("K", 4), ("K", 2), ("C", 3)]).sizes.T.tolist()
    [[2.0, 4.0, 3.0], [3.0, 2.0, 4.0], [2.0, 3.0, 4.0]]
    """
    kinds = sorted(factors)
    names = [name for name, _ in kinds]
    firsts = tuple(names.index(name) for name in names)
    return orders_from_kinds(kinds, _ascending(firsts))


@lru_cache(maxsize=32)
def _ascending(firsts: tuple[int, ...]) -> Ints:
    """Arrangements of 0 … n - 1, of which runs of equal `firsts` stay in order, as columns."""
    repeats = Counter(firsts)
    count = factorial(len(firsts)) // prod(factorial(n) for n in repeats.values())
    found = _arrangements(firsts, count).copy()
    for first, times in repeats.items():
        if times > 1:
            same = found == first
            found[same] += (np.cumsum(same, axis=0) - 1)[same]
    return found


def orders_from_kinds(kinds: Sequence[Loop], arrangement: Ints) -> Orders:
    """Orders given as (n, N) indices into a list of different loops."""
    names = tuple(dict.fromkeys(name for name, _ in kinds))
    loop_numbers = np.array([names.index(name) for name, _ in kinds], dtype=np.int64)
    sizes = np.array([size for _, size in kinds], dtype=np.float64)
    return Orders(names, loop_numbers[arrangement], sizes[arrangement])


def matching(orders: Orders, order: Iterable[tuple[str, int | None]]) -> Orders:
    """Those orders that agree with a partly given one, innermost first.

    An entry is a loop and its size, or None for any size; `*` as a loop stands for any number of
    loops, so that what follows the last `*` counts from the outer end.
    """
    given = list(order)
    if "*" in [name for name, _ in given]:
        star = [name for name, _ in given].index("*")
        places = dict(enumerate(given[:star]))
        behind = [entry for entry in given[star + 1 :] if entry[0] != "*"]
        places |= {orders.length - len(behind) + i: entry for i, entry in enumerate(behind)}
    else:
        places = dict(enumerate(given))
    keep = np.ones(orders.count, dtype=np.bool_)
    for place, (name, size) in places.items():
        if not 0 <= place < orders.length or name not in orders.names:
            continue
        keep &= orders.loops[place] == orders.names.index(name)
        if size is not None:
            keep &= orders.sizes[place] == size
    return Orders(orders.names, orders.loops[:, keep], orders.sizes[:, keep])


@lru_cache(maxsize=8)
def _arrangements(numbers: tuple[int, ...], count: int) -> Ints:
    """All `count` different arrangements of a sorted multiset in cool-lex order, as columns."""
    if kernel.is_used():
        return kernel.arrangements(np.array(numbers[::-1], dtype=np.int64), count)
    return np.array(cool_lex(numbers), dtype=np.int64).T


def cool_lex(numbers: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All different arrangements of a sorted multiset in cool-lex order (Williams, SODA 2009).

    Each follows from the one before by moving one element to the front, as in the paper's
    algorithm 1; the first is the multiset in non-increasing order.
    """
    items = list(numbers[::-1])
    result = [tuple(items)]
    last = len(items) - 1
    # i and j are the places of the second-last and last element of the longest non-increasing
    # prefix that the algorithm keeps track of.
    i, j = max(last - 1, 0), last
    while j < last or items[j] < items[0]:
        moved = j + 1 if j < last and items[i] >= items[j + 1] else j
        value = items.pop(moved)
        items.insert(0, value)
        i, j = (0, 1) if len(items) > 1 and value < items[1] else (i + 1, j + 1)
        j = i + 1
        result.append(tuple(items))
    return result
