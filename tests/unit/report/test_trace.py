"""The trace against what Perfetto's importer asks of it, by a check of our own.

Rules of the JSON importer: pids and tids are integers with names from metadata events; complete
slices have a whole start and a length of at least 0, and on one track they nest or follow each
other (others are dropped); a flow's start and end bind to the slice under way on their track at
that moment; counters carry numbers.
"""

import json
from bisect import bisect_right
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.report_plans import cascaded_plan, small_plan
from tests.report_timetables import by_hand

from tilewright.report.cascades import cascades_of
from tilewright.report.trace import CASCADES, ENGINES, PORTS, timetable_events, trace_events

Event = dict[str, Any]
Track = tuple[int, int]


def slices_by_track(events: list[Event]) -> dict[Track, list[tuple[int, int]]]:
    tracks: dict[Track, list[tuple[int, int]]] = {}
    for event in events:
        if event["ph"] == "X":
            times = event["ts"], event["ts"] + event["dur"]
            tracks.setdefault((event["pid"], event["tid"]), []).append(times)
    return {track: sorted(times) for track, times in tracks.items()}


def faults(events: list[Event]) -> list[str]:
    found = []
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    groups = {e["pid"] for e in events if e["name"] == "process_name"}
    for event in events:
        if event["ph"] not in ("M", "X", "C", "s", "f"):
            found.append(f"phase of {event}")
        if not isinstance(event["pid"], int) or not isinstance(event["tid"], int):
            found.append(f"track of {event}")
        if event["pid"] not in groups:
            found.append(f"no group for {event}")
        if event["ph"] != "M" and not (isinstance(event["ts"], int) and event["ts"] >= 0):
            found.append(f"time of {event}")
        if event["ph"] == "X" and not (isinstance(event["dur"], int) and event["dur"] >= 0):
            found.append(f"length of {event}")
        if event["ph"] == "C" and not all(isinstance(v, int) for v in event["args"].values()):
            found.append(f"value of {event}")
    tracks = slices_by_track(events)
    found += [f"no name for track {track}" for track in tracks if track not in named]
    for track, times in tracks.items():
        found += [f"overlap on {track}: {a}, {b}" for a, b in pairwise(times) if a[1] > b[0]]
    return found + flow_faults(events, tracks)


def flow_faults(events: list[Event], tracks: dict[Track, list[tuple[int, int]]]) -> list[str]:
    found = []
    ends: dict[int, list[str]] = {}
    for event in events:
        if event["ph"] in ("s", "f"):
            ends.setdefault(event["id"], []).append(event["ph"])
            times = tracks.get((event["pid"], event["tid"]), [])
            place = bisect_right(times, (event["ts"], 1 << 60)) - 1
            if place < 0 or not times[place][0] <= event["ts"] < times[place][1]:
                found.append(f"nothing is under way at {event}")
    return found + [f"flow {number}: {e}" for number, e in ends.items() if e != ["s", "f"]]


def test_the_check_finds_what_it_looks_for() -> None:
    meta = [
        {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": "p"}},
        {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "t"}},
    ]
    one = {"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 5, "name": "a"}
    assert faults([*meta, one, {**one, "ts": 5}]) == []
    assert len(faults([*meta, one, {**one, "ts": 4}])) == 1
    assert len(faults([*meta, {**one, "ts": 0.5}])) == 1
    assert len(faults([*meta, {**one, "tid": 2}])) == 1
    flow = {"ph": "s", "pid": 1, "tid": 1, "ts": 5, "id": 1, "name": "w"}
    assert len(faults([*meta, one, flow])) == 2


def test_a_trace_by_hand_has_every_slice_and_every_wait() -> None:
    events = timetable_events(by_hand())
    assert faults(events) == []
    slices = [
        (e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X" and e["pid"] == ENGINES
    ]
    assert slices == [
        ("load x", 0, 10),
        ("first", 10, 5),
        ("load y", 20, 10),
        ("second", 30, 10),
        ("third", 40, 10),
        ("store c", 50, 6),
    ]
    held = [(e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X" and e["pid"] == PORTS]
    assert held == [("load x", 4, 6), ("load y", 24, 6), ("store c", 54, 2)]
    flows = [(e["name"], e["ts"]) for e in events if e["ph"] == "s"]
    assert flows == [
        ("data", 0),
        ("data", 10),
        ("data", 20),
        ("data", 30),
        ("data", 40),
        ("room", 10),
    ]


@pytest.mark.parametrize("machine", ["npu_37xx", "ethos_u55_128", "tpu_like"])
def test_a_plans_trace_is_loaded_without_a_fault(machine: str) -> None:
    made = small_plan("lenet5", machine)
    trace = json.loads(json.dumps(trace_events(made)))
    events = trace["traceEvents"]
    assert faults(events) == []
    slices = [e for e in events if e["ph"] == "X" and e["pid"] == ENGINES]
    assert len(slices) == len(made.program.tasks)
    assert sum(e["dur"] for e in slices) == sum(task.cycles for task in made.program.tasks)
    assert max(e["ts"] + e["dur"] for e in slices) == made.cycles
    peaks = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
    assert max(peaks) <= max(s.size_bytes for s in made.program.spaces if s.kind == "scratchpad")


def test_a_trace_with_cascades_is_loaded_without_a_fault() -> None:
    assert faults(trace_events(cascaded_plan())["traceEvents"]) == []


def test_cascades_that_overlap_in_time_lie_on_tracks_of_their_own() -> None:
    first = cascades_of(cascaded_plan())[0]
    pairs = (("first", "third"), ("second", "other"))
    events = timetable_events(by_hand(), [replace(first, ops=ops) for ops in pairs])
    assert faults(events) == []
    slices = [(e["tid"], e["ts"], e["dur"]) for e in events if e["pid"] == CASCADES and "ts" in e]
    assert slices == [(1, 10, 40), (2, 30, 10)]
