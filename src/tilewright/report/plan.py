"""A plan as a table and as figures."""

from collections.abc import Sequence
from math import fsum
from typing import Any

from tilewright.network.counts import macs
from tilewright.planner import Plan
from tilewright.program.executed import macs_executed
from tilewright.report.cascades import macs_made_again, strategy_json
from tilewright.report.tables import View, heading, table
from tilewright.report.together import (
    OpsTogether,
    together_json,
    together_of,
    together_table,
    together_text,
)
from tilewright.report.workers import assumed
from tilewright.units import format_bytes, format_energy

NOT_TRIED = "ways that take long to find and may need less room: `--thorough` tries them"

INTERRUPTED = "the best plan by then; the search had not ended"


def plan_figures(plan: Plan) -> dict[str, Any]:
    """The figures of a plan, for `--json` and for `plan.json`."""
    program = plan.program
    return {
        "network": plan.network.name,
        "machine": plan.machine.name,
        "objective": plan.options.objective,
        "totals": {
            "cycles": plan.cycles,
            "energy_pj": fsum(plan.energy_pj.values()),
            "energy_pj_by_memory": dict(plan.energy_pj),
            "traffic_bytes": {
                memory: {"read": read, "write": written}
                for memory, (read, written) in plan.traffic_bytes.items()
            },
            "peak_bytes": dict(plan.peak_bytes),
            "macs_executed": macs_executed(program, plan.network),
        },
        "bounds": bounds_json(plan),
        "bound_by": bound_by(plan),
        "strategy": {**strategy_json(plan), "together": together_json(together_of(plan))},
        "tasks": len(program.tasks),
        "buffers": len(program.buffers),
        "checked": plan.options.checked,
        "verified": plan.verified,
        "interrupted": plan.interrupted,
        "assumptions": assumed(plan),
    }


def bounds_json(plan: Plan) -> dict[str, Any]:
    """What no plan can beat on this machine, and what none can of these tiles, or these lives."""
    machine = {
        "cycles": plan.roofline.cycles,
        "traffic_bytes": plan.roofline.traffic_bytes,
        "energy_pj": plan.roofline.energy_pj,
    }
    these_tiles = {
        "cycles": tiles_bound_cycles(plan),
        "path_cycles": plan.bounds.path_cycles,
        "engine_cycles": dict(plan.bounds.engine_cycles),
    }
    these_lives = {"peak_bytes": dict(plan.least_bytes)}
    return {
        "machine": machine,
        "these_tiles": these_tiles,
        "these_lives": these_lives,
        # The same under the names that plans had for them before.
        "roofline_cycles": plan.roofline.cycles,
        "traffic_bytes": plan.roofline.traffic_bytes,
        **these_tiles,
        **these_lives,
    }


def tiles_bound_cycles(plan: Plan) -> int:
    """The largest bound that holds for schedules of these tiles in this compute order."""
    return max(plan.bounds.cycles, plan.bounds.order_cycles, plan.roofline.cycles)


def bound_by(plan: Plan) -> str:
    """What keeps the plan from being shorter: the bottleneck of `explain`, and who is busiest.

    A plan too long to be explained in passing is told by its busiest engine alone.
    """
    name, share = busiest_engine(plan)
    busy = f"{name} is busy {share:.0%} of the time"
    if plan.remedies is None:
        return busy
    best = plan.remedies.bottleneck
    return f"{best.name if best else 'no part alone'}; {busy}"


def busiest_engine(plan: Plan) -> tuple[str, float]:
    """The engine with the largest share of the time at work, and that share."""
    counts = {engine.name: engine.count for engine in plan.program.engines}
    shares = {
        name: busy / (counts[name] * plan.cycles) if plan.cycles else 0.0
        for name, busy in plan.busy_cycles.items()
    }
    name = max(shares, key=lambda name: (shares[name], name))
    return name, shares[name]


def first_to_improve(plan: Plan) -> str:
    """What `explain` would improve first and what that gives; empty where it is not known."""
    found = plan.remedies
    if found is None or found.bottleneck is None:
        return ""
    gain = 1 - found.bottleneck.cycles / max(1, found.replay_cycles)
    return f"{found.bottleneck.what}: {gain:.0%} fewer cycles"


def plan_line(plan: Plan) -> str:
    """A plan in a line."""
    energy = format_energy(fsum(plan.energy_pj.values()))
    return (
        f"<Plan of {plan.network.name} on {plan.machine.name} for {plan.options.objective}: "
        f"{plan.cycles:,} cycles, {energy}, {len(plan.program.tasks):,} tasks>"
    )


def plan_view(plan: Plan) -> View:
    """What a person wants to know first, then memories and engines."""
    seconds = ""
    if plan.machine.clock_hz:
        seconds = f" ({plan.cycles / plan.machine.clock_hz * 1e3:.4g} ms)"
    total = fsum(plan.energy_pj.values())
    lost = fsum(plan.leakage_pj.values())
    dear = max(plan.energy_pj, key=lambda memory: plan.energy_pj[memory], default="")
    of_tiles = plan.cycles / max(1, tiles_bound_cycles(plan))
    of_machine = plan.cycles / max(1, plan.roofline.cycles)
    together = together_of(plan)
    facts = [
        ("objective", plan.options.objective),
        ("cycles", f"{plan.cycles:,}{seconds}"),
        (
            "against bounds",
            f"{of_machine:.2f} x the machine's bound, {of_tiles:.2f} x these tiles' bound",
        ),
        ("bound by", bound_by(plan)),
        *([("would help", helpful)] if (helpful := first_to_improve(plan)) else []),
        *([("interrupted", INTERRUPTED)] if plan.interrupted else []),
        *([("not tried", NOT_TRIED)] if _may_take_less(plan) else []),
        (
            "energy",
            f"{format_energy(total)}, {plan.energy_pj.get(dear, 0) / max(total, 1e-9):.0%} {dear}"
            + (f"; {format_energy(lost)} of it leaks" if lost else ""),
        ),
        *([("together", _together(plan, together))] if together else []),
        ("tasks, buffers", f"{len(plan.program.tasks):,}, {len(plan.program.buffers):,}"),
        ("checked", "every task and every byte" if plan.options.checked else "no"),
        *([("verified", "replayed; all outputs agree")] if plan.verified else []),
        *(("assumed", text) for text in assumed(plan)),
    ]
    title = f"{plan.network.name} on {plan.machine.name}"
    grids = [*([together_table(together)] if together else []), _memories(plan), _engines(plan)]
    return [heading(title, facts), *grids]


def _may_take_less(plan: Plan) -> bool:
    """Whether a plan for the least memory was made without what takes long to find."""
    return plan.options.objective == "memory" and not plan.options.thorough


def _together(plan: Plan, found: Sequence[OpsTogether]) -> str:
    ops = {task.op for task in plan.program.tasks if task.op}
    all_macs = sum(macs(op, plan.network) for op in plan.network.ops)
    return together_text(found, len(ops), all_macs, macs_made_again(plan))


def _memories(plan: Plan) -> Any:
    grid = table(
        "memory", ">peak", "?>of", "?>lives' bound", "?>gap", ">read", ">written", ">energy"
    )
    sizes = {space.memory: space.size_bytes for space in plan.program.spaces}
    for memory in dict.fromkeys([*plan.traffic_bytes, *plan.energy_pj]):
        read, written = plan.traffic_bytes.get(memory, (0, 0))
        placed = memory in plan.peak_bytes
        gap = plan.peak_bytes.get(memory, 0) - plan.least_bytes.get(memory, 0)
        grid.add_row(
            memory,
            format_bytes(plan.peak_bytes[memory]) if placed else "",
            format_bytes(sizes[memory]) if placed else "",
            format_bytes(plan.least_bytes[memory]) if placed else "",
            f"{gap:,} B" if placed else "",
            format_bytes(read) if read or written else "",
            format_bytes(written) if read or written else "",
            format_energy(plan.energy_pj.get(memory, 0.0)),
        )
    return grid


def _engines(plan: Plan) -> Any:
    grid = table("engine", ">busy", ">share", ">tiles' bound")
    counts = {engine.name: engine.count for engine in plan.program.engines}
    for name, busy in plan.busy_cycles.items():
        if busy:
            share = busy / (counts[name] * plan.cycles)
            bound = plan.bounds.engine_cycles.get(name, plan.bounds.port_cycles.get(name, 0))
            grid.add_row(name, f"{busy:,}", f"{share:.0%}", f"{bound:,}")
    return grid
