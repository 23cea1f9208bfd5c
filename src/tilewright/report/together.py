"""Ops that run together, side by side or in strips: what that saves in memory, and what it costs.

*Feature maps* are the tensors that are no constants. Layer by layer an op has all of its inputs and
results at once; together ops hold some rows or columns of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.network.counts import macs
from tilewright.planner import Plan
from tilewright.report.cascades import cascades_of, several_ops, span_text
from tilewright.report.tables import Grid, table
from tilewright.schedule.packed import buffer_lives
from tilewright.units import format_bytes

MOST_ROWS = 6
"""Of the table on a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpsTogether:
    """Ops that run together: some rows at a time, in strips of columns, or both."""

    ops: tuple[str, ...]
    strips: int
    """1 where they are not cut into strips."""
    pace: str
    """How much of its last result a step makes, where they run side by side."""
    layer_by_layer_bytes: int
    """Feature maps of that op among them that has most, whole."""
    held_bytes: int
    """What scratchpads hold of all their feature maps at once, at most; copies count each."""
    scratchpads: int
    """How many of them: each core may have its own, with copies of what the others have."""
    macs: int
    macs_again: int
    """Multiplications beyond `macs`, at the borders of strips."""

    @property
    def span_text(self) -> str:
        """From which op to which."""
        return span_text(self.ops)

    @property
    def how_text(self) -> str:
        """Strips, and what a step makes."""
        strips = f"{self.strips} strips of columns" if self.strips > 1 else ""
        return ", ".join(filter(None, (strips, self.pace)))

    @property
    def again_text(self) -> str:
        """The share of multiplications that are done again; empty where none are."""
        return f"{self.macs_again / max(1, self.macs):.1%}" if self.macs_again else ""


def together_of(plan: Plan) -> tuple[OpsTogether, ...]:
    """What runs together in a plan, in the order of ops; empty if every op runs by itself."""
    groups = list(_groups(plan))
    if not groups:
        return ()
    makers = {stage.op.name: stage for stage in plan.stages}
    whole = {t.name: t.size_bytes for t in plan.network.tensors if t.role != "constant"}
    maps = {
        name: dict.fromkeys(o.tensor for o in (*stage.inputs, *stage.results) if o.tensor in whole)
        for name, stage in makers.items()
    }
    counts = {op.name: macs(op, plan.network) for op in plan.network.ops}
    again = {strips.ops: strips.macs_again for strips in plan.strips}
    held = _Held(plan)
    found = []
    for named, ops, strips, pace in groups:
        roots = held.roots_of(n for op in ops for n in maps[op])
        found.append(
            OpsTogether(
                ops=ops,
                strips=strips,
                pace=pace,
                layer_by_layer_bytes=max(sum(whole[n] for n in maps[o]) for o in ops),
                held_bytes=held.most_bytes(ops, roots),
                scratchpads=len({plan.program.buffers[root].space for root in roots}),
                macs=sum(counts[op] for op in named),
                macs_again=again.get(named, 0),
            )
        )
    return tuple(found)


def _groups(plan: Plan) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], int, str]]:
    """Ops as strips or a cascade name them, those with tasks of their own, strips, and the pace."""
    cascades = several_ops(cascades_of(plan))
    used = dict.fromkeys(task.op for task in plan.program.tasks)
    place = {op.name: number for number, op in enumerate(plan.network.ops)}
    found = []
    for strips in plan.strips:
        inside = [c for c in cascades if set(c.ops) <= set(strips.ops)]
        pace = max(inside, key=lambda c: (len(c.ops), c.text)).pace_text if inside else ""
        ops = tuple(op for op in strips.ops if op in used)
        if ops:
            found.append((strips.ops, ops, strips.strips, pace))
    cut = {op for strips in plan.strips for op in strips.ops}
    found += [(c.ops, c.ops, 1, c.pace_text) for c in cascades if not cut.intersection(c.ops)]
    return iter(sorted(found, key=lambda group: (place[group[1][0]], group[1])))


class _Held:
    """Bytes of feature maps in scratchpads, over the time of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.program = plan.program
        self.lives = buffer_lives(plan.timetable)
        self.spans: dict[str, tuple[int, int]] = {}
        for task, slot in zip(plan.program.tasks, plan.timetable.slots, strict=True):
            if task.op:
                start, end = self.spans.get(task.op, (slot.start_cycle, slot.end_cycle))
                self.spans[task.op] = min(start, slot.start_cycle), max(end, slot.end_cycle)
        self.roots: dict[str, dict[int, None]] = {}
        for number, buffer in enumerate(plan.program.buffers):
            root = plan.program.root(number)
            if plan.program.space[buffer.space].kind == "scratchpad" and root in self.lives:
                self.roots.setdefault(buffer.tensor, {})[root] = None

    def roots_of(self, tensors: Iterable[str]) -> list[int]:
        """The buffers with bytes of their own that hold these tensors."""
        return list(dict.fromkeys(root for name in tensors for root in self.roots.get(name, ())))

    def most_bytes(self, ops: Sequence[str], roots: Sequence[int]) -> int:
        """The most that buffers take at once while these ops run."""
        first = min(self.spans[op][0] for op in ops)
        last = max(self.spans[op][1] for op in ops)
        changes = []
        for root in roots:
            start, end = self.lives[root]
            if start < last and end > first:
                size = self.program.buffers[root].size_bytes
                changes += [(max(start, first), size), (end, -size)]
        most = now = 0
        # At the same cycle what ends makes room first.
        for _, change in sorted(changes):
            now += change
            most = max(most, now)
        return most


def together_json(found: Sequence[OpsTogether]) -> list[dict[str, Any]]:
    """What runs together, for `plan.json` and `--json`."""
    return [asdict(group) for group in found]


def together_of_json(data: Mapping[str, Any]) -> tuple[OpsTogether, ...]:
    """What runs together in a `plan.json`; nothing in one that was written before it was told."""
    return tuple(
        OpsTogether(
            ops=tuple(group["ops"]),
            strips=group["strips"],
            pace=group["pace"],
            layer_by_layer_bytes=group["layer_by_layer_bytes"],
            held_bytes=group["held_bytes"],
            scratchpads=group["scratchpads"],
            macs=group["macs"],
            macs_again=group["macs_again"],
        )
        for group in data.get("strategy", {}).get("together", ())
    )


def together_text(found: Sequence[OpsTogether], n_ops: int, all_macs: int, made_again: int) -> str:
    """How many of so many ops run together, what memory that saves and what is done again.

    `made_again` are multiplications of what is made again instead of waiting.
    """
    if not found:
        return ""
    inside = len({op for group in found for op in group.ops})
    most = max(found, key=lambda group: (group.held_bytes, group.ops))
    whole = format_bytes(max(group.layer_by_layer_bytes for group in found))
    where = f" in {most.scratchpads} scratchpads" if most.scratchpads > 1 else ""
    again = sum(group.macs_again for group in found)
    costs = [
        f"{macs / max(1, all_macs):.1%} more multiplications {why}"
        for macs, why in (
            (again, "at the borders of strips"),
            (made_again, "for what is made again"),
        )
        if macs
    ]
    cost = ", ".join(costs) or "nothing is done again"
    return (
        f"{inside} of {n_ops} ops, some rows, columns or channels at a time: at most "
        f"{format_bytes(most.held_bytes)} of feature maps at once{where}, {whole} layer by layer; "
        f"{cost}"
    )


def together_table(found: Sequence[OpsTogether]) -> Grid:
    """A row for what runs together; of many, those with the most to hold layer by layer."""
    columns = ["together", ">ops", "?how", ">layer by layer", ">held"]
    some_again = any(group.macs_again for group in found)
    grid = table(*columns, *(["?>done again"] if some_again else []))
    largest = sorted(found, key=lambda group: (-group.layer_by_layer_bytes, group.ops))[:MOST_ROWS]
    for group in found:
        if group in largest:
            grid.add_row(
                group.span_text,
                f"{len(group.ops):,}",
                group.how_text,
                format_bytes(group.layer_by_layer_bytes),
                format_bytes(group.held_bytes),
                *([group.again_text] if some_again else []),
            )
    if len(found) > len(largest):
        more = f"… and {len(found) - len(largest):,} more"
        grid.add_row(more, *("" for _ in grid.columns[1:]))
    return grid
