"""Mappings of tiles whose cycles are known without them: legal, and of little energy."""

from collections.abc import Iterator

import pytest

from tilewright.machine.load import load_machine
from tilewright.mapping.hierarchy import Hierarchy
from tilewright.mapping.nest import LoopNest
from tilewright.mapping.search import SearchOptions
from tilewright.mapping.spatial import violations
from tilewright.mapping.tile_search import map_tile, ranked_unrollings
from tilewright.mapping.timed_search import OF_TILES, TimedOp, map_timed_op, map_timed_tile
from tilewright.network.load import load_network
from tilewright.program.places import places_of
from tilewright.program.tile_cost import TileCosts, tile_nest

LATENCY = SearchOptions(lpf_limit=6, unrollings=12)
ENERGY = SearchOptions(objective="energy", lpf_limit=6, unrollings=12)
MACHINES = ("ethos_u55_128", "ethos_u65_256")


def nests(machine: str, network: str) -> Iterator[tuple[LoopNest, Hierarchy]]:
    """The convolutions and products of a network."""
    loaded = load_network(network)
    places = places_of(load_machine(machine))
    costs = TileCosts(network=loaded, places=places, options=LATENCY)
    for op in loaded.ops:
        if op.kind in ("conv", "matmul"):
            yield costs.nest(op)


def timed(nest: LoopNest, where: Hierarchy, options: SearchOptions = LATENCY) -> TimedOp:
    return map_timed_op(nest, where, ranked_unrollings(nest, where), options)


@pytest.mark.parametrize("machine", MACHINES)
def test_whole_ops_take_less_energy_than_in_their_fastest_mapping(machine: str) -> None:
    little = fast = least = 0.0
    for nest, where in nests(machine, "ds_cnn"):
        mine, quick = timed(nest, where).best, map_tile(nest, where, LATENCY)
        best = map_tile(nest, where, ENERGY)
        assert mine is not None
        assert quick is not None
        assert best is not None
        assert not list(violations(nest, where, mine.setup.spatial.unrolling))
        little += mine.cost.energy_pj
        fast += quick.cost.energy_pj
        least += best.cost.energy_pj
    assert little < fast
    assert little <= 1.1 * least


@pytest.mark.parametrize("machine", MACHINES)
def test_tiles_follow_the_patterns_of_their_op(machine: str) -> None:
    for nest, where in nests(machine, "ds_cnn"):
        op = timed(nest, where)
        assert 0 < len(op.patterns) <= OF_TILES
        for loop, size in nest.dims:
            tile = tile_nest(nest, {loop: max(1, size // 3)}, unfinished=False)
            found = map_timed_tile(tile, where, LATENCY, op)
            assert found is not None
            unrolling = found.setup.spatial.unrolling
            assert not list(violations(tile, where, unrolling))
            used = tuple(pairs[0][0] if pairs else "" for _, pairs in unrolling)
            # A loop that the tile does not have any more is left out.
            sizes = tile.sizes
            kept = [tuple(d if d and sizes[d] > 1 else "" for d in p) for p in op.patterns]
            assert used in [*kept, *op.patterns]


def test_a_tile_that_is_the_whole_op_is_mapped_as_that() -> None:
    nest, where = next(nests("ethos_u65_256", "lenet5"))
    op = timed(nest, where)
    assert map_timed_tile(nest, where, LATENCY, op) is op.best


def test_a_search_for_the_least_energy_tries_what_it_tries_for_other_cores() -> None:
    nest, where = next(nests("ethos_u65_256", "lenet5"))
    whole = map_tile(nest, where, ENERGY)
    assert timed(nest, where, ENERGY).best == whole
    half = tile_nest(nest, {"K": 3}, unfinished=False)
    tile = map_timed_tile(half, where, ENERGY, timed(nest, where, ENERGY))
    assert tile == map_tile(half, where, ENERGY)
