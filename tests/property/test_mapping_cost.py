"""The cost model against a simulator that walks every iteration, and laws that it must keep."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import fsum, isclose

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mapping_cases import loops_for, nests, setup_of, three_levels
from tests.random_cases import examples

from tilewright.machine.model import Machine
from tilewright.mapping.batch import orders_of
from tilewright.mapping.evaluate import (
    Loops,
    Setup,
    cost_of,
    evaluate,
    evaluate_loops,
)
from tilewright.mapping.nest import LoopNest, NestOperand

pytestmark = pytest.mark.usefixtures("both_evaluations")
EXAMPLES = settings(max_examples=examples(100))


def iterations(loops: Loops) -> Iterator[tuple[int, ...]]:
    """Every iteration of the temporal loops, as counters, innermost first."""
    sizes = [size for _, size in reversed(loops.order)]
    for counters in product(*(range(size) for size in sizes)):
        yield counters[::-1]


def touched(nest: LoopNest, operand: NestOperand, values: dict[str, int]) -> tuple[int, ...]:
    """The element of an operand that one point of the nest touches."""
    relations = {r.target: r for r in nest.relations}
    return tuple(
        sum(c * values[d] for d, c in relations[axis].terms) if axis in relations else values[axis]
        for axis in operand.axes
    )


def point(loops: Loops, counters: tuple[int, ...]) -> dict[str, int]:
    """Loop values of an iteration; a loop that was split is put together again."""
    values: dict[str, int] = {}
    strides: dict[str, int] = {}
    for (loop, size), counter in zip(loops.order, counters, strict=True):
        stride = strides.get(loop, 1)
        values[loop] = values.get(loop, 0) + counter * stride
        strides[loop] = stride * size
    return values


def walked_refills(setup: Setup, loops: Loops, operand: NestOperand, end: int) -> tuple[int, int]:
    """How often the tile inside `end` is replaced, and how many elements it has.

    A tile is replaced when a loop outside it that the operand depends on steps, also where the
    next tile happens to hold the same elements: no hardware compares them.
    """
    nest = setup.nest
    still = nest.irrelevant(operand)
    tiles: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    refills, previous = 0, None
    for counters in iterations(loops):
        values = {d: 0 for d, _ in nest.dims} | point(loops, counters)
        tiles.setdefault(counters[end:], set()).add(touched(nest, operand, values))
        outside = zip(loops.order[end:], counters[end:], strict=True)
        now = tuple(counter for (loop, _), counter in outside if loop not in still)
        refills += now != previous
        previous = now
    return refills, max(len(tile) for tile in tiles.values())


@EXAMPLES
@given(st.data())
def test_transfers_agree_with_a_walk_over_all_iterations(data: st.DataObject) -> None:
    setup = setup_of(data.draw(nests()), three_levels())
    loops = data.draw(loops_for(setup))
    moves = evaluate_loops(setup, loops).moves
    operands = {o.letter: o for o in setup.nest.operands}
    ends = dict(loops.ends)
    for row, link in enumerate(moves.links):
        if link.direction not in ("fh", "th") or not moves.exists[row, 0]:
            continue
        operand = operands[link.letter]
        refills, elements = walked_refills(setup, loops, operand, ends[link.letter][link.level])
        assert moves.amount[row, 0] == elements
        assert moves.periods[row, 0] == refills


@EXAMPLES
@given(st.data())
def test_partial_sums_return_exactly_if_an_output_is_left_unfinished(data: st.DataObject) -> None:
    setup = setup_of(data.draw(nests()), three_levels())
    loops = data.draw(loops_for(setup))
    moves = evaluate_loops(setup, loops).moves
    result, ends = setup.nest.operands[0], dict(loops.ends)
    for row, link in enumerate(moves.links):
        if link.letter != "O" or link.direction != "fh":
            continue
        end = ends["O"][link.level]
        visits: dict[tuple[int, ...], int] = {}
        previous: tuple[int, ...] | None = None
        for counters in iterations(loops):
            values = {d: 0 for d, _ in setup.nest.dims} | point(loops, counters)
            inner = {d: 0 for d, _ in setup.nest.dims} | point(loops, (0,) * end + counters[end:])
            tile = touched(setup.nest, result, inner)
            if tile != previous:
                visits[tile] = visits.get(tile, 0) + 1
            previous = tile
            assert len(touched(setup.nest, result, values)) == len(tile)
        assert bool(moves.exists[row, 0]) == any(count > 1 for count in visits.values())


@EXAMPLES
@given(st.data())
def test_energy_is_the_sum_of_its_parts(data: st.DataObject) -> None:
    setup = setup_of(data.draw(nests()), three_levels())
    batch = evaluate_loops(setup, data.draw(loops_for(setup)))
    cost = cost_of(batch)
    prices = {m.name: (m.read_pj, m.write_pj) for m, _ in setup.hierarchy.levels}
    parts = [
        link.accesses * prices[link.memory][0 if link.direction in ("tl", "th") else 1]
        for link in cost.links
    ]
    macs = setup.nest.points * setup.hierarchy.array.mac_pj
    assert isclose(cost.energy_pj, fsum([macs, *parts]), rel_tol=1e-12)
    assert isclose(cost.energy_pj, batch.energy_pj[0], rel_tol=1e-12)


@EXAMPLES
@given(st.data())
def test_cycles_are_the_sum_of_their_parts(data: st.DataObject) -> None:
    setup = setup_of(data.draw(nests()), three_levels(width=data.draw(st.sampled_from([8, 32]))))
    cost = cost_of(evaluate_loops(setup, data.draw(loops_for(setup))))
    parts = (cost.compute_cycles, cost.stall_cycles, cost.onload_cycles, cost.offload_cycles)
    assert isclose(cost.cycles, fsum([*parts, cost.drain_cycles]), rel_tol=1e-12)
    assert cost.compute_cycles >= cost.ideal_cycles


@EXAMPLES
@given(st.data())
def test_more_bandwidth_never_costs_cycles(data: st.DataObject) -> None:
    nest = data.draw(nests())
    narrow, wide = sorted(data.draw(st.tuples(*[st.sampled_from([8, 16, 24, 64, 256])] * 2)))
    setup = setup_of(nest, three_levels(width=narrow))
    loops = data.draw(loops_for(setup))
    slow = evaluate_loops(setup, loops).cycles[0]
    fast = evaluate_loops(setup_of(nest, three_levels(width=wide)), loops).cycles[0]
    assert fast <= slow * (1 + 1e-12)


@EXAMPLES
@given(st.data())
def test_renaming_loops_and_memories_changes_nothing(data: st.DataObject) -> None:
    setup = setup_of(data.draw(nests()), three_levels(width=16, bits=1 << 12))
    loops = data.draw(loops_for(setup))
    new = {d: f"{d}_renamed" for d, _ in setup.nest.dims}
    nest = LoopNest(
        dims=tuple((new[d], s) for d, s in setup.nest.dims),
        operands=tuple(
            replace(o, axes=tuple(new.get(a, a) for a in o.axes)) for o in setup.nest.operands
        ),
        relations=tuple(
            replace(
                r, terms=((new[r.terms[0][0]], r.terms[0][1]), (new[r.terms[1][0]], r.terms[1][1]))
            )
            for r in setup.nest.relations
        ),
        final_bits=setup.nest.final_bits,
    )
    machine = three_levels(width=16, bits=1 << 12)
    core = machine.cores[0]
    memories = tuple(replace(m, name=f"{m.name}_renamed") for m in core.memories)
    renamed: Machine = replace(machine, cores=(replace(core, memories=memories),))
    other = Loops(tuple((new[d], s) for d, s in loops.order), loops.ends)
    before = evaluate_loops(setup, loops)
    after = evaluate_loops(setup_of(nest, renamed), other)
    assert before.cycles[0] == after.cycles[0]
    assert before.energy_pj[0] == after.energy_pj[0]


@EXAMPLES
@given(st.data())
def test_a_batch_costs_what_its_members_cost_alone(data: st.DataObject) -> None:
    setup = setup_of(data.draw(nests()), three_levels(width=16, bits=1 << 10))
    loops = list(setup.spatial.temporal) or [(setup.nest.dims[0][0], 1)]
    rows = data.draw(st.lists(st.permutations(loops), min_size=1, max_size=5))
    together = evaluate(setup, orders_of(rows))
    for column, row in enumerate(rows):
        alone = evaluate(setup, orders_of([row]))
        assert np.array_equal(alone.cycles, together.cycles[column : column + 1])
        assert np.array_equal(alone.energy_pj, together.energy_pj[column : column + 1])
