"""Which unit runs an op: a core's model may leave what is the array's work to its vector unit."""

from collections.abc import Sequence

from tilewright.planner import Plan
from tilewright.program.model import Task


def is_on_array(task: Task) -> bool:
    """Whether multipliers are at work."""
    return any(charge.memory == "array" for charge in task.charges)


def left_to_vector(plan: Plan) -> tuple[str, ...]:
    """Ops that are multiplications, and run on no array: an Ethos-U multiplies no floats."""
    used = {task.op for task in plan.program.tasks if task.kind == "compute"}
    used -= {task.op for task in plan.program.tasks if is_on_array(task)}
    names = (stage.op.name for stage in plan.stages if stage.worker == "array")
    return tuple(dict.fromkeys(name for name in names if name in used))


def assumed(plan: Plan) -> list[str]:
    """What a reader of the plan has to know of its machine, in sentences."""
    return [*plan.assumptions, *left_told(left_to_vector(plan))]


def left_told(ops: Sequence[str]) -> list[str]:
    """A sentence about ops that are left to the vector unit, if there are any."""
    if not ops:
        return []
    more = f" and {len(ops) - 1} more" if len(ops) > 1 else ""
    return [f"op {ops[0]!r}{more}: the array cannot run this, the vector unit does"]
