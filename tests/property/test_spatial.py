"""Every unrolling offered can run, and no better one exists: all are tried on tiny arrays."""

from dataclasses import replace
from itertools import product
from math import prod

from hypothesis import given
from hypothesis import strategies as st
from tests.mapping_cases import CARRIERS, conv_nest, memory, product_nest

from tilewright.machine.model import Array, Core, Machine
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.spatial import UnrollOptions, factor_limits, unrollings, violations
from tilewright.mapping.spatial_search import Pairs, best_fillings, fillings

LOOPS = ("B", "K", "C", "OX", "FX", "D", "G")
WIDTHS = st.sampled_from([4, 8, 24, 64, 1024])
SIZES = st.integers(1, 20)


@st.composite
def nests(draw: st.DrawFn) -> LoopNest:
    if draw(st.booleans()):
        return product_nest(draw(SIZES), draw(SIZES), draw(SIZES))
    return conv_nest({d: draw(SIZES) for d in ("B", "K", "C", "OX", "FX")})


@st.composite
def hierarchies(draw: st.DrawFn, nest: LoopNest) -> Hierarchy:
    dims = {f"D{i + 1}": draw(st.integers(1, 12)) for i in range(draw(st.integers(1, 3)))}
    served = st.lists(st.sampled_from(list(dims)), unique=True)
    groups = draw(st.sampled_from(["I1 | I2 | O", "O | I1 O", "I1 I2 O", "I2 | O"])).split(" | ")
    lowest = [
        replace(
            memory(f"m{i}", group.split(), bits=draw(WIDTHS), width=draw(WIDTHS)),
            served_dims=tuple(draw(served)),
        )
        for i, group in enumerate(groups)
    ]
    top = replace(memory("top", ["I1", "I2", "O"], width=1 << 20), served_dims=tuple(dims))
    array = Array(dims=tuple(dims.items()), mac_pj=1.0)
    core = Core(name="core", array=array, memories=(*lowest, top))
    links = {o.letter: CARRIERS[o.letter] for o in nest.operands}
    return hierarchy_of(Machine(name="test", cores=(core,)), core, links)


@st.composite
def constraints(draw: st.DrawFn) -> Constraint | None:
    if draw(st.booleans()):
        return None
    loops = st.sampled_from(LOOPS)
    pairs = st.dictionaries(loops, st.integers(1, 16), max_size=3)
    dims = draw(st.permutations(["D1", "D2", "D3", "D4"]))
    given_dims, hinted = dims[: draw(st.integers(0, 3))], dims[3:]
    return Constraint(
        name="default",
        spatial=tuple((dim, tuple(draw(pairs).items())) for dim in given_dims),
        hints=tuple((dim, tuple(draw(st.lists(loops, max_size=4)))) for dim in hinted),
    )


@given(st.data())
def test_every_candidate_can_run(data: st.DataObject) -> None:
    nest = data.draw(nests())
    where = data.draw(hierarchies(nest))
    constraint = data.draw(constraints())
    options = UnrollOptions(mixed=data.draw(st.booleans()), limit=data.draw(st.integers(1, 4)))
    candidates = unrollings(nest, where, constraint, options)
    assert 1 <= len(candidates) <= options.limit
    assert len(set(candidates)) == len(candidates)
    limits = factor_limits(nest, where)
    for candidate in candidates:
        assert [*violations(nest, where, candidate)] == []
        for dim, pairs in candidate:
            assert all(factor <= max(1, limits[dim][loop]) for loop, factor in pairs)
    assert unrollings(nest, where, constraint, options) == candidates


@given(st.data())
def test_a_full_constraint_leaves_one_candidate(data: st.DataObject) -> None:
    nest = data.draw(nests())
    where = data.draw(hierarchies(nest))
    pairs = st.dictionaries(st.sampled_from(LOOPS), st.integers(1, 16), max_size=3)
    spatial = tuple((dim, tuple(data.draw(pairs).items())) for dim in where.array.sizes)
    constraint = Constraint(name="default", spatial=spatial)
    (candidate,) = unrollings(nest, where, constraint, UnrollOptions(mixed=True))
    wanted = {dim: dict(asked) for dim, asked in spatial}
    for dim, got in candidate:
        assert all(factor <= wanted[dim][loop] for loop, factor in got)


def totals_of(choice: tuple[Pairs, ...], start: dict[str, int]) -> dict[str, int]:
    totals = dict(start)
    for pairs in choice:
        for loop, factor in pairs:
            totals[loop] *= factor
    return totals


@given(st.data())
def test_no_choice_is_better_than_those_kept(data: st.DataObject) -> None:
    sizes = {loop: data.draw(SIZES) for loop in ("A", "B", "C")[: data.draw(st.integers(1, 3))]}
    start = {loop: data.draw(st.integers(1, size)) for loop, size in sizes.items()}
    options = []
    for _ in range(data.draw(st.integers(1, 3))):
        units = data.draw(st.integers(1, 8))
        most = {loop: min(size, units) for loop, size in sizes.items()}
        options.append(fillings(list(sizes), most, units, mixed=data.draw(st.booleans())))
    legal = []
    for positions in product(*(range(len(option)) for option in options)):
        choice = tuple(option[i] for option, i in zip(options, positions, strict=True))
        totals = totals_of(choice, start)
        if all(total <= sizes[loop] for loop, total in totals.items()):
            busy = float(prod(totals.values()))
            score = busy + (busy / max(totals.values()) - 1)
            legal.append((-score, positions, choice))
    limit = data.draw(st.integers(1, 6))
    best = tuple(choice for _, _, choice in sorted(legal)[:limit])
    assert best_fillings(sizes, start, options, limit) == best
