"""Small chains for tests of the capacity ladder, a machine for them, and liveness by hand."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tilewright.machine.limits import with_memory_limits
from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network, Op
from tilewright.network.zoo import layers
from tilewright.network.zoo.layers import Filter
from tilewright.program.lower import Prepared, prepare

ONE_MEMORY = Path(__file__).parents[1] / "examples" / "npe8_one_memory.yaml"
QUICK = SearchOptions(lpf_limit=3, unrollings=2)


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A convolution, or a max pool, with a square kernel."""

    is_pool: bool
    channels: int
    kernel: int
    stride: int
    pad: int


def chain(size: tuple[int, int], channels: int, listed: tuple[Layer, ...]) -> Network:
    """The layers one after the other, at 16 bit, without biases."""
    net = layers.draft("chain", 16)
    data = layers.given(net, "input", (1, channels, *size))
    for number, layer in enumerate(listed):
        window = Filter(
            kernel=(layer.kernel, layer.kernel),
            strides=(layer.stride, layer.stride),
            pads=(layer.pad,) * 4,
            bias=False,
        )
        name = f"{'pool' if layer.is_pool else 'conv'}{number}"
        if layer.is_pool:
            data = layers.max_pool(net, name, data, window)
        else:
            data = layers.conv(net, name, data, layer.channels, window)
    return net.finish(data)


@cache
def one_memory(size_bytes: int) -> Machine:
    """A machine without an external memory and with one scratchpad of some size."""
    return with_memory_limits(load_machine(str(ONE_MEMORY)), (("memory", size_bytes),))


def prepared_on(network: Network, size_bytes: int) -> Prepared:
    """The stages of a network on such a machine."""
    return prepare(network, one_memory(size_bytes), network.ops, QUICK)


Pixel = tuple[int, int, int, bool]
"""Layer (0 is the input), row, column, and whether it is an accumulator."""


def line_buffered_peak(network: Network) -> int:
    """The most bytes alive when a chain is line-buffered, worked out pixel by pixel.

    A layer computes its next pixel as soon as its inputs are there, the last layer first; a pool
    that shrinks its input takes pixels as they come, into accumulators.
    """
    events = list(_events(network))
    first: dict[Pixel, int] = {}
    last: dict[Pixel, int] = {}
    for time, touched in enumerate(events):
        for pixel in touched:
            first.setdefault(pixel, time)
            last[pixel] = time
    names = [network.inputs[0].name, *(op.outputs[0].tensor for op in network.ops)]
    sizes = [network.by_name[name].shape[1] for name in names]
    return max(
        sum(2 * sizes[p[0]] for p in first if first[p] <= time <= last[p])
        for time in range(len(events))
    )


Place = tuple[int, int]
"""A row and a column."""


@dataclass(frozen=True)
class _Work:
    """What a layer has to do: its windows by result, and for a running pool what it adds when."""

    windows: dict[Place, list[Place]]
    additions: list[tuple[Place, Place]]


def _work(network: Network, op: Op) -> _Work:
    kernel, stride, pad = (_first(op, key) for key in ("kernel_shape", "strides", "pads"))
    _, _, height, width = network.by_name[op.inputs[0].tensor].shape
    _, _, rows, columns = network.by_name[op.outputs[0].tensor].shape
    windows = {
        (row, column): [
            (y, x)
            for y in range(row * stride - pad, row * stride - pad + kernel)
            for x in range(column * stride - pad, column * stride - pad + kernel)
            if 0 <= y < height and 0 <= x < width
        ]
        for row in range(rows)
        for column in range(columns)
    }
    is_running = op.kind == "max_pool" and rows * columns < height * width
    additions = [
        ((y, x), result)
        for y in range(height)
        for x in range(width)
        for result, window in windows.items()
        if (y, x) in window
    ]
    return _Work(windows, additions if is_running else [])


def _first(op: Op, key: str) -> int:
    value = op.attribute(key)
    assert isinstance(value, tuple)
    return int(value[0])


def _events(network: Network) -> Iterator[list[Pixel]]:
    """What each step reads and writes."""
    works = [_work(network, op) for op in network.ops]
    made: list[list[Place]] = [[] for _ in range(len(network.ops) + 1)]
    taken = [0] * len(network.ops)
    stored = 0
    _, _, height, width = network.inputs[0].shape
    waiting = [(row, column) for row in range(height) for column in range(width)]
    while True:
        if stored < len(made[-1]):
            yield [(len(network.ops), *made[-1][stored], False)]
            stored += 1
            continue
        for number in reversed(range(len(network.ops))):
            touched = _step(works[number], number, made, taken)
            if touched is not None:
                yield touched
                break
        else:
            if not waiting:
                return
            made[0].append(waiting.pop(0))
            yield [(0, *made[0][-1], False)]


def _step(
    work: _Work, number: int, made: list[list[Place]], taken: list[int]
) -> list[Pixel] | None:
    """The next step of a layer, if it can be made."""
    at = taken[number]
    if work.additions:
        if at == len(work.additions) or work.additions[at][0] not in made[number]:
            return None
        pixel, result = work.additions[at]
        taken[number] += 1
        window = work.windows[result]
        touched: list[Pixel] = [(number, *pixel, False)]
        if len(window) > 1:
            touched.append((number + 1, *result, True))
        if pixel == window[-1]:
            touched.append((number + 1, *result, False))
            made[number + 1].append(result)
        return touched
    results = list(work.windows)
    if at == len(results) or any(p not in made[number] for p in work.windows[results[at]]):
        return None
    taken[number] += 1
    made[number + 1].append(results[at])
    read = [(number, *pixel, False) for pixel in work.windows[results[at]]]
    return [(number + 1, *results[at], False), *read]
