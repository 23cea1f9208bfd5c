"""Does a task that computes with what lies outside the chip hold a way's ports meanwhile?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tilewright.errors import Problem
from tilewright.program.model import Program, Task

Ports = Mapping[str, Sequence[tuple[str, ...]]]
"""By external space the ports of each way out of it, or into it."""


def stream_problems(program: Program, numbers: Iterable[int]) -> Iterator[Problem]:
    """Tasks, of those with some numbers, that read or write outside the chip through no port."""
    ports_out = _ports(program, [(route.source, route.ports) for route in program.routes])
    ports_in = _ports(program, [(route.target, route.ports) for route in program.routes])
    for task in map(program.tasks.__getitem__, numbers):
        if task.kind == "compute":
            for access in task.reads:
                if program.buffers[access.buffer].space in ports_out:
                    yield from _not_held(
                        task, "reads", program.buffers[access.buffer].space, ports_out
                    )
            for access in task.writes:
                if program.buffers[access.buffer].space in ports_in:
                    yield from _not_held(
                        task, "writes", program.buffers[access.buffer].space, ports_in
                    )


def _ports(program: Program, ways: Sequence[tuple[str, tuple[str, ...]]]) -> Ports:
    external = [space.name for space in program.spaces if space.kind == "external"]
    found = {name: [ports for end, ports in ways if end == name] for name in external}
    return {name: ports for name, ports in found.items() if ports}


def _not_held(task: Task, verb: str, space: str, ports: Ports) -> Iterator[Problem]:
    if not any(set(way) <= set(task.ports) for way in ports[space]):
        yield Problem(
            message=f"task {task.name} {verb} {space} and holds the ports of no way there, such "
            f"as {', '.join(ports[space][0])}"
        )
