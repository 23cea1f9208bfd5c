"""An obvious check of a timetable: run it, cell by cell, and compare with running it in order.

One byte per element. A cell's value is what it was made from: a compute task writes, into each
cell, its own name and everything it read. So a task that reads a cell too early, too late, or after
somebody else's data came to lie there, leaves another value behind.
"""

from collections.abc import Iterator
from itertools import combinations, product

from tilewright.program.model import Access, Program, Task, Timetable

Memory = dict[tuple[str, int], object]


def cells(program: Program, access: Access, address: int) -> Iterator[tuple[str, int]]:
    """The cells of an access, if the buffer's root lies at an address."""
    buffer = program.buffers[access.buffer]
    root = program.buffers[program.root(access.buffer)]
    for index in product(*(range(low, high) for low, high in access.box)):
        inside = [at - low for at, (low, _) in zip(index, buffer.box, strict=True)]
        if buffer.view is None or buffer.view.origin is None:
            shape = [high - low for low, high in buffer.box]
        else:
            shape = [high - low for low, high in root.box]
            inside = [
                at + origin - low
                for at, origin, (low, _) in zip(inside, buffer.view.origin, root.box, strict=True)
            ]
        flat = 0
        for at, size in zip(inside, shape, strict=True):
            assert 0 <= at < size
            flat = flat * size + at
        yield root.space, address + flat


def values(program: Program, task: Task, memory: Memory, at: dict[int, int]) -> list[object]:
    return [
        memory.get(cell, "nothing")
        for access in task.reads
        for cell in cells(program, access, at[program.root(access.buffer)])
    ]


def outcome(program: Program, task: Task, read: list[object], at: dict[int, int]) -> Memory:
    """What a task leaves behind: a transfer what it read, at each of its targets."""
    written: Memory = {}
    for access in task.writes:
        for number, cell in enumerate(cells(program, access, at[program.root(access.buffer)])):
            if task.kind == "compute":
                # Hashes keep values small; a clash of two hashes would hide a fault, no more.
                name = task.name.split("#")[0]
                written[cell] = hash((name, access.box, number, tuple(read)))
            else:
                written[cell] = read[number]
    return written


def given_values(program: Program, at: dict[int, int]) -> Memory:
    memory: Memory = {}
    for buffer in program.given:
        whole = Access(buffer, program.buffers[buffer].box)
        for number, cell in enumerate(cells(program, whole, at[program.root(buffer)])):
            memory[cell] = hash((program.buffers[buffer].tensor, number))
    return memory


def result_values(program: Program, memory: Memory, at: dict[int, int]) -> list[list[object]]:
    return [
        [
            memory.get(cell, "nothing")
            for cell in cells(
                program, Access(buffer, program.buffers[buffer].box), at[program.root(buffer)]
            )
        ]
        for buffer in program.results
    ]


def run_in_order(program: Program) -> tuple[dict[str, list[object]], list[list[object]]]:
    """What every compute task reads and what the results are, every root having its own room."""
    at: dict[int, int] = {}
    total = 0
    for number, buffer in enumerate(program.buffers):
        at[number] = total
        total += buffer.size_bytes
    memory = given_values(program, at)
    reads = {}
    for task in program.tasks:
        read = values(program, task, memory, at)
        if task.kind == "compute":
            reads[task.name] = read
        memory.update(outcome(program, task, read, at))
    return reads, result_values(program, memory, at)


def run_timetable(timetable: Timetable) -> tuple[dict[str, list[object]], list[list[object]]]:
    """The same by the timetable's times and addresses; sources and sinks keep buffers apart."""
    program = timetable.program
    at = dict(enumerate(timetable.addresses))
    far = 1 << 40
    for number, buffer in enumerate(program.buffers):
        if program.space[buffer.space].kind in ("source", "sink"):
            at[number] = far
            far += buffer.size_bytes
    memory = given_values(program, at)
    reads: dict[str, list[object]] = {}
    running: dict[int, list[object]] = {}
    starts = [(slot.start_cycle, 1, number) for number, slot in enumerate(timetable.slots)]
    ends = [(slot.end_cycle, 0, number) for number, slot in enumerate(timetable.slots)]
    # At the same moment, what ends comes before what starts: every task takes time here.
    events = sorted(starts + ends)
    for _, what, number in events:
        task = program.tasks[number]
        if what == 1:
            running[number] = values(program, task, memory, at)
            for cell in outcome(program, task, running[number], at):
                if cell not in {
                    c for a in task.reads for c in cells(program, a, at[program.root(a.buffer)])
                }:
                    memory[cell] = "being written"
        else:
            read = running.pop(number)
            assert read == values(program, task, memory, at), f"{task.name}: data changed under it"
            if task.kind == "compute":
                # A task that is computed again has a name with a `#` and reads the same.
                assert reads.setdefault(task.name.split("#")[0], read) == read, task.name
            memory.update(outcome(program, task, read, at))
    return reads, result_values(program, memory, at)


def check_engines(timetable: Timetable) -> None:
    program = timetable.program
    counts = {engine.name: engine.count for engine in program.engines}
    held: dict[tuple[str, int], list[tuple[int, int, str]]] = {}
    lanes: dict[str, list[tuple[int, int]]] = {}
    for task, slot in zip(program.tasks, timetable.slots, strict=True):
        assert slot.start_cycle >= 0
        assert slot.end_cycle - slot.start_cycle == task.cycles, task.name
        assert 0 <= slot.instance < counts[task.engine]
        where = (task.engine, slot.instance)
        held.setdefault(where, []).append((slot.start_cycle, slot.end_cycle, task.name))
        for port in task.ports:
            flow = (slot.start_cycle + task.setup_cycles, slot.end_cycle)
            lanes.setdefault(port, []).append(flow)
        for before in task.after:
            assert timetable.slots[before].end_cycle <= slot.start_cycle, (
                f"{task.name} before the end of {program.tasks[before].name}"
            )
    for where, spans in held.items():
        for one, other in combinations(spans, 2):
            assert one[1] <= other[0] or other[1] <= one[0], f"{one} and {other} on {where}"
    for port, flows in lanes.items():
        for moment, _ in flows:
            at_once = sum(begin <= moment < end for begin, end in flows)
            assert at_once <= counts[port], f"{at_once} at {port} at {moment}"


def lives(timetable: Timetable) -> dict[int, tuple[int, int]]:
    program = timetable.program
    found: dict[int, tuple[int, int]] = {}
    for task, slot in zip(program.tasks, timetable.slots, strict=True):
        for access in (*task.reads, *task.writes):
            root = program.root(access.buffer)
            begin, end = found.get(root, (slot.start_cycle, slot.end_cycle))
            found[root] = (min(begin, slot.start_cycle), max(end, slot.end_cycle))
    for buffer in program.given:
        root = program.root(buffer)
        found[root] = (0, found.get(root, (0, 0))[1])
    for buffer in program.results:
        root = program.root(buffer)
        found[root] = (found.get(root, (0, 0))[0], timetable.cycles)
    return found


def check_memory(timetable: Timetable) -> None:
    program = timetable.program
    placed = []
    for root, (begin, end) in lives(timetable).items():
        buffer, address = program.buffers[root], timetable.addresses[root]
        space = program.space[buffer.space]
        if space.kind in ("source", "sink"):
            continue
        top = address + buffer.size_bytes
        assert address % space.alignment_bytes == 0
        assert 0 <= address <= top <= space.size_bytes, buffer.name
        for low, high in space.reserved:
            assert top <= low or high <= address, f"{buffer.name} in a reserved range"
        placed.append((buffer.space, begin, end, address, top, buffer.name))
    for one, other in combinations(placed, 2):
        apart_in_time = one[2] <= other[1] or other[2] <= one[1]
        apart = one[4] <= other[3] or other[4] <= one[3]
        assert one[0] != other[0] or apart_in_time or apart, f"{one} and {other}"


def check_timetable(program: Program, timetable: Timetable) -> None:
    """Raise AssertionError if a timetable is not a correct run of a program."""
    n = len(program.tasks)
    assert [t.name for t in timetable.program.tasks[:n]] == [t.name for t in program.tasks]
    check_engines(timetable)
    check_memory(timetable)
    assert run_timetable(timetable) == run_in_order(program)
