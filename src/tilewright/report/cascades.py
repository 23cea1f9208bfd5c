"""Cascades of a plan as reports have them: by the names of their ops, and the buffers that roll.

*Rows* are positions along the axis that a cascade walks; where the ops say what these are, texts
call them columns or channels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from tilewright.network.counts import macs
from tilewright.network.graph import Network
from tilewright.planner import Plan
from tilewright.program.cascade import Cascade
from tilewright.program.model import Program, Timetable
from tilewright.program.stages import Stage
from tilewright.program.strips import is_repeated

_WORDS = {"OX": "columns", "K": "channels", "G": "channels", "C": "channels", "B": "images"}
"""What positions along a loop are called; all others are rows."""
_SHORT_NAME = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeFigures:
    """Ops that run side by side; every step makes `step_rows` of the `rows` of the last result."""

    ops: tuple[str, ...]
    tensor: str
    """The result of the last op, or what that is made of."""
    axis: int
    along: str
    """What positions along the axis are: rows, columns, channels."""
    rows: int
    step_rows: int
    row_by_row: bool
    """Whether every op makes one row at a time, rather than as many as a step takes."""
    ahead: bool
    """Whether there is room for the rows of the next step beside those of the step at hand."""

    @property
    def span_text(self) -> str:
        """From which op to which."""
        return span_text(self.ops)

    @property
    def pace_text(self) -> str:
        """How much of the last result a step makes."""
        return f"{self.step_rows:,} of {self.rows:,} {self.along} a step"

    @property
    def text(self) -> str:
        """Which ops run together, and how much of the last result a step makes."""
        many = f"{len(self.ops)} ops, " if len(self.ops) > 1 else ""
        return f"{many}{self.span_text}: {self.pace_text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingBuffer:
    """A buffer that holds `rows` of a tensor's `of_rows` rows at once, later ones over earlier."""

    buffer: int
    axis: int
    rows: int
    of_rows: int


def cascades_of(plan: Plan) -> tuple[CascadeFigures, ...]:
    """The cascades of a plan, in the order of their ops; an op that runs so alone is one too."""
    used = dict.fromkeys(task.op for task in plan.program.tasks)
    found = []
    for cascade in plan.strategy.cascades:
        stages = [plan.stages[number] for number in cascade.stages]
        ops = tuple(stage.op.name for stage in stages if stage.op.name in used)
        if ops:
            found.append(_figures(plan, cascade, stages, ops))
    # Where ops run in strips, each of these may have the same cascades.
    return tuple(dict.fromkeys(found))


def _figures(
    plan: Plan, cascade: Cascade, stages: Sequence[Stage], ops: tuple[str, ...]
) -> CascadeFigures:
    # What picks elements goes through the rows of what it reads.
    picks = cascade.axis < 0
    cut = stages[-1].op.inputs[0] if picks else stages[-1].results[0]
    axis = ~cascade.axis if picks else cascade.axis
    loops = [] if cut.index is None else [loop for loop, _ in cut.index[axis].terms]
    rows = plan.network.by_name[cut.tensor].shape[axis]
    if rows == 1:
        # So does a pool over everything.
        rows = plan.network.by_name[stages[-1].op.inputs[0].tensor].shape[axis]
    return CascadeFigures(
        ops=ops,
        tensor=cut.tensor,
        axis=axis,
        along=_WORDS.get(loops[0], "rows") if loops else "rows",
        rows=rows,
        step_rows=min(rows, cascade.step),
        row_by_row=not cascade.eager,
        ahead=cascade.ahead,
    )


def strategy_json(plan: Plan) -> dict[str, Any]:
    """What runs as cascades and what waits outside, for `plan.json` and `--json`."""
    program = plan.program
    gone = plan.strategy.gone
    outside = {b.tensor for b in program.buffers if program.space[b.space].kind != "scratchpad"}
    return {
        "cascades": [cascade_json(cascade) for cascade in cascades_of(plan)],
        # What only passes through rolling buffers is never kept as a whole, nor does it go out.
        "waits_outside": None if gone is None else [name for name in gone if name in outside],
        "frugal": plan.strategy.frugal,
        "strips": [asdict(strips) for strips in plan.strips],
        "again": [asdict(way) for way in plan.again],
        "macs_made_again": macs_made_again(plan),
    }


def macs_made_again(plan: Plan) -> int:
    """Multiplications of ops that run a second time, and of tasks that do what others have done."""
    ops = {op.name: op for op in plan.network.ops}
    points = dict.fromkeys(ops, 0)
    for task in plan.program.tasks:
        if task.op and is_repeated(task):
            points[task.op] += prod(stop - start for _, start, stop in task.tile)
    repeated = sum(
        macs(ops[name], plan.network) * count // ops[name].points
        for name, count in points.items()
        if count
    )
    return repeated + sum(way.macs for way in plan.again)


def cascade_json(cascade: CascadeFigures) -> dict[str, Any]:
    """A cascade by its keys in `plan.json`."""
    return {
        "ops": list(cascade.ops),
        "tensor": cascade.tensor,
        "axis": cascade.axis,
        "along": cascade.along,
        "rows": cascade.rows,
        "step_rows": cascade.step_rows,
        "row_by_row": cascade.row_by_row,
        "ahead": cascade.ahead,
    }


def cascades_of_json(data: Mapping[str, Any]) -> tuple[CascadeFigures, ...]:
    """The cascades in a `plan.json`; none in one that was written before there were any."""
    return tuple(
        CascadeFigures(
            ops=tuple(cascade["ops"]),
            tensor=cascade["tensor"],
            axis=cascade["axis"],
            along=cascade["along"],
            rows=cascade["rows"],
            step_rows=cascade["step_rows"],
            row_by_row=cascade["row_by_row"],
            ahead=cascade["ahead"],
        )
        for cascade in data.get("strategy", {}).get("cascades", ())
    )


def rolling_buffers(program: Program, network: Network) -> Iterator[RollingBuffer]:
    """Buffers whose bytes hold several parts of one tensor, one after the other."""
    laps: dict[int, dict[str, list[int]]] = {}
    for number, buffer in enumerate(program.buffers):
        if buffer.view is not None and buffer.view.origin is not None:
            laps.setdefault(buffer.view.buffer, {}).setdefault(buffer.tensor, []).append(number)
    for root, by_tensor in sorted(laps.items()):
        several = [numbers for numbers in by_tensor.values() if len(numbers) > 1]
        boxes = [program.buffers[number].box for number in several[0]] if several else []
        axes = [axis for axis, spans in enumerate(zip(*boxes, strict=True)) if len(set(spans)) > 1]
        if len(axes) == 1:
            start, stop = program.buffers[root].box[axes[0]]
            of_rows = network.by_name[program.buffers[root].tensor].shape[axes[0]]
            yield RollingBuffer(buffer=root, axis=axes[0], rows=stop - start, of_rows=of_rows)


def several_ops(cascades: Sequence[CascadeFigures]) -> list[CascadeFigures]:
    """Those of more than one op: only between ops is anything saved from going out."""
    return [cascade for cascade in cascades if len(cascade.ops) > 1]


def span_text(ops: Sequence[str]) -> str:
    """From which op to which."""
    return " to ".join(short_name(name) for name in dict.fromkeys((ops[0], ops[-1])))


def short_name(name: str) -> str:
    """An op's name for a line of text: the first of joined names, cut at the front."""
    first = name.partition(";")[0]
    return first if len(first) <= _SHORT_NAME else f"…{first[-_SHORT_NAME + 1 :]}"


def ops_taking_turns(timetable: Timetable) -> list[tuple[str, ...]]:
    """Ops whose tiles take turns on an engine, in the order of their first tiles."""
    order = sorted((slot.start_cycle, number) for number, slot in enumerate(timetable.slots))
    group: dict[str, int] = {}
    queues: dict[str, list[str]] = {}
    for _, number in order:
        task = timetable.program.tasks[number]
        if task.kind == "compute":
            group.setdefault(task.op, len(group))
            queues.setdefault(task.engine.removesuffix(".vector"), []).append(task.op)
    for queue in queues.values():
        _join_turns(queue, group)
    members: dict[int, list[str]] = {}
    for op, number in group.items():
        members.setdefault(number, []).append(op)
    return [tuple(ops) for ops in members.values() if len(ops) > 1]


def _join_turns(queue: list[str], group: dict[str, int]) -> None:
    """Give ops one number if one of them comes back after another one had its turn."""
    last = {op: place for place, op in enumerate(queue)}
    until, number = -1, -1
    for place, op in enumerate(queue):
        if place > until:
            number = group[op]
        elif group[op] != number:
            old = group[op]
            for other, current in group.items():
                group[other] = number if current == old else current
        until = max(until, last[op])
