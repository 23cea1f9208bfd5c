"""Orders against trying every order of small graphs."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.order_graphs import every_order, names, obvious_bytes, obvious_peak

from tilewright.program.order import OrderOp, OrderProblem, depth_first, faults, peak_bytes
from tilewright.program.order_exact import search
from tilewright.program.order_region import cuts, floor_bytes, region_of
from tilewright.program.order_search import OrderOptions, least_peak

MANY = settings(max_examples=150, deadline=None, derandomize=True)
SOME = settings(max_examples=60, deadline=None, derandomize=True)
NO_STEPS = OrderOptions(steps=0, beam_steps=20, window_ops=3, window_steps=20)


@st.composite
def problems(draw: st.DrawFn, most_ops: int = 7, *, idle: bool = True) -> OrderProblem:
    """Graphs with inputs, ops of one or two results, outputs anywhere, and sizes that often tie."""
    sizes = draw(st.lists(st.sampled_from([0, 1, 2, 3, 8]), min_size=1, max_size=2))
    inputs = len(sizes)
    ops = []
    for number in range(draw(st.integers(1, most_ops))):
        fewest = draw(st.sampled_from([1, 1, 1, 1, 1, 0]))
        tensors = st.integers(0, len(sizes) - 1)
        reads = draw(st.lists(tensors, min_size=fewest, max_size=3, unique=True))
        results = draw(st.lists(st.sampled_from([1, 2, 3, 8]), min_size=1, max_size=2))
        writes = tuple(range(len(sizes), len(sizes) + len(results)))
        in_place = draw(st.booleans())
        ops.append(
            OrderOp(name=f"op{number}", reads=tuple(reads), writes=writes, in_place=in_place)
        )
        sizes += results
    read = {tensor for op in ops for tensor in op.reads}
    outputs = [
        tensor
        for tensor in range(len(sizes))
        if (not idle and tensor not in read and tensor >= inputs) or draw(st.integers(0, 3)) == 0
    ]
    return OrderProblem(
        ops=tuple(ops),
        sizes_bytes=tuple(sizes),
        inputs=tuple(range(inputs)),
        outputs=tuple(outputs),
    )


@MANY
@given(problem=problems(most_ops=6))
def test_the_peak_of_every_order_is_as_defined(problem: OrderProblem) -> None:
    for order in every_order(problem):
        assert list(faults(problem, order)) == []
        assert peak_bytes(problem, order) == obvious_peak(problem, order)


@MANY
@given(problem=problems(most_ops=8))
def test_the_search_finds_the_least_peak_of_all_orders(problem: OrderProblem) -> None:
    least = min(obvious_peak(problem, order) for order in every_order(problem))
    found = least_peak(problem)
    assert list(faults(problem, found.order)) == []
    assert (found.peak_bytes, found.bound_bytes) == (least, least)
    assert obvious_peak(problem, found.order) == least


@MANY
@given(problem=problems())
def test_without_steps_the_order_holds_and_the_bound_is_one(problem: OrderProblem) -> None:
    least = min(obvious_peak(problem, order) for order in every_order(problem))
    found = least_peak(problem, NO_STEPS)
    assert list(faults(problem, found.order)) == []
    assert found.bound_bytes <= least <= found.peak_bytes
    assert found.peak_bytes == obvious_peak(problem, found.order)
    assert found.peak_bytes <= peak_bytes(problem, range(len(problem.ops)))
    assert found.peak_bytes <= peak_bytes(problem, depth_first(problem))


@SOME
@given(problem=problems(most_ops=7), data=st.data())
def test_a_region_within_an_order_is_searched_as_if_it_were_alone(
    problem: OrderProblem, data: st.DataObject
) -> None:
    count = len(problem.ops)
    start = data.draw(st.integers(0, count - 1))
    end = data.draw(st.integers(start + 1, count))
    head, tail = tuple(range(start)), tuple(range(end, count))

    def region_peak(order: tuple[int, ...]) -> int:
        return max(obvious_bytes(problem, order)[start:end])

    alike = [o for o in every_order(problem) if o[:start] == head and o[end:] == tail]
    least = min(map(region_peak, alike))
    region = region_of(problem, range(count), start, end)
    floor = floor_bytes(region)
    outcome = search(region, floor, 10**9, 10**6)
    assert floor <= least
    assert outcome.bound_bytes == least
    assert outcome.order is not None
    inner = tuple(region.ops[number] for number in outcome.order)
    assert region_peak((*head, *inner, *tail)) == least


@SOME
@given(problem=problems())
def test_every_order_passes_through_the_cuts(problem: OrderProblem) -> None:
    stretches = list(cuts(problem, range(len(problem.ops))))
    for order in every_order(problem):
        for start, end in stretches:
            assert sorted(order[start:end]) == list(range(start, end))


@MANY
@given(problem=problems(idle=False), data=st.data())
def test_the_depth_first_order_depends_on_neither_names_nor_the_order_given(
    problem: OrderProblem, data: st.DataObject
) -> None:
    other = data.draw(st.sampled_from(list(every_order(problem))))
    called = data.draw(st.permutations([op.name for op in problem.ops]))
    rename = {op.name: name for op, name in zip(problem.ops, called, strict=True)}
    shuffled = tuple(problem.ops[number] for number in other)
    renamed = tuple(replace(op, name=rename[op.name]) for op in shuffled)
    found = names(problem, depth_first(problem))
    assert list(faults(problem, depth_first(problem))) == []
    again = replace(problem, ops=renamed)
    assert names(again, depth_first(again)) == [rename[name] for name in found]
