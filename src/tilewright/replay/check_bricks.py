"""Can an Ethos-U address what its tasks touch? Maps that lie in bricks are cut between bricks.

A map in bricks has groups of 16 channels, and an operation reads and writes it from the first
channel of a group on. Which maps lie so is found out here anew.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from tilewright.errors import Problem
from tilewright.machine.model import Machine
from tilewright.network.graph import Network, Op
from tilewright.program.model import Program
from tilewright.replay.check_accesses import Accesses
from tilewright.replay.check_boxes import Ints

BRICK_CHANNELS: Final = 16
TOUCHED_BY: Final = frozenset(
    ("conv", "max_pool", "average_pool", "add", "sub", "mul", "min", "max", "relu", "relu6")
) | {"clip"}
"""Kinds of ops that the hardware reads and writes bricks for; others want rows of channels."""


def bricked_axes(network: Network) -> dict[str, int]:
    """By tensor that lies in bricks, which of its axes the channels are."""
    kinds: dict[str, set[str]] = {}
    makers: dict[str, Op] = {}
    for op in network.ops:
        makers.update((result.tensor, op) for result in op.outputs)
        for operand in (*op.inputs, *op.outputs):
            kinds.setdefault(operand.tensor, set()).add(op.kind)
    found = {}
    for tensor in network.tensors:
        is_map = tensor.role == "activation" and len(tensor.shape) == 4
        if is_map and tensor.name in makers and kinds[tensor.name] <= TOUCHED_BY:
            axis = _channels(makers[tensor.name], tensor.name)
            if axis is not None and tensor.shape[axis] % BRICK_CHANNELS == 0:
                found[tensor.name] = axis
    return found


def passed_on_in_sums(program: Program, network: Network) -> set[str]:
    """Results to which the task that makes them applies another op: they are never a map, only
    sums on their way."""
    applied = {task.op: task.fused for task in program.tasks if task.fused}
    made = {op.name: [result.tensor for result in op.outputs] for op in network.ops}
    chains = ((first, *fused) for first, fused in applied.items())
    return {tensor for chain in chains for op in chain[:-1] for tensor in made.get(op, ())}


def _channels(maker: Op, tensor: str) -> int | None:
    """The first axis along which an op makes other channels."""
    for result in maker.outputs:
        if result.tensor == tensor:
            for axis, index in enumerate(result.index or ()):
                if {loop for loop, _ in index.terms} & {"K", "G"}:
                    return axis
    return None


def brick_problems(
    program: Program, network: Network, machine: Machine | None, accesses: Accesses
) -> Iterator[Problem]:
    """Boxes that begin or end inside a brick: those that tasks compute with, and their buffers'."""
    if machine is None or all(core.model is None for core in machine.cores):
        return
    passed_on = passed_on_in_sums(program, network)
    axes = {name: axis for name, axis in bricked_axes(network).items() if name not in passed_on}
    names = list(accesses.tensor_numbers)
    axis = np.array([axes.get(name, -1) for name in names], dtype=np.int64)
    axis = axis[accesses.tensors[accesses.buffer]]
    is_compute = accesses.kinds.flags(lambda task: task.kind == "compute")
    rows = np.flatnonzero((axis >= 0) & is_compute[accesses.task])
    touched = accesses.boxes[:, axis[rows], rows]
    whole = accesses.buffer_boxes[:, axis[rows], accesses.buffer[rows]]
    is_off = [(box % BRICK_CHANNELS).any(axis=0) for box in (touched, whole)]
    for at in np.flatnonzero(is_off[0]).tolist():
        verb = "writes" if accesses.is_write[rows[at]] else "reads"
        task = program.tasks[int(accesses.task[rows[at]])]
        buffer = program.buffers[int(accesses.buffer[rows[at]])]
        yield Problem(
            message=f"task {task.name} {verb} channels {_text(touched[:, at])} of "
            f"{buffer.tensor}, which lies in bricks of {BRICK_CHANNELS}: no operation of an "
            "Ethos-U begins or ends inside one"
        )
    for number in np.unique(accesses.buffer[rows[is_off[1]]]).tolist():
        buffer = program.buffers[number]
        channels = accesses.buffer_boxes[:, axes[buffer.tensor], number]
        yield Problem(
            message=f"buffer {buffer.name} has channels {_text(channels)} of {buffer.tensor}, "
            f"which lies in bricks of {BRICK_CHANNELS}: it begins or ends inside one"
        )


def _text(channels: Ints) -> str:
    begin, end = channels.tolist()
    return f"{begin}:{end}"
