from itertools import pairwise, permutations

import numpy as np
import pytest

from tilewright.mapping.batch import Orders
from tilewright.mapping.orders import (
    all_orders,
    ascending_orders,
    count_orders,
    loop_factors,
    matching,
    prime_factors,
)


def rows(orders: Orders) -> list[tuple[tuple[str, int], ...]]:
    return [
        tuple(
            (orders.names[i], int(s))
            for i, s in zip(orders.loops[:, c], orders.sizes[:, c], strict=True)
        )
        for c in range(orders.count)
    ]


def test_prime_factors_ascend() -> None:
    assert prime_factors(360) == [2, 2, 2, 3, 3, 5]
    assert prime_factors(97) == [97]
    assert prime_factors(1) == []


def test_the_loop_with_most_factors_gives_up_its_two_smallest() -> None:
    # K: 2 2 2 2, C: 2 3. K has most: 2 2 4; then 4 4; then both have two, and K comes first: 16.
    loops = [("K", 16), ("C", 6)]
    assert loop_factors(loops, "K", 5) == [("K", 2), ("K", 2), ("K", 4), ("C", 2), ("C", 3)]
    assert loop_factors(loops, "K", 4) == [("K", 4), ("K", 4), ("C", 2), ("C", 3)]
    assert loop_factors(loops, "K", 3) == [("K", 16), ("C", 2), ("C", 3)]


def test_no_loop_is_dropped_for_the_limit() -> None:
    loops = [("K", 4), ("C", 4), ("OX", 4)]
    assert loop_factors(loops, "K", 1) == [("K", 4), ("C", 4), ("OX", 4)]


def test_nothing_left_to_do_is_one_loop_of_one() -> None:
    assert loop_factors([], "B", 6) == [("B", 1)]


def test_a_fixed_factor_is_not_split() -> None:
    assert loop_factors([("K", 24)], "K", None, fixed=[("K", 6)]) == [("K", 2), ("K", 2), ("K", 6)]


@pytest.mark.parametrize(
    "factors",
    [
        [("K", 2), ("C", 3), ("OX", 5)],
        [("K", 2), ("K", 2), ("C", 3), ("C", 3)],
        [("K", 2), ("K", 2), ("K", 3), ("C", 2), ("C", 2)],
    ],
)
def test_every_different_order_comes_once(factors: list[tuple[str, int]]) -> None:
    found = rows(all_orders(factors))
    assert sorted(found) == sorted(set(permutations(factors)))
    assert len(found) == count_orders(factors)


def test_orders_come_in_cool_lex_order() -> None:
    # The multiset falls at first, and each arrangement moves one element to the front.
    kinds = {("A", 1): "1", ("B", 2): "2"}
    found = ["".join(kinds[f] for f in row) for row in rows(all_orders([*kinds, *kinds]))]
    assert found[0] == "2211"
    for before, after in pairwise(found):
        assert after in [before[i] + before[:i] + before[i + 1 :] for i in range(1, 4)]


def test_a_partly_given_order_keeps_what_agrees() -> None:
    orders = all_orders([("K", 2), ("C", 3), ("OX", 5)])
    assert rows(matching(orders, [("C", None)])) == [r for r in rows(orders) if r[0][0] == "C"]
    outer = matching(orders, [("*", None), ("K", 2)])
    assert rows(outer) == [r for r in rows(orders) if r[-1] == ("K", 2)]
    assert matching(orders, [("K", 7)]).count == 0


def test_cumulative_products_start_at_one() -> None:
    orders = all_orders([("K", 2), ("C", 3)])
    assert orders.iterations[0].tolist() == [1, 1]
    assert orders.iterations[-1].tolist() == [6, 6]
    assert np.array_equal(orders.extents["K"] * orders.extents["C"], orders.iterations)


@pytest.mark.parametrize(
    "factors",
    [
        [("K", 1)],
        [("K", 5), ("C", 3), ("OX", 2)],
        [("K", 3), ("K", 2), ("C", 3), ("C", 3), ("K", 7)],
        [("OX", 2), ("K", 2), ("K", 2), ("OX", 8), ("C", 2), ("C", 5)],
    ],
)
def test_ascending_orders_are_those_whose_factors_of_a_loop_ascend(
    factors: list[tuple[str, int]],
) -> None:
    expected = {
        order
        for order in permutations(factors)
        if all(
            [size for name, size in order if name == loop]
            == sorted(size for name, size in order if name == loop)
            for loop, _ in factors
        )
    }
    found = rows(ascending_orders(factors))
    assert len(found) == len(set(found))
    assert set(found) == expected
