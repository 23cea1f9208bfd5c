"""Is what a plan begins with really there: inputs and constants, outside the chip, to be read?"""

from collections.abc import Iterator

from tilewright.errors import Problem
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.program.model import Box, Program
from tilewright.replay.check_boxes import boxes_in_root, common, overlapping_pairs, text


def given_problems(
    program: Program, network: Network, machine: Machine | None
) -> Iterator[Problem]:
    """Buffers that hold too much from the start, and data that comes once and is read twice."""
    near = None if machine is None else machine.given.inputs
    for number in program.given:
        buffer = program.buffers[number]
        kind = program.space[buffer.space].kind
        tensor = network.by_name.get(buffer.tensor)
        is_input = tensor is not None and tensor.role == "input"
        if is_input and near is not None:
            memory = program.space[buffer.space].memory
            if memory != near:
                yield Problem(
                    message=f"buffer {buffer.name} in {buffer.space} is given, and the machine's "
                    f"inputs lie in {near}"
                )
        elif kind not in ("external", "source"):
            yield Problem(
                message=f"buffer {buffer.name} in {buffer.space} ({kind}) is given, and only what "
                "lies in an external memory or a source is there from the start"
            )
        if tensor is not None and tensor.role not in ("input", "constant"):
            message = f"buffer {buffer.name} is given, and {tensor.name} has to be computed first"
            yield Problem(message=message)
    yield from _read_twice(program)


def _read_twice(program: Program) -> Iterator[Problem]:
    """Parts of a source that cannot be read again and that two tasks read."""
    once = [space.name for space in program.spaces if not space.rereadable]
    if not once:
        return
    reads: dict[int, list[tuple[int, Box]]] = {}
    for number, task in enumerate(program.tasks):
        for access in dict.fromkeys(task.reads):
            if program.buffers[access.buffer].space in once:
                places = [(number, box) for box in boxes_in_root(program, access)]
                reads.setdefault(program.root(access.buffer), []).extend(places)
    for root, found in reads.items():
        buffer = program.buffers[root]
        for one, other in overlapping_pairs([box for _, box in found]):
            (first, box), (second, same) = found[one], found[other]
            if first != second:
                names = [program.tasks[number].name for number in (first, second)]
                yield Problem(
                    message=f"tasks {names[0]} and {names[1]} both read {text(common(box, same))} "
                    f"of buffer {buffer.name}, and what {buffer.space} brings comes once"
                )
