"""What units get together: elements that are read once, in numbers worked out by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mapping_cases import CARRIERS, conv_nest, memory

from tilewright.machine.model import Array, Core, Machine, Memory, Sharing
from tilewright.mapping.attach import attach
from tilewright.mapping.evaluate import Cost, Loops, Setup, cost_of, evaluate_loops
from tilewright.mapping.hierarchy import hierarchy_of
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.wires import clash, misfits

pytestmark = pytest.mark.usefixtures("both_evaluations")

UNION = Sharing(operand="I1", is_union=True)
DIMS = ("D1", "D2")


def wires(first: int, second: int) -> Sharing:
    return Sharing(operand="I1", terms=(("D1", first), ("D2", second)))


def nest_with(*, stride: int = 1, **sizes: int) -> LoopNest:
    return conv_nest({"B": 1, "K": 1, "C": 1, "OX": 1, "FX": 1} | sizes, stride=stride)


def core_with(*memories: Memory) -> Machine:
    array = Array(dims=(("D1", 8), ("D2", 8)), mac_pj=0.0)
    return Machine(name="test", cores=(Core(name="core", array=array, memories=memories),))


def over_all(name: str, operands: Sequence[str], width: int = 8) -> Memory:
    return replace(memory(name, operands, width=width, pj=float(width)), served_dims=DIMS)


def setup_with(
    nest: LoopNest,
    unroll: Mapping[str, tuple[str, int]],
    *memories: Memory,
    as_zigzag: bool = False,
) -> Setup:
    machine = core_with(*memories)
    hierarchy = hierarchy_of(machine, machine.cores[0], CARRIERS, as_zigzag=as_zigzag)
    unrolling = tuple((dim, (unroll[dim],) if dim in unroll else ()) for dim in DIMS)
    return Setup(nest, hierarchy, attach(nest, hierarchy, unrolling))


def cost_with(setup: Setup) -> Cost:
    """The cost with all loops in the lowest memories."""
    order = setup.spatial.temporal or (("B", 1),)
    ends = tuple((x, (len(order),) * len(c)) for x, c in setup.hierarchy.chains.items())
    return cost_of(evaluate_loops(setup, Loops(order, ends)))


def bits(cost: Cost, memory_name: str, direction: str) -> int:
    return sum(
        x.bits
        for x in cost.links
        if (x.memory, x.direction, x.letter) == (memory_name, direction, "I")
    )


def inputs_a_step(
    nest: LoopNest, unroll: Mapping[str, tuple[str, int]], sharing: Sharing | None, **how: bool
) -> int:
    """Elements that 8 x 8 units take from one memory in the only step of a nest."""
    data = replace(over_all("data", ["I1"]), sharing=(sharing,) if sharing else ())
    setup = setup_with(nest, unroll, data, over_all("rest", ["I2", "O"]), **how)
    assert not setup.spatial.temporal
    return bits(cost_with(setup), "data", "tl") // 8


OX_FX = {"D1": ("OX", 8), "D2": ("FX", 5)}


@pytest.mark.parametrize(
    ("sharing", "stride", "elements"),
    [
        # 8 outputs with windows of 5 touch 8 + 5 - 1 = 12 inputs; each unit by itself, 8 * 5.
        (wires(1, 1), 1, 12),
        (UNION, 1, 12),
        (None, 1, 40),
        # Two apart: 2 * 7 + 4 + 1 = 19, if the wires are made for that.
        (wires(2, 1), 2, 19),
        (UNION, 2, 19),
        (None, 2, 40),
        # Units (1, 0) and (0, 1) hang on one wire and want inputs 2 and 1.
        (wires(1, 1), 2, 40),
        # Units (1, 0) and (0, 1) want input 1 and hang on wires 2 and 1.
        (wires(2, 1), 1, 40),
    ],
)
def test_a_window_is_read_once_over_wires_and_by_each_unit_without(
    sharing: Sharing | None, stride: int, elements: int
) -> None:
    nest = nest_with(OX=8, FX=5, stride=stride)
    assert inputs_a_step(nest, OX_FX, sharing) == elements


def test_8_taps_of_8_outputs_touch_15_inputs() -> None:
    nest = nest_with(OX=8, FX=8)
    unroll = {"D1": ("FX", 8), "D2": ("OX", 8)}
    assert inputs_a_step(nest, unroll, wires(1, 1)) == 15
    assert inputs_a_step(nest, unroll, None) == 64


def test_zigzags_model_counts_the_union_whatever_the_machine_says() -> None:
    nest = nest_with(OX=8, FX=5)
    for sharing in (None, wires(1, 1), wires(3, 1)):
        assert inputs_a_step(nest, OX_FX, sharing, as_zigzag=True) == 12


def test_units_want_the_same_along_loops_that_an_operand_does_not_depend_on() -> None:
    # K does not move the input: its 8 units are fed together, on diagonal wires or not.
    nest = nest_with(OX=8, K=8)
    for sharing in (None, UNION, wires(1, 1)):
        assert inputs_a_step(nest, {"D1": ("OX", 8), "D2": ("K", 8)}, sharing) == 8


def test_channels_are_elements_of_their_own() -> None:
    nest = nest_with(OX=8, C=4)
    for sharing in (None, UNION, wires(1, 1)):
        assert inputs_a_step(nest, {"D1": ("OX", 8), "D2": ("C", 4)}, sharing) == 32


def test_a_port_that_is_too_narrow_for_every_unit_is_wide_enough_for_wires() -> None:
    # 30 steps, each with other inputs. 40 inputs are 320 bits, 3 cycles of a port of 120; 12 are 96
    # bits, one cycle. The first load is no stall: 2 * 29 cycles.
    nest = nest_with(OX=8, FX=5, C=30)
    rest = over_all("rest", ["I2", "O"], 1 << 12)
    cycles = {}
    for sharing in (wires(1, 1), None):
        data = replace(over_all("data", ["I1"], 120), sharing=(sharing,) if sharing else ())
        cost = cost_with(setup_with(nest, OX_FX, data, rest))
        cycles[sharing] = (cost.compute_cycles, cost.stall_cycles)
    assert cycles == {wires(1, 1): (30, 0), None: (30, 58)}


@pytest.mark.parametrize("at", ["register", "data"])
@pytest.mark.parametrize(("sharing", "reads"), [(wires(1, 1), 12), (UNION, 12), (None, 40)])
def test_registers_of_units_are_filled_over_the_wires(
    at: str, sharing: Sharing | None, reads: int
) -> None:
    # One fill: 12 inputs are read above and 40 registers written, or all 40 are read.
    said = (sharing,) if sharing else ()
    register = replace(memory("register", ["I1"]), served_dims=())
    data, rest = over_all("data", ["I1"]), over_all("rest", ["I2", "O"])
    if at == "register":
        register = replace(register, sharing=said)
    else:
        data = replace(data, sharing=said)
    cost = cost_with(setup_with(nest_with(OX=8, FX=5), OX_FX, register, data, rest))
    assert bits(cost, "data", "tl") == 8 * reads
    assert bits(cost, "register", "fh") == bits(cost, "register", "tl") == 8 * 40
    # Energy: a read above costs 8 for 8 bits, so one a bit.
    (above,) = (x.energy_pj for x in cost.links if (x.memory, x.letter) == ("data", "I"))
    assert above == 8 * reads


@pytest.mark.parametrize(("sharing", "reads"), [(wires(1, 1), 12), (None, 40)])
def test_wires_reach_through_a_memory_that_serves_some_dims(
    sharing: Sharing | None, reads: int
) -> None:
    # A row buffer for each place along D1 holds a window of 5; the windows of 8 overlap.
    rows = replace(
        memory("rows", ["I1"]), served_dims=("D2",), sharing=(sharing,) if sharing else ()
    )
    above = (over_all("data", ["I1"]), over_all("rest", ["I2", "O"]))
    cost = cost_with(setup_with(nest_with(OX=8, FX=5), OX_FX, rows, *above))
    assert bits(cost, "data", "tl") == 8 * reads
    assert bits(cost, "rows", "fh") == bits(cost, "rows", "tl") == 8 * 40


def test_wires_along_one_dim_do_not_join_windows_along_another() -> None:
    # Wires along D2 alone: units of one row of D1 by themselves, 8 * 5.
    along = Sharing(operand="I1", terms=(("D2", 1),))
    assert inputs_a_step(nest_with(OX=8, FX=5), OX_FX, along) == 40


def test_results_that_overlap_are_written_once_over_wires_and_by_each_unit_without() -> None:
    # A result that is scattered: inputs IX 4 on D1, taps FX 3 on D2 add into 4 + 3 - 1 = 6 results.
    given = nest_with(OX=4, FX=3)
    result, weights, data = given.operands
    nest = replace(
        given,
        dims=(("B", 1), ("K", 1), ("C", 1), ("IX", 4), ("FX", 3)),
        operands=(
            replace(result, axes=("B", "K", "OX")),
            weights,
            replace(data, axes=("B", "C", "IX")),
        ),
        relations=(replace(given.relations[0], target="OX", terms=(("IX", 1), ("FX", 1))),),
    )
    unroll = {"D1": ("IX", 4), "D2": ("FX", 3)}
    written = {}
    for sharing in (Sharing(operand="O", terms=(("D1", 1), ("D2", 1))), None):
        sums = replace(over_all("sums", ["O"]), sharing=(sharing,) if sharing else ())
        cost = cost_with(setup_with(nest, unroll, over_all("rest", ["I1", "I2"]), sums))
        written[sharing] = sum(x.bits for x in cost.links if x.direction == "fl")
    assert sorted(written.values()) == [6 * 8, 12 * 8]


def test_a_mapping_that_cannot_use_wires_is_told_which_units_differ() -> None:
    data = replace(over_all("data", ["I1"]), sharing=(wires(1, 1),))
    rest = over_all("rest", ["I2", "O"])
    setup = setup_with(nest_with(OX=8, C=4), {"D1": ("OX", 8), "D2": ("C", 4)}, data, rest)
    factors = {("D1", "OX"): 8.0, ("D2", "C"): 4.0}
    ((letter, way, reason),) = misfits(setup.nest, setup.hierarchy, factors)
    assert (letter, str(way)) == ("I", "D1 + D2")
    assert reason == "units (D1 0, D2 1) and (D1 1, D2 0) on one wire want different elements"
    setup = setup_with(nest_with(OX=8, FX=5), OX_FX, data, rest)
    assert [*misfits(setup.nest, setup.hierarchy, {("D1", "OX"): 8.0, ("D2", "FX"): 5.0})] == []


Axes = tuple[tuple[tuple[str, int], ...], ...]
LOOPS = ("OX", "FX", "OY", "C")


@st.composite
def unrolled(draw: st.DrawFn) -> tuple[tuple[tuple[str, tuple[tuple[str, int], ...]], ...], Axes]:
    """Loops along two or three array dims, and an index with a window."""
    dims = draw(st.sampled_from([("D1", "D2"), ("D1", "D2", "D3")]))
    pairs = st.tuples(st.sampled_from((*LOOPS, "K")), st.integers(2, 4))
    places = tuple(
        (dim, tuple(draw(st.lists(pairs, min_size=1, max_size=2, unique_by=lambda p: p[0]))))
        for dim in dims
    )
    stride = draw(st.integers(1, 3))
    return places, ((("OX", stride), ("FX", 1)), (("OY", 1),), (("C", 1),))


@given(unrolled(), st.tuples(*[st.integers(0, 4)] * 3))
def test_wires_serve_what_counting_says(
    drawn: tuple[tuple[tuple[str, tuple[tuple[str, int], ...]], ...], Axes],
    factors: tuple[int, int, int],
) -> None:
    places, axes = drawn
    terms = tuple(zip(("D1", "D2", "D3"), factors, strict=True))
    wants: dict[int, set[tuple[int, ...]]] = {}
    digits = [[range(f) for _, f in reversed(pairs)] for _, pairs in places]
    for unit in product(*(range(len(list(product(*d)))) for d in digits)):
        loops: dict[str, int] = {}
        step: dict[str, int] = {}
        for at, (_, pairs) in zip(unit, places, strict=True):
            for loop, size in pairs:
                loops[loop] = loops.get(loop, 0) + at % size * step.get(loop, 1)
                step[loop] = step.get(loop, 1) * size
                at //= size
        wire = sum(dict(terms)[dim] * at for (dim, _), at in zip(places, unit, strict=True))
        element = tuple(sum(f * loops.get(loop, 0) for loop, f in axis) for axis in axes)
        wants.setdefault(wire, set()).add(element)
    elements = set.union(*wants.values())
    fits = all(len(wanted) == 1 for wanted in wants.values()) and len(elements) == len(wants)
    assert (clash(terms, places, axes) is None) == fits
