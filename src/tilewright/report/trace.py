"""A plan as trace events that Perfetto and Chrome show: engines, ports, bytes in use, waits."""

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.planner import Plan
from tilewright.program.model import Timetable
from tilewright.report.cascades import CascadeFigures, cascades_of, several_ops
from tilewright.report.lives import bytes_in_use, port_holds, purposes

ENGINES, PORTS, MEMORIES, CASCADES = 1, 2, 3, 4
"""Process numbers of the groups of tracks."""

Event = dict[str, Any]


def trace_events(plan: Plan) -> dict[str, Any]:
    """A track per engine instance and lane of a port, counters, and flows along dependencies.

    A cycle is a microsecond. Slices of a track do not overlap: viewers would drop one of them.
    """
    return {
        "displayTimeUnit": "ms",
        "otherData": {
            "network": plan.network.name,
            "machine": plan.machine.name,
            "unit": "1 us is 1 cycle",
        },
        "traceEvents": timetable_events(plan.timetable, cascades_of(plan)),
    }


def timetable_events(timetable: Timetable, cascades: Sequence[CascadeFigures] = ()) -> list[Event]:
    """The events of a timetable: names first, then slices, counters, flows and cascades."""
    tracks = _tracks(timetable)
    return [
        *_names(timetable, tracks),
        *_slices(timetable, tracks),
        *_holds(timetable),
        *_counters(timetable),
        *_flows(timetable, tracks),
        *_cascades(timetable, cascades),
    ]


def _tracks(timetable: Timetable) -> dict[tuple[str, int], int]:
    """Numbers of the engine instances in use, in the order of the engines."""
    order = {engine.name: place for place, engine in enumerate(timetable.program.engines)}
    pairs = zip(timetable.program.tasks, timetable.slots, strict=True)
    used = dict.fromkeys((task.engine, slot.instance) for task, slot in pairs)
    ordered = sorted(used, key=lambda key: (order[key[0]], key[1]))
    return {key: number for number, key in enumerate(ordered, start=1)}


def _names(timetable: Timetable, tracks: dict[tuple[str, int], int]) -> Iterator[Event]:
    counts = {engine.name: engine.count for engine in timetable.program.engines}
    groups = ((ENGINES, "engines"), (PORTS, "ports"), (MEMORIES, "memories"))
    for process, name in groups:
        yield _meta("process_name", process, 0, {"name": name})
        yield _meta("process_sort_index", process, 0, {"sort_index": process})
    for (engine, instance), track in tracks.items():
        label = engine if counts[engine] == 1 else f"{engine} port {instance}"
        yield _meta("thread_name", ENGINES, track, {"name": label})
        yield _meta("thread_sort_index", ENGINES, track, {"sort_index": track})
    lanes = dict.fromkeys((hold.port, hold.lane) for hold in port_holds(timetable))
    for track, (port, lane) in enumerate(sorted(lanes), start=1):
        label = port if counts[port] == 1 else f"{port} lane {lane}"
        yield _meta("thread_name", PORTS, track, {"name": label})


def _meta(what: str, process: int, track: int, arguments: Event) -> Event:
    return {"ph": "M", "pid": process, "tid": track, "name": what, "args": arguments}


def _slices(timetable: Timetable, tracks: dict[tuple[str, int], int]) -> Iterator[Event]:
    rows = zip(timetable.program.tasks, timetable.slots, purposes(timetable), strict=True)
    for number, (task, slot, purpose) in enumerate(rows):
        arguments: Event = {"task": number}
        if task.op:
            arguments["op"] = task.op
        if task.kind != "compute":
            arguments["bytes"] = max((c.read_bytes for c in task.charges), default=0)
        yield {
            "ph": "X",
            "pid": ENGINES,
            "tid": tracks[task.engine, slot.instance],
            "ts": slot.start_cycle,
            "dur": slot.end_cycle - slot.start_cycle,
            "name": task.name,
            "cat": f"{task.kind},{purpose}",
            "args": arguments,
        }


def _holds(timetable: Timetable) -> Iterator[Event]:
    holds = list(port_holds(timetable))
    lanes = sorted({(hold.port, hold.lane) for hold in holds})
    track = {lane: number for number, lane in enumerate(lanes, start=1)}
    for hold in holds:
        yield {
            "ph": "X",
            "pid": PORTS,
            "tid": track[hold.port, hold.lane],
            "ts": hold.start_cycle,
            "dur": hold.end_cycle - hold.start_cycle,
            "name": timetable.program.tasks[hold.task].name,
            "cat": "port",
            "args": {"task": hold.task},
        }


def _counters(timetable: Timetable) -> Iterator[Event]:
    """Bytes in use by scratchpad, wherever they change."""
    for space, curve in bytes_in_use(timetable).items():
        for cycle, total in curve:
            yield {
                "ph": "C",
                "pid": MEMORIES,
                "tid": 0,
                "ts": cycle,
                "name": space,
                "args": {"bytes": total},
            }


def _flows(timetable: Timetable, tracks: dict[tuple[str, int], int]) -> Iterator[Event]:
    """An arrow for everything a task waits for; one binds to the slice that is under way then."""
    tasks, slots = timetable.program.tasks, timetable.slots
    pairs = [(other, number, "data") for number, task in enumerate(tasks) for other in task.after]
    pairs += [(first, second, "room") for first, second in timetable.edges]
    for number, (first, second, name) in enumerate(pairs, start=1):
        if not all(slots[n].end_cycle > slots[n].start_cycle for n in (first, second)):
            continue  # Nothing is under way at any moment of a slice without length.
        for phase, task, more in (("s", first, {}), ("f", second, {"bp": "e"})):
            yield {
                "ph": phase,
                "pid": ENGINES,
                "tid": tracks[tasks[task].engine, slots[task].instance],
                "ts": slots[task].start_cycle,
                "id": number,
                "name": name,
                "cat": "wait",
                **more,
            }


def _cascades(timetable: Timetable, cascades: Sequence[CascadeFigures]) -> Iterator[Event]:
    """A slice from the first to the last tile of each cascade, side by side where they overlap."""
    cascades = several_ops(cascades)
    if not cascades:
        return
    yield _meta("process_name", CASCADES, 0, {"name": "cascades"})
    yield _meta("process_sort_index", CASCADES, 0, {"sort_index": 0})
    number_of = {op: number for number, cascade in enumerate(cascades) for op in cascade.ops}
    spans: dict[int, tuple[int, int]] = {}
    for task, slot in zip(timetable.program.tasks, timetable.slots, strict=True):
        number = number_of.get(task.op)
        if number is not None:
            start, end = spans.get(number, (slot.start_cycle, 0))
            spans[number] = min(start, slot.start_cycle), max(end, slot.end_cycle)
    free: list[int] = []
    for number, (start, end) in sorted(spans.items(), key=lambda item: (item[1], item[0])):
        track = next((n for n, cycle in enumerate(free) if cycle <= start), len(free))
        if track == len(free):
            free.append(0)
            name = "cascades" if track == 0 else f"cascades {track + 1}"
            yield _meta("thread_name", CASCADES, track + 1, {"name": name})
        free[track] = end
        yield {
            "ph": "X",
            "pid": CASCADES,
            "tid": track + 1,
            "ts": start,
            "dur": end - start,
            "name": cascades[number].span_text,
            "cat": "cascade",
            "args": {"step": cascades[number].pace_text, "ops": list(cascades[number].ops)},
        }
