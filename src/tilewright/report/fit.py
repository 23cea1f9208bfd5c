"""A capacity ladder as a table and as JSON."""

from typing import Any

from tilewright.plan_model import Plan
from tilewright.report.tables import View, heading, table
from tilewright.strategy.ladder.fit import Fit, Rooms, Verdict
from tilewright.strategy.ladder.liveness import Alive
from tilewright.strategy.ladder.remedies import Remedy, remedies
from tilewright.strategy.ladder.rungs import Rung

MOST_ALIVE = 8
"""Tensors of the peak that are shown."""
MOST_DIGITS = 10_000
"""Factors from here on are written as powers of ten."""


def fit_json(found: Fit, plan: Plan | None = None) -> dict[str, Any]:
    """The ladder, what a machine makes of it, and the plan that was made, as data."""
    machine = found.machine
    made = None
    if plan is not None:
        made = {"cycles": plan.cycles, "peak_bytes": dict(plan.peak_bytes)}
    return {
        "network": found.network.name,
        "machine": None if machine is None else machine.name,
        "weight_bytes": found.ladder.weight_bytes,
        "rungs": [_rung_json(found, rung) for rung in found.ladder.rungs],
        "first": None if found.first is None else found.first.name,
        "memories": []
        if found.rooms is None
        else [
            {"name": room.memory, "size_bytes": room.size_bytes, "count": room.copies}
            for room in found.rooms.rooms
        ],
        "answer": list(answer(found)),
        "remedies": [_remedy_json(remedy) for remedy in remedies(found)],
        "plan": made,
    }


def _rung_json(found: Fit, rung: Rung) -> dict[str, Any]:
    told = found.verdicts.get(rung.name)
    return {
        "name": rung.name,
        "activation_bytes": rung.activation_bytes,
        "total_bytes": rung.total_bytes,
        "macs_factor": rung.macs_factor,
        "granularity": rung.granularity,
        "fits": None if told is None else told.fits,
        "fits_together": None if told is None else told.fits_together,
        "short_bytes": None if told is None else told.short_bytes,
        "alive": [
            {"tensor": a.tensor, "size_bytes": a.size_bytes, "accumulators": a.is_sum}
            for a in rung.alive
        ],
    }


def _remedy_json(remedy: Remedy) -> dict[str, Any]:
    return {
        "kind": remedy.kind,
        "what": remedy.what,
        "total_bytes": remedy.total_bytes,
        "macs_factor": remedy.macs_factor,
        "fits": remedy.verdict.fits,
        "fits_together": remedy.verdict.fits_together,
        "obstacle": remedy.verdict.obstacle,
    }


def answer(found: Fit) -> list[str]:
    """Does it fit, and if not, what is in the way: a sentence or two."""
    rooms, first = found.rooms, found.first
    if rooms is None or found.machine is None:
        return []
    if first is not None:
        where = " and ".join(room.memory for room in rooms.rooms)
        needs = f"{first.total_bytes:,} B"
        text = f"yes, {first.name}: it needs {needs} of {where} ({rooms.text})"
        if first.name == "cascades" and rooms.weight_origin:
            text += f", and weights come in pieces from {rooms.weight_origin}"
        return [text]
    sentences = [_why_not(found, rooms)]
    best = found.smallest
    if best.activation_bytes <= max((r.size_bytes for r in rooms.rooms), default=0):
        sentences.append(
            f"activations are not what is missing: {best.name} keeps {best.activation_bytes:,} B "
            "of them, and needs no other memory between layers"
        )
    if rooms.weight_origin:
        sentences.append(
            f"weights that do not stay can come from {rooms.weight_origin} when they are needed: "
            "`tilewright plan` looks for such a plan"
        )
    return sentences


def _why_not(found: Fit, rooms: Rooms) -> str:
    weights, room = found.ladder.weight_bytes, rooms.together_bytes
    if weights > room:
        return (
            f"no: weights alone take {weights:,} B, a hard floor, and all scratchpads "
            f"({rooms.text}) hold {room:,} B, {weights - room:,} B less"
        )
    best = found.smallest
    told = found.verdicts[best.name]
    if told.fits_together:
        return (
            f"no: {best.name} needs {best.total_bytes:,} B, which all scratchpads together "
            f"({room:,} B) would hold, but {told.obstacle}"
        )
    return (
        f"no: {best.name} needs {best.total_bytes:,} B, and all scratchpads ({rooms.text}) hold "
        f"{room:,} B, {best.total_bytes - room:,} B less"
    )


def fit_view(found: Fit, plan: Plan | None = None) -> View:
    """The answer, the ladder, who is alive at the peak, and what would help; and a plan if made."""
    machine = found.machine
    title = found.network.name + ("" if machine is None else f" on {machine.name}")
    weights = f"{found.ladder.weight_bytes:,} B of weights, resident on every rung"
    if any(rung.name == "cascades" for rung in found.ladder.rungs):
        weights += " but `cascades`"
    facts = [("needs", f"{weights}; the rest is activations")]
    facts += list(zip(("fits", "but", "or"), answer(found), strict=False))
    if plan is not None:
        facts.append(("plan", _plan_text(plan, found)))
    rung = found.first or found.smallest
    parts: list[Any] = [heading(title, facts), _ladder(found), _alive(rung)]
    listed = remedies(found)
    if listed and (found.first is None or found.first.name != "layer_by_layer"):
        parts.append(_remedies(listed))
    return parts


def _plan_text(plan: Plan, found: Fit) -> str:
    peaks = ", ".join(f"{size:,} B of {memory}" for memory, size in plan.peak_bytes.items())
    how = "an ordinary plan, weights come when they are needed"
    if found.first is not None:
        how = found.first.name
    return f"{how}: {plan.cycles:,} cycles, {peaks}"


def _ladder(found: Fit) -> Any:
    columns = ["rung", ">activations", ">total", ">MACs", "?cut into"]
    grid = table(*columns, *(["fits"] if found.rooms is not None else []))
    for rung in found.ladder.rungs:
        row = [
            rung.name,
            f"{rung.activation_bytes:,} B",
            f"{rung.total_bytes:,} B",
            factor_text(rung.macs_factor) if rung.name != "weights" else "",
            "" if rung.granularity is None else f"{rung.granularity}s",
        ]
        told = found.verdicts.get(rung.name)
        grid.add_row(*row, *([] if told is None else [_verdict_text(told)]))
    return grid


def _verdict_text(told: Verdict) -> str:
    if told.fits:
        return "yes"
    text = f"{told.memory} {told.short_bytes:,} B short" if told.short_bytes else told.obstacle
    return f"only all memories together; {text}" if told.fits_together else f"no; {text}"


def factor_text(factor: float) -> str:
    """A multiple, as `0.89 x`."""
    return f"{factor:.2f} x" if factor < MOST_DIGITS else f"{factor:.1e} x"


def _alive(rung: Rung) -> Any:
    grid = table(f"alive at the peak of {rung.name}", ">bytes")
    for alive in rung.alive[:MOST_ALIVE]:
        grid.add_row(_alive_text(alive), f"{alive.size_bytes:,}")
    rest = rung.alive[MOST_ALIVE:]
    if rest:
        grid.add_row(f"and {len(rest)} more", f"{sum(a.size_bytes for a in rest):,}")
    return grid


def _alive_text(alive: Alive) -> str:
    what = ", accumulators" if alive.is_sum else ""
    return f"{alive.tensor}{what}{f', {alive.chunks} pieces' if alive.chunks > 1 else ''}"


def _remedies(listed: tuple[Remedy, ...]) -> Any:
    grid = table("what would help", ">total", ">MACs", "fits")
    for remedy in listed:
        grid.add_row(
            remedy.what,
            f"{remedy.total_bytes:,} B",
            factor_text(remedy.macs_factor),
            _verdict_text(remedy.verdict),
        )
    return grid
