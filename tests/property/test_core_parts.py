"""Random networks on one to four cores: a strategy fills no more than it is believed to fill."""

from collections.abc import Iterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cascade_cases import networks, prepared
from tests.random_cases import examples, repeatable
from tests.small_machines import Small, small_machine

from tilewright.errors import InfeasibleError
from tilewright.network.graph import Network
from tilewright.program.boxes import size_bytes
from tilewright.program.cascade import Cascade, flow_of
from tilewright.program.layout import Layout
from tilewright.program.lower import Prepared, laid_out
from tilewright.program.model import Box, Space
from tilewright.strategy.choose import Aim, ChooseOptions, choose
from tilewright.strategy.scene import scene_of
from tilewright.strategy.spans import span_of

machines = st.builds(
    Small,
    kind=st.sampled_from(["one", "ends", "split"]),
    size_bytes=st.sampled_from([256, 512, 1024, 4096]),
    cores=st.integers(1, 4),
    alignment_bytes=st.sampled_from([1, 16]),
    dma=st.booleans(),
)
AIMS: tuple[Aim, ...] = ("latency", "traffic", "energy", "memory")


def lives(on: Prepared) -> dict[str, range]:
    """By storage the stages from the first to the last that touches it."""
    found: dict[str, range] = {}
    for number, stage in enumerate(on.stages):
        for operand in (*stage.inputs, *stage.results):
            root = on.storage[operand.tensor].root
            first = found.get(root, range(number, number)).start
            found[root] = range(first, number + 1)
    return found


def filled_shares(on: Prepared, layout: Layout) -> list[float]:
    """What part of a scratchpad kept tensors and rolling buffers fill, for every unit and core."""
    found: list[float] = []
    alive = lives(on)
    numbers = range(len(on.stages))
    units = [layout.flows[n].cascade.stages if n in layout.flows else (n,) for n in numbers]
    for first, last in dict.fromkeys((stages[0], stages[-1]) for stages in units):
        held: list[tuple[str, int, str, Box]] = []
        for (root, core), box in layout.kept.items():
            is_replaced = layout.in_place.get(first) == root
            if alive[root].start <= last and first < alive[root].stop and not is_replaced:
                home = on.places.home("I1" if on.network.by_name[root].role == "input" else "O")
                assert home is not None
                held.append((home.name, core, root, box))
        for ring in layout.rolling.get(first, ()):
            axis, rows = ring.roll.axis, ring.roll.rows
            box = (*ring.box[:axis], (0, rows), *ring.box[axis + 1 :])
            held.append((ring.memory, ring.core, ring.root, box))
        found += shares(on, held)
    return found


def shares(on: Prepared, held: Sequence[tuple[str, int, str, Box]]) -> Iterator[float]:
    """By scratchpad the part that is filled; each buffer is rounded up."""
    filled: dict[Space, int] = {}
    for memory, core, root, box in held:
        space = on.places.named(memory, core)
        size = size_bytes(box, on.network.by_name[root])
        size = -(-size // space.alignment_bytes) * space.alignment_bytes
        filled[space] = filled.get(space, 0) + size
    yield from (size / space.size_bytes for space, size in filled.items())


def holds_more_rows(on: Prepared, cascade: Cascade) -> bool:
    """Whether a cascade holds more rows of a tensor than it does in the long run."""
    span = span_of(on.rows, cascade.first, cascade.last, cascade.axis)
    flow = flow_of(on.rows, cascade)
    assert span is not None
    assert flow is not None
    step, eager = cascade.step, cascade.eager
    rolls = {**flow.inputs, **flow.rolls}.items()
    return any(roll.rows > span.holds[root].rows(step, eager=eager) for root, roll in rolls)


@settings(repeatable, max_examples=examples(200))
@given(networks(), machines, st.sampled_from(AIMS))
def test_no_more_is_filled_than_is_believed(network: Network, small: Small, aim: Aim) -> None:
    on = prepared(network, small_machine(small))
    scene = scene_of(on)
    chosen = None if scene is None else choose(scene, aim, ChooseOptions(most_stages=6))
    if chosen is None:
        return
    if any(holds_more_rows(on, cascade) for cascade in chosen.strategy.cascades):
        # Where results of a cascade have different numbers of rows, whatever the cores.
        return
    try:
        layout = laid_out(on, "latency", chosen.strategy)
    except InfeasibleError:
        # What tiles need beside it is another matter.
        return
    assert max(filled_shares(on, layout), default=0.0) <= chosen.share + 1e-9
