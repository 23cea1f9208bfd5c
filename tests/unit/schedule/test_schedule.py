"""Small programs whose best schedules are known by hand."""

from dataclasses import replace
from fractions import Fraction

from tests.schedule_emulator import check_timetable, lives
from tests.schedule_programs import Builder

from tilewright.program.model import Access, Engine, Program, Space, Task, Timetable
from tilewright.schedule.options import ScheduleOptions
from tilewright.schedule.schedule import schedule


def checked(program: Program, options: ScheduleOptions | None = None) -> Timetable:
    timetable = schedule(program) if options is None else schedule(program, options)
    check_timetable(program, timetable)
    return timetable


def added(program: Program, timetable: Timetable) -> list[Task]:
    return list(timetable.program.tasks[len(program.tasks) :])


def starts(timetable: Timetable) -> dict[str, int]:
    tasks = timetable.program.tasks
    return {t.name: s.start_cycle for t, s in zip(tasks, timetable.slots, strict=True)}


def high_water_bytes(timetable: Timetable, space: str = "cmx") -> int:
    buffers = timetable.program.buffers
    return max(
        timetable.addresses[root] + buffers[root].size_bytes
        for root in lives(timetable)
        if buffers[root].space == space
    )


def test_a_chain_needs_two_places() -> None:
    builder = Builder(100, {"dma": 1, "core": 1})
    last = builder.buffer("x0", 10)
    builder.task("op0", "core", 5, [], [last])
    for number in range(1, 6):
        following = builder.buffer(f"x{number}", 10)
        builder.task(f"op{number}", "core", 5, [last], [following])
        last = following
    timetable = checked(builder.program())
    assert timetable.cycles == 30
    assert high_water_bytes(timetable) == 20


def test_the_second_weights_come_while_the_first_op_runs() -> None:
    # Load w1 0-10, op1 10-30 while w2 comes 10-25, op2 30-40.
    builder = Builder(100, {"dma": 1, "core": 1})
    w1, x1, w2, x2 = (builder.buffer(n, s) for n, s in zip("abcd", (10, 5, 15, 5), strict=True))
    builder.load(w1)
    builder.task("op1", "core", 20, [w1], [x1])
    builder.load(w2)
    builder.task("op2", "core", 10, [x1, w2], [x2])
    assert checked(builder.program()).cycles == 40


def test_without_prefetch_the_second_weights_wait_for_the_second_op_to_be_next() -> None:
    # op1 has started at 10, so op2 is the next one, and its data may come then at the earliest.
    builder = Builder(100, {"dma": 1, "core": 1})
    buffers = [builder.buffer(f"b{number}", 10) for number in range(6)]
    for number in (0, 1, 2):
        builder.load(buffers[number])
        builder.task(f"op{number}", "core", 1, [buffers[number]], [buffers[3 + number]])
    lazy = checked(builder.program(), ScheduleOptions(prefetch=False, small_tasks=0))
    eager = checked(builder.program())
    assert starts(lazy)["load b2"] >= starts(lazy)["op1"]
    assert eager.cycles == 31 <= lazy.cycles


def test_a_smaller_copy_goes_ahead_when_the_next_one_has_no_room() -> None:
    # Beside op1 (10 + 10 bytes) 12 bytes are free: big (15) has to wait for its end at 60, small
    # (12) has not. Then big comes until 75, op2 runs until 80 and op3 until 85.
    builder = Builder(32, {"dma": 1, "core": 1})
    w, x, y, z = (builder.buffer(n, s) for n, s in zip("wxyz", (10, 10, 5, 5), strict=True))
    big, small = builder.buffer("big", 15), builder.buffer("small", 12)
    builder.load(w)
    builder.task("op1", "core", 50, [w], [x])
    builder.load(big)
    builder.task("op2", "core", 5, [big], [y])
    builder.load(small)
    builder.task("op3", "core", 5, [small, y], [z])
    for options in (ScheduleOptions(), ScheduleOptions(small_tasks=0)):
        timetable = checked(builder.program(), options)
        assert starts(timetable)["load small"] < 60 == starts(timetable)["load big"]
        assert timetable.cycles == 85


def residual(capacity_bytes: int, *, computed: bool) -> Program:
    """a -> b; (b, c) -> d; (a, d) -> e; all of 10 bytes; a is computed or comes from outside."""
    builder = Builder(capacity_bytes, {"dma": 1, "core": 1})
    a, b, c, d, e = (builder.buffer(name, 10) for name in "abcde")
    if computed:
        builder.task("make a", "core", 50, [], [a])
    else:
        builder.load(a)
    builder.task("op b", "core", 5, [a], [b])
    builder.load(c)
    builder.task("op d", "core", 5, [b, c], [d])
    builder.task("op e", "core", 5, [a, d], [e])
    builder.store(e)
    return builder.program()


def test_what_came_from_outside_is_dropped_and_nothing_is_written() -> None:
    program = residual(30, computed=False)
    timetable = checked(program)
    assert [(task.kind, task.cycles) for task in added(program, timetable)] == [("load", 10)]
    assert added(program, timetable)[0].reads == program.tasks[0].reads


def test_what_was_computed_is_written_out_and_fetched_again() -> None:
    program = residual(30, computed=True)
    timetable = checked(program)
    new = added(program, timetable)
    assert [task.kind for task in new] == ["store", "load"]
    assert new[1].after == (len(program.tasks),)
    # make a 0-50 and c in meanwhile, op b 50-55, a out 50-60, op d 60-65, a in 65-75, op e 75-80,
    # store 80-90.
    assert timetable.cycles == 90


def test_nothing_is_evicted_when_there_is_room() -> None:
    program = residual(40, computed=True)
    assert added(program, checked(program)) == []


def test_data_written_out_once_is_not_written_again() -> None:
    """a is evicted twice: for op d and for op g."""
    builder = Builder(30, {"dma": 1, "core": 1})
    a, b, c, d, e, f, g, h = (builder.buffer(name, 10) for name in "abcdefgh")
    builder.task("make a", "core", 50, [], [a])
    builder.task("op b", "core", 5, [a], [b])
    builder.load(c)
    builder.task("op d", "core", 5, [b, c], [d])
    builder.task("op e", "core", 5, [a, d], [e])
    builder.load(f)
    builder.task("op g", "core", 5, [e, f], [g])
    builder.task("op h", "core", 5, [a, g], [h])
    builder.store(h)
    program = builder.program()
    kinds = [task.kind for task in added(program, checked(program))]
    assert sorted(kinds) == ["load", "load", "store"]


def test_an_engine_that_needs_no_room_goes_on_during_an_eviction() -> None:
    """While the first core waits for a to be written out, the second one works."""
    builder = Builder(34, {"dma": 1, "core": 1, "other": 1})
    a, b, c, d, e = (builder.buffer(name, 10) for name in "abcde")
    small = builder.buffer("small", 2)
    smaller = builder.buffer("smaller", 2)
    builder.task("make a", "core", 50, [], [a])
    builder.task("make small", "other", 5, [], [small])
    builder.task("op b", "core", 5, [a], [b])
    builder.load(c)
    builder.task("op d", "core", 5, [b, c], [d])
    builder.task("op small", "other", 40, [small], [smaller])
    builder.task("op e", "core", 5, [a, d], [e])
    builder.store(smaller)
    builder.store(e)
    program = builder.program()
    timetable = checked(program)
    writes = [
        slot
        for task, slot in zip(timetable.program.tasks, timetable.slots, strict=True)
        if "#saved" in task.name
    ]
    assert len(writes) == 1
    assert starts(timetable)["op small"] < writes[0].end_cycle


def test_a_multicast_is_repeated_for_one_target_only() -> None:
    builder = Builder({"one": 30, "two": 100}, {"dma": 1, "core": 1})
    first, second = builder.buffer("w", 10, "one"), builder.buffer("w", 10, "two")
    outside = builder.buffer("w@dram", 10, "dram")
    builder.given.append(outside)
    both = builder.task("multicast", "dma", 17, [outside], [first, second])
    b, c, d, e = (builder.buffer(name, 10, "one") for name in "bcde")
    builder.task("op b", "core", 5, [first, second], [b], [both])
    builder.load(c)
    builder.task("op d", "core", 5, [b, c], [d])
    builder.task("op e", "core", 5, [first, second, d], [e])
    builder.store(e)
    program = builder.program()
    (again,) = added(program, checked(program))
    assert again.cycles == 10
    assert [access.box for access in again.writes] == [((0, 10),)]
    assert len(again.writes) == 1


def test_what_a_source_gives_only_once_is_written_out() -> None:
    program = residual(30, computed=False)
    source = Space(name="sensor", memory="sensor", kind="source", size_bytes=0, rereadable=False)
    buffers = list(program.buffers)
    outside = program.tasks[0].reads[0].buffer
    buffers[outside] = replace(buffers[outside], space="sensor")
    program = replace(program, buffers=tuple(buffers), spaces=(*program.spaces, source))
    assert [t.kind for t in added(program, checked(program))] == ["store", "load"]


def test_setup_overlaps_another_transfer_but_the_bytes_wait_for_the_port() -> None:
    # Two copies of setup 4 and 10 bytes on two instances, one lane: flows 4-14 and 14-24.
    builder = Builder(100, {"dma": 2, "core": 1})
    a, b, c = (builder.buffer(name, 10) for name in "abc")
    builder.load(a, 14)
    builder.load(b, 14)
    builder.task("op", "core", 1, [a, b], [c])
    for number in (0, 1):
        builder.tasks[number] = replace(builder.tasks[number], setup_cycles=4, ports=("port",))
    builder.engines.append(Engine(name="port", count=1))
    timetable = checked(builder.program())
    assert sorted(slot.start_cycle for slot in timetable.slots[:2]) == [0, 10]
    assert timetable.cycles == 25


def test_a_streamed_operand_holds_its_port_while_the_task_runs() -> None:
    builder = Builder(100, {"dma": 1, "core": 1})
    a, b = builder.buffer("a", 10), builder.buffer("b", 10)
    stream = builder.buffer("stream", 10, "dram")
    builder.given.append(stream)
    builder.task("op", "core", 20, [], [a])
    builder.tasks[0] = replace(
        builder.tasks[0], reads=(Access(stream, ((0, 10),)),), ports=("port",)
    )
    builder.load(b)
    builder.tasks[1] = replace(builder.tasks[1], ports=("port",))
    builder.store(b)
    builder.engines.append(Engine(name="port", count=1))
    timetable = checked(builder.program())
    one, other = timetable.slots[:2]
    assert one.end_cycle <= other.start_cycle or other.end_cycle <= one.start_cycle


def test_results_in_a_scratchpad_are_there_at_the_end() -> None:
    """a is a result and in the way of op d: it goes and comes back for the end."""
    builder = Builder(30, {"dma": 1, "core": 1})
    a, b, c, d = (builder.buffer(name, 10) for name in "abcd")
    builder.task("make a", "core", 50, [], [a])
    builder.task("op b", "core", 5, [a], [b])
    builder.load(c)
    builder.task("op d", "core", 5, [b, c], [d])
    builder.store(d)
    builder.results.append(a)
    program = builder.program()
    timetable = checked(program)
    assert [task.kind for task in added(program, timetable)] == ["store", "load"]
    assert timetable.program.buffers[timetable.program.results[-1]].name == "a#2"


def test_reserved_ranges_and_alignment_are_kept() -> None:
    builder = Builder(200, {"dma": 1, "core": 1}, alignment_bytes=16, reserved=[(0, 10), (70, 80)])
    a, b, c = (builder.buffer(name, 20) for name in "abc")
    builder.load(a)
    builder.task("op", "core", 5, [a], [b])
    builder.task("op2", "core", 5, [a, b], [c])
    timetable = checked(builder.program())
    assert all(timetable.addresses[buffer] >= 16 for buffer in (a, b, c))


def test_the_same_program_gets_the_same_timetable() -> None:
    program = residual(30, computed=True)
    assert schedule(program) == schedule(program)


def test_a_slow_way_out_makes_the_cheaper_data_leave() -> None:
    """Either a (computed) or c (reloadable) may leave for op f; c costs half."""
    builder = Builder(30, {"dma": 1, "core": 1}, bytes_per_cycle=Fraction(1, 2))
    a, c, f, g, h = (builder.buffer(name, 10) for name in "acfgh")
    builder.task("make a", "core", 50, [], [a])
    builder.load(c)
    builder.task("op f", "core", 5, [a, c], [f])
    builder.task("op g", "core", 5, [f], [g])
    wide = builder.buffer("wide", 10)
    builder.task("op wide", "core", 5, [f, g], [wide])
    builder.store(wide)
    builder.task("op h", "core", 5, [a, c], [h])
    builder.store(h)
    program = builder.program()
    timetable = checked(program, ScheduleOptions(small_tasks=0))
    stored = [task.name for task in added(program, timetable) if task.kind == "store"]
    assert all(name.startswith("a") for name in stored)
    assert len(stored) <= 1


def test_a_result_is_computed_again_where_that_is_faster() -> None:
    # a must leave for op d. Out and back take 20 cycles, making it again from s takes 1, and s is
    # there anyway: in s 0-1, make a 1-2, op b 2-7, in c 1-11, op d 11-16, a again, op e 17-22, out.
    builder = Builder(31, {"dma": 1, "core": 1})
    s = builder.buffer("s", 1)
    a, b, c, d, e = (builder.buffer(name, 10) for name in "abcde")
    builder.load(s)
    builder.task("make a", "core", 1, [s], [a])
    builder.task("op b", "core", 5, [a], [b])
    builder.load(c)
    builder.task("op d", "core", 5, [b, c], [d])
    builder.task("op e", "core", 5, [s, a, d], [e])
    builder.store(e)
    program = builder.program()
    timetable = checked(program)
    (again,) = added(program, timetable)
    assert (again.kind, again.name.split("#")[0]) == ("compute", "make a")
    assert timetable.cycles == 22 + 10
