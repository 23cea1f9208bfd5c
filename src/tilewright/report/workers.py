"""Which unit runs an op: a core's model may leave what is the array's work to its vector unit."""

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
    left = left_to_vector(plan)
    if not left:
        return list(plan.assumptions)
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    return [
        *plan.assumptions,
        f"op {left[0]!r}{more}: the array cannot run this, the vector unit does",
    ]
