"""Figures of spans, which are made from those of shorter ones, against sums over all stages."""

import pytest
from tests.cascade_cases import prepared

from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.program.cascade import Flow, Roll, flow_of
from tilewright.program.lower import Prepared
from tilewright.program.slicing import slicing
from tilewright.strategy.choose import ChooseOptions, choose
from tilewright.strategy.scene import Scene, scene_of
from tilewright.strategy.spans import Span, span_of
from tilewright.strategy.units import ways_of
from tilewright.units import packed_bytes

HEIGHT = 2


def on_machine(network: str) -> Prepared:
    return prepared(load_network(network), load_machine("ethos_u65_256"))


def spans_of(on: Prepared, most_stages: int) -> list[Span]:
    count = len(on.stages)
    found = [
        span_of(on.rows, first, last, HEIGHT)
        for first in range(0, count, 2)
        for last in range(first, min(count, first + most_stages))
    ]
    return [span for span in found if span is not None]


def scene_on(on: Prepared) -> Scene:
    scene = scene_of(on)
    assert scene is not None
    return scene


@pytest.mark.parametrize("network", ["resnet18", "squeezenet"])
def test_a_span_knows_the_same_readers_and_private_tensors_as_all_its_stages(network: str) -> None:
    on = on_machine(network)
    spans = spans_of(on, 6)
    for span in spans:
        assert span.linked == on.rows.linked(span.first, span.last, HEIGHT)
        assert span.readers == on.rows.readers(span.linked)
        assert sorted(span.private) == sorted(on.rows.private(span.linked))
    assert any(span.private for span in spans)


@pytest.mark.parametrize("network", ["resnet18", "mobilenetv2"])
def test_a_span_knows_the_same_tensors_made_in_slices_as_all_its_stages(network: str) -> None:
    on = on_machine(network)
    spans = spans_of(on, 5)
    for span in spans:
        ways = [slicing(on.rows, span.linked, number) for number in span.linked]
        assert dict(span.on_demand) == {
            on.rows.root(way.maker): way for way in ways if way is not None
        }
    assert any(span.on_demand for span in spans)


@pytest.mark.parametrize("forgets", [False, True])
def test_no_stage_reads_two_tensors_that_are_made_in_slices(forgets: bool) -> None:
    # A block with a projection ends in a sum of two convolutions, each of which it could ask.
    on = on_machine("resnet50")
    scene = scene_on(on)
    has_choice = False
    for span in spans_of(on, 12):
        by_maker = {way.maker: way.reader for way in span.on_demand.values()}
        chosen = ways_of(scene, span).slices(forgets=forgets).on_demand
        readers = [by_maker[maker] for maker in chosen]
        assert len(set(readers)) == len(readers)
        has_choice |= len(set(by_maker.values())) < len(by_maker)
    assert has_choice


def bytes_of_step(scene: Scene, span: Span, number: int) -> int:
    """What a span holds if nothing is kept and constants come tile by tile, added up by itself."""
    (step, eager), memory = span.steps[number], scene.result_memory
    holds = [span.holds[root] for root in (*span.private, *span.inputs)]
    held = [
        packed_bytes(hold.row_elements * hold.rows(step, eager=eager), hold.bits) for hold in holds
    ]
    made = [span.made_bytes(end, step, eager=eager) for end in span.ends]
    wholes = [scene.lives[root].size_bytes for root in span.wholes if root in scene.lives]
    tiles = [sum(scene.least_constants(stage).values()) for stage in span.linked]
    return sum(scene.rounded(memory, size) for size in (*held, *made, *wholes)) + max(tiles)


@pytest.mark.parametrize("network", ["resnet18", "mobilenetv2"])
def test_what_a_span_needs_is_the_sum_of_what_it_holds(network: str) -> None:
    """On a machine with a single scratchpad, where the packed number is the bytes themselves."""
    on = on_machine(network)
    scene = scene_on(on)
    assert len(scene.room.sizes) == 1
    for span in spans_of(on, 5):
        ways = ways_of(scene, span)
        needs = ways.needs(0, lasting=False)
        expected = [bytes_of_step(scene, span, number) for number in range(len(span.steps))]
        assert needs == expected, (span.first, span.last)
        assert ways.least_need + ways.rows_beside(0) == expected[0]


def bytes_in_steps(scene: Scene, flow: Flow) -> int:
    """What rows of a cascade's own tensors take at most, those that pass and those that stay."""
    tensors = scene.prepared.network.by_name

    def size_of(root: str, roll: Roll) -> int:
        size_bytes = -(-tensors[root].size_bytes * roll.rows // tensors[root].shape[roll.axis])
        return scene.rounded(scene.result_memory, size_bytes)

    staying = sum(size_of(root, roll) for root, roll in flow.rolls.items())
    passing = [sum(size_of(root, flow.passing[root]) for root in at) for at in flow.together]
    return staying + max(passing, default=0)


def test_what_is_made_again_in_every_step_has_the_room_that_its_rows_take() -> None:
    """Rows as they come and go in the cascade itself, against what is thought to be needed."""
    on = on_machine("mobilenetv2")
    scene, seen = scene_on(on), set[int]()
    spans = [span for span in spans_of(on, 14) if span.last - span.first in (5, 9, 13)]
    for ways in [ways_of(scene, span) for span in spans if not span.reduces]:
        slices, everything = ways.slices(forgets=True), ways.crossing
        for number in range(4) if slices.on_demand else ():
            flow = flow_of(on.rows, ways.cascade(number, slices.on_demand, forgets=True))
            assert flow is not None
            assert bytes_in_steps(scene, flow) <= ways.forgetting_need(everything, number)
            seen.add(number)
    assert seen == {0, 1, 2, 3}


def test_no_step_costs_less_than_the_least_cost() -> None:
    on = on_machine("squeezenet")
    scene = scene_on(on)
    for span in spans_of(on, 4):
        ways = ways_of(scene, span)
        for kept in (0, ways.crossing):
            least = ways.least_cost(kept)
            for number in range(len(span.steps)):
                for lasting in (True, False):
                    cost = ways.cost(number, kept, lasting=lasting)
                    assert cost.moved_bytes >= least.moved_bytes
                    assert cost.energy_pj >= least.energy_pj
                    assert cost.cycles >= least.cycles


def test_more_is_moved_the_fewer_tensors_are_kept() -> None:
    on = on_machine("resnet18")
    scene = scene_on(on)
    compared = 0
    for span in spans_of(on, 4):
        ways = ways_of(scene, span)
        # The network's own results go outside even if they are kept.
        if scene.mask(
            r for r in span.crossing if r in scene.lives and not scene.lives[r].is_result
        ):
            nothing, everything = (ways.cost(0, n, lasting=True) for n in (0, ways.crossing))
            assert nothing.moved_bytes > everything.moved_bytes
            compared += 1
    assert compared


def test_a_choice_does_not_depend_on_what_was_chosen_before() -> None:
    """Choices for other aims leave tables behind that later ones use."""
    used = on_machine("squeezenet")
    options = ChooseOptions(most_stages=5, most_states=4)
    for aim in ("memory", "latency"):
        choose(scene_on(used), aim, options)
    fresh = choose(scene_on(on_machine("squeezenet")), "traffic", options)
    assert fresh is not None
    assert choose(scene_on(used), "traffic", options) == fresh
