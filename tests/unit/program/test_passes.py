"""Tiles that come again in every pass of an outer loop, since they cannot all stay."""

from math import ceil, prod

import pytest
from tests.program_faults import faults
from tests.small_machines import Small, small_machine

from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.planner import PlanOptions, plan
from tilewright.program.lower import Lowered, lower, prepare

QUICK = SearchOptions(lpf_limit=3, unrollings=2)

CHANNELS, SIDE, KERNELS = 64, 16, 512


def product() -> Network:
    """256 x 64 numbers times 64 x 512 of them, as a convolution of single elements."""
    net = layers.draft("product", 8)
    data = layers.given(net, "x", (1, CHANNELS, SIDE, SIDE))
    return net.finish(layers.conv(net, "y", data, KERNELS, layers.square(1, 1, 0)))


def lowered(small: Small) -> Lowered:
    network = product()
    found = lower(prepare(network, small_machine(small), network.ops, QUICK), "latency")
    assert faults(found.program, network) == []
    return found


def loads(found: Lowered, tensor: str) -> list[tuple[int, int]]:
    """Elements of every transfer from outside that brings a tensor, and to how many cores."""
    program = found.program
    return [
        (prod(stop - start for start, stop in task.writes[0].box), len(task.writes))
        for task in program.tasks
        if task.kind == "load" and program.buffers[task.writes[0].buffer].tensor == tensor
    ]


@pytest.mark.parametrize("size_bytes", [3_000, 4_000, 6_000])
def test_what_cannot_stay_comes_once_in_every_pass_but_for_what_can(size_bytes: int) -> None:
    found = lowered(Small(size_bytes=size_bytes))
    (tiling,), passing = found.layout.tilings, found.layout.passing[0]
    outer = tiling.order[0]
    again = "x" if outer == "K" else "y.weight"
    assert {*passing} - {"y.bias"} == {again}
    passes = ceil({"K": KERNELS, "OY": SIDE}[outer] / tiling.lengths[outer])
    assert passes > 1
    moved = [elements for elements, _ in loads(found, again)]
    staying = moved[: passing[again].staying]
    whole = {"x": CHANNELS * SIDE * SIDE, "y.weight": CHANNELS * KERNELS}[again]
    assert sum(moved) == passes * whole - (passes - 1) * sum(staying)
    # What the outer loop goes through comes once.
    other = "y.weight" if again == "x" else "x"
    assert sum(elements for elements, _ in loads(found, other)) == (
        CHANNELS * KERNELS + CHANNELS * SIDE * SIDE - whole
    )


def test_cores_that_want_the_same_get_it_in_one_transfer_in_every_pass() -> None:
    found = lowered(Small(size_bytes=4_000, cores=2))
    passing = found.layout.passing[0]
    (again,) = {*passing} - {"y.bias"}
    (one, other), loop = found.layout.parts[0], {"x": "OY", "y.weight": "K"}[again]
    assert one[loop] == other[loop]
    moved = loads(found, again)
    assert {cores for _, cores in moved} == {2}
    whole = {"x": CHANNELS * SIDE * SIDE, "y.weight": CHANNELS * KERNELS}[again]
    assert sum(elements for elements, _ in moved) > whole


def test_what_fits_comes_once() -> None:
    found = lowered(Small(size_bytes=64 * 1024))
    assert found.layout.passing == {}
    assert sum(elements for elements, _ in loads(found, "x")) == CHANNELS * SIDE * SIDE
    assert sum(elements for elements, _ in loads(found, "y.weight")) == CHANNELS * KERNELS


@pytest.mark.parametrize("cores", [1, 2])
def test_no_tile_has_to_be_evicted(cores: int) -> None:
    machine = small_machine(Small(size_bytes=4_000, cores=cores, dma=True))
    found = plan(product(), machine, PlanOptions())
    assert not [task.name for task in found.timetable.program.tasks if "#fetched" in task.name]


def test_with_more_room_than_tiles_were_chosen_for_they_stay() -> None:
    small = lowered(Small(size_bytes=4_000)).layout
    spaces = prepare(
        product(), small_machine(Small(size_bytes=1 << 20)), product().ops, QUICK
    ).places.spaces
    assert small.passing
    assert small.in_room(spaces).passing == {}
    tight = prepare(product(), small_machine(Small(size_bytes=4_050)), product().ops, QUICK)
    assert small.in_room(tight.places.spaces) == small
