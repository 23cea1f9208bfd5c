"""The best of the plans for the scratchpads and for smaller ones."""

from bisect import bisect_right
from functools import cache
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.random_cases import examples, repeatable

from tilewright.machine.limits import with_memory_limits
from tilewright.machine.load import load_machine
from tilewright.machine.model import Machine
from tilewright.mapping.search import SearchOptions
from tilewright.network.load import load_network
from tilewright.plan_memory import cut_to
from tilewright.plan_sizes import best_of_sizes, most_tiles, size_at, step_of
from tilewright.planner import Plan, PlanOptions, plan
from tilewright.program.lower import Prepared, prepare
from tilewright.program.places import places_of

UNCHECKED = PlanOptions(objective="energy", checked=False)
GRID = sorted({m << k for m in range(8, 16) for k in range(25)} | set(range(8)))

Sizes = tuple[int, ...]


def sizes_of(machine: Machine) -> Sizes:
    return tuple(m.size_bytes for m in machine.memories if m.role == "scratchpad")


def resized(machine: Machine, sizes: Sizes) -> Machine:
    pads = [m.name for m in machine.memories if m.role == "scratchpad"]
    return with_memory_limits(machine, tuple(zip(pads, sizes, strict=True)))


def prepared(machine: Machine) -> Prepared:
    network = load_network("lenet5")
    return prepare(network, machine, network.ops, SearchOptions())


@cache
def some_plan() -> Plan:
    return plan(load_network("lenet5"), load_machine("ethos_u55_128"), UNCHECKED)


def planned_for(on: str, sizes: Sizes, least: int, gaps: tuple[int, ...] = ()) -> list[Sizes]:
    """The sizes that are planned for, if those from the least on have a plan but for some."""
    machine, asked = load_machine(on), list[Sizes]()

    def plan_on(other: Machine) -> Plan | None:
        asked.append(sizes_of(other))
        fits = min(sizes_of(other)) >= least and not set(sizes_of(other)) & set(gaps)
        return some_plan() if fits else None

    best_of_sizes(plan_on, machine, prepared(resized(machine, sizes)), UNCHECKED)
    return asked


def test_sizes_of_the_grid_follow_each_other() -> None:
    assert [size_at(step) for step in range(len(GRID))] == GRID


@given(st.integers(0, 1 << 24))
def test_a_size_counts_as_the_next_smaller_one_of_the_grid(size: int) -> None:
    assert step_of(size) == bisect_right(GRID, size) - 1


def test_all_sizes_of_the_grid_are_planned_for_until_two_in_a_row_have_no_plan() -> None:
    # 1,000 B are 15 units of 64 B, and fewer than 32 units are all in the grid.
    assert planned_for("npu_37xx", (1000,), least=512) == [
        (64 * units,) for units in range(15, 5, -1)
    ]
    with_gap = planned_for("npu_37xx", (1000,), least=512, gaps=(640, 768))
    assert with_gap == planned_for("npu_37xx", (1000,), least=512)
    at_gap = planned_for("npu_37xx", (1000,), least=512, gaps=(640, 704))
    assert at_gap[-1] == (640,)


def test_the_size_of_the_machine_is_planned_for_though_it_is_between_two_of_the_grid() -> None:
    # 1,936 KiB are 15.125 times 128 KiB.
    asked = [size // 1024 for (size,) in planned_for("npu_37xx", (2 << 20,), least=1 << 20)]
    assert asked[:4] == [2048, 1936, 1920, 1792]
    assert 1936 not in [
        size // 1024 for (size,) in planned_for("npu_37xx", (1935 << 10,), least=1 << 20)
    ]


@settings(repeatable, max_examples=examples(20))
@given(st.lists(st.integers(40_000, 3_000_000), min_size=2, max_size=2).map(sorted))
def test_with_more_memory_more_is_planned_for(sizes: list[int]) -> None:
    less, more = (planned_for("npu_37xx", (size,), least=40_000) for size in sizes)
    assert set(less) <= set(more)


def test_with_more_of_one_scratchpad_or_of_all_more_is_planned_for() -> None:
    whole = sizes_of(load_machine("edge_tpu_like"))
    assert whole == (32 << 10, 2 << 20)
    cuts = [1.0, 0.92, 0.7, 0.5]
    for share in (cuts, [1.0] * 4), ([1.0] * 4, cuts), (cuts, cuts):
        asked = [
            set(planned_for("edge_tpu_like", (int(whole[0] * a), int(whole[1] * b)), 8 << 10))
            for a, b in zip(*share, strict=True)
        ]
        for more, less in pairwise(asked):
            assert less < more
    both = planned_for("edge_tpu_like", (20_000, 500_000), 8 << 10)
    assert both[0] == (18 << 10, 30 << 14)


def test_a_better_plan_for_a_smaller_scratchpad_is_one_for_all_of_it() -> None:
    whole = cut_to(load_machine("eyeriss_like"), 0.5)
    half = cut_to(whole, 0.5)
    network, options = load_network("lenet5"), PlanOptions(smaller_tasks=0)
    for_whole, for_half = (plan(network, machine, options) for machine in (whole, half))
    assert for_half.cycles < for_whole.cycles, "larger tiles are no longer worse: take another case"

    def plan_on(other: Machine) -> Plan | None:
        fits = min(sizes_of(other)) >= min(sizes_of(half))
        return (for_half if other == half else for_whole) if fits else None

    found = best_of_sizes(plan_on, whole, prepared(whole), options)
    assert found is not None
    assert found.cycles == for_half.cycles
    assert found.timetable.slots == for_half.timetable.slots
    assert found.machine == whole
    assert found.options == options
    assert found.program.spaces == places_of(whole).spaces
    assert found.roofline == for_whole.roofline
    assert found.bounds.cycles <= for_half.bounds.cycles


def test_there_is_none_if_no_size_has_a_plan() -> None:
    machine = load_machine("seneca")
    assert best_of_sizes(lambda other: None, machine, prepared(machine), UNCHECKED) is None


def test_a_plan_that_cannot_be_better_is_enough() -> None:
    machine, asked = load_machine("seneca"), list[Machine]()
    whole = prepared(machine)
    best = plan(load_network("lenet5"), machine, PlanOptions(objective="traffic"))
    assert best.outside_bytes == whole.bounds.traffic_bytes

    def plan_on(other: Machine) -> Plan:
        asked.append(other)
        return best

    best_of_sizes(plan_on, machine, whole, best.options)
    assert asked == [machine]


def test_a_small_network_is_not_cut_as_often_as_a_large_one() -> None:
    # 1,814,073,344 multiplications alone are more than 5,000 times 2,048.
    assert most_tiles(load_network("resnet18")) == 5_000
    # 416,520 multiplications are 203 times 2,048, and other ops do less than a tenth of that.
    assert most_tiles(load_network("lenet5")) == 250
