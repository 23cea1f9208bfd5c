"""Runs a timetable cycle by cycle on memories of tagged bytes: slow, and plain to see.

Every byte remembers which element of which tensor it holds; elements take one byte.
"""

from collections.abc import Callable, Iterator
from itertools import permutations, product

from tilewright.program.model import Access, Timetable

Element = tuple[str, tuple[int, ...]]
Byte = tuple[str, int]
"""A space and an address."""
Origin = Callable[[str, tuple[int, ...]], Element]
"""The element, of a tensor that a task makes or that is given, which an element really is."""


def byte_places(timetable: Timetable, access: Access) -> list[tuple[tuple[int, ...], int]]:
    """Every element of an access with the address of its byte."""
    program = timetable.program
    buffer = program.buffers[access.buffer]
    root = buffer if buffer.view is None else program.buffers[buffer.view.buffer]
    base = timetable.addresses[program.root(access.buffer)]
    found = []
    for point in product(*(range(*ends) for ends in access.box)):
        inside = [at - begin for at, (begin, _) in zip(point, buffer.box, strict=True)]
        if buffer.view is not None and buffer.view.origin is not None:
            corner = [
                at - begin for at, (begin, _) in zip(buffer.view.origin, root.box, strict=True)
            ]
            inside = [one + other for one, other in zip(inside, corner, strict=True)]
        shaped = buffer if buffer.view is not None and buffer.view.origin is None else root
        offset = 0
        for at, (begin, end) in zip(inside, shaped.box, strict=True):
            offset = offset * (end - begin) + at
        found.append((point, base + offset))
    return found


def faults(timetable: Timetable, origin: Origin) -> list[str]:
    """What goes wrong when the timetable is run."""
    return [*_time_faults(timetable), *data_faults(timetable, origin)]


def _time_faults(timetable: Timetable) -> Iterator[str]:
    program, slots = timetable.program, timetable.slots
    pairs = list(zip(program.tasks, slots, strict=True))
    counts = {engine.name: engine.count for engine in program.engines}
    for task, slot in pairs:
        if slot.start_cycle < 0 or slot.end_cycle - slot.start_cycle != task.cycles:
            yield "slot"
        if not 0 <= slot.instance < counts[task.engine]:
            yield "instance"
        if any(slots[before].end_cycle > slot.start_cycle for before in task.after):
            yield "after"
    for cycle in range(timetable.cycles):
        running = [(t, s) for t, s in pairs if s.start_cycle <= cycle < s.end_cycle]
        places = [(t.engine, s.instance) for t, s in running]
        lanes = [p for t, s in running if cycle >= s.start_cycle + t.setup_cycles for p in t.ports]
        if len(set(places)) < len(places):
            yield "engine"
        if any(lanes.count(port) > counts[port] for port in lanes):
            yield "port"


def data_faults(timetable: Timetable, origin: Origin) -> list[str]:
    """Wrong or missing data, and two tasks at the same byte of which one writes."""
    program, slots = timetable.program, timetable.slots
    memory = {
        key: origin(*element)
        for buffer in program.given
        for element, key in _keys(timetable, Access(buffer, program.buffers[buffer].box))
    }
    reads = [[k for a in task.reads for k in _keys(timetable, a)] for task in program.tasks]
    writes = [[k for a in task.writes for k in _keys(timetable, a)] for task in program.tasks]
    found = [*_place_faults(timetable, reads + writes)]
    carried: dict[int, list[Element | None]] = {}
    for cycle in range(min((s.start_cycle for s in slots), default=0), timetable.cycles + 1):
        for number in (n for n, slot in enumerate(slots) if slot.end_cycle == cycle):
            _finish(memory, writes[number], carried.get(number), origin)
        for number in (n for n, slot in enumerate(slots) if slot.start_cycle == cycle):
            if program.tasks[number].kind != "compute":
                carried[number] = [memory.get(key) for _, key in reads[number]]
            elif _is_wrong(memory, reads[number], origin):
                found.append("data")
        found += _races(timetable, cycle, reads, writes)
    for buffer in program.results:
        wanted = _keys(timetable, Access(buffer, program.buffers[buffer].box))
        if _is_wrong(memory, wanted, origin):
            found.append("result")
    return found


def _keys(timetable: Timetable, access: Access) -> list[tuple[Element, Byte]]:
    """Elements with their bytes."""
    buffer = timetable.program.buffers[access.buffer]
    return [
        ((buffer.tensor, point), (buffer.space, address))
        for point, address in byte_places(timetable, access)
    ]


def _place_faults(timetable: Timetable, touched: list[list[tuple[Element, Byte]]]) -> Iterator[str]:
    for name, address in dict.fromkeys(key for keys in touched for _, key in keys):
        space = timetable.program.space[name]
        if not 0 <= address < space.size_bytes:
            yield "outside"
        if any(begin <= address < end for begin, end in space.reserved):
            yield "reserved"


def _is_wrong(
    memory: dict[Byte, Element], wanted: list[tuple[Element, Byte]], origin: Origin
) -> bool:
    return any(memory.get(key) != origin(*element) for element, key in wanted)


def _races(
    timetable: Timetable,
    cycle: int,
    reads: list[list[tuple[Element, Byte]]],
    writes: list[list[tuple[Element, Byte]]],
) -> Iterator[str]:
    slots = timetable.slots
    running = [n for n, s in enumerate(slots) if s.start_cycle <= cycle < s.end_cycle]
    for one, other in permutations(running, 2):
        written = {key for _, key in writes[one]}
        if any(key in written for _, key in reads[other] + writes[other]):
            yield "race"


def _finish(
    memory: dict[Byte, Element],
    writes: list[tuple[Element, Byte]],
    carried: list[Element | None] | None,
    origin: Origin,
) -> None:
    """A computation leaves what it is meant to make, a transfer what it found when it started."""
    values = [origin(*element) for element, _ in writes] if carried is None else carried
    for (_, key), value in zip(writes, values, strict=False):
        if value is None:
            memory.pop(key, None)
        else:
            memory[key] = value
