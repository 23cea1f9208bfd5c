import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mapping_cases import loops_for, nests, product_nest, setup_of, three_levels

from tilewright.errors import InputError
from tilewright.mapping.evaluate import Loops, evaluate_loops
from tilewright.mapping.text import HEADER, given_loops, mapping_text, read_mappings

LOOPS = Loops(
    (("C", 2), ("K", 3), ("D", 2)), (("O", (1, 2, 3)), ("I", (0, 2, 3)), ("W", (0, 1, 3)))
)
TEXT = """\
op product
nest D 2, K 3, C 2
unroll D1: -
loop  O      I     W
D 2   dram   dram  dram
K 3   sram   sram  dram
C 2   reg_O  sram  sram
"""


def test_a_mapping_reads_as_a_loop_nest() -> None:
    setup = setup_of(product_nest(2, 2, 3), three_levels())
    assert mapping_text("product", setup, LOOPS) == TEXT


@given(st.data())
def test_what_is_written_is_read_back_with_the_same_cost(data: st.DataObject) -> None:
    setup = setup_of(data.draw(nests()), three_levels(width=16))
    loops = data.draw(loops_for(setup))
    text = f"{HEADER}\n{mapping_text('an op: with a long/name', setup, loops)}"
    (found,) = read_mappings(text, "mappings.txt").values()
    assert found.unrolling == setup.spatial.unrolling
    again = given_loops(found, setup.nest, setup.hierarchy)
    before, after = evaluate_loops(setup, loops), evaluate_loops(setup, again)
    assert again == loops
    assert before.cycles[0] == after.cycles[0]
    assert before.energy_pj[0] == after.energy_pj[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nest D 2, K 3, C 2", "nest D 2 K 3", "cannot be read"),
        ("unroll D1: -", "spread D1: -", "expected the lines"),
        ("K 3   sram   sram  dram", "K 3   sram   sram", "expected a loop, its size and 3"),
        ("C 2   reg_O", "C two reg_O", "cannot be read"),
    ],
)
def test_a_broken_text_names_its_line(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_mappings(f"{HEADER}\n\n{TEXT.replace(old, new)}", "mappings.txt")
    assert caught.value.problems[0].line == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nest D 2", "nest D 4", "other loops"),
        ("reg_O  sram  sram", "reg_O  reg_O  sram", "do not serve it"),
        ("D 2   dram   dram", "D 2   sram   reg_I1", "an outer loop of I lies below"),
    ],
)
def test_a_mapping_of_something_else_is_refused(old: str, new: str, message: str) -> None:
    setup = setup_of(product_nest(2, 2, 3), three_levels())
    (found,) = read_mappings(TEXT.replace(old, new), "mappings.txt").values()
    with pytest.raises(ValueError, match=message):
        given_loops(found, setup.nest, setup.hierarchy)
