"""The order of compute ops: peaks by hand, the depth-first order, copies and cuts."""

import json
from itertools import permutations
from typing import Any

import pytest
from tests.order_graphs import every_order, graph, names
from tests.reference_data import ABSENT, REFERENCE_DATA

from tilewright.network.zoo import build
from tilewright.network.zoo import names as zoo_names
from tilewright.program.order import (
    OrderOp,
    OrderProblem,
    depth_first,
    faults,
    live_bytes,
    peak_bytes,
    sink_late,
    with_copies,
)
from tilewright.program.order_exact import search
from tilewright.program.order_network import problem_of
from tilewright.program.order_region import cuts, floor_bytes, region_of
from tilewright.program.order_search import OrderOptions, least_peak

CASES_FILE = REFERENCE_DATA / "oracle" / "vpux_cases.json"
NOTES_EDGES = ((1, 2), (2, 3), (3, 4), (5, 2), (6, 3), (7, 4))
NOTES_COPIES = (5, 6, 7)


def oracle(kind: str) -> dict[str, Any]:
    cases = json.loads(CASES_FILE.read_text("utf-8"))["cases"]
    return next(dict(case) for case in cases if case["kind"] == kind)


def just_in_time(
    edges: tuple[tuple[object, object], ...], copies: tuple[object, ...]
) -> list[object]:
    """The order of a graph some of whose nodes are copies, every node writing one byte."""
    nodes = sorted({node for edge in edges for node in edge}, key=str)
    compute = [node for node in nodes if node not in copies]
    reads = {n: [a for a, b in edges if b == n and a not in copies] for n in compute}
    text: list[str] = []
    while len(text) < len(compute):
        ready = [
            n
            for n in compute
            if not any(t.startswith(f"{n}<") for t in text)
            and all(any(t.startswith(f"{r}<") for t in text) for r in reads[n])
        ]
        text.append(f"{ready[0]}<{','.join(str(r) for r in reads[ready[0]])}")
    problem = graph(" ".join(text), {})
    by_name = {str(node): node for node in nodes}
    order = [by_name[name] for name in names(problem, depth_first(problem))]
    return list(with_copies(order, [(c, [b for a, b in edges if a == c]) for c in copies]))


def test_the_notes_graph_has_every_copy_just_before_its_layer() -> None:
    assert just_in_time(NOTES_EDGES, NOTES_COPIES) == [1, 5, 2, 6, 3, 7, 4]


def test_the_notes_graph_has_that_order_whatever_its_nodes_are_called() -> None:
    for called in list(permutations("gfedcba"))[::29]:
        name = dict(zip(range(1, 8), called, strict=True))
        edges = tuple((name[a], name[b]) for a, b in NOTES_EDGES)
        found = just_in_time(edges, tuple(name[c] for c in NOTES_COPIES))
        assert found == [name[node] for node in (1, 5, 2, 6, 3, 7, 4)]


@pytest.mark.skipif(not CASES_FILE.exists(), reason=ABSENT)
def test_the_case_of_weight_copies_holds() -> None:
    case = oracle("op_order")
    edges = tuple((a, b) for a, b in case["edges"])
    found = just_in_time(edges, tuple(case["copies"]))
    assert found == case["expect"]["just_in_time"]
    assert [n for n in found if n in case["compute"]] == case["expect"]["keep_compute_order"]


def test_the_notes_graph_has_48_orders() -> None:
    problem = graph("1< 5< 6< 7< 2<1,5 3<2,6 4<3,7", {})
    assert sum(1 for _ in every_order(problem)) == 48


@pytest.mark.skipif(not CASES_FILE.exists(), reason=ABSENT)
def test_the_case_of_the_short_branch_holds() -> None:
    case = oracle("op_order_sink")
    text = " ".join(f"{op}<{','.join(case['inputs'].get(op, []))}" for op in case["program"])
    problem = graph(text, {})
    number = {op.name: position for position, op in enumerate(problem.ops)}
    movable = [number[op] for op in case["movable"]]
    joins = [number[op] for op in case["join"]]
    given = range(len(problem.ops))
    assert names(problem, sink_late(problem, given, movable, joins)) == case["expect"]
    assert names(problem, depth_first(problem)) == case["expect"]


def test_a_join_moves_up_to_its_last_producer() -> None:
    problem = graph("a< b<a other<a join<a,b", {})
    order = sink_late(problem, range(4), movable=[3], joins=[3])
    assert names(problem, order) == ["a", "b", "join", "other"]


def test_bytes_alive_before_and_during_every_op() -> None:
    # b reads a (10) and writes 3; c reads a for the last time and writes 4; d joins them in 2.
    problem = graph("a< b<a c<a d<b,c", {"a": 10, "b": 3, "c": 4, "d": 2})
    assert list(live_bytes(problem, range(4))) == [(0, 10), (10, 13), (13, 17), (7, 9)]
    assert peak_bytes(problem, range(4)) == 17


def test_the_last_reader_writes_in_place_and_an_earlier_one_cannot() -> None:
    problem = graph("a< b<a c<a d<b,c", {"a": 4, "b": 4, "c": 4, "d": 4}, in_place="bcd")
    assert [during for _, during in live_bytes(problem, range(4))] == [4, 8, 8, 8]


def test_only_the_first_read_of_the_size_is_written_over() -> None:
    # sum reads b and c, both as large as itself; b is read again later, so c does not help.
    problem = graph("b< c< sum<b,c end<b,sum", {}, in_place=("sum",))
    assert [during for _, during in live_bytes(problem, range(4))] == [1, 2, 3, 3]


def test_inputs_count_until_their_last_use_and_outputs_to_the_end() -> None:
    problem = OrderProblem(
        ops=(
            OrderOp(name="first", reads=(0,), writes=(1, 2)),
            OrderOp(name="second", reads=(1,), writes=(3,)),
        ),
        sizes_bytes=(100, 10, 5, 1),
        inputs=(0,),
        outputs=(1, 3),
    )
    # Nothing reads tensor 2: it counts while its op runs and no longer. Tensor 1 is an output.
    assert list(live_bytes(problem, (0, 1))) == [(100, 115), (10, 11)]


@pytest.mark.parametrize(
    ("ops", "outputs", "message"),
    [
        ((OrderOp(name="a", reads=(1,), writes=(0,)),), (0,), "'a' reads tensor 1 before"),
        ((OrderOp(name="a", reads=(), writes=(0, 0)),), (0,), "every tensor must be"),
        (
            (OrderOp(name="a", reads=(), writes=(0,)), OrderOp(name="b", reads=(), writes=(0, 1))),
            (),
            "'b' writes tensor 0, which is there already",
        ),
        ((OrderOp(name="a", reads=(), writes=(0, 1)),), (2,), "an output is neither"),
    ],
)
def test_a_problem_that_makes_no_sense_is_refused(
    ops: tuple[OrderOp, ...], outputs: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        OrderProblem(ops=ops, sizes_bytes=(1, 1), inputs=(), outputs=outputs)


def test_the_branch_that_needs_more_and_leaves_less_runs_first() -> None:
    # Right first: 1 + 50, then 1 left beside 8 + 9; left first: 9 left beside 50 + 1 = 60.
    sizes = {"l": 8, "left": 9, "r": 50, "right": 1}
    problem = graph("l< left<l r< right<r join<left,right", sizes)
    assert names(problem, depth_first(problem)) == ["r", "right", "l", "left", "join"]
    assert peak_bytes(problem, depth_first(problem)) == 51
    assert peak_bytes(problem, range(5)) == 60


def test_an_op_that_nobody_needs_runs_once_it_can() -> None:
    problem = OrderProblem(
        ops=(
            OrderOp(name="a", reads=(), writes=(0,)),
            OrderOp(name="b", reads=(0,), writes=(1,)),
            OrderOp(name="c", reads=(1,), writes=(2,)),
            OrderOp(name="unused", reads=(0,), writes=(3,)),
        ),
        sizes_bytes=(9, 1, 1, 1),
        inputs=(),
        outputs=(2,),
    )
    assert names(problem, depth_first(problem)) == ["a", "unused", "b", "c"]


def test_faults_of_an_order_are_named() -> None:
    problem = graph("a< b<a", {})
    assert list(faults(problem, (0, 1))) == []
    assert list(faults(problem, (1, 0))) == ["op 'b' reads tensor 0 before it is made"]
    assert list(faults(problem, (0, 0))) == ["2 places for 2 ops that must each run once"]


def test_stretches_end_where_every_order_must_pass() -> None:
    # From a to d there are two branches, from d to e none, and f and g are free of each other.
    problem = graph("a< b<a c<a d<b,c e<d f<e g<e", {})
    assert list(cuts(problem, range(7))) == [(0, 1), (1, 4), (4, 5), (5, 7)]


def test_an_op_without_producers_keeps_a_stretch_open() -> None:
    problem = graph("a< b<a x< c<b,x", {})
    assert list(cuts(problem, range(4))) == [(0, 4)]


def test_the_floor_counts_what_no_order_can_avoid() -> None:
    # While c runs (8), a is alive for e and b is read: 4 + 2 + 8, whatever the order.
    problem = graph("a< b<a c<b d<c e<a,d", {"a": 4, "b": 2, "c": 8, "d": 1, "e": 1})
    assert floor_bytes(region_of(problem, range(5), 0, 5)) == 14


def test_what_is_outside_a_region_stays_alive_in_it() -> None:
    problem = graph("a< b< c<b d<c e<a,d", {"a": 100, "b": 2, "c": 3, "d": 4})
    region = region_of(problem, range(5), 2, 4)
    assert (region.start_bytes, region.end_bytes) == (102, 104)
    assert floor_bytes(region) == 107


def test_two_branches_of_a_fork_run_one_after_the_other() -> None:
    # Both branches widen to 8 and end in 1; one by one: input 1 + 8 + 8, and 1 for the first end.
    edges = "in< a1<in b1<in a2<a1 b2<b1 a3<a2 b3<b2 join<a3,b3"
    wide = dict.fromkeys(["a1", "a2", "b1", "b2"], 8)
    problem = graph(edges, wide)
    assert peak_bytes(problem, range(8)) == 24
    found = least_peak(problem)
    assert (found.peak_bytes, found.bound_bytes, found.proven) == (17, 17, True)


@pytest.mark.parametrize("first", ["slim", "wide"])
def test_an_op_that_frees_much_waits_if_it_needs_too_much_now(first: str) -> None:
    # Two inputs of 10. wide writes 9: 29 if first, else 11 + 9. slim writes 1: 21 if first. Both
    # leave less than they find, whichever is given first.
    wide = OrderOp(name="wide", reads=(0,), writes=(2,))
    slim = OrderOp(name="slim", reads=(1,), writes=(3,))
    problem = OrderProblem(
        ops=(slim, wide) if first == "slim" else (wide, slim),
        sizes_bytes=(10, 10, 9, 1),
        inputs=(0, 1),
        outputs=(2, 3),
    )
    outcome = search(region_of(problem, (0, 1), 0, 2), 0, 100, 100)
    assert outcome.order is not None
    assert names(problem, outcome.order) == ["slim", "wide"]
    assert outcome.bound_bytes == 21


def test_a_search_that_may_not_reach_the_least_peak_says_that_there_is_nothing_below() -> None:
    problem = graph("a< b<a c<a d<b,c", {})
    outcome = search(region_of(problem, range(4), 0, 4), 0, 3, 100)
    assert (outcome.order, outcome.bound_bytes) == (None, 3)


def test_without_a_budget_the_order_holds_and_the_gap_is_told() -> None:
    edges = "in< a1<in b1<in a2<a1 b2<b1 a3<a2 b3<b2 join<a3,b3"
    problem = graph(edges, dict.fromkeys(["a1", "a2", "b1", "b2"], 8))
    found = least_peak(problem, OrderOptions(steps=0, beam_steps=0, window_steps=0))
    assert list(faults(problem, found.order)) == []
    assert found.bound_bytes <= 17 <= found.peak_bytes <= 24


def test_a_problem_without_ops_has_no_peak() -> None:
    problem = OrderProblem(ops=(), sizes_bytes=(5,), inputs=(0,), outputs=(0,))
    assert depth_first(problem) == ()
    assert least_peak(problem).peak_bytes == 0


@pytest.mark.parametrize("name", zoo_names())
def test_a_network_of_the_zoo_gets_an_order_no_worse_than_its_own(name: str) -> None:
    problem = problem_of(build(name))
    given = peak_bytes(problem, range(len(problem.ops)))
    found = least_peak(problem)
    assert list(faults(problem, found.order)) == []
    assert list(faults(problem, depth_first(problem))) == []
    assert found.bound_bytes <= found.peak_bytes <= given
    assert found.proven
    assert found.peak_bytes <= peak_bytes(problem_of(build(name), in_place=False), found.order)


def test_constants_are_no_part_of_a_networks_problem() -> None:
    network = build("lenet5")
    problem = problem_of(network)
    moving = [t for t in network.tensors if t.role != "constant"]
    assert sum(problem.sizes_bytes) == sum(t.size_bytes for t in moving)
    by_kind = {op.kind: made.in_place for op, made in zip(network.ops, problem.ops, strict=True)}
    assert by_kind["relu"]
    assert not by_kind["conv"]
    assert not by_kind["max_pool"]


def test_of_orders_with_the_same_peak_that_with_fewer_bytes_alive_is_taken_if_asked() -> None:
    # 11 B in either order: b, q and d at the end. With b first, its 9 B wait for p and q.
    late = graph("a< b<a p<a q<p d<b,q", {"b": 9})
    assert names(late, least_peak(late).order) == ["a", "b", "p", "q", "d"]
    few_alive = least_peak(late, OrderOptions(few_alive=True))
    assert names(late, few_alive.order) == ["a", "p", "q", "b", "d"]
    assert few_alive.peak_bytes == least_peak(late).peak_bytes
