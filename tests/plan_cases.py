"""Timetables for tests: a program's tasks one after the other, no buffer's place used twice."""

from dataclasses import replace

from tilewright.machine.load import load_machine
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.program.lower import lower
from tilewright.program.model import Program, Slot, Timetable

ROOM = 2**40


def lowered(network: Network, machine: str) -> Program:
    options = SearchOptions(lpf_limit=4)
    return lower(network, load_machine(machine), network.ops, "latency", options).program


def one_after_the_other(program: Program) -> Timetable:
    """Every task when the one before it has ended, every buffer at an address of its own."""
    roomy = replace(
        program,
        spaces=tuple(replace(s, size_bytes=ROOM, reserved=()) for s in program.spaces),
    )
    slots, now = [], 0
    for task in program.tasks:
        slots.append(Slot(start_cycle=now, end_cycle=now + task.cycles))
        now += task.cycles
    tops = dict.fromkeys((s.name for s in program.spaces), 0)
    addresses: list[int] = []
    for buffer in program.buffers:
        if buffer.view is None:
            alignment = max(64, program.space[buffer.space].alignment_bytes)
            at = -(-tops[buffer.space] // alignment) * alignment
            tops[buffer.space] = at + buffer.size_bytes
        else:
            at = addresses[buffer.view.buffer] + _offset_bytes(program, buffer.view)
        addresses.append(at)
    edges = tuple((i, i + 1) for i in range(len(slots) - 1))
    return Timetable(program=roomy, slots=tuple(slots), addresses=tuple(addresses), edges=edges)


def _offset_bytes(program: Program, view: object) -> int:
    from tilewright.program.model import View

    assert isinstance(view, View)
    if view.origin is None:
        return 0
    root = program.buffers[view.buffer]
    index, elements = 0, 1
    for at, (low, high) in zip(view.origin, root.box, strict=True):
        index = index * (high - low) + at - low
        elements *= high - low
    return index * root.size_bytes // max(1, elements)
