"""The compiled search for tile lengths against NumPy, and the choice against all that there is."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.random_cases import examples

from tilewright.network.graph import Index, Op, Operand
from tilewright.program import tile_grid, tile_kernel
from tilewright.program.tile import cheapest
from tilewright.program.work import TASK_CYCLES, Candidates, Goal, Row, Tenant, Trial, Work

GOALS: tuple[Goal, ...] = ("latency", "energy", "traffic")
DIMS = ("K", "C", "Y", "X")
SIZES = st.integers(1, 12)
NUMBERS = st.sampled_from((0.0, 1.0, 1.5, 3.0, 12.0))


@st.composite
def tenants(draw: st.DrawFn) -> Tenant:
    axes = []
    for dims in draw(
        st.lists(st.lists(st.sampled_from(DIMS), max_size=2, unique=True), max_size=3)
    ):
        terms = tuple((dim, draw(st.sampled_from((1, 2, -1)))) for dim in dims)
        reach = draw(st.sampled_from((0, 0, 3)))
        axes.append(Index(terms, divisor=draw(st.sampled_from((1, 1, 2))), reach=reach))
    index = None if draw(st.integers(0, 9)) == 0 else tuple(axes)
    return Tenant(
        operand=Operand(name="I", tensor="I", index=index),
        shape=tuple(draw(st.integers(1, 20)) for _ in axes),
        bits=draw(st.sampled_from((4, 8, 32))),
        memory=draw(st.sampled_from(("near", "nearer"))),
        bytes_per_cycle=draw(NUMBERS),
        setup_cycles=draw(st.sampled_from((0, 50))),
        pj_per_byte=draw(NUMBERS),
        constant=draw(st.booleans()),
        result=draw(st.booleans()),
    )


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    lengths = {dim: draw(SIZES) for dim in DIMS}
    output = Operand(name="O", tensor="O", index=tuple(Index(((dim, 1),)) for dim in "KYX"))
    op = Op(
        name="op",
        kind="conv",
        dims=tuple(lengths.items()),
        inputs=(),
        outputs=(output,),
        accumulator_bits=32,
    )
    held: tuple[Tenant, ...] = tuple(draw(st.lists(tenants(), max_size=4)))
    streamed = [replace(t, bytes_per_cycle=2.5) for t in draw(st.lists(tenants(), max_size=2))]
    work = Work(
        op=op,
        lengths=lengths,
        tenants=held,
        streamed=tuple(streamed),
        room={name: draw(st.integers(-5, 900)) for name in ("near", "nearer")},
        unrolled={"K": draw(st.integers(1, 4))},
        rate=draw(st.sampled_from((1.0, 3.0))),
        alignment=draw(st.sampled_from((1, 16))),
        partial=held[-1] if draw(st.booleans()) and held else None,
        partial_bytes_per_cycle=7.0,
        tile_cycles=draw(st.sampled_from((None, model))),
        lead_cycles=draw(st.sampled_from((0, 40))),
    )
    loops = tuple(draw(st.lists(st.sampled_from(DIMS), max_size=3, unique=True)))
    choices = [sorted({lengths[d], draw(SIZES), draw(SIZES), 1}, reverse=True) for d in loops]
    return Trial(
        work=work,
        loops=loops,
        choices=tuple(
            tuple(n for n in tried if n <= lengths[d])
            for d, tried in zip(loops, choices, strict=True)
        ),
        orders=tuple(dict.fromkeys((loops, loops[::-1]))),
        goal=draw(st.sampled_from(GOALS)),
    )


def model(lengths: Mapping[str, int]) -> int | None:
    """Cycles that no formula of the estimates gives; and tiles that the core does not run."""
    points = prod(lengths.values())
    return None if points % 7 == 3 else points % 11 * 13 + points // 2


def asked(trial: Trial, at: int) -> int | None:
    return None if trial.work.tile_cycles is None else model(trial.lengths(at))


@pytest.mark.skipif(not tile_kernel.is_used(), reason="the search was not built")
@settings(max_examples=examples(500), deadline=None)
@given(trials())
def test_both_find_the_same_tilings_with_the_same_figures(trial: Trial) -> None:
    told = partial(asked, trial)
    every = [cheapest(trial, candidates, told) for candidates in tile_grid.candidates(trial)]
    compiled = tile_kernel.tilings(trial, told)
    assert compiled is not None
    # An order that moves what an earlier one does is left out.
    alike = [replace(tiling, order=()) for tiling in compiled]
    assert all(replace(tiling, order=()) in alike for tiling in every)
    assert all(tiling in every for tiling in compiled)
    assert compiled[:1] == every[:1]


@pytest.mark.skipif(not tile_kernel.is_used(), reason="the search was not built")
@settings(max_examples=examples(500), deadline=None)
@given(trials(), st.data())
def test_all_leads_and_rooms_that_a_choice_is_said_to_cover_lead_to_it(
    trial: Trial, data: st.DataObject
) -> None:
    lead_cycles = data.draw(st.sampled_from((0, 40, 100, 300, 1_000)))
    trial = replace(trial, work=replace(trial.work, lead_cycles=lead_cycles))
    found = tile_kernel.best_tiling(trial, partial(asked, trial))
    assert found is not None
    tiling, scope = found
    assert scope.covers(trial.work.measures)
    # The ends of what is covered, and numbers in between, as far as they are within reason.
    spans = [
        (max(-5, least), min(2_000, most))
        for least, most in zip(scope.least, scope.most, strict=True)
    ]
    lead, near, nearer = (
        data.draw(st.sampled_from(span) | st.integers(*span)) if span[0] <= span[1] else now
        for span, now in zip(spans, trial.work.measures, strict=True)
    )
    room = {"near": near, "nearer": nearer}
    other = replace(trial, work=replace(trial.work, room=room, lead_cycles=max(0, lead)))
    assert scope.covers(other.work.measures)
    again = tile_kernel.best_tiling(other, partial(asked, other))
    assert again is not None
    assert again[0] == tiling


@pytest.mark.skipif(not tile_kernel.is_used(), reason="the search was not built")
@settings(max_examples=examples(200), deadline=None)
@given(trials())
def test_the_best_tiling_is_that_of_the_best_order(trial: Trial) -> None:
    told = partial(asked, trial)
    every, found = tile_kernel.tilings(trial, told), tile_kernel.best_tiling(trial, told)
    assert every is not None
    assert found is not None
    values = [(tiling.value, tiling.cycles, tiling.moved_bytes) for tiling in every]
    assert found[0] == (every[values.index(min(values))] if every else None)


@pytest.mark.skipif(not tile_kernel.is_used(), reason="the search was not built")
def test_what_a_model_raises_comes_through() -> None:
    def failing(at: int) -> int | None:
        raise KeyError(at)

    work = Work(
        op=Op(name="op", kind="conv", dims=(), inputs=(), outputs=(), accumulator_bits=32),
        lengths={"K": 4},
        tenants=(),
        room={},
        unrolled={},
        tile_cycles=model,
    )
    trial = Trial(work=work, loops=("K",), choices=((4, 1),), orders=(("K",),), goal="latency")
    with pytest.raises(KeyError):
        tile_kernel.tilings(trial, failing)


@settings(max_examples=examples(200), deadline=None)
@given(trials())
def test_without_a_model_the_candidate_is_the_best_of_all(trial: Trial) -> None:
    # With an impossible model every combination that fits is a candidate, if there are few.
    trial = replace(trial, choices=tuple(tried[:3] for tried in trial.choices[:2]))
    trial = replace(trial, loops=trial.loops[:2], orders=(trial.loops[:2],))
    guessed = replace(trial, work=replace(trial.work, tile_cycles=lambda lengths: None))
    plain = replace(trial, work=replace(trial.work, tile_cycles=None))
    found = zip(tile_grid.candidates(guessed), tile_grid.candidates(plain), strict=True)
    for every, one in found:
        values = [value(every, number, trial.goal) for number in range(len(every.rows))]
        good = [n for n in range(len(values)) if values[n] <= 1.02 * min(values)]
        best = min(good, key=lambda n: (every.rows[n].total, value(every, n, "latency"), n))
        assert one.rows == (every.rows[best],)


def test_what_streams_takes_its_time_and_is_read_by_every_tile() -> None:
    index = (Index((("K", 1),)), Index((("C", 1),)))
    weights = Tenant(
        operand=Operand(name="W", tensor="W", index=index),
        shape=(8, 4),
        bits=8,
        memory="",
        bytes_per_cycle=0.5,
        setup_cycles=0,
        pj_per_byte=3.0,
    )
    work = Work(
        op=Op(name="op", kind="conv", dims=(), inputs=(), outputs=(), accumulator_bits=32),
        lengths={"K": 8, "C": 4, "Y": 6},
        tenants=(),
        streamed=(weights,),
        room={"near": 100},
        unrolled={},
    )
    loops, orders = ("K", "Y"), (("K", "Y"),)
    # Of tiles of 4 x 4 x 3 points, 16 B of weights take 32 of 48 cycles; of 4 x 4 x 1 all.
    for rows, cycles in ((3, 4 * (48 + TASK_CYCLES)), (1, 12 * (32 + TASK_CYCLES))):
        trial = Trial(
            work=work, loops=loops, choices=((4,), (rows,)), orders=orders, goal="traffic"
        )
        found, *_ = tile_grid.candidates(trial)
        (row,) = found.rows
        assert row.computing == cycles
        assert row.moved_bytes == 2 * (6 // rows) * 16
        assert row.energy == 3.0 * row.moved_bytes
        for compiled in tile_kernel.tilings(trial, lambda _: None) or ():
            assert compiled.moved_bytes == row.moved_bytes


def value(candidates: Candidates, number: int, goal: Goal) -> float:
    row = candidates.rows[number]
    if goal == "energy":
        return row.energy
    if goal == "traffic":
        return row.moved_bytes
    if not candidates.doubled:
        return row.computing + row.left
    both = sorted((row.computing, row.left))
    return both[1] + both[0] / 8 + min(row.first, row.left) / 2


@settings(max_examples=examples(200), deadline=None)
@given(trials())
def test_the_choice_is_as_if_a_model_were_asked_about_every_candidate(trial: Trial) -> None:
    trial = replace(trial, work=replace(trial.work, tile_cycles=model))
    for candidates in tile_grid.candidates(trial):
        known = [told(trial, row) for row in candidates.rows]
        answered = replace(candidates, rows=tuple(known))
        values = [value(answered, number, trial.goal) for number in range(len(known))]
        good = [n for n in range(len(known)) if values[n] <= 1.02 * min(values)]
        best = min(good, key=lambda n: (known[n].total, value(answered, n, "latency"), n))
        chosen = cheapest(trial, candidates, partial(asked, trial))
        assert chosen.value == values[best]
        assert chosen.cycles == value(answered, best, "latency")
        assert chosen.lengths == lengths_of(trial, known[best].at)


def told(trial: Trial, row: Row) -> Row:
    """A row with what the model says of its tiles."""
    cycles = model(lengths_of(trial, row.at))
    return row if cycles is None else row._replace(computing=row.total * (cycles + TASK_CYCLES))


def lengths_of(trial: Trial, at: int) -> dict[str, int]:
    every = list(product(*trial.choices))
    return {**trial.work.lengths, **dict(zip(trial.loops, every[at], strict=True))}
