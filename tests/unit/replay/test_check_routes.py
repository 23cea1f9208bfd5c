"""Transfers against the ways they go: engine, ports, cycles, bytes and energy.

Of the draft's ways each takes two cycles to set up and then moves 32 bytes in three.
"""

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.draft_changes import change_task, number, task
from tests.timetable_builder import CMX, DRAM, Draft, views_draft, views_network

from tilewright.errors import Problem
from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import Network
from tilewright.network.nests import elementwise
from tilewright.program.model import Access, Charge, Engine, Program, Route, Task
from tilewright.replay import check_routes
from tilewright.replay.check import problems


@pytest.fixture
def draft() -> Draft:
    return views_draft()


def route_problems(program: Program, network: Network) -> list[Problem]:
    return list(check_routes.route_problems(program, network, range(len(program.tasks))))


def found(draft: Draft) -> list[str]:
    return [p.message for p in problems(draft.timetable(), views_network())]


def charged(name: str, *charges: Charge) -> list[str]:
    """What is said of the draft's program with other charges for a task."""
    program = views_draft().timetable().program
    tasks = tuple(
        replace(task, charges=charges) if task.name == name else task for task in program.tasks
    )
    return [p.message for p in route_problems(replace(program, tasks=tasks), views_network())]


class TestTime:
    def test_a_transfer_takes_at_least_what_its_bytes_take(self, draft: Draft) -> None:
        """The 32 bytes of e: 2 + 3 cycles."""
        at = number(draft, "store e")
        for cycles in (8, 5, 4):
            draft.tasks[at] = replace(draft.tasks[at], cycles=cycles)
            draft.slots[at] = replace(draft.slots[at], end_cycle=26 + cycles)
            expected = "task store e takes 4 cycles, and 32 bytes from cmx[0] to dram take 5"
            assert found(draft) == ([expected] if cycles == 4 else [])

    def test_half_a_cycle_is_a_cycle(self, draft: Draft) -> None:
        """The 16 bytes of x: 2 + 1.5 cycles."""
        at = number(draft, "load x")
        for cycles in (4, 3):
            draft.tasks[at] = replace(draft.tasks[at], cycles=cycles)
            draft.slots[at] = replace(draft.slots[at], end_cycle=cycles)
            expected = "task load x takes 3 cycles, and 16 bytes from dram to cmx[0] take 4"
            assert found(draft) == ([expected] if cycles == 3 else [])


class TestWays:
    def test_without_a_way_there_is_no_transfer(self) -> None:
        program = views_draft().timetable().program
        outwards = tuple(route for route in program.routes if route.target == "dram")
        wrong = replace(program, routes=outwards)
        assert [p.message for p in route_problems(wrong, views_network())] == [
            "task load x, a load, goes from dram to cmx[0], and no way does",
            "task load w, a load, goes from dram to cmx[0], and no way does",
        ]

    def test_the_engine_is_the_ways(self, draft: Draft) -> None:
        draft.engines = (*draft.engines, Engine(name="dma2"))
        change_task(draft, "load x", replace(task(draft, "load x"), engine="dma2"))
        assert found(draft) == ["task load x is on dma2, and the way from dram to cmx[0] is dma's"]

    def test_the_ports_are_the_ways(self, draft: Draft) -> None:
        change_task(draft, "load x", replace(task(draft, "load x"), ports=()))
        assert found(draft) == [
            "task load x does not hold port port, and the way from dram to cmx[0] leads through it"
        ]

    def test_ports_are_held_as_soon_as_bytes_flow(self, draft: Draft) -> None:
        change_task(draft, "load x", replace(task(draft, "load x"), setup_cycles=5))
        assert found(draft) == [
            "task load x holds its ports from 5 cycles after its start on, and the way from dram "
            "to cmx[0] takes 2 to set up"
        ]


class TestCharges:
    def test_of_another_number_of_bytes(self) -> None:
        read, written = Charge("dram", 15, 0, 0.0), Charge("cmx", 0, 16, 0.0)
        assert charged("load x", read, written) == [
            "task load x is charged for 15 bytes read, 0 written and 0 pJ at dram, and does 16, 0 "
            "and 0 pJ"
        ]

    def test_of_another_memory(self) -> None:
        assert [m.split(" at ")[1] for m in charged("load x", Charge("dram", 16, 16, 0.0))] == [
            "dram, and does 16, 0 and 0 pJ",
            "cmx, and does 0, 16 and 0 pJ",
        ]

    def test_of_energy_that_nothing_takes(self) -> None:
        free, dear = Charge("dram", 16, 0, 0.0), Charge("cmx", 0, 16, 2.0)
        assert charged("load x", free, dear) == [
            "task load x is charged for 0 bytes read, 16 written and 2 pJ at cmx, and does 0, 16 "
            "and 0 pJ"
        ]


def two_targets() -> tuple[Program, Network]:
    """Ten elements of four bits to two cores at once, and back as sums of 16 bits."""
    builder = NetworkBuilder("pair")
    builder.tensor("x", (10,), bits=4, role="input")
    builder.op("relu", "relu", elementwise((10,)), ["x"], {"y": (4, "")})
    spaces = (DRAM, CMX, replace(CMX, name="cmx[1]", core=1))
    draft = Draft(spaces=spaces)
    box = ((0, 10),)
    buffers = [draft.buffer(f"x@{space.name}", box, 0) for space in spaces]
    sums = [draft.buffer(f"y@{name}", box, 16) for name in ("cmx[0]", "dram")]
    draft.buffers = [
        replace(buffer, size_bytes=5 if at in buffers else 20)
        for at, buffer in enumerate(draft.buffers)
    ]
    program = draft.timetable().program
    far, *near = (Access(buffer, box) for buffer in buffers)
    bring = Task(
        name="bring",
        kind="load",
        engine="dma",
        cycles=9,
        reads=(far,),
        writes=tuple(near),
        charges=(Charge("dram", 5, 0, 10.0), Charge("cmx", 0, 10, 30.0)),
    )
    send = Task(
        name="send",
        kind="store",
        engine="dma",
        cycles=12,
        reads=(Access(sums[0], box),),
        writes=(Access(sums[1], box),),
        charges=(Charge("cmx", 20, 0, 20.0), Charge("dram", 0, 20, 80.0)),
    )
    routes = (
        _way("dram", "cmx[0]", 4, (2.0, 3.0)),
        _way("dram", "cmx[1]", 1, (2.0, 3.0)),
        _way("cmx[0]", "dram", 2, (1.0, 4.0)),
    )
    return replace(program, tasks=(bring, send), routes=routes), builder.finish(["y"])


def _way(source: str, target: str, bytes_per_cycle: int, prices: tuple[float, float]) -> Route:
    return Route(
        source=source,
        target=target,
        engine="dma",
        setup_cycles=2 if target == "dram" else 4,
        bytes_per_cycle=Fraction(bytes_per_cycle),
        read_pj_per_byte=prices[0],
        write_pj_per_byte=prices[1],
    )


class TestSeveralTargets:
    """5 bytes to two cores: the slower way takes 4 + 5 cycles; sums of 20 bytes 2 + 10 to leave.

    They are read once at 2 pJ, and written twice at 3 pJ.
    """

    def test_what_goes_to_two_places_is_read_once_and_written_twice(self) -> None:
        assert route_problems(*two_targets()) == []

    @pytest.mark.parametrize(
        ("name", "cycles", "expected"),
        [
            ("bring", 8, "task bring takes 8 cycles, and 5 bytes from dram to cmx[1] take 9"),
            ("send", 11, "task send takes 11 cycles, and 20 bytes from cmx[0] to dram take 12"),
        ],
    )
    def test_the_slowest_way_decides(self, name: str, cycles: int, expected: str) -> None:
        program, network = two_targets()
        tasks = tuple(
            replace(task, cycles=cycles) if task.name == name else task for task in program.tasks
        )
        said = route_problems(replace(program, tasks=tasks), network)
        assert [problem.message for problem in said] == [expected]

    @pytest.mark.parametrize("cycles", [6, 7])
    def test_two_copies_in_one_scratchpad_take_the_time_of_both(self, cycles: int) -> None:
        """10 bytes in 4 + 2.5 cycles, and not 5 in 4 + 1.25."""
        program, network = two_targets()
        near = tuple(
            replace(buffer, space="cmx[0]") if buffer.space == "cmx[1]" else buffer
            for buffer in program.buffers
        )
        bring = replace(program.tasks[0], cycles=cycles)
        together = replace(program, buffers=near, tasks=(bring, program.tasks[1]))
        expected = "task bring takes 6 cycles, and 10 bytes from dram to cmx[0] take 7"
        said = [problem.message for problem in route_problems(together, network)]
        assert said == ([expected] if cycles == 6 else [])

    def test_being_charged_for_one_target_is_not_enough(self) -> None:
        program, network = two_targets()
        bring, send = program.tasks
        cheap = (Charge("dram", 5, 0, 10.0), Charge("cmx", 0, 5, 15.0))
        wrong = replace(program, tasks=(replace(bring, charges=cheap), send))
        assert [problem.message for problem in route_problems(wrong, network)] == [
            "task bring is charged for 0 bytes read, 5 written and 15 pJ at cmx, and does 0, 10 "
            "and 30 pJ"
        ]
