"""The ladder of random chains and networks: what it says is what liveness and placements say."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ladder_cases import Layer, chain, line_buffered_peak, prepared_on
from tests.random_cases import examples, repeatable
from tests.small_machines import Small, small_machine
from tests.small_networks import networks

from tilewright.errors import InfeasibleError
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.program.lower import Prepared, prepare
from tilewright.program.model import Timetable
from tilewright.replay.check import problems
from tilewright.replay.verify import verify
from tilewright.schedule.control_edges import control_edges
from tilewright.strategy.ladder.cells import work_of_stages
from tilewright.strategy.ladder.liveness import peak_of
from tilewright.strategy.ladder.program import timetable_of
from tilewright.strategy.ladder.recompute import Recompute, n_steps
from tilewright.strategy.ladder.rungs import (
    RUNGS,
    ResidentRung,
    RungName,
    ladder,
    rung_alone,
    rung_run,
)

LARGE = 1 << 20
WITH_STEPS = RUNGS[:-1]


@st.composite
def chains(draw: st.DrawFn) -> Network:
    """Up to four convolutions and pools over an input of a few pixels."""
    size = draw(st.integers(3, 7)), draw(st.integers(3, 7))
    listed = []
    rows, columns = size
    for _ in range(draw(st.integers(1, 4))):
        is_pool = draw(st.booleans())
        kernel = draw(st.integers(1, min(3, rows, columns)))
        layer = Layer(
            is_pool=is_pool,
            channels=draw(st.integers(1, 5)),
            kernel=kernel,
            stride=draw(st.integers(1, 2)),
            pad=draw(st.integers(0, kernel // 2)),
        )
        rows, columns = (
            (n + 2 * layer.pad - layer.kernel) // layer.stride + 1 for n in (rows, columns)
        )
        listed.append(layer)
    return chain(size, draw(st.integers(1, 4)), tuple(listed))


def placed_peak(timetable: Timetable) -> int:
    """The highest address in use of the one scratchpad."""
    space = next(s.name for s in timetable.program.spaces if s.kind == "scratchpad")
    buffers = zip(timetable.program.buffers, timetable.addresses, strict=True)
    return max((at + b.size_bytes for b, at in buffers if b.space == space), default=0)


def timetable(prepared: Prepared, name: RungName) -> tuple[Timetable, int] | None:
    """The plan of a rung and what its liveness is; None if it is too long."""
    work = work_of_stages(prepared.network, prepared.stages, prepared.storage)
    if name == "recompute" and n_steps(Recompute(work=work)) > 2_000:
        return None
    run = rung_run(work, name)
    assert run is not None
    found = timetable_of(prepared, run)
    total = work.constant_bytes + peak_of(run).size_bytes
    return replace(found, edges=control_edges(found)), total


@settings(repeatable, max_examples=examples(100))
@given(chains())
def test_line_buffers_are_as_large_as_liveness_by_hand(network: Network) -> None:
    rung = rung_alone(network, "line_buffered", granularity="pixel")
    assert rung.activation_bytes == line_buffered_peak(network)


@pytest.mark.slow
@settings(repeatable, max_examples=60)
@given(chains(), st.sampled_from(WITH_STEPS))
def test_a_plan_of_a_chain_takes_what_its_rung_says(network: Network, name: ResidentRung) -> None:
    found = timetable(prepared_on(network, LARGE), name)
    if found is None:
        return
    plan, total = found
    assert placed_peak(plan) == total == rung_alone(network, name).total_bytes
    assert problems(plan, network) == []
    assert verify(plan, network).problems == ()
    assert verify(plan, network).agrees


@settings(repeatable, max_examples=examples(60))
@given(networks(), st.sampled_from(WITH_STEPS), st.sampled_from([1, 4]))
def test_a_plan_of_any_network_is_right(
    network: Network, name: RungName, alignment_bytes: int
) -> None:
    small = Small(kind="ends", size_bytes=LARGE, alignment_bytes=alignment_bytes)
    quick = SearchOptions(lpf_limit=3, unrollings=2)
    try:
        found = timetable(prepare(network, small_machine(small), network.ops, quick), name)
    except InfeasibleError:
        return
    if found is not None:
        assert problems(found[0], network) == []
        assert verify(found[0], network).agrees


@settings(repeatable, max_examples=examples(60))
@given(chains())
def test_going_up_the_ladder_never_takes_more(network: Network) -> None:
    rungs = {rung.name: rung for rung in ladder(network, granularity="pixel").rungs}
    sizes = [rung.total_bytes for rung in rungs.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert [name for name in RUNGS if name in rungs] == list(rungs)
    assert {"layer_by_layer", "weights"} <= rungs.keys()
    for name in ("line_buffered", "line_buffered_cropped"):
        assert name not in rungs or rungs[name].macs_factor <= 1
