from dataclasses import replace

import pytest
from tests.mapping_cases import CARRIERS, conv_nest, machine, memory, product_nest

from tilewright.machine.model import Array, Machine
from tilewright.mapping.attach import Unrolling, attach
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of, partial_sum_bits
from tilewright.mapping.nest import LoopNest, window_elements


def hierarchy(where: Machine, nest: LoopNest) -> Hierarchy:
    links = {o.letter: CARRIERS[o.letter] for o in nest.operands}
    return hierarchy_of(where, where.cores[0], links)


def grid(sizes: dict[str, int], *, systolic: tuple[str, ...] = ()) -> Machine:
    """Registers of O over D1 only, everything else in one memory over all dims."""
    register = replace(memory("register", ["O"]), served_dims=("D1",))
    outer = replace(memory("outer", ["I1", "I2", "O"]), served_dims=tuple(sizes))
    base = machine(register, outer)
    array = Array(dims=tuple(sizes.items()), mac_pj=1.0, systolic_dims=systolic)
    return replace(base, cores=(replace(base.cores[0], array=array),))


def test_loops_go_below_the_first_memory_that_serves_their_dim() -> None:
    nest = product_nest(4, 8, 8)
    unrolling: Unrolling = (("D1", (("C", 2),)), ("D2", (("K", 4),)))
    spatial = attach(nest, hierarchy(grid({"D1": 2, "D2": 4}), nest), unrolling)
    # O: register serves D1, outer serves D2; I and W have only the outer memory.
    assert spatial.fractional["O"] == ((("C", 2.0),), (("K", 4.0),), ())
    assert spatial.fractional["I"] == ((("C", 2.0), ("K", 4.0)), ())
    assert dict(spatial.temporal) == {"D": 4, "K": 2, "C": 4}


def test_an_unrolling_that_does_not_divide_is_fractional() -> None:
    # 1000 columns on 32 units: 32 passes of 31.25 units on average, 31 whole ones.
    nest = product_nest(1, 1, 1000)
    spatial = attach(nest, hierarchy(machine(memory("m", ["I1", "I2", "O"]), units=32), nest),
                     (("D1", (("K", 32),)),))  # fmt: skip
    assert spatial.fractional["W"][0] == (("K", 31.25),)
    assert spatial.whole["W"][0] == (("K", 31.0),)
    assert dict(spatial.temporal) == {"K": 32}


def test_round_off_adds_a_pass_only_if_asked_for() -> None:
    # 75 on 12 lanes is 7 passes of 75/7 lanes; 75 / (75/7) is a little more than 7 in floats.
    nest = product_nest(1, 1, 75)
    where = hierarchy(machine(memory("m", ["I1", "I2", "O"]), units=12), nest)
    unrolling: Unrolling = (("D1", (("K", 12),)),)
    assert dict(attach(nest, where, unrolling).temporal) == {"K": 7}
    assert dict(attach(nest, where, unrolling, round_off=True).temporal) == {"K": 8}


def test_one_loop_on_two_dims_multiplies() -> None:
    nest = product_nest(1, 1, 64)
    unrolling: Unrolling = (("D1", (("K", 2),)), ("D2", (("K", 8),)))
    spatial = attach(nest, hierarchy(grid({"D1": 2, "D2": 8}), nest), unrolling)
    assert spatial.fractional["W"] == ((("K", 16.0),), ())
    assert dict(spatial.temporal) == {"K": 4}


def test_a_systolic_dim_takes_cycles_to_drain() -> None:
    nest = product_nest(1, 8, 64)
    unrolling: Unrolling = (("D1", (("C", 2),)), ("D2", (("K", 8),)))
    where = hierarchy(grid({"D1": 2, "D2": 8}, systolic=("D1", "D2")), nest)
    assert attach(nest, where, unrolling).drain_cycles == (2 - 1) + (8 - 1)


@pytest.mark.parametrize(("outputs", "taps", "elements"), [(4, 3, 9), (2, 1, 2), (112, 7, 229)])
def test_a_strided_window_counts_each_element_once(outputs: int, taps: int, elements: int) -> None:
    # Stride 2: 2 (outputs - 1) + taps elements, less the gaps that a kernel of 1 leaves.
    sizes = {"B": 1, "K": 1, "C": 1, "OX": outputs, "FX": taps}
    (relation,) = conv_nest(sizes, stride=2).relations
    touched = {2 * o + f for o in range(outputs) for f in range(taps)}
    assert window_elements(relation, outputs, taps) == len(touched) == elements


def test_partial_sums_are_as_wide_as_the_register_takes() -> None:
    register = replace(memory("register", ["O"], bits=24, width=24), role="local")
    narrow = machine(register, memory("m", ["I1", "I2", "O"]))
    assert partial_sum_bits(narrow, narrow.cores[0], 32) == 24
    assert partial_sum_bits(narrow, narrow.cores[0], 16) == 16
    wide = machine(memory("m", ["I1", "I2", "O"]))
    assert partial_sum_bits(wide, wide.cores[0], 32) == 32
    core = wide.cores[0]
    stated = replace(core, array=replace(core.array, accumulator_bits=20))
    assert partial_sum_bits(wide, stated, 32) == 20


def test_sums_are_no_narrower_in_a_small_scratchpad() -> None:
    """What a file calls a scratchpad is none of the array's registers, however small it is."""
    pad = memory("pad", ["I1", "I2", "O"], bits=8 * 64, width=8)
    small = machine(replace(pad, role="scratchpad"))
    assert partial_sum_bits(small, small.cores[0], 32) == 32
