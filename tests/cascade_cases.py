"""Networks with cascades in them, and plans in which chosen stages run row by row."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st
from tests.small_machines import Small, small_machine
from tests.small_networks import (
    Draw,
    concatenation,
    join,
    op,
    part,
    pointwise,
    product,
    rearrangement,
)

from tilewright.machine.model import Machine
from tilewright.mapping.search import SearchOptions
from tilewright.network import windows
from tilewright.network.graph import Network, Tensor
from tilewright.network.zoo import layers
from tilewright.network.zoo.layers import Draft
from tilewright.program.cascade import Cascade, Strategy
from tilewright.program.lower import Lowered, Prepared, lower, prepare
from tilewright.program.model import Timetable
from tilewright.program.rows import Rows
from tilewright.schedule.control_edges import control_edges
from tilewright.schedule.options import ScheduleOptions
from tilewright.schedule.schedule import schedule

QUICK = SearchOptions(lpf_limit=3, unrollings=2)


@dataclass(frozen=True, kw_only=True)
class Cascaded:
    """A plan with cascades, and the program that it was made from."""

    network: Network
    lowered: Lowered
    timetable: Timetable


def prepared(network: Network, machine: Machine) -> Prepared:
    """Stages in the order of the network."""
    return prepare(network, machine, network.ops, QUICK)


def rows_of(network: Network) -> Rows:
    """The rows of a network's stages where one scratchpad holds everything."""
    return prepared(network, small_machine(Small())).rows


def cascaded(network: Network, machine: Machine, *cascades: Cascade) -> Cascaded:
    """A plan; raises InfeasibleError where there is no room for one."""
    found = lower(prepared(network, machine), "latency", Strategy(cascades=cascades))
    made = schedule(found.program, ScheduleOptions(search_simulations=10))
    timetable = replace(made, edges=control_edges(made))
    return Cascaded(network=network, lowered=found, timetable=timetable)


def legal(rows: Rows) -> list[tuple[int, int, int]]:
    """First stage, last stage and axis of every cascade of at least two stages."""
    found = []
    for last, stage in enumerate(rows.stages):
        axes = range(len(rows.network.by_name[stage.results[0].tensor].shape))
        found += [(first, last, axis) for first in range(last) for axis in axes]
    return [case for case in found if rows.linked(*case) is not None]


@st.composite
def cascades(draw: Draw, rows: Rows) -> Cascade | None:
    """One of the cascades of a network, longer ones as likely as short ones; None without any."""
    possible = legal(rows)
    if not possible:
        return None
    length = draw(st.sampled_from(sorted({last - first for first, last, _ in possible})))
    fitting = [case for case in possible if case[1] - case[0] == length]
    first, last, axis = draw(st.sampled_from(fitting))
    return Cascade(
        first=first,
        last=last,
        axis=axis,
        step=draw(st.sampled_from([1, 1, 2, 3, 5])),
        eager=draw(st.booleans()),
        ahead=draw(st.booleans()),
    )


def sliding(net: Draft, name: str, made: list[Tensor], draw: Draw) -> Tensor | None:
    """A convolution, depthwise or not, or a pooling, none of whose windows is all padding."""
    data = draw(st.sampled_from(made))
    kind = draw(st.sampled_from(["conv", "conv", "depthwise", "max_pool"]))
    both = [_window(draw, 2 if kind != "max_pool" else 1) for _ in range(2)]
    try:
        if kind == "max_pool":
            return layers.max_pool(net, name, data, _filter(both))
        channels = data.shape[1]
        group = channels if kind == "depthwise" else 1
        kernels = channels if group > 1 else draw(st.integers(1, 6))
        nest = windows.conv(data.shape, kernels, group, both, windows.ONNX_CONV, bias=True)
    except ValueError:
        return None
    shape = (kernels, channels // group, *(window.kernel for window in both))
    weights = layers.constant(net, f"{name}.weight", shape)
    return op(net, name, "conv", nest, data, weights, layers.bias(net, f"{name}.bias", kernels))


def _window(draw: Draw, most_dilation: int) -> windows.Window:
    kernel = draw(st.integers(1, 3))
    return windows.Window(
        kernel=kernel,
        stride=draw(st.sampled_from([1, 1, 1, 2, 3])),
        dilation=draw(st.integers(1, most_dilation)),
        pad_begin=draw(st.integers(0, kernel - 1)),
        pad_end=draw(st.integers(0, kernel - 1)),
    )


def _filter(both: list[windows.Window]) -> layers.Filter:
    high, wide = both
    return layers.Filter(
        kernel=(high.kernel, wide.kernel),
        strides=(high.stride, wide.stride),
        pads=(high.pad_begin, wide.pad_begin, high.pad_end, wide.pad_end),
    )


def gate(net: Draft, name: str, made: list[Tensor], draw: Draw) -> Tensor | None:
    """Every channel scaled by what a pooling over all rows of another tensor makes of it."""
    data = draw(st.sampled_from(made))
    other = draw(st.sampled_from([t for t in made if t.shape[1] == data.shape[1]]))
    scale = layers.global_average_pool(net, f"{name}.pool", other)
    return layers.add(net, name, data, scale)


MAKERS = (
    *(sliding, sliding, sliding, sliding, sliding),
    *(pointwise, join, join, concatenation, gate, part, rearrangement, product),
)


def finished(net: Draft, made: list[Tensor]) -> Network:
    """The network with at least one op; what nobody reads is a result."""
    if not net.builder.ops:
        layers.activation(net, "only", made[0], "sigmoid")
    read = {operand.tensor for op in net.builder.ops for operand in op.inputs}
    results = [o.tensor for op in net.builder.ops for o in op.outputs]
    return net.builder.finish([name for name in results if name not in read])


@st.composite
def networks(draw: Draw) -> Network:
    """Up to seven ops over one input, chains and branches; what nobody reads is a result."""
    net = layers.draft("rows", draw(st.sampled_from([8, 8, 8, 16, 4])))
    shape = (1, draw(st.integers(1, 5)), draw(st.integers(3, 14)), draw(st.integers(2, 8)))
    made = [layers.given(net, "x", shape)]
    for number in range(draw(st.integers(2, 7))):
        maker = draw(st.sampled_from(MAKERS))
        # The newest tensors are likelier: chains are what most networks are made of.
        found = maker(net, f"op{number}", made + made[-1:] * 3, draw)
        if found is not None and found.elements <= 2048:
            made.append(found)
    return finished(net, made)


def runs(rows: Rows, axis: int, longest: int) -> list[tuple[int, int]]:
    """Stages from the first on in as long cascades as there are, one behind the other."""
    found, first = [], 0
    while first < len(rows.stages):
        last = first
        while (
            last + 1 < min(len(rows.stages), first + longest)
            and rows.linked(first, last + 1, axis) is not None
        ):
            last += 1
        if last > first:
            found.append((first, last))
        first = last + 1
    return found
