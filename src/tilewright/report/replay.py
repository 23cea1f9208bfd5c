"""What a replay found, as a table and as JSON."""

from typing import Any

from tilewright.replay.verify import Verified
from tilewright.report.tables import View, heading, table
from tilewright.units import format_bytes

UNCOMPARED = "its file was not found: sizes, widths and costs are as the plan file says"


def replay_json(found: Verified) -> dict[str, Any]:
    """Agreement per output, time, and bytes moved by memory."""
    return {
        "agrees": found.agrees,
        "outputs": [
            {"name": output.name, "max_error": output.max_error, "agrees": output.agrees}
            for output in found.outputs
        ],
        "cycles": {"planned": found.planned_cycles, "replayed": found.replayed_cycles},
        "traffic_bytes": {
            memory: {"read": moved.read_bytes, "write": moved.write_bytes}
            for memory, moved in found.traffic.items()
        },
        "machine": found.machine,
        "problems": [problem.message for problem in found.problems],
    }


def replay_view(found: Verified) -> View:
    """The same for a person."""
    facts = [
        ("agrees", "yes" if found.agrees else "no"),
        ("cycles", f"{found.planned_cycles:,} planned, {found.replayed_cycles:,} replayed"),
        *([("machine", UNCOMPARED)] if found.machine is None else []),
    ]
    outputs = table("output", ">largest error", "agrees")
    for output in found.outputs:
        outputs.add_row(output.name, f"{output.max_error:.3g}", "yes" if output.agrees else "no")
    moved = table("memory", ">read", ">written")
    for memory, traffic in found.traffic.items():
        moved.add_row(memory, format_bytes(traffic.read_bytes), format_bytes(traffic.write_bytes))
    return [heading("replay", facts), outputs, moved]
