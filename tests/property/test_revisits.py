"""Which loops return to elements of a result: all of them counted, one by one."""

from itertools import product
from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.random_cases import examples

from tilewright.mapping.batch import orders_of
from tilewright.mapping.nest import Relation
from tilewright.mapping.revisits import revisits

FACTORS = st.lists(
    st.tuples(st.sampled_from(["IX", "FX", "K"]), st.integers(2, 3)), min_size=1, max_size=5
)
Loops = list[tuple[str, int]]


def elements(loops: Loops, relation: Relation, steps: dict[str, int]) -> set[tuple[int, int]]:
    """Elements that loops go through, as (place along the target, K).

    `steps` says how far each name has come by the loops below.
    """
    found = set()
    for point in product(*(range(size) for _, size in loops)):
        at, step = {"IX": 0, "FX": 0, "K": 0}, dict(steps)
        for (name, size), i in zip(loops, point, strict=True):
            at[name] += i * step[name]
            step[name] *= size
        found.add((sum(c * at[name] for name, c in relation.terms), at["K"]))
    return found


@settings(max_examples=examples(100), deadline=None)
@given(FACTORS, st.integers(1, 4), st.integers(1, 3), st.data())
def test_loops_return_where_they_meet_an_element_of_another_pass(
    loops: Loops, stride: int, dilation: int, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(loops)))
    sizes = {name: prod(f for n, f in loops if n == name) for name in ("IX", "FX", "K")}
    relation = Relation("OX", (("IX", stride), ("FX", dilation)), 10**6)
    inner = elements(loops[:cut], relation, dict.fromkeys(sizes, 1))
    passes = prod(size for _, size in loops[cut:])
    everything = elements(loops, relation, dict.fromkeys(sizes, 1))
    # Each pass goes through as many elements as the first; fewer in all, and two share one.
    expected = len(everything) < passes * len(inner)
    orders = orders_of([loops])
    begins = [np.array([cut])]
    assert bool(revisits(relation, sizes, orders, begins, ((), ()))[0, 0]) == expected
