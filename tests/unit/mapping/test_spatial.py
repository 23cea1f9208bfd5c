"""Unrollings of small nests on small arrays, each worked out by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from tests.mapping_cases import CARRIERS, conv_nest, memory, product_nest

from tilewright.machine.load import load_machine
from tilewright.machine.model import Array, Core, Machine, Memory, Sharing
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.network import map_network
from tilewright.mapping.spatial import UnrollOptions, factor_limits, unrollings, violations
from tilewright.mapping.spatial_search import divisors, fillings
from tilewright.mapping.zigzag_order import zigzag_order
from tilewright.network.load import load_network

FREE = UnrollOptions()
MIXED = UnrollOptions(mixed=True)


def outer(dims: Mapping[str, int]) -> Memory:
    """A memory above the registers: too far away to limit anything."""
    return replace(memory("outer", ["I1", "I2", "O"], width=1 << 20), served_dims=tuple(dims))


def register(
    operand: str, dims: Sequence[str] = (), *, bits: int = 1 << 20, width: int = 1 << 20
) -> Memory:
    made = memory(f"register_{operand}", [operand], bits=bits, width=width)
    return replace(made, served_dims=tuple(dims))


def hierarchy(nest: LoopNest, dims: Mapping[str, int], *registers: Memory) -> Hierarchy:
    """The registers, one of its own for each other operand, and a memory above them all."""
    given = [operand for made in registers for operand in made.operands]
    rest = [register(operand) for operand in CARRIERS.values() if operand not in given]
    array = Array(dims=tuple(dims.items()), mac_pj=1.0)
    core = Core(name="core", array=array, memories=(*registers, *rest, outer(dims)))
    links = {o.letter: CARRIERS[o.letter] for o in nest.operands}
    return hierarchy_of(Machine(name="test", cores=(core,)), core, links)


def unroll(**dims: dict[str, int]) -> Constraint:
    spatial = tuple((dim, tuple(loops.items())) for dim, loops in dims.items())
    return Constraint(name="default", spatial=spatial)


def hint(**dims: str) -> Constraint:
    return Constraint(
        name="default", hints=tuple((dim, tuple(t.split())) for dim, t in dims.items())
    )


def found(
    nest: LoopNest,
    where: Hierarchy,
    constraint: Constraint | None,
    options: UnrollOptions = FREE,
) -> list[list[dict[str, int]]]:
    """Candidates as a dict of factors per array dim."""
    candidates = unrollings(nest, where, constraint, options)
    for candidate in candidates:
        assert [*violations(nest, where, candidate)] == []
    return [[dict(pairs) for _, pairs in candidate] for candidate in candidates]


def test_a_factor_is_at_most_the_array_and_the_loop() -> None:
    # K = 1000 over 32 units asks for 64: 32, although 32 does not divide 1000. C has 3 iterations.
    nest = product_nest(1, 3, 1000)
    where = hierarchy(nest, {"D1": 32, "D2": 16})
    given = unroll(D1={"K": 64}, D2={"C": 16})
    assert found(nest, where, given) == [[{"K": 32}, {"C": 3}]]


def test_a_port_feeds_so_many_elements_in_a_cycle() -> None:
    # 64 bits of 8-bit weights along D1: 8 different ones. D broadcasts a weight: 32 stay.
    nest = product_nest(64, 64, 64)
    where = hierarchy(nest, {"D1": 32}, register("I2", ["D1"], width=64))
    assert found(nest, where, unroll(D1={"K": 32})) == [[{"K": 8}]]
    assert found(nest, where, unroll(D1={"D": 32})) == [[{"D": 32}]]


def test_a_result_port_counts_partial_sums() -> None:
    # 64 bits of 16-bit partial sums: 4 of them. C sums into one result: no limit.
    nest = product_nest(64, 64, 64)
    where = hierarchy(nest, {"D1": 32}, register("O", ["D1"], width=64))
    limits = factor_limits(nest, where)
    assert limits == {"D1": {"D": 4, "K": 4, "C": 32}}


def test_a_port_limits_only_array_dims_that_its_memory_serves() -> None:
    nest = product_nest(64, 64, 64)
    where = hierarchy(nest, {"D1": 32, "D2": 16}, register("I2", ["D2"], width=64))
    limits = factor_limits(nest, where)
    assert (limits["D1"]["K"], limits["D2"]["K"]) == (32, 8)


def test_a_memory_above_another_does_not_limit() -> None:
    # The shared memory is the lowest of I but lies above the register of O: as in ZigZag, its port
    # (8 bits: one element of I) does not count.
    nest = product_nest(64, 64, 64)
    shared = replace(memory("shared", ["I1", "O"], width=8), served_dims=("D1",))
    where = hierarchy(nest, {"D1": 32}, register("O"), shared)
    assert found(nest, where, unroll(D1={"C": 32})) == [[{"C": 32}]]


def test_an_operand_without_bits_limits_nothing() -> None:
    nest = product_nest(64, 64, 64)
    weightless = replace(
        nest, operands=tuple(replace(o, bits=o.bits * (o.letter != "W")) for o in nest.operands)
    )
    tiny = register("I2", ["D1"], bits=8, width=8)
    assert found(weightless, hierarchy(weightless, {"D1": 32}, tiny), unroll(D1={"K": 32})) == [
        [{"K": 32}]
    ]


def test_loops_that_the_nest_does_not_have_are_dropped() -> None:
    nest = product_nest(4, 4, 4)
    where = hierarchy(nest, {"D1": 4, "D2": 4})
    given = unroll(D1={"G": 4, "K": 2}, D2={"FX": 3}, D7={"K": 2})
    assert found(nest, where, given) == [[{"K": 2}, {}]]


def test_an_over_full_array_dim_loses_loops_in_zigzags_order() -> None:
    # 4 x 4 x 2 = 32 > 8: ZigZag meets {C, D, K} as K, D, C. Without K it is 8.
    nest = product_nest(8, 8, 8)
    where = hierarchy(nest, {"D1": 8})
    assert zigzag_order(["C", "D", "K"], "loop") == ("K", "D", "C")
    assert found(nest, where, unroll(D1={"C": 4, "D": 2, "K": 4})) == [[{"C": 4, "D": 2}]]


def test_an_over_unrolled_loop_is_dropped_from_the_first_array_dim() -> None:
    # 8 x 8 = 64 > 16 iterations of K.
    nest = product_nest(8, 8, 16)
    where = hierarchy(nest, {"D1": 8, "D2": 8})
    given = unroll(D1={"K": 8}, D2={"K": 8})
    assert found(nest, where, given) == [[{}, {"K": 8}]]


def test_a_hinted_loop_is_unrolled_by_divisors_of_its_limit() -> None:
    # min(12, 8) = 8 has the divisors 8, 4, 2 and 1; with one loop the score is the factor itself.
    nest = product_nest(1, 1, 12)
    where = hierarchy(nest, {"D1": 8})
    four = UnrollOptions(limit=4)
    assert found(nest, where, hint(D1="K")) == [[{"K": 8}], [{"K": 4}], [{"K": 2}]]
    assert found(nest, where, hint(D1="K"), four)[-1] == [{"K": 1}]
    assert found(nest, where, hint(D1="K"), UnrollOptions(limit=1)) == [[{"K": 8}]]


def test_without_a_usable_hint_every_loop_is_tried() -> None:
    # 7 of D beat 5 of K and 4 of C.
    nest = product_nest(7, 4, 5)
    where = hierarchy(nest, {"D1": 8})
    best = [[{"D": 7}], [{"K": 5}], [{"C": 4}]]
    assert found(nest, where, None) == best
    assert found(nest, where, hint(D1="OX G")) == best
    assert found(nest, where, hint(D2="K")) == best


def test_of_two_loops_the_mixture_uses_more_units() -> None:
    # 3 x 2 = 6 units score 6 + 6/3 - 1 = 7; one loop alone scores its 3 or 2 units.
    nest = product_nest(1, 3, 2)
    where = hierarchy(nest, {"D1": 8})
    assert found(nest, where, hint(D1="C K"), MIXED)[0] == [{"K": 2, "C": 3}]
    assert found(nest, where, hint(D1="C K"))[0] == [{"C": 3}]


def test_mixtures_of_a_kernel_with_channels() -> None:
    # C = 32 and a kernel of 3 on 128 rows: 3 x 32 = 96 units score 96 + 96/32 - 1 = 98; C = 32 on
    # its own scores 32. ZigZag meets {C, FX, FY} as FX, C, FY.
    nest = conv_nest({"B": 1, "K": 8, "C": 32, "OX": 8, "FX": 3})
    where = hierarchy(nest, {"D1": 128})
    assert found(nest, where, hint(D1="C FX FY"), MIXED)[:2] == [
        [{"FX": 3, "C": 32}],
        [{"FX": 3, "C": 16}],  # 48 + 3 - 1 = 50
    ]


def test_different_loops_on_the_array_dims_score_higher() -> None:
    # 4 x 4 units each time. K and C: 16 + 16/4 - 1 = 19, in either place; K twice: 16 + 1 - 1 = 16.
    # Of equals the one found first: ZigZag meets K before C.
    nest = product_nest(1, 4, 16)
    where = hierarchy(nest, {"D1": 4, "D2": 4})
    assert found(nest, where, None) == [
        [{"K": 4}, {"C": 4}],
        [{"C": 4}, {"K": 4}],
        [{"K": 4}, {"K": 4}],
    ]


def test_given_array_dims_stay_and_count() -> None:
    # 8 of K's 16 iterations are taken on D1, so that only 2 are left for D2.
    nest = product_nest(1, 1, 16)
    where = hierarchy(nest, {"D1": 8, "D2": 8})
    given = replace(unroll(D1={"K": 8}), hints=(("D2", ("K",)), ("D1", ("C",))))
    assert found(nest, where, given) == [[{"K": 8}, {"K": 2}], [{"K": 8}, {"K": 1}]]


def test_a_port_narrower_than_an_element_leaves_one_unit() -> None:
    # 4 bits of 8-bit inputs: no whole element in a cycle, yet the nest runs.
    nest = product_nest(4, 4, 4)
    where = hierarchy(nest, {"D1": 4}, register("I1", ["D1"], width=4))
    assert found(nest, where, unroll(D1={"C": 4})) == [[{"C": 1}]]
    assert found(nest, where, hint(D1="C")) == [[{"C": 1}]]
    # K broadcasts an input and is free.
    assert found(nest, where, None)[0] == [{"K": 4}]


def test_capacity_shrinks_the_largest_factor_first() -> None:
    # 8 inputs fit; 5 x 3 = 15 are needed. ZigZag meets D before C: (3, 5) (3, 4) (3, 3) (2, 3).
    nest = product_nest(8, 8, 8)
    holds = register("I1", ["D1", "D2"], bits=64)
    where = hierarchy(nest, {"D1": 8, "D2": 8}, holds)
    assert found(nest, where, unroll(D1={"C": 5}, D2={"D": 3})) == [[{"C": 3}, {"D": 2}]]


def test_equal_factors_shrink_one_by_one() -> None:
    # (4, 4) (3, 4) (3, 3) (2, 3): 6 fit. ZigZag gives both 3, and cannot map 9 units on a memory of
    # 8 elements.
    nest = product_nest(8, 8, 8)
    holds = register("I1", ["D1", "D2"], bits=64)
    where = hierarchy(nest, {"D1": 8, "D2": 8}, holds)
    assert found(nest, where, unroll(D1={"C": 4}, D2={"D": 4})) == [[{"C": 3}, {"D": 2}]]


@pytest.mark.parametrize("bits", [1, 3, 4, 8])
def test_weights_of_few_bits_can_be_mapped_where_two_dims_share_a_register(bits: int) -> None:
    # A register of 1 B serves two array dims: two weights of 4 bits fit, four of them do not.
    mapped = map_network(load_network("lenet5", bits=bits), load_machine("npu_37xx"))
    assert all(op.mapped is not None for op in mapped.ops if op.name.startswith("fc"))


def test_capacity_does_not_shrink_broadcast_loops() -> None:
    nest = product_nest(8, 8, 8)
    where = hierarchy(nest, {"D1": 8, "D2": 8}, register("I1", ["D1", "D2"], bits=16))
    assert found(nest, where, unroll(D1={"K": 8}, D2={"C": 8})) == [[{"K": 8}, {"C": 2}]]


def test_a_memory_smaller_than_an_element_leaves_one_unit() -> None:
    nest = product_nest(8, 8, 8)
    where = hierarchy(nest, {"D1": 8}, register("I1", ["D1"], bits=4))
    assert found(nest, where, unroll(D1={"C": 8})) == [[{"C": 1}]]


def diagonal(elements: int, width: int) -> Hierarchy:
    """Inputs shared along the diagonals of 8 x 8 units."""
    sharing = (Sharing(operand="I1", terms=(("D1", 1), ("D2", 1))),)
    inputs = register("I1", ["D1", "D2"], bits=8 * elements, width=width)
    nest = conv_nest({"B": 1, "K": 1, "C": 1, "OX": 8, "FX": 8})
    return hierarchy(nest, {"D1": 8, "D2": 8}, replace(inputs, sharing=sharing))


def test_units_that_share_an_element_need_it_once() -> None:
    # 8 outputs x 8 taps touch 8 + 8 - 1 = 15 inputs, not 64.
    nest = conv_nest({"B": 1, "K": 1, "C": 1, "OX": 8, "FX": 8})
    given = unroll(D1={"OX": 8}, D2={"FX": 8})
    assert found(nest, diagonal(15, 15 * 8), given) == [[{"OX": 8}, {"FX": 8}]]
    unshared = hierarchy(nest, {"D1": 8, "D2": 8}, register("I1", ["D1", "D2"], bits=15 * 8))
    assert found(nest, unshared, given) != [[{"OX": 8}, {"FX": 8}]]


@pytest.mark.parametrize(("elements", "width"), [(10, 15 * 8), (15, 10 * 8)])
def test_sharing_shrinks_to_what_port_and_memory_have(elements: int, width: int) -> None:
    # From 8 + 8 - 1 = 15 down to 10 = 5 + 6 - 1, the larger factor first.
    nest = conv_nest({"B": 1, "K": 1, "C": 1, "OX": 8, "FX": 8})
    ((first, second),) = found(nest, diagonal(elements, width), unroll(D1={"OX": 8}, D2={"FX": 8}))
    assert sorted([first["OX"], second["FX"]]) == [5, 6]


def test_a_nest_without_loops_unrolls_nothing() -> None:
    nest = replace(product_nest(1, 1, 1), dims=())
    assert found(nest, hierarchy(nest, {"D1": 4}), None) == [[{}]]


def test_the_checker_sees_what_is_wrong() -> None:
    nest = product_nest(4, 4, 64)
    where = hierarchy(nest, {"D1": 8, "D2": 8}, register("I2", ["D1"], width=32))
    wrong = (("D1", (("K", 8), ("C", 2))), ("D2", (("D", 8), ("G", 1))))
    assert [*violations(nest, where, wrong)] == [
        "D1 has 8 units, 16 are used",
        "D2 unrolls G by 1",
        "D has 4 iterations, 8 are unrolled",
        "register_I2 cannot feed 8 W along D1 at once",
    ]
    assert [*violations(nest, where, wrong[:1])] == ["array dims ['D1'] are not ['D1', 'D2']"]


def test_divisors_ascend() -> None:
    assert divisors(12) == (1, 2, 3, 4, 6, 12)
    assert divisors(16) == (1, 2, 4, 8, 16)
    assert (divisors(1), divisors(0)) == ((1,), ())


def test_fillings_come_in_zigzags_order() -> None:
    # Single loops with large factors first, then pairs with small factors first, within 6 units.
    ways = fillings(["A", "B"], {"A": 4, "B": 3}, 6, mixed=True)
    assert [dict(way) for way in ways] == [
        *({"A": factor} for factor in (4, 2, 1)),
        *({"B": factor} for factor in (3, 1)),
        {"A": 2, "B": 3},
    ]


@pytest.mark.parametrize(
    ("names", "order"),
    [
        ("B K G OX OY C FX FY", "FY FX B G OX C K OY"),
        ("B K C OY OX FY FX", "FY FX B OX C K OY"),
        ("C D K", "K D C"),
        ("C D K B", "K B D C"),
        ("C D K B H", "B H D C K"),
        ("C FX FY", "FX C FY"),
        ("OX OY", "OY OX"),
        ("K OX", "K OX"),
    ],
)
def test_sets_are_met_as_zigzag_meets_them(names: str, order: str) -> None:
    # Seen in ZigZag 3.9.1 on CPython 3.11.
    assert zigzag_order(names.split(), "loop") == tuple(order.split())
