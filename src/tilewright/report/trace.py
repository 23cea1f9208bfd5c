"""A plan as trace events that Perfetto and Chrome show: engines, and the bytes in use."""

from itertools import accumulate
from typing import Any

from tilewright.planner import Plan

ENGINES, MEMORIES = 1, 2
"""Process numbers of the two groups of tracks."""


def trace_events(plan: Plan) -> dict[str, Any]:
    """One track per engine instance, one counter per placed memory; a cycle is a microsecond."""
    tracks: dict[tuple[str, int], int] = {}
    counts = {engine.name: engine.count for engine in plan.program.engines}
    events: list[dict[str, Any]] = []
    for task, slot in zip(plan.program.tasks, plan.timetable.slots, strict=True):
        track = tracks.setdefault((task.engine, slot.instance), len(tracks) + 1)
        events.append(
            {
                "ph": "X",
                "pid": ENGINES,
                "tid": track,
                "ts": slot.start_cycle,
                "dur": slot.end_cycle - slot.start_cycle,
                "name": task.name,
                "cat": task.kind,
                "args": {"op": task.op} if task.op else {},
            }
        )
    names = [
        _meta("process_name", ENGINES, 0, "engines"),
        _meta("process_name", MEMORIES, 0, "memories"),
    ]
    for (engine, instance), track in tracks.items():
        label = engine if counts[engine] == 1 else f"{engine} port {instance}"
        names.append(_meta("thread_name", ENGINES, track, label))
    return {
        "displayTimeUnit": "ms",
        "otherData": {"network": plan.network.name, "machine": plan.machine.name, "unit": "cycles"},
        "traceEvents": [*names, *events, *_counters(plan)],
    }


def _meta(what: str, process: int, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": track, "name": what, "args": {"name": name}}


def _counters(plan: Plan) -> list[dict[str, Any]]:
    """Bytes in use by scratchpad, wherever they change."""
    lives = buffer_lives(plan)
    events = []
    for space in plan.program.spaces:
        if space.kind != "scratchpad":
            continue
        change: dict[int, int] = {}
        for number, (start, end) in lives.items():
            buffer = plan.program.buffers[number]
            if buffer.space == space.name:
                change[start] = change.get(start, 0) + buffer.size_bytes
                change[end] = change.get(end, 0) - buffer.size_bytes
        times = sorted(change)
        for time, total in zip(times, accumulate(change[t] for t in times), strict=True):
            events.append(
                {
                    "ph": "C",
                    "pid": MEMORIES,
                    "tid": 0,
                    "ts": time,
                    "name": space.name,
                    "args": {"bytes": total},
                }
            )
    return events


def buffer_lives(plan: Plan) -> dict[int, tuple[int, int]]:
    """From the start of its first writer to the end of its last user, by buffer that is no view."""
    program = plan.program
    lives: dict[int, tuple[int, int]] = {}
    for task, slot in zip(program.tasks, plan.timetable.slots, strict=True):
        for access in (*task.reads, *task.writes):
            root = program.root(access.buffer)
            start, end = lives.get(root, (slot.start_cycle, slot.end_cycle))
            lives[root] = min(start, slot.start_cycle), max(end, slot.end_cycle)
    for number in program.given:
        root = program.root(number)
        lives[root] = 0, lives.get(root, (0, 0))[1]
    for number in program.results:
        root = program.root(number)
        lives[root] = lives.get(root, (0, 0))[0], plan.cycles
    return lives
