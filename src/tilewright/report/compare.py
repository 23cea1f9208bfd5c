"""What changed between two plans: totals, and op by op; and whether that breaks a limit."""

import re
from dataclasses import dataclass
from typing import Any

from tilewright.errors import InputError, LimitError, Problem
from tilewright.report.cascades import cascade_json
from tilewright.report.op_rows import OpRow, op_rows
from tilewright.report.record import PlanRecord
from tilewright.report.tables import Grid, View, heading, shortened, table
from tilewright.units import format_bytes, format_energy

_LIMIT = re.compile(r"\s*([\w.\[\]]+)\s*>\s*([+-]?[\d.]+)\s*(%?)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A figure in both plans."""

    name: str
    before: float
    after: float

    @property
    def share(self) -> float:
        """The change as a share of what it was; 0 if both are 0."""
        if self.before == self.after:
            return 0.0
        return (self.after - self.before) / self.before if self.before else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpChange:
    """An op in both plans, or in one of them."""

    name: str
    before: OpRow | None
    after: OpRow | None

    @property
    def cycles(self) -> int:
        """By how many busy and waiting cycles it grew."""
        return _op_cycles(self.after) - _op_cycles(self.before)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Totals and ops of two plans; ops in the order of the second plan, then those only before."""

    before: PlanRecord
    after: PlanRecord
    totals: tuple[Change, ...]
    ops: tuple[OpChange, ...]


def compare(before: PlanRecord, after: PlanRecord) -> Comparison:
    """What changed from one plan to another."""
    first, second = _totals(before), _totals(after)
    names = dict.fromkeys([*first, *second])
    old = {row.name: row for row in op_rows(before, None)}
    new = {row.name: row for row in op_rows(after, None)}
    return Comparison(
        before=before,
        after=after,
        totals=tuple(
            Change(name=name, before=first.get(name, 0), after=second.get(name, 0))
            for name in names
        ),
        ops=tuple(
            OpChange(name=name, before=old.get(name), after=new.get(name))
            for name in dict.fromkeys([*new, *old])
        ),
    )


def require(comparison: Comparison, limits: tuple[str, ...]) -> None:
    """Check limits such as `cycles>+1%` (grew by more than) or `peak_bytes.cmx>1000000`.

    Raises:
        InputError: a limit cannot be read, or names no figure.
        LimitError: a limit is broken.
    """
    figures = {change.name: change for change in comparison.totals}
    broken = []
    for limit in limits:
        match = _LIMIT.fullmatch(limit)
        if match is None or match[1] not in figures:
            message = f"--fail-if {limit!r}: expected a figure, `>` and an amount"
            hint = f"such as 'cycles>+1%'; figures: {', '.join(figures)}"
            raise InputError(Problem(message=message, hint=hint))
        change = figures[match[1]]
        if _exceeds(change, match[2], is_share=bool(match[3])):
            text = f"{change.name} went from {change.before:,.0f} to {change.after:,.0f}"
            broken.append(Problem(message=f"{text}, {change.share:+.2%}: beyond {limit!r}"))
    if broken:
        raise LimitError(*broken)


def _exceeds(change: Change, amount: str, *, is_share: bool) -> bool:
    value = float(amount)
    if is_share:
        return change.share * 100 > value
    if amount[0] in "+-":
        return change.after - change.before > value
    return change.after > value


def _totals(record: PlanRecord) -> dict[str, float]:
    """The figures that can be compared, flat: `peak_bytes.cmx`."""
    totals = record.figures["totals"]
    found: dict[str, float] = {"cycles": totals["cycles"], "energy_pj": totals["energy_pj"]}
    for memory, traffic in totals["traffic_bytes"].items():
        found[f"traffic_bytes.{memory}"] = traffic["read"] + traffic["write"]
    for memory, peak in totals["peak_bytes"].items():
        found[f"peak_bytes.{memory}"] = peak
    found["tasks"] = record.figures["tasks"]
    return found


def _op_cycles(row: OpRow | None) -> int:
    return row.busy_cycles + row.idle_cycles if row else 0


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """A comparison for `--json`."""
    return {
        "before": comparison.before.title,
        "after": comparison.after.title,
        "totals": {
            change.name: {"before": change.before, "after": change.after}
            for change in comparison.totals
        },
        "ops": [
            {
                "name": change.name,
                "before": _figures(change.before),
                "after": _figures(change.after),
            }
            for change in comparison.ops
        ],
    }


def _figures(row: OpRow | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "busy_cycles": row.busy_cycles,
        "idle_cycles": row.idle_cycles,
        "energy_pj": row.energy_pj,
        "traffic_bytes": row.traffic_bytes,
        "tiles": row.tiles,
        "bound_by": row.bound_by,
        "cascade": None if row.cascade is None else cascade_json(row.cascade),
    }


def comparison_view(comparison: Comparison) -> View:
    """A comparison as tables; ops that did not change are only counted."""
    before, after = comparison.before, comparison.after
    changed = [op for op in comparison.ops if _differs(op)]
    facts = [
        ("before", _title(before, after)),
        ("after", _title(after, before)),
        ("ops", f"{len(changed)} changed, {len(comparison.ops) - len(changed)} as before"),
        *([("cascades", told)] if (told := _cascades_text(comparison)) else []),
    ]
    totals = table("figure", ">before", ">after", ">change")
    for change in comparison.totals:
        totals.add_row(
            change.name, _text(change.name, change.before), _text(change.name, change.after),
            _share_text(change),
        )  # fmt: skip
    return [heading("What changed", facts), totals, *([_op_table(changed)] if changed else [])]


def _title(record: PlanRecord, other: PlanRecord) -> str:
    """Which network on which machine, with the machine's file where names are the same."""
    file, others = (plan.figures.get("source", {}).get("machine") for plan in (record, other))
    if record.title != other.title or file == others:
        return record.title
    return f"{record.title} ({file})"


def _share_text(change: Change) -> str:
    if not change.share:
        return ""
    return f"{change.share:+.2%}" if change.before else "new"


def _cascades_text(comparison: Comparison) -> str:
    """How many ops run in another cascade than before; empty if none do."""
    pairs = [(op.before, op.after) for op in comparison.ops]
    both = [(old.cascade, new.cascade) for old, new in pairs if old and new]
    moved = [(old, new) for old, new in both if old != new]
    joined = sum(old is None for old, _ in moved)
    left = sum(new is None for _, new in moved)
    parts = (
        (joined, "now in one"),
        (left, "no longer in one"),
        (len(moved) - joined - left, "in another one"),
    )
    return ", ".join(f"{_ops(number)} {what}" for number, what in parts if number)


def _ops(number: int) -> str:
    return f"{number} op{'s' if number > 1 else ''}"


def _cascade(row: OpRow | None) -> str:
    return "" if row is None or row.cascade is None else row.cascade.text


def _op_table(changed: list[OpChange]) -> Grid:
    moved = any(_cascade(op.before) != _cascade(op.after) for op in changed)
    grid = table(
        "op", ">busy", ">was", ">waiting", ">was", "?>traffic", "?>was", "?>tiles", "?>was",
        "bound by", "?was", *(("?cascade", "?was") if moved else ()),
    )  # fmt: skip
    for op in sorted(changed, key=lambda op: (-abs(op.cycles), op.name)):
        new, old = _cells(op.after), _cells(op.before)
        if moved:
            new, old = [*new, _cascade(op.after)], [*old, _cascade(op.before)]
        pairs = [cell for pair in zip(new, old, strict=True) for cell in pair]
        grid.add_row(shortened(op.name), *pairs)
    return grid


def _cells(row: OpRow | None) -> list[str]:
    if row is None:
        return ["-", "-", "-", "-", "not there"]
    return [
        f"{row.busy_cycles:,}",
        f"{row.idle_cycles:,}",
        format_bytes(row.traffic_bytes),
        f"{row.tiles:,}",
        row.bound_by,
    ]


def _differs(op: OpChange) -> bool:
    if op.before is None or op.after is None or _cells(op.before) != _cells(op.after):
        return True
    return op.before.cascade != op.after.cascade


def _text(name: str, value: float) -> str:
    if name == "energy_pj":
        return format_energy(value)
    return f"{value:,.0f}"
