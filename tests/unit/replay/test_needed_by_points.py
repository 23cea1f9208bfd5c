"""Points that outputs depend on, against going back from every element of them."""

from collections.abc import Iterator
from itertools import product
from random import Random

import numpy as np
import pytest

from tilewright.network.graph import Index, Network, Op, Operand, Tensor
from tilewright.network.zoo import layers
from tilewright.replay.check_needed import MOST_LATTICES, _holds_all, needed_points

Point = tuple[int, ...]


def random_network(seed: int) -> Network:
    """Three ops in a row: convolutions, pools, cuts, enlargements, and what joins along an axis."""
    chance = Random(seed)
    net = layers.draft("chain", 8)
    data = layers.given(net, "x", (1, 2, chance.randint(4, 7), chance.randint(4, 7)))
    for number in range(3):
        data = _next(net, f"op{number}", data, chance)
    return net.builder.finish([data.name])


def _next(net: layers.Draft, name: str, data: Tensor, chance: Random) -> Tensor:
    rows = data.shape[2]
    kind = chance.choice(["conv", "conv", "pool", "take", "upsample", "softmax"])
    kernel, stride = chance.randint(1, min(2, *data.shape[2:])), chance.randint(1, 3)
    if kind == "conv":
        return layers.conv(net, name, data, 2, layers.square(kernel, stride, chance.randint(0, 1)))
    if kind == "pool":
        return layers.max_pool(net, name, data, layers.square(kernel, stride))
    if kind == "take" and rows > 1:
        first = chance.randrange(rows - 1)
        return layers.take(net, name, data, 2, (first, chance.randint(first + 1, rows)))
    if kind == "upsample" and rows < 5:
        return layers.upsample(net, name, data, 2)
    return layers.softmax(net, name, data)


def by_points(network: Network) -> dict[str, set[Point]]:
    """By op the points of its loops that some element of an output depends on."""
    elements = {tensor.name: set(product(*map(range, tensor.shape))) for tensor in network.outputs}
    found: dict[str, set[Point]] = {}
    for op in reversed(network.ops):
        wanted = set()
        for point in product(*(range(size) for _, size in op.dims)):
            if any(
                _places(network, op, o, point) & elements.get(o.tensor, set()) for o in op.outputs
            ):
                wanted.add(point)
        found[op.name] = set(_with_coupled(op, wanted))
        for operand in op.inputs:
            for point in found[op.name]:
                places = _places(network, op, operand, point)
                elements.setdefault(operand.tensor, set()).update(places)
    return found


def _with_coupled(op: Op, wanted: set[Point]) -> Iterator[Point]:
    """Whoever needs one point along a coupled loop needs all of them."""
    yield from wanted
    at = [number for number, (dim, _) in enumerate(op.dims) if dim in op.coupled]
    for point in wanted:
        for others in product(*(range(op.dims[number][1]) for number in at)):
            moved = list(point)
            for number, value in zip(at, others, strict=True):
                moved[number] = value
            yield tuple(moved)


def _places(network: Network, op: Op, operand: Operand, point: Point) -> set[Point]:
    """The elements of an operand that a point touches."""
    shape = network.by_name[operand.tensor].shape
    if operand.index is None:
        return set(product(*map(range, shape)))
    loops = dict(zip((dim for dim, _ in op.dims), point, strict=True))
    axes = [_on_axis(axis, loops, size) for axis, size in zip(operand.index, shape, strict=True)]
    return set(product(*axes))


def _on_axis(axis: Index, loops: dict[str, int], size: int) -> list[int]:
    first = axis.offset + sum(factor * loops[dim] for dim, factor in axis.terms)
    reached = range(first, first + axis.reach + 1)
    places = [at // axis.divisor for at in reached if at % axis.divisor == 0]
    return [place for place in places if 0 <= place < size]


def test_positions_are_among_others_if_each_of_them_is() -> None:
    chance = Random(2)
    found = {True: 0, False: 0}
    for _ in range(400):
        mine, theirs = (sorted(chance.sample(range(7), chance.randint(1, 6))) for _ in range(2))
        if chance.random() < 0.5:
            theirs = sorted(chance.sample(mine, chance.randint(0, len(mine))))
        expected = set(theirs) <= set(mine)
        assert _holds_all(np.array(mine), np.array(theirs, dtype=np.int64)) == expected
        found[expected] += 1
    assert min(found.values()) > 100


@pytest.mark.parametrize("readers", [2, 5, MOST_LATTICES + 3])
def test_of_a_tensor_that_many_read_all_that_one_of_them_reads_is_needed(readers: int) -> None:
    """Each reads some of 5 x 5 pixels: every second or third one, of rows from some row on."""
    chance = Random(readers)
    for _ in range(4):
        net = layers.draft("many", 8)
        data = layers.conv(net, "first", layers.given(net, "x", (1, 1, 5, 5)), 1, layers.square(1))
        results = []
        for number in range(readers):
            first = chance.randrange(4)
            rows = layers.take(net, f"rows{number}", data, 2, (first, chance.randint(first + 1, 5)))
            window = layers.square(1, chance.randint(1, 3))
            results.append(layers.max_pool(net, f"pool{number}", rows, window).name)
        network = net.builder.finish(results)
        lattices = needed_points(network)["first"]
        points = {tuple(p) for lattice in lattices for p in product(*lattice)}
        assert points >= by_points(network)["first"]
        assert len(lattices) <= MOST_LATTICES
        if readers < MOST_LATTICES:
            assert points == by_points(network)["first"]


def test_no_point_that_an_output_depends_on_is_left_out() -> None:
    exact = left_out = 0
    for seed in range(20):
        network = random_network(seed)
        found, expected = needed_points(network), by_points(network)
        for op in network.ops:
            points = {tuple(p) for lattice in found[op.name] for p in product(*lattice)}
            assert points >= expected[op.name], (seed, op.name)
            exact += points == expected[op.name]
            left_out += len(points) < op.points
    # Hardly ever more than that, and often less than everything.
    assert exact > 0.9 * 60
    assert left_out > 10
