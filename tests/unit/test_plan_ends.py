"""The end of a plan that transfers hold up, in smaller tiles."""

from tests.cascade_cases import prepared

from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.plan_drafts import Draft, Drafts
from tilewright.plan_ends import END_TILES, is_held_up_by_transfers, with_smaller_end
from tilewright.plan_memory import cut_to
from tilewright.planner import PlanOptions, plan
from tilewright.program.cascade import PLAIN
from tilewright.program.layout import Layout
from tilewright.program.tiles import tile_counts


def products(*features: int) -> Network:
    """Products of one row each: every weight is brought for a single multiplication."""
    net = layers.draft("products", 8)
    data = layers.given(net, "x", (1, features[0]))
    for number, size in enumerate(features[1:]):
        data = layers.gemm(net, f"product{number}", data, size)
    return net.finish(data)


def drafts_of(network: Network, machine: Machine) -> Drafts:
    return Drafts(prepared(network, machine), PlanOptions(), lambda step: None, {})


def plain_draft(drafts: Drafts) -> Draft:
    candidate = drafts.candidate("latency", PLAIN)
    assert candidate is not None
    draft = drafts.draft(candidate)
    assert draft is not None
    return draft


def layout_of(network: Network, machine: Machine) -> Layout:
    layout = drafts_of(network, machine).layout("latency", PLAIN)
    assert layout is not None
    return layout


def test_more_memory_is_not_slower_where_transfers_hold_a_plan_up() -> None:
    network, machine = products(1024, 768), load_machine("edge_tpu_like")
    cycles = [plan(network, cut_to(machine, share)).cycles for share in (1 / 8, 1 / 4)]
    assert cycles == sorted(cycles, reverse=True)


def test_only_what_is_still_to_be_done_after_the_last_load_gets_smaller_tiles() -> None:
    network, machine = products(256, 256, 256), cut_to(load_machine("edge_tpu_like"), 1 / 8)
    draft = plain_draft(drafts_of(network, machine))
    layout = draft.candidate.lowered.layout
    smaller = layout_of(network, cut_to(machine, 1 / 16))
    assert smaller.tilings[0].lengths != layout.tilings[0].lengths
    found = with_smaller_end(draft, [smaller])
    assert found is not None
    assert found.tilings == (*layout.tilings[:-1], smaller.tilings[-1])
    assert found.kept == layout.kept


def test_the_smallest_tiles_that_are_not_too_many_are_taken() -> None:
    network, machine = products(1024, 768), load_machine("edge_tpu_like")
    draft = plain_draft(drafts_of(network, machine))
    smaller = [layout_of(network, cut_to(machine, 0.5**halvings)) for halvings in range(3, 8)]
    counts = [sum(tile_counts(draft.candidate.lowered.stages, layout)) for layout in smaller]
    assert counts == sorted(counts)
    assert counts[0] <= END_TILES < counts[-1]
    found = with_smaller_end(draft, smaller)
    assert found is not None
    (tiles,) = tile_counts(draft.candidate.lowered.stages, found)
    assert tiles == max(count for count in counts if count <= END_TILES)


def test_nothing_changes_if_all_smaller_tiles_are_too_many() -> None:
    network, machine = products(1024, 768), load_machine("edge_tpu_like")
    draft = plain_draft(drafts_of(network, machine))
    assert with_smaller_end(draft, [layout_of(network, cut_to(machine, 0.5**7))]) is None
    assert with_smaller_end(draft, [draft.candidate.lowered.layout]) is None


def test_transfers_hold_up_what_brings_every_weight_for_one_row() -> None:
    machine = cut_to(load_machine("edge_tpu_like"), 1 / 8)
    assert is_held_up_by_transfers(plain_draft(drafts_of(products(1024, 768), machine)))
    many_rows = layers.draft("many_rows", 8)
    data = layers.given(many_rows, "x", (256, 256))
    network = many_rows.finish(layers.gemm(many_rows, "product", data, 256))
    assert not is_held_up_by_transfers(plain_draft(drafts_of(network, machine)))
