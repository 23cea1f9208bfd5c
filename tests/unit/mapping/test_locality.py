"""Layers are 4 x 8 by 8 x 8 products: I 256 bits, W 512 bits, O 4 x 8 x 16 = 512 bits each."""

import json
from dataclasses import replace

import pytest
from tests.mapping_cases import machine, memory

from tilewright.document import parse_document
from tilewright.errors import InfeasibleError, InputError
from tilewright.machine.model import Machine
from tilewright.mapping.constraints import Constraint
from tilewright.mapping.locality import Tops, resident_tops
from tilewright.mapping.network import MapOptions, map_network
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.network.zigzag_reader import read_zigzag

ALL = ("I1", "I2", "O")
INPUT, WEIGHTS, OUTPUT = 256, 512, 512


def layer(number: int, source: int, *, kind: str = "Gemm", other: int | None = None) -> object:
    product = kind == "Gemm"
    return {
        "id": number,
        "operator_type": kind,
        "equation": "O[d][k]+=I[d][c]*W[c][k]" if product else "O[d][k]=I[d][k]+W[d][k]",
        "loop_dims": ["D", "K", "C"] if product else ["D", "K"],
        "loop_sizes": [4, 8, 8] if product else [4, 8],
        "operand_precision": {"I": 8, "W": 8, "O": 16, "O_final": 8},
        "operand_source": {"I": source, "W": number if other is None else other},
    }


def network(*layers: object) -> Network:
    read = read_zigzag(parse_document(json.dumps(layers), "workload.yaml"), "test").network
    assert read is not None
    return read


def two_levels(bits: int) -> Machine:
    """Registers of one element for the result, a memory for all operands, and one above it."""
    return machine(
        memory("reg", ["O"], bits=16), memory("sram", ALL, bits=bits), memory("dram", ALL)
    )


def tops(net: Network, where: Machine) -> Tops:
    return resident_tops(net, where, (), "zigzag-3.9")


def test_all_stays_in_the_lowest_memory_that_holds_input_result_and_weights() -> None:
    alone = network(layer(0, 0))
    enough = INPUT + OUTPUT + WEIGHTS
    assert tops(alone, two_levels(enough)) == {"Layer0": {"I": "sram", "W": "sram", "O": "sram"}}
    assert tops(alone, two_levels(enough - 1)) == {
        "Layer0": {"I": "dram", "W": "dram", "O": "dram"}
    }


def test_the_weights_of_the_whole_network_have_to_fit() -> None:
    chain = network(layer(0, 0), layer(1, 0), layer(2, 1))
    enough = INPUT + OUTPUT + 3 * WEIGHTS
    assert set(tops(chain, two_levels(enough))["Layer1"].values()) == {"sram"}
    assert set(tops(chain, two_levels(enough - 1))["Layer1"].values()) == {"dram"}


def test_weights_and_the_rest_may_live_in_different_memories() -> None:
    where = machine(
        memory("data", ["I1", "O"], bits=INPUT + OUTPUT),
        memory("weights", ["I2"], bits=2 * WEIGHTS - 1),
        memory("dram", ALL),
    )
    chain = network(layer(0, 0), layer(1, 0))
    assert tops(chain, where)["Layer1"] == {"I": "data", "W": "dram", "O": "data"}


def test_the_copies_of_a_memory_count_together_but_weights_need_one_for_the_whole_array() -> None:
    # Four copies of a quarter: enough for input and result, and never a home of weights.
    small = replace(memory("spread", ALL, bits=(INPUT + OUTPUT + WEIGHTS) // 4), served_dims=())
    where = machine(small, memory("dram", ALL), units=4)
    assert tops(network(layer(0, 0)), where) == {
        "Layer0": {"I": "spread", "W": "dram", "O": "spread"}
    }


def test_around_a_branch_results_go_to_the_top() -> None:
    # 0 feeds 1 and the sum 2; 2 feeds 3.
    branch = network(layer(0, 0), layer(1, 0), layer(2, 1, kind="Add", other=0), layer(3, 2))
    found = tops(branch, two_levels(1 << 20))
    assert {name: found[name]["O"] for name in found} == {
        "Layer0": "dram",
        "Layer1": "dram",
        "Layer2": "sram",
        "Layer3": "sram",
    }
    assert [found[name]["I"] for name in found] == ["dram", "dram", "dram", "sram"]
    assert found["Layer2"]["W"] == "dram"  # a summand, not weights
    assert found["Layer1"]["W"] == "sram"


def test_letters_stand_in_the_order_data_weights_result() -> None:
    # Of two summands the second of the equation counts as the data.
    branch = network(layer(0, 0), layer(1, 0), layer(2, 1, kind="Add", other=0))
    found = tops(branch, two_levels(1 << 20))
    assert list(found["Layer0"]) == ["I", "W", "O"]
    assert list(found["Layer2"]) == ["W", "I", "O"]


def test_ops_between_layers_are_looked_through() -> None:
    # relu, pool and sum lie between ResNet's convolutions; ZigZag does not count them.
    net = load_network("resnet18")
    found = tops(net, two_levels(1 << 40))
    convs = [op.name for op in net.ops if op.kind == "conv"]
    assert [name for name in found if name in convs] == convs
    # The stem's result is read by the first block and its shortcut: it goes to the top.
    assert found[convs[0]]["O"] == "dram"
    # Inside a block, one convolution hands over to the next on the chip.
    assert found[convs[1]]["O"] == found[convs[2]]["I"] == "sram"
    assert found[convs[2]]["O"] == "dram"


def test_two_chains_are_refused() -> None:
    with pytest.raises(InfeasibleError, match="2 start from an input: 'Layer0', 'Layer1'"):
        tops(network(layer(0, 0), layer(1, 1), layer(2, 0, kind="Add", other=1)), two_levels(1))
    with pytest.raises(InfeasibleError, match="2 end in an output: 'Layer1', 'Layer2'"):
        tops(network(layer(0, 0), layer(1, 0), layer(2, 0)), two_levels(1))


def test_a_result_without_a_home_is_named_with_what_it_needs() -> None:
    where = machine(memory("inputs", ["I1", "I2"]), memory("results", ["O"]))
    with pytest.raises(InfeasibleError, match=r"'Layer0': no memory serves .* 32 B of input, 64 B"):
        tops(network(layer(0, 0)), where)


def test_an_operand_without_a_link_is_named() -> None:
    entry = Constraint(name="default", links=(("O", "O"), ("I", "I1")))
    with pytest.raises(InputError, match="'Layer0': memory_operand_links has no operand W"):
        resident_tops(network(layer(0, 0)), two_levels(1), (entry,), "zigzag-3.9")


def test_what_stays_is_not_fetched_from_above() -> None:
    net, where = network(layer(0, 0), layer(1, 0)), two_levels(1 << 20)
    how = MapOptions(model="zigzag-3.9", tops=tops(net, where))
    used = {
        link.memory
        for op in map_network(net, where, how).ops
        if op.mapped is not None
        for link in op.mapped.cost.links
    }
    assert used == {"reg", "sram"}


def test_a_network_without_layers_needs_nothing() -> None:
    relu = load_network("resnet18")
    nothing = replace(relu, ops=(), tensors=relu.inputs)
    assert resident_tops(nothing, two_levels(1), (), "zigzag-3.9") == {}


def test_our_own_model_counts_pools_and_sums_as_layers_too() -> None:
    net = load_network("resnet18")
    found = resident_tops(net, two_levels(1 << 40), (), "tilewright")
    kinds = {op.kind for op in net.ops if op.name in found}
    assert kinds == {"conv", "matmul", "max_pool", "average_pool", "add"}
