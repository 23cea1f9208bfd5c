"""The mapping search of tiles: ranked unrollings, and no worse than the general search."""

from dataclasses import replace
from itertools import product
from math import ceil, prod

import pytest
from tests.mapping_cases import CARRIERS, conv_nest, memory, product_nest
from tests.mapping_cases import machine as machine_of

from tilewright.machine.load import load_machine
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of
from tilewright.mapping.nest import LoopNest, NestOperand
from tilewright.mapping.search import SearchOptions, loma
from tilewright.mapping.spatial import factor_limits
from tilewright.mapping.tile_search import fewest_steps, map_tile, ranked_unrollings
from tilewright.network.graph import Network
from tilewright.network.load import load_network
from tilewright.network.zoo import layers
from tilewright.program.places import places_of
from tilewright.program.tile_cost import TileCosts

NESTS = {
    "conv": conv_nest({"B": 1, "K": 12, "C": 3, "OX": 7, "FX": 3}),
    "narrow": conv_nest({"B": 1, "K": 1, "C": 5, "OX": 9, "FX": 2}),
    "product": product_nest(10, 6, 13),
    "single": product_nest(1, 1, 1),
}


def hierarchy(nest: LoopNest, name: str) -> Hierarchy:
    machine = load_machine(name)
    links = {o.letter: CARRIERS[o.letter] for o in nest.operands}
    return hierarchy_of(machine, machine.cores[0], links)


def brute_force(nest: LoopNest, where: Hierarchy) -> int:
    """The fewest steps over one loop, or none, with any factor for each array dim."""
    limits = factor_limits(nest, where)
    dims = [dim for dim, _ in where.array.dims]
    choices = [
        [("", 1), *((loop, f) for loop, most in limits[d].items() for f in range(2, most + 1))]
        for d in dims
    ]
    best = prod(nest.sizes.values())
    for pairs in product(*choices):
        factors: dict[str, int] = {}
        for loop, factor in pairs:
            factors[loop] = factors.get(loop, 1) * factor
        best = min(best, prod(ceil(n / factors.get(loop, 1)) for loop, n in nest.dims))
    return best


@pytest.mark.parametrize("name", NESTS)
@pytest.mark.parametrize("machine", ["tpu_like", "npe8", "eyeriss_like"])
def test_no_single_loop_unrolling_needs_fewer_steps_than_the_bound(name: str, machine: str) -> None:
    nest = NESTS[name]
    where = hierarchy(nest, machine)
    assert 0 < fewest_steps(nest, where) <= brute_force(nest, where)


def test_the_bound_on_steps_holds_for_tiles_that_unroll_different_loops() -> None:
    # 12 x 12 points on 8 units: 24 steps whole, 20 in tiles of 8 and 4, and never below 144 / 8.
    operands = (NestOperand("O", ("K",), 8), NestOperand("I", ("C",), 8))
    nest = LoopNest((("K", 12), ("C", 12)), operands, (), 8)
    where = hierarchy(nest, "npe8")
    assert brute_force(nest, where) == 24
    assert fewest_steps(nest, where) == 18


def test_unrollings_are_ranked_by_their_steps_where_ports_are_wide() -> None:
    operands = ("I1", "I2", "O")
    machine = machine_of(memory("sram", operands, width=2**20), memory("dram", operands), units=8)
    nest = NESTS["conv"]
    links = {o.letter: CARRIERS[o.letter] for o in nest.operands}
    ranked = ranked_unrollings(nest, hierarchy_of(machine, machine.cores[0], links))
    steps = [count for count, _ in ranked]
    assert steps == sorted(steps)
    assert len({unrolling for _, unrolling in ranked}) == len(ranked)
    for count, unrolling in ranked:
        factors: dict[str, int] = {}
        for _, pairs in unrolling:
            for loop, factor in pairs:
                factors[loop] = factors.get(loop, 1) * factor
        assert count == prod(ceil(n / factors.get(loop, 1)) for loop, n in nest.dims)


@pytest.mark.parametrize("machine", ["edge_tpu_like", "tpu_like", "npu_37xx", "ethos_u55_128"])
def test_a_tile_is_mapped_as_well_as_by_the_general_search(machine: str) -> None:
    network = load_network("lenet5")
    options = SearchOptions(lpf_limit=4, unrollings=12)
    costs = TileCosts(network=network, places=places_of(load_machine(machine)), options=options)
    totals = [0.0, 0.0]
    for op in network.ops:
        if op.kind not in ("conv", "matmul"):
            continue
        nest, where = costs.nest(op)
        mine = map_tile(nest, where, options)
        general = loma(nest, where, None, SearchOptions(lpf_limit=4, unrollings=3))
        assert mine is not None
        assert general is not None
        # The general search also unrolls loops by less than the array allows.
        assert mine.cost.cycles <= 1.06 * general.cost.cycles, op.name
        totals = [totals[0] + mine.cost.cycles, totals[1] + general.cost.cycles]
        assert mine.cost.cycles >= fewest_steps(nest, where)
    assert totals[0] <= 1.01 * totals[1]


def test_an_unrolling_with_fewer_steps_is_tried_behind_one_that_asks_less_of_the_ports() -> None:
    network = load_network("lenet5")
    options = SearchOptions(lpf_limit=4, unrollings=12)
    places = places_of(load_machine("edge_tpu_like"))
    nest, where = TileCosts(network=network, places=places, options=options).nest(network.ops[0])
    ranked = ranked_unrollings(nest, where)
    # 6 x 5 x 4 x 4 units take 1 * 7 * 7 * 5 = 245 steps; 7 x 5 x 4 x 4 take 6 * 1 * 7 * 5 = 210.
    assert (ranked[0][0], ranked[8][0]) == (245, 210)
    found = map_tile(nest, where, options)
    assert found is not None
    assert 210 <= found.cost.cycles < 245


def pointwise() -> Network:
    net = layers.draft("pointwise", 8)
    data = layers.given(net, "x", (1, 512, 13, 13))
    return net.finish(layers.conv(net, "conv", data, 24, layers.square(1)))


def costs_on(network: Network, wide: int) -> TileCosts:
    """On `edge_tpu_like`, with so many units along the first array dim instead of 8."""
    machine = load_machine("edge_tpu_like")
    core = machine.cores[0]
    (first, _), *rest = core.array.dims
    array = replace(core.array, dims=((first, wide), *rest))
    wider = replace(machine, cores=(replace(core, array=array),))
    options = SearchOptions(lpf_limit=6, unrollings=12)
    return TileCosts(network=network, places=places_of(wider), options=options)


@pytest.mark.parametrize("wide", [8, 12, 16])
def test_units_stay_idle_if_ports_do_not_keep_up_with_all(wide: int) -> None:
    # 8 x 8 weights of 8 bit are what the port of 512 bit moves in a cycle. With the columns along
    # the other two dims that takes 3 * 64 * 13 = 2,496 steps; with 12 x 8 of them there are 2 * 64
    # * 13 of two cycles each, which is 3,328.
    network = pointwise()
    costs = costs_on(network, wide)
    nest, where = costs.nest(network.ops[0])
    found = map_tile(nest, where, costs.options)
    assert found is not None
    assert found.cost.cycles <= 1.01 * 2496
