"""What a plan file says of its network and its machine: names, ops, and what was assumed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from tilewright.errors import Problem
from tilewright.machine.model import Machine
from tilewright.network.counts import macs
from tilewright.network.graph import Network, Op
from tilewright.network.kinds import KIND_CLASSES
from tilewright.plan_model import PlanObjective
from tilewright.plan_rungs import SUMS_OF_RUNGS
from tilewright.program.lower import Prepared
from tilewright.program.model import Program, Task
from tilewright.program.stages import Stage
from tilewright.report.cascades import rolling_buffers
from tilewright.report.record import PlanRecord
from tilewright.report.workers import is_on_array, left_told

OBJECTIVES = tuple(word for part in get_args(PlanObjective) for word in (get_args(part) or (part,)))


def name_problems(
    record: PlanRecord, network: Network, machine: Machine | None
) -> Iterator[Problem]:
    """Names of another network or machine, an objective that there is not, and what the program
    itself says otherwise."""
    figures, program = record.figures, record.timetable.program
    told: dict[str, Any] = {"network": network.name}
    if machine is not None:
        told["machine"] = machine.name
    told["ops"] = sorted({task.op for task in program.tasks if task.op})
    told["rolling_buffers"] = [
        {"buffer": r.buffer, "axis": r.axis, "rows": r.rows, "of_rows": r.of_rows}
        for r in rolling_buffers(program, network)
    ]
    for key, expected in told.items():
        if key in figures and figures[key] != expected:
            yield _unlike(key, figures[key], expected)
    if figures.get("objective") not in OBJECTIVES:
        yield _unlike("objective", figures.get("objective"), f"one of {', '.join(OBJECTIVES)}")


def _unlike(what: str, said: object, expected: object) -> Problem:
    return Problem(message=f"{what} of the plan file is {said}, and should be {expected}")


def op_problems(record: PlanRecord, network: Network) -> Iterator[Problem]:
    """Ops that the network, or the tasks, have otherwise than the op list says."""
    expected = {op["name"]: op for op in expected_ops(record.timetable.program, network)}
    listed = record.figures["op_list"]
    names = [op["name"] for op in listed]
    for name in dict.fromkeys((*names, *expected)):
        if names.count(name) != (name in expected):
            count = names.count(name)
            yield _unlike(f"op_list: {name}", f"there {count} times", "there once for its tasks")
    for op in listed:
        for key, value in expected.get(op["name"], {}).items():
            if _as_lists(op.get(key)) != _as_lists(value):
                yield _unlike(f"op_list: {key} of {op['name']}", op.get(key), value)


def _as_lists(value: Any) -> Any:
    return [_as_lists(one) for one in value] if isinstance(value, list | tuple) else value


def expected_ops(program: Program, network: Network) -> Iterator[Mapping[str, Any]]:
    """The ops with tasks of their own, as a plan file lists them."""
    ops = {op.name: op for op in network.ops}
    by_op: dict[str, list[Task]] = {}
    for task in program.tasks:
        if task.op in ops:
            by_op.setdefault(task.op, []).append(task)
    for name, tasks in by_op.items():
        op = ops[name]
        # Tasks that leave sums to others apply nothing.
        fused = max((task.fused for task in tasks), key=len)
        behind = [ops[other] for other in fused if other in ops]
        made = {o.tensor for one in (op, *behind) for o in one.outputs}
        reads = [o.tensor for o in op.inputs]
        reads += [o.tensor for one in behind for o in one.inputs if o.tensor not in made]
        yield {
            "name": name,
            "kind": op.kind,
            "worker": _worker(op, tasks),
            "fused": fused,
            "macs": macs(op, network),
            "dims": op.dims,
            "reads": list(dict.fromkeys(reads)),
            "writes": [o.tensor for o in (behind[-1].outputs[:1] if behind else op.outputs)],
        }


def _worker(op: Op, tasks: Sequence[Task]) -> str:
    if KIND_CLASSES[op.kind] == "move":
        return "move"
    return "array" if any(map(is_on_array, tasks)) else "vector"


def assumption_problems(record: PlanRecord, prepared: Prepared) -> Iterator[Problem]:
    """What a plan on a machine assumes and does not say; and what it says beside that, but for what
    is known of sums on a rung of a ladder."""
    said = record.figures.get("assumptions", [])
    expected = [*prepared.places.assumptions, *left_told(_left(record, prepared.stages))]
    for text in expected:
        if text not in said:
            yield Problem(message=f"the plan file does not say what was assumed: {text}")
    for text in said:
        if text not in (*expected, SUMS_OF_RUNGS):
            yield Problem(message=f"the plan file says what nobody assumed: {text}")


def _left(record: PlanRecord, stages: Sequence[Stage]) -> list[str]:
    """Ops that are the array's work and that it does not run, in the order of the list of ops."""
    tasks = record.timetable.program.tasks
    computed = {task.op for task in tasks if task.kind == "compute"}
    computed -= {task.op for task in tasks if is_on_array(task)}
    work = {stage.op.name for stage in stages if stage.worker == "array"}
    return [op.name for op in record.ops if op.name in computed & work]
