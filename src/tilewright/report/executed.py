"""What a plan multiplies: all that its tasks do, borders of strips and ops that run again too."""

from math import prod

from tilewright.network.counts import macs, tile_macs
from tilewright.planner import Plan


def macs_executed(plan: Plan) -> int:
    """The multiplications of all tasks."""
    ops = {op.name: op for op in plan.network.ops}
    is_plain = {op.name: macs(op, plan.network) == op.points for op in plan.network.ops}
    does_any = {op.name: macs(op, plan.network) > 0 for op in plan.network.ops}
    total = 0
    for task in plan.program.tasks:
        if not task.op or not does_any[task.op]:
            continue
        if is_plain[task.op]:
            total += prod([end - begin for _, begin, end in task.tile])
        else:
            ranges = {dim: (begin, end) for dim, begin, end in task.tile}
            total += tile_macs(ops[task.op], plan.network, ranges)
    return total
