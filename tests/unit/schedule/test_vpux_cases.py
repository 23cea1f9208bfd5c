"""Outcomes of another compiler's public tests that any correct scheduler must reach, or beat."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from tests.reference_data import ABSENT, REFERENCE_DATA
from tests.schedule_emulator import check_engines, check_memory, lives
from tests.schedule_programs import Builder

from tilewright.program.model import Program, Space, Timetable
from tilewright.replay.check import problems
from tilewright.replay.timing import timing
from tilewright.schedule.control_edges import control_edges
from tilewright.schedule.schedule import schedule

CASES = REFERENCE_DATA / "oracle" / "vpux_cases.json"
Case = dict[str, Any]


def schedule_cases() -> list[Case]:
    if not CASES.exists():
        return []
    cases = json.loads(CASES.read_text("utf-8"))["cases"]
    return [case for case in cases if case["kind"] == "schedule"]


def lanes(case: Case, transfer: Case) -> int:
    """A transfer cut over the clusters takes every port, any other takes one."""
    moved = {*transfer["reads"], *transfer["writes"]}
    modes = [buffer.get("mode") for buffer in case["buffers"] if buffer["name"] in moved]
    return int(case["hardware"]["dma_ports"]) if "SEGMENTED" in modes else 1


def program_of(case: Case) -> Program:
    hardware = case["hardware"]
    engines = {"dma": hardware["dma_ports"], "lane": hardware["dma_ports"]}
    engines |= {op["engine"]: 1 for op in case["ops"] if op["engine"] != "DMA"}
    builder = Builder(
        hardware["cmx_bytes"],
        engines,
        alignment_bytes=hardware["alignment"],
        reserved=[(begin, end) for begin, end in hardware.get("reserved", [])],
        bytes_per_cycle=Fraction(24),
    )
    buffers = {b["name"]: builder.buffer(b["name"], b["bytes"]) for b in case["buffers"]}
    tasks: dict[str, int] = {}
    for op in case["ops"]:
        reads = [buffers[name] for name in op["reads"]]
        writes = [buffers[name] for name in op["writes"]]
        if op["engine"] != "DMA":
            task = builder.task(op["name"], op["engine"], op["cycles"], reads, writes)
        elif writes:
            task = builder.load(writes[0], op["cycles"], op["name"])
        else:
            task = builder.store(reads[0], op["cycles"], op["name"])
        before = {*builder.tasks[task].after, *(tasks[name] for name in op["after"])}
        builder.tasks[task] = replace(
            builder.tasks[task],
            after=tuple(sorted(before)),
            ports=() if op["engine"] != "DMA" else ("lane",) * lanes(case, op),
        )
        tasks[op["name"]] = task
    builder.results += [buffers[name] for name in case.get("held_to_end", [])]
    builder.routes = [replace(route, ports=("lane",)) for route in builder.routes]
    return builder.program(case["id"])


def is_ordered(timetable: Timetable, first: int, second: int) -> bool:
    """Whether one of two tasks waits for the other, directly or not, whatever their engines do."""
    waits = [set(task.after) for task in timetable.program.tasks]
    for before, behind in control_edges(timetable):
        waits[behind].add(before)

    def is_behind(task: int, other: int) -> bool:
        return any(before == other or is_behind(before, other) for before in sorted(waits[task]))

    return is_behind(first, second) or is_behind(second, first)


def numbers_of(timetable: Timetable, name: str) -> list[int]:
    """Tasks by a case's name for them; `SW:x` are the transfers that write x out of the way."""
    if not name.startswith("SW:"):
        return [n for n, task in enumerate(timetable.program.tasks) if task.name == name]
    return [
        number
        for number, task in enumerate(timetable.program.tasks)
        if task.kind == "store" and task.name.startswith(f"{name[3:]}#saved")
    ]


def high_water_bytes(timetable: Timetable) -> int:
    buffers = timetable.program.buffers
    return max(
        timetable.addresses[root] + buffers[root].size_bytes
        for root in lives(timetable)
        if buffers[root].space == "cmx"
    )


@pytest.mark.skipif(not CASES.exists(), reason=ABSENT)
def test_there_are_cases() -> None:
    assert len(schedule_cases()) == 12


@pytest.mark.parametrize("case", schedule_cases(), ids=lambda case: str(case["id"]))
def test_the_portable_outcome_holds(case: Case) -> None:
    program = program_of(case)
    timetable = schedule(program)
    check_engines(timetable)
    check_memory(timetable)
    assert problems(timetable) == []
    expected = case["expect"]["portable"]
    new = timetable.program.tasks[len(program.tasks) :]
    fetched = [task for task in new if task.kind == "load"]
    left = {timetable.program.buffers[task.writes[0].buffer].tensor for task in fetched}
    assert high_water_bytes(timetable) <= expected.get("peak_bytes_max", 1 << 60)
    assert len(fetched) >= expected.get("evictions_min", 0)
    assert len(fetched) <= expected.get("evictions_max", 1 << 60)
    assert set(expected.get("must_leave", ())) <= left
    assert timetable.cycles <= expected.get("makespan_max", 1 << 60)
    # Better than asked: what still exists outside is never written there again.
    if left <= set(expected.get("rematerialisable", ())):
        assert [task.name for task in new if task.kind == "store"] == []
    sizes = timetable.program.buffers
    read = sum(sizes[task.writes[0].buffer].size_bytes for task in fetched)
    assert read <= expected.get("extra_ddr_read_bytes_max", 1 << 60)
    slots = {t.name: s for t, s in zip(timetable.program.tasks, timetable.slots, strict=True)}
    for first, second in expected.get("starts_before_end_of", ()):
        assert slots[first].start_cycle < slots[second].end_cycle
    for first, second in expected.get("must_not_depend", ()):
        for pair in product(numbers_of(timetable, first), numbers_of(timetable, second)):
            assert not is_ordered(timetable, *pair)
    numbers = {buffer.name: number for number, buffer in enumerate(timetable.program.buffers)}
    for old, new_buffer, reader, writer in expected.get("if_same_place", ()):
        if timetable.addresses[numbers[old]] == timetable.addresses[numbers[new_buffer]]:
            assert slots[reader].end_cycle <= slots[writer].start_cycle


def case_named(name: str) -> Case:
    return next(case for case in schedule_cases() if case["id"] == name)


def read_once(program: Program, task_name: str) -> Program:
    """The same program, but what one of its loads reads comes from a sensor."""
    task = next(task for task in program.tasks if task.name == task_name)
    buffers = list(program.buffers)
    outside = task.reads[0].buffer
    buffers[outside] = replace(buffers[outside], space="sensor")
    sensor = Space(name="sensor", memory="sensor", kind="source", size_bytes=0, rereadable=False)
    return replace(program, buffers=tuple(buffers), spaces=(*program.spaces, sensor))


@pytest.mark.skipif(not CASES.exists(), reason=ABSENT)
def test_readers_of_one_place_do_not_wait_for_each_other() -> None:
    # The input is dropped in the case itself; read only once, it has to be written out.
    program = read_once(program_of(case_named("sched-no-edge-between-readers")), "in")
    timetable = schedule(program)
    assert problems(timetable) == []
    (pool,), (out,) = numbers_of(timetable, "pool"), numbers_of(timetable, "SW:b_in")
    assert timetable.program.tasks[out].writes[0].box == ((0, 576000),)
    assert not is_ordered(timetable, pool, out)
    # The input itself, on the other hand, both of them wait for.
    (load,) = numbers_of(timetable, "in")
    assert is_ordered(timetable, load, out)
    assert is_ordered(timetable, load, pool)


@pytest.mark.skipif(not CASES.exists(), reason=ABSENT)
def test_a_transfer_over_both_ports_runs_alone() -> None:
    case = case_named("sched-ports-segmented")
    timetable = schedule(program_of(case))
    times = {
        task.name: (slot.start_cycle, slot.end_cycle)
        for task, slot in zip(timetable.program.tasks, timetable.slots, strict=True)
    }
    assert times["w_in"] == times["wt_in"]
    assert times["x_in"] != times["w_in"]
    # One cycle each: x, both weights at once, the convolution, its result.
    ends = [end for _, end in case["expect"]["vpux_exact"]["cycles"].values()]
    assert timetable.cycles == max(ends) == 4
    assert timing(timetable) == 4


def test_a_transfer_that_takes_both_lanes_shares_them_with_nobody() -> None:
    # Copies of 4 and 7 cycles flow side by side; the third holds both lanes for 2 cycles, before or
    # behind them, though a third instance of the engine is idle. Then the sum: 2 + 7 + 1 cycles.
    builder = Builder(64, {"dma": 3, "lane": 2, "core": 1})
    inputs = [builder.buffer(f"x{number}", 4) for number in range(3)]
    for buffer, cycles, n_lanes in zip(inputs, (4, 7, 2), (1, 1, 2), strict=True):
        task = builder.load(buffer, cycles)
        builder.tasks[task] = replace(builder.tasks[task], ports=("lane",) * n_lanes)
    result = builder.buffer("y", 4)
    builder.task("sum", "core", 1, inputs, [result])
    builder.results.append(result)
    timetable = schedule(builder.program())
    assert timetable.cycles == timing(timetable) == 10
    assert problems(timetable) == []


def test_the_large_weights_come_first_when_that_is_the_longest_path() -> None:
    # w2 (6144) + conv2 (686) + out (171) = 7001 is the longest path; taking the copies in the
    # order in which they are needed would end at 7706.
    builder = Builder(1 << 20, {"dma": 2, "core": 1}, bytes_per_cycle=Fraction(24))
    x, w1, t1, y1, w2, t2, y2 = (
        builder.buffer(name, size)
        for name, size in (
            ("x", 16384),
            ("w1", 36864),
            ("t1", 1024),
            ("y1", 8192),
            ("w2", 147456),
            ("t2", 2048),
            ("y2", 4096),
        )
    )
    for buffer, cycles in ((x, 683), (w1, 2172), (t1, 22)):
        builder.load(buffer, cycles)
    builder.task("conv1", "core", 734, [x, w1, t1], [y1])
    for buffer, cycles in ((w2, 6144), (t2, 61)):
        builder.load(buffer, cycles)
    builder.task("conv2", "core", 686, [y1, w2, t2], [y2])
    builder.store(y2, 171)
    assert schedule(builder.program()).cycles == 7001
