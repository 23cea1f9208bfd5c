"""The room that results take: a walk over all loops never finds more bits than there is room."""

from itertools import product
from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mapping_cases import loops_for, machine, memory, setup_of
from tests.random_cases import examples

from tilewright.mapping.batch import orders_of
from tilewright.mapping.complete.capacity import fits
from tilewright.mapping.evaluate import Loops, Setup, cost_of, evaluate, evaluate_loops, loops_of
from tilewright.mapping.nest import LoopNest, NestOperand, Relation
from tilewright.mapping.orders import all_orders, loop_factors
from tilewright.mapping.search import Mapped
from tilewright.replay.restored_rooms import shares

Order = tuple[tuple[str, int], ...]
WIDE, FINAL = 16, 8
SIZES = st.fixed_dictionaries(
    {
        "K": st.integers(1, 2),
        "C": st.integers(1, 2),
        "IX": st.integers(1, 6),
        "FX": st.integers(1, 4),
    }
)
ROOMS = st.tuples(st.integers(1, 12), st.integers(1, 12))


def scatter(sizes: dict[str, int], stride: int) -> LoopNest:
    width = len({stride * i + j for i in range(sizes["IX"]) for j in range(sizes["FX"])})
    return LoopNest(
        dims=tuple(sizes.items()),
        operands=(
            NestOperand("O", ("K", "OX"), WIDE),
            NestOperand("W", ("K", "C", "FX"), 8),
            NestOperand("I", ("C", "IX"), 8),
        ),
        relations=(Relation("OX", (("IX", stride), ("FX", 1)), width),),
        final_bits=FINAL,
    )


def most_bits(order: Order, begin: int, end: int, stride: int) -> int:
    """The most bits of results in a memory that holds the loops before `end`, innermost first.

    Below it, loops before `begin` add up elsewhere: what they are done with comes here, and is wide
    as long as a later pass of them adds to it.
    """
    at = {loop: 0 for loop, _ in order} | {"K": 0, "IX": 0, "FX": 0}
    steps, reached = [], dict.fromkeys(at, 1)
    for loop, size in order:
        steps.append(reached[loop])
        reached[loop] *= size
    passes = prod(size for _, size in order[:begin])
    touched: list[set[tuple[int, int]]] = []
    places = product(*(range(size) for _, size in reversed(order)))
    for number, place in enumerate(places):
        here = dict.fromkeys(at, 0)
        for (loop, _), step, i in zip(order, steps, reversed(place), strict=True):
            here[loop] += i * step
        if number % passes == 0:
            touched.append(set())
        touched[-1].add((here["K"], stride * here["IX"] + here["FX"]))
    last = {element: number for number, some in enumerate(touched) for element in some}
    period = prod(size for _, size in order[begin:end])
    held: set[tuple[int, int]] = set()
    most = 0
    for number, some in enumerate(touched):
        held = some | (held if number % period else set())
        most = max(most, sum(WIDE if last[e] > number else FINAL for e in held))
    return most


def cases(
    sizes: dict[str, int], stride: int, rooms: tuple[int, int], *, is_unrolled: bool
) -> Setup:
    where = machine(
        memory("reg_O", ["O"], bits=rooms[0] * FINAL),
        memory("mid_O", ["O"], bits=rooms[1] * FINAL),
        memory("sram", ["I1", "I2", "O"]),
        units=sizes["FX"],
    )
    return setup_of(scatter(sizes, stride), where, [("FX", sizes["FX"])] if is_unrolled else [])


def walked(setup: Setup, loops: Loops, stride: int, *, merged: bool = False) -> list[int]:
    """The most bits in reg_O and mid_O; merged loops of one sum do not leave the level below."""
    ((_, unrolled),) = setup.spatial.unrolling
    ends = [0, *dict(loops.ends)["O"][:2]]
    begins = list(ends)
    for level in range(1, len(begins)) if merged else ():
        while begins[level] < len(loops.order) and loops.order[begins[level]][0] == "C":
            begins[level] += 1
    order = (*unrolled, *loops.order)
    n = len(unrolled)
    return [
        most_bits(order, n + begin, n + max(begin, end), stride)
        for begin, end in zip(begins, ends[1:], strict=False)
    ]


@settings(max_examples=examples(120), deadline=None)
@given(SIZES, st.integers(1, 3), ROOMS, st.booleans())
def test_the_search_never_gives_results_more_bits_than_there_is_room(
    sizes: dict[str, int], stride: int, rooms: tuple[int, int], is_unrolled: bool
) -> None:
    setup = cases(sizes, stride, rooms, is_unrolled=is_unrolled)
    plain = Setup(setup.nest, setup.hierarchy, setup.spatial)
    plain.__dict__["description"] = None
    orders = all_orders(loop_factors(setup.spatial.temporal, "K", None))
    for own in (setup, plain):
        batch = evaluate(own, orders)
        for column in np.flatnonzero(batch.fits).tolist()[:4]:
            bits = walked(setup, loops_of(batch, column), stride)
            assert all(n <= room * FINAL for n, room in zip(bits, rooms, strict=True))


@settings(max_examples=examples(120), deadline=None)
@given(SIZES, st.integers(1, 3), ROOMS, st.booleans(), st.data())
def test_what_takes_more_bits_than_there_is_room_is_told(
    sizes: dict[str, int],
    stride: int,
    rooms: tuple[int, int],
    is_unrolled: bool,
    data: st.DataObject,
) -> None:
    """Levels end anywhere: neither the complete search nor who reads a plan takes it, then."""
    setup = cases(sizes, stride, rooms, is_unrolled=is_unrolled)
    loops = data.draw(loops_for(setup))
    bits = walked(setup, loops, stride, merged=True)
    if all(n <= room * FINAL for n, room in zip(bits, rooms, strict=True)):
        return
    mapped = Mapped(
        setup=setup, loops=loops, cost=cost_of(evaluate_loops(setup, loops)), candidates=1
    )
    assert max(shares(mapped).values()) > 1
    ends = {letter: np.array(cuts)[:, None] for letter, cuts in loops.ends}
    assert not fits(setup, orders_of([loops.order]), ends)[0]
