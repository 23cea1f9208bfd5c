"""Networks in strips, and plans of them that are plans of the networks themselves."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st
from tests.cascade_cases import MAKERS, finished, prepared
from tests.small_networks import Draw

from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.lower import lower
from tilewright.program.model import Timetable
from tilewright.replay.kernels.tile import Array
from tilewright.schedule.control_edges import control_edges
from tilewright.schedule.options import ScheduleOptions
from tilewright.schedule.schedule import schedule
from tilewright.strategy.columns import Stretch, stretch_of
from tilewright.strategy.patches import Patches, patched
from tilewright.strategy.unpatched import unpatched


@dataclass(frozen=True, kw_only=True)
class InStrips:
    """A plan of a network in strips."""

    network: Network
    patches: Patches
    timetable: Timetable


def tower() -> Network:
    """Windows of all sorts one behind the other, and a way around one of them."""
    net = layers.draft("tower", 8)
    data = layers.given(net, "x", (1, 3, 9, 20))
    first = layers.conv(net, "first", data, 5, layers.square(3, 1, 1))
    data = layers.conv(net, "depthwise", first, 5, layers.square(3, 1, 1, group=5))
    data = layers.add(net, "sum", data, first)
    data = layers.max_pool(net, "pool", data, layers.square(2, 2))
    data = layers.conv(net, "narrow", data, 4, layers.square(3, 1, 1))
    return net.finish(layers.conv(net, "end", data, 4, layers.square(1)))


def stretches(network: Network) -> list[Stretch]:
    """All stretches: ops that follow each other and leave one tensor that is still wanted."""
    found = []
    outputs = {tensor.name for tensor in network.outputs}
    for first in range(len(network.ops)):
        for last in range(first, len(network.ops)):
            ops = network.ops[first : last + 1]
            made = {o.tensor for op in ops for o in op.outputs}
            later = {o.tensor for op in network.ops[last + 1 :] for o in op.inputs}
            stretch = None
            if made & (later | outputs) == {ops[-1].outputs[0].tensor}:
                stretch = stretch_of(network, ops)
            found += [] if stretch is None else [stretch]
    return found


def strip_arrays(patches: Patches, arrays: dict[str, Array]) -> dict[str, Array]:
    """What inputs and constants of a network are for the same network in strips."""
    found = {name: arrays[name] for name in arrays if name in patches.network.by_name}
    for tensor in patches.network.inputs:
        part = patches.tensors.get(tensor.name)
        if part is not None:
            columns = range(part.start, part.start + tensor.shape[part.axis])
            found[tensor.name] = arrays[part.tensor].take(columns, axis=part.axis)
    return found


def in_strips(
    network: Network, machine: Machine, strips: tuple[tuple[Stretch, int], ...]
) -> InStrips | None:
    """A plan with some stretches in strips; None if there cannot be so many.

    Raises InfeasibleError where there is no room for one.
    """
    patches = patched(network, network.ops, strips)
    if patches is None:
        return None
    found = lower(prepared(patches.network, machine), "latency")
    made = schedule(found.program, ScheduleOptions(search_simulations=10))
    timetable = unpatched(replace(made, edges=control_edges(made)), patches)
    if timetable is None:
        return None
    return InStrips(network=network, patches=patches, timetable=timetable)


@st.composite
def wide_networks(draw: Draw) -> Network:
    """Up to six ops over one input with many columns; some end in a mean over everything."""
    net = layers.draft("columns", 8)
    shape = (1, draw(st.integers(1, 4)), draw(st.integers(2, 6)), draw(st.integers(6, 16)))
    made = [layers.given(net, "x", shape)]
    for number in range(draw(st.integers(2, 6))):
        found = draw(st.sampled_from(MAKERS))(net, f"op{number}", made + made[-1:] * 5, draw)
        if found is not None and found.elements <= 2048:
            made.append(found)
    if len(made[-1].shape) == len(shape) and draw(st.booleans()):
        made.append(layers.global_average_pool(net, "mean", made[-1]))
    return finished(net, made)
