"""The emulator on a machine of two memories and two engines: what runs, what every fault says."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tilewright.errors import InputError
from tilewright.network import nests
from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import Network
from tilewright.program.model import (
    Access,
    Buffer,
    Charge,
    Engine,
    Program,
    Route,
    Slot,
    Space,
    Task,
    Timetable,
    View,
)
from tilewright.replay.emulate import Replay, replay
from tilewright.replay.values import Values

X = np.array([1, -2, 3, -4, 5, -6, 7, -8], dtype=np.float32)
LEFT, RIGHT, WHOLE = ((0, 4),), ((4, 8),), ((0, 8),)


def network() -> Network:
    """y = max(x, 0) over eight bytes."""
    builder = NetworkBuilder("net")
    builder.tensor("x", (8,), bits=8, role="input")
    builder.op("relu", "relu", nests.elementwise((8,)), ["x"], {"y": (8, "")})
    return builder.finish(["y"])


def transfer(name: str, kind: str, source: Access, target: Access, after: tuple[int, ...]) -> Task:
    memories = ("dram", "sram") if kind == "load" else ("sram", "dram")
    return Task(
        name=name,
        kind="load" if kind == "load" else "store",
        engine="dma",
        cycles=4,
        reads=(source,),
        writes=(target,),
        after=after,
        charges=(Charge(memories[0], 4, 0, 8.0), Charge(memories[1], 0, 4, 12.0)),
    )


def relu(name: str, source: Access, target: Access, span: tuple[int, int], after: int) -> Task:
    return Task(
        name=name,
        kind="compute",
        engine="core[0]",
        cycles=2,
        reads=(source,),
        writes=(target,),
        after=(after,),
        op="relu",
        tile=(("K", *span),),
    )


def timetable() -> Timetable:
    """Two tiles: each is loaded, rectified in place and stored; the second reuses the first's room.

    Buffers: 0 x in DRAM, 1 y in DRAM, 2 and 4 tiles of x in the scratchpad, 3 and 5 those of y,
    which take the place of x.
    """
    buffers = (
        Buffer(name="x", tensor="x", box=WHOLE, space="dram", size_bytes=8),
        Buffer(name="y", tensor="y", box=WHOLE, space="dram", size_bytes=8),
        Buffer(name="x left", tensor="x", box=LEFT, space="sram", size_bytes=4),
        Buffer(name="y left", tensor="y", box=LEFT, space="sram", size_bytes=4, view=View(2, (0,))),
        Buffer(name="x right", tensor="x", box=RIGHT, space="sram", size_bytes=4),
        Buffer(
            name="y right", tensor="y", box=RIGHT, space="sram", size_bytes=4, view=View(4, (4,))
        ),
    )
    tasks = (
        transfer("load left", "load", Access(0, LEFT), Access(2, LEFT), ()),
        relu("relu left", Access(2, LEFT), Access(3, LEFT), (0, 4), 0),
        transfer("store left", "store", Access(3, LEFT), Access(1, LEFT), (1,)),
        transfer("load right", "load", Access(0, RIGHT), Access(4, RIGHT), ()),
        relu("relu right", Access(4, RIGHT), Access(5, RIGHT), (4, 8), 3),
        transfer("store right", "store", Access(5, RIGHT), Access(1, RIGHT), (4,)),
    )
    program = Program(
        name="net",
        spaces=(
            Space(name="dram", memory="dram", kind="external", size_bytes=64),
            Space(name="sram", memory="sram", kind="scratchpad", size_bytes=4),
        ),
        engines=(Engine(name="dma", count=2), Engine(name="core[0]")),
        routes=tuple(
            Route(
                source=a,
                target=b,
                engine="dma",
                setup_cycles=0,
                bytes_per_cycle=Fraction(1),
                read_pj_per_byte=2.0,
                write_pj_per_byte=3.0,
            )
            for a, b in (("dram", "sram"), ("sram", "dram"))
        ),
        buffers=buffers,
        tasks=tasks,
        given=(0,),
        results=(1,),
    )
    starts = (0, 4, 6, 10, 14, 16)
    slots = tuple(
        Slot(start_cycle=start, end_cycle=start + task.cycles, instance=number // 3 % 2)
        if task.engine == "dma"
        else Slot(start_cycle=start, end_cycle=start + task.cycles)
        for number, (start, task) in enumerate(zip(starts, tasks, strict=True))
    )
    return Timetable(program=program, slots=slots, addresses=(0, 8, 0, 0, 0, 0), edges=((2, 3),))


def run(wrong: Timetable) -> Replay:
    return replay(wrong, network(), Values(arrays={"x": X}))


def with_task(number: int, **changes: object) -> Timetable:
    plan = timetable()
    tasks = list(plan.program.tasks)
    tasks[number] = replace(tasks[number], **changes)  # type: ignore[arg-type]  # tests change all
    return replace(plan, program=replace(plan.program, tasks=tuple(tasks)))


def with_slot(number: int, start: int) -> Timetable:
    plan = timetable()
    slots = list(plan.slots)
    cycles = plan.program.tasks[number].cycles
    slots[number] = replace(slots[number], start_cycle=start, end_cycle=start + cycles)
    return replace(plan, slots=tuple(slots))


def with_buffer(number: int, **changes: object) -> Timetable:
    plan = timetable()
    buffers = list(plan.program.buffers)
    buffers[number] = replace(buffers[number], **changes)  # type: ignore[arg-type]  # as above
    return replace(plan, program=replace(plan.program, buffers=tuple(buffers)))


def message(wrong: Timetable) -> str:
    found = run(wrong)
    assert found.problems
    return "\n".join(problem.message for problem in found.problems)


def test_a_correct_plan_computes_the_network() -> None:
    found = run(timetable())
    assert found.problems == ()
    np.testing.assert_array_equal(found.outputs["y"], [1, 0, 3, 0, 5, 0, 7, 0])


def test_traffic_is_what_the_boxes_say() -> None:
    # Two loads and two stores of four bytes; 2 pJ per byte read, 3 pJ per byte written.
    traffic = run(timetable()).traffic
    assert (traffic["dram"].read_bytes, traffic["dram"].write_bytes) == (8, 8)
    assert (traffic["sram"].read_bytes, traffic["sram"].write_bytes) == (8, 8)
    assert traffic["dram"].energy_pj == 8 * 2 + 8 * 3


def test_a_read_of_overwritten_bytes_names_both_tasks_buffer_address_and_cycles() -> None:
    # The second tile is loaded while the first still waits to be stored.
    text = message(replace(with_slot(3, 5), edges=()))
    assert "task store left (cycles 6 to 10)" in text
    assert "[0:4] of buffer y left at 0 of sram" in text
    assert "task load right (cycles 5 to 9) wrote [4:8] of buffer x right at 0 of sram" in text


def test_a_task_that_starts_before_its_input_is_there_is_reported() -> None:
    text = message(with_slot(1, 3))
    assert "task relu left starts at 3, before load left, which it waits for, ends at 4" in text


def test_an_unfinished_write_cannot_be_read() -> None:
    plan = with_task(1, after=())
    slots = list(plan.slots)
    slots[1] = replace(slots[1], start_cycle=3, end_cycle=5)
    text = message(replace(plan, slots=tuple(slots)))
    assert "task relu left (cycles 3 to 5) reads [0:4] of buffer x left at 0 of sram" in text
    assert "task load left (cycles 0 to 4) wrote" in text


def test_bytes_that_were_never_written_cannot_be_read() -> None:
    text = message(with_task(0, reads=(), writes=(), kind="load", op=""))
    assert "task relu left (cycles 4 to 6) reads [0:4] of buffer x left at 0 of sram" in text
    assert "nothing was ever written there" in text


def test_stale_bytes_of_another_tensor_in_the_same_place_are_noticed() -> None:
    # Without the second relu, the store takes x, which still lies where y should be.
    text = message(with_task(4, reads=(), writes=(), op="", kind="store"))
    assert "task store right (cycles 16 to 20) reads [4:8] of buffer y right" in text
    assert "task load right (cycles 10 to 14) wrote [4:8] of buffer x right" in text


def test_a_dropped_control_edge_is_a_race() -> None:
    text = message(replace(timetable(), edges=()))
    assert "task load right (cycles 10 to 14) share memory, and no wait orders them" in text


def test_the_order_of_an_engine_counts_as_a_wait() -> None:
    plan = replace(timetable(), edges=())
    slots = tuple(replace(slot, instance=0) for slot in plan.slots)
    assert run(replace(plan, slots=slots)).problems == ()


def test_a_dropped_wait_for_data_is_a_race() -> None:
    assert "no wait orders them" in message(with_task(4, after=()))


def test_a_buffer_too_short_for_its_elements_is_reported() -> None:
    text = message(with_buffer(2, size_bytes=3))
    assert "buffer x left has 3 bytes; 4 elements of 8 bits take 4" in text


def test_a_buffer_beyond_the_end_of_its_memory_is_reported() -> None:
    plan = timetable()
    text = message(replace(plan, addresses=(0, 8, 1, 1, 0, 0)))
    assert "buffer x left lies at 1:5 of sram, which has 4 bytes" in text


def test_a_shifted_address_in_dram_destroys_what_lies_there() -> None:
    # y now begins inside x, of which the right half is still needed.
    plan = timetable()
    text = message(replace(plan, addresses=(0, 2, 0, 0, 0, 0)))
    assert "task load right (cycles 10 to 14) reads [4:8] of buffer x at 4 of dram" in text
    assert "task store left (cycles 6 to 10) wrote [0:4] of buffer y at 2 of dram" in text


def test_a_view_at_an_address_that_is_not_its_own_is_reported() -> None:
    plan = timetable()
    assert "as a part of x left it lies at 0" in message(
        replace(plan, addresses=(0, 8, 0, 1, 0, 0))
    )


def test_a_missing_halo_is_named_by_its_first_element() -> None:
    text = message(with_task(1, reads=(Access(2, ((0, 3),)),)))
    assert "needs [0:4] of x and reads [0:3] of it: element (3,) is missing" in text


def test_a_transfer_of_another_part_is_reported() -> None:
    text = message(with_task(0, reads=(Access(0, RIGHT),)))
    assert "copies [4:8] of x to where [0:4] lies" in text


def test_a_tile_that_writes_what_it_does_not_make_is_reported() -> None:
    text = message(with_task(1, tile=(("K", 0, 3),)))
    assert "writes [0:4] of y and makes [0:3] of it" in text


def test_bytes_that_a_transfer_claims_must_be_those_of_its_boxes() -> None:
    text = message(with_task(0, charges=(Charge("dram", 5, 0, 8.0), Charge("sram", 0, 4, 12.0))))
    assert "task load left claims 5 bytes read" in text
    assert "its boxes make that 4" in text


def test_an_engine_that_does_two_things_at_once_is_reported() -> None:
    # The second relu on the core while the first one runs: nothing else is wrong with it.
    plan = with_slot(4, 5)
    text = message(plan)
    assert "instance 0 of core[0] starts relu right at 5, while it works on relu left" in text


def test_what_is_computed_is_compared_with_what_is_expected() -> None:
    expected = {"y": np.array([1, 0, 3, 0, 5, 9, 7, 0], dtype=np.float32)}
    found = replay(timetable(), network(), Values(arrays={"x": X}), expected=expected)
    assert [problem.message for problem in found.problems] == [
        "task relu right (cycles 14 to 16) computes [4:8] of y wrongly: it differs by 1"
    ]


def test_an_output_that_no_result_holds_is_missed() -> None:
    plan = timetable()
    wrong = replace(plan, program=replace(plan.program, results=()))
    assert "no result of the plan holds output y" in message(wrong)


def test_a_tensor_without_values_is_an_input_error() -> None:
    with pytest.raises(InputError, match="tensor 'x' has no value"):
        replay(timetable(), network(), Values(arrays={}))
