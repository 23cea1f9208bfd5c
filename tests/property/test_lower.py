"""Random small networks on random small machines: the programs and plans of them are sound."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.program_faults import faults
from tests.random_cases import repeatable
from tests.small_machines import Small, small_machine
from tests.small_networks import networks

from tilewright.errors import InfeasibleError
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.program.lower import Lowered, lower, prepare
from tilewright.program.tile import Goal
from tilewright.replay.check import problems
from tilewright.schedule.options import ScheduleOptions
from tilewright.schedule.schedule import schedule

QUICK = SearchOptions(lpf_limit=3, unrollings=2)

machines = st.builds(
    Small,
    kind=st.sampled_from(["one", "one", "split", "streamed", "ends"]),
    size_bytes=st.sampled_from([256, 512, 1024, 2048, 4096, 16384]),
    cores=st.integers(1, 3),
    alignment_bytes=st.sampled_from([1, 16]),
    dma=st.booleans(),
)
goals = st.sampled_from(["latency", "latency", "energy", "traffic"])


def lowered(network: Network, small: Small, goal: Goal) -> Lowered | None:
    """What lowering makes of it; None if it says that the network does not fit."""
    try:
        return lower(prepare(network, small_machine(small), network.ops, QUICK), goal)
    except InfeasibleError as refused:
        if not all(problem.message for problem in refused.problems):
            raise
        return None


@settings(repeatable, max_examples=60)
@given(networks(), machines, goals)
def test_a_program_is_sound(network: Network, small: Small, goal: Goal) -> None:
    found = lowered(network, small, goal)
    if found is not None:
        assert faults(found.program, network) == []


@settings(repeatable, max_examples=25)
@given(networks(), machines)
def test_a_program_can_be_scheduled_and_stays_above_its_bounds(
    network: Network, small: Small
) -> None:
    found = lowered(network, small, "latency")
    if found is None:
        return
    try:
        timetable = schedule(found.program, ScheduleOptions(search_simulations=10))
    except InfeasibleError:
        # With a memory to spill to, tasks whose operands fit can always be scheduled.
        assert small.kind == "ends"
        return
    assert problems(timetable, network) == []
    assert timetable.cycles >= found.bounds.cycles


@settings(repeatable, max_examples=15)
@given(networks(), machines)
def test_more_room_is_never_refused(network: Network, small: Small) -> None:
    if lowered(network, small, "latency") is not None:
        larger = Small(
            kind=small.kind,
            size_bytes=8 * small.size_bytes,
            cores=small.cores,
            alignment_bytes=small.alignment_bytes,
            dma=small.dma,
        )
        assert lowered(network, larger, "latency") is not None
