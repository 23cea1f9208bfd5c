"""What a program multiplies: what its tasks do, borders of strips and ops run again included."""

from math import prod

from tilewright.network.counts import macs, tile_macs
from tilewright.network.graph import Network
from tilewright.program.model import Program


def macs_executed(program: Program, network: Network) -> int:
    """The multiplications of all tasks."""
    ops = {op.name: op for op in network.ops}
    counts = {op.name: macs(op, network) for op in network.ops}
    total = 0
    for task in program.tasks:
        if not task.op or not counts[task.op]:
            continue
        op = ops[task.op]
        if counts[task.op] == op.points:
            total += prod([end - begin for _, begin, end in task.tile])
        else:
            ranges = {dim: (begin, end) for dim, begin, end in task.tile}
            total += tile_macs(op, network, ranges)
    return total
