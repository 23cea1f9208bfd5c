"""Running a plan on an emulated machine: values move only through the plan's own tasks.

The plan is run once in the order of its times, with values. Two tasks that touch the same memory
must wait for each other; and in other orders that the waits allow, run without values, every task
must find exactly the writes that it found before: then it would compute the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from tilewright.errors import InputError, Problem
from tilewright.network.graph import Network
from tilewright.program.model import Access, Program, Timetable
from tilewright.replay.emulate_compare import TOLERANCE, largest_error, value_range
from tilewright.replay.emulate_layout import (
    Layout,
    box_text,
    holds_partial_sums,
    layout_of,
    layout_problems,
)
from tilewright.replay.emulate_memory import (
    GIVEN,
    NEVER,
    Memories,
    Writes,
    empty_memories,
    families_of,
    writes_of,
)
from tilewright.replay.emulate_order import (
    any_order,
    events_in_time,
    latest_first,
    order_problems,
)
from tilewright.replay.emulate_races import Meetings, races
from tilewright.replay.emulate_tasks import TaskError, Worker
from tilewright.replay.emulate_traffic import Traffic, traffic_of, traffic_problems
from tilewright.replay.kernels.quantise import dtype_of
from tilewright.replay.kernels.tile import Array
from tilewright.replay.values import Values

MOST_PROBLEMS = 50
"""A run stops there: one fault has thousands of consequences."""

_SINGLE = ("float32", "float16", "bool")


@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """What a plan computed, what was wrong on the way, and what it moved at each memory."""

    outputs: Mapping[str, Array]
    problems: tuple[Problem, ...]
    traffic: Mapping[str, Traffic]


def replay(
    timetable: Timetable,
    network: Network,
    values: Values,
    *,
    expected: Mapping[str, Array] | None = None,
    orders: int = 1,
    seed: int = 0,
) -> Replay:
    """Run a plan; `orders` is in how many orders beside that of its times.

    What a task computes of a tensor that is `expected` is compared at once, so that the first task
    that goes wrong is named; faults of deep networks may otherwise vanish on the way to an output.

    Raises:
        InputError: a tensor that the plan is given has no value.
    """
    program = timetable.program
    broken = [*layout_problems(timetable, network), *order_problems(timetable)]
    if broken:
        return Replay(outputs={}, problems=tuple(broken[:MOST_PROBLEMS]), traffic={})
    families = families_of(network, program)
    plan = _Plan(
        timetable=timetable,
        network=network,
        layout=layout_of(timetable, network),
        writes=writes_of(program, families),
        families=families,
    )
    run = _Run(plan, values, expected or {})
    run.in_time()
    outputs = run.outputs()
    problems = [*run.problems, *run.races(), *traffic_problems(program, network)]
    if not problems:
        for number in range(orders):
            order = latest_first(timetable) if number == 0 else any_order(timetable, seed + number)
            problems += _order_problems(plan, run.prints, order)
            if problems:
                break
    return Replay(
        outputs=outputs,
        problems=tuple(problems[:MOST_PROBLEMS]),
        traffic=traffic_of(program, network),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Plan:
    timetable: Timetable
    network: Network
    layout: Layout
    writes: Writes
    families: Mapping[str, str]

    @property
    def program(self) -> Program:
        return self.timetable.program

    def task_text(self, number: int) -> str:
        """A task with its cycles."""
        slot = self.timetable.slots[number]
        name = self.program.tasks[number].name
        return f"task {name} (cycles {slot.start_cycle} to {slot.end_cycle})"

    def access_text(self, access: Access) -> str:
        """A box of a buffer and where it begins."""
        buffer = self.program.buffers[access.buffer]
        address = self.layout.address_bytes(access)
        return f"{box_text(access.box)} of buffer {buffer.name} at {address} of {buffer.space}"

    def found_text(self, write: int) -> str:
        """What a write left behind, and who wrote it."""
        if write == NEVER:
            return "nothing was ever written there"
        access = self.writes.accesses[write]
        assert access is not None
        task = self.writes.tasks[write]
        if task == GIVEN:
            return f"{self.access_text(access)} was given there"
        return f"{self.task_text(task)} wrote {self.access_text(access)}"

    def own_writes(self, number: int) -> range:
        first = self.writes.first[number]
        return range(first, first + len(self.program.tasks[number].writes))


@dataclass(eq=False)
class _Run:
    """One run with values, in the order of the timetable."""

    plan: _Plan
    values: Values
    expected: Mapping[str, Array]
    problems: list[Problem] = field(default_factory=list)
    prints: dict[tuple[int, int], int] = field(default_factory=dict)
    """By task and read: a fingerprint of the writes that it found; task -1 stands for the end."""
    _results: dict[int, list[Array]] = field(default_factory=dict)
    _counts: dict[int, list[int]] = field(default_factory=dict)
    _ranges: dict[str, float] = field(default_factory=dict)
    _summed: dict[int, int] = field(default_factory=dict)
    """By write of unfinished sums: how many products each of them has."""

    def __post_init__(self) -> None:
        plan = self.plan
        self.memories = empty_memories(
            plan.layout, plan.writes, plan.families, dtype=_value_type(plan.network)
        )
        self.meetings = Meetings(writes=plan.writes)
        for buffer in plan.program.given:
            self._fill(buffer)
        self.worker = Worker(
            program=plan.program,
            network=plan.network,
            ops={op.name: op for op in plan.network.ops},
            quantisation=self.values.quantisation,
            elements=self.memories.elements,
        )

    def in_time(self) -> None:
        """Run everything, or until too much is wrong."""
        for task, is_start in events_in_time(self.plan.timetable):
            if is_start:
                self._start(task)
            else:
                self._end(task)
            if len(self.problems) >= MOST_PROBLEMS:
                return

    def outputs(self) -> dict[str, Array]:
        """The network's outputs, as far as results hold them."""
        plan = self.plan
        found: dict[str, Array] = {}
        for tensor in plan.network.outputs:
            found[tensor.name] = np.zeros(tensor.shape, dtype=dtype_of(tensor.dtype))
        missing = dict.fromkeys(found)
        for number, buffer in enumerate(plan.program.results):
            access = Access(buffer, plan.program.buffers[buffer].box)
            self._check(access, (-1, number), "the end")
            name = plan.program.buffers[buffer].tensor
            if name in found:
                cut = tuple(slice(*ends) for ends in access.box)
                found[name][cut] = self.memories.elements(access)
                missing.pop(name, None)
        for name in missing:
            self.problems.append(Problem(message=f"no result of the plan holds output {name}"))
        return found

    def races(self) -> list[Problem]:
        """Tasks that meet in memory although no wait orders them."""
        plan = self.plan

        def touch(one: Access, other: Access) -> bool:
            return np.shares_memory(self.memories.granules(one), self.memories.granules(other))

        return [
            Problem(
                message=f"{plan.task_text(first)} and {plan.task_text(second)} share memory, and "
                f"no wait orders them: {plan.access_text(before)} and {plan.access_text(after)}"
            )
            for (first, second), (before, after) in races(plan.timetable, self.meetings, touch)
        ]

    def _fill(self, buffer: int) -> None:
        held = self.plan.program.buffers[buffer]
        if held.tensor not in self.values.arrays:
            message = f"tensor {held.tensor!r} has no value"
            raise InputError(Problem(message=message, hint="name the model's file with --model"))
        array = self.values.arrays[held.tensor]
        whole = self.plan.network.by_name[held.tensor].shape
        if array.shape != whole:
            message = f"tensor {held.tensor!r} has values of shape {array.shape}, not {whole}"
            raise InputError(Problem(message=message))
        cut = tuple(slice(*ends) for ends in held.box)
        self.memories.elements(Access(buffer, held.box))[...] = array[cut]

    def _start(self, number: int) -> None:
        """Read everything, compute, and begin to overwrite what the results take the place of."""
        plan, memories = self.plan, self.memories
        task = plan.program.tasks[number]
        who = plan.task_text(number)
        for position, access in enumerate(task.reads):
            self._check(access, (number, position), who)
        try:
            self._results[number] = self.worker.results(task)
        except TaskError as error:
            self.problems.append(Problem(message=f"{who} {error}"))
        self._count(number)
        for write, access in zip(plan.own_writes(number), task.writes, strict=True):
            self.meetings.overwrite(number, access, memories.granules(access))
            memories.begin_write(write)
        self._check_own(number)
        self._counts[number] = [self._started(access) for access in task.reads]

    def _end(self, number: int) -> None:
        """Make sure that nobody disturbed the task, and make its results readable."""
        plan, memories = self.plan, self.memories
        task = plan.program.tasks[number]
        for access, count in zip(task.reads, self._counts.pop(number), strict=True):
            if self._started(access) != count:
                other = memories.foreign(access, plan.own_writes(number))
                if other is not None:
                    self._report(
                        f"{plan.task_text(number)} still reads {plan.access_text(access)}", other
                    )
        results = self._results.pop(number, [])
        for position, write in enumerate(plan.own_writes(number)):
            access = task.writes[position]
            if not memories.end_write(write):
                ids = memories.granules(access)
                other = int(ids[ids != write].reshape(-1)[0])
                self._report(
                    f"{plan.task_text(number)} still writes {plan.access_text(access)}", other
                )
            if results:
                memories.elements(access)[...] = results[position]
                self._compare(number, access, results[position])

    def _count(self, number: int) -> None:
        """Whether a result's sums have all their products, even if some happen to be 0."""
        task = self.plan.program.tasks[number]
        added, needed = self.worker.summed_points(task)
        before = self.worker.goes_on_from(task)
        counts = [self._summed.get(int(self.memories.granules(a).max()), 0) for a in before]
        if not task.op and before:
            # Sums that are written out and fetched again keep their products.
            self._summed.update((write, min(counts)) for write in self.plan.own_writes(number))
        if number not in self._results or not needed:
            return
        if len(set(counts)) > 1:
            message = f"{self.plan.task_text(number)} goes on from sums of {counts} products"
            self.problems.append(Problem(message=message))
        added += min(counts, default=0)
        if self.worker.is_unfinished(task):
            self._summed.update((write, added) for write in self.plan.own_writes(number))
        elif added != needed:
            message = f"{self.plan.task_text(number)} adds up {added} products, not {needed}"
            self.problems.append(Problem(message=message))

    def _compare(self, number: int, access: Access, found: Array) -> None:
        buffer = self.plan.program.buffers[access.buffer]
        expected = self.expected.get(buffer.tensor)
        task = self.plan.program.tasks[number]
        if expected is None or not task.op or holds_partial_sums(buffer):
            return
        if buffer.tensor not in self._ranges:
            self._ranges[buffer.tensor] = value_range(expected)
        part = expected[tuple(slice(*ends) for ends in access.box)]
        error = largest_error(found, part, self._ranges[buffer.tensor])
        if error > (0 if part.dtype.kind in "iub" else TOLERANCE):
            self.problems.append(
                Problem(
                    message=f"{self.plan.task_text(number)} computes {box_text(access.box)} of "
                    f"{buffer.tensor} wrongly: it differs by {error:.3g}"
                )
            )

    def _started(self, access: Access) -> int:
        space = self.plan.program.buffers[access.buffer].space
        return self.memories.started.get(space, 0)

    def _check(self, access: Access, key: tuple[int, int], who: str) -> None:
        other = self.memories.foreign(access)
        if other is not None:
            self._report(f"{who} reads {self.plan.access_text(access)}", other)
        self.prints[key] = _fingerprint(self.memories, access)
        if key[0] >= 0:
            self.meetings.read(key[0], access, self.memories.granules(access))

    def _report(self, message: str, write: int) -> None:
        self.problems.append(Problem(message=f"{message}: {self.plan.found_text(write)}"))

    def _check_own(self, number: int) -> None:
        """A task may write over what it reads only where it replaces it element by element."""
        plan = self.plan
        task = plan.program.tasks[number]
        for access in task.reads:
            for own, write in zip(plan.own_writes(number), task.writes, strict=True):
                if self._meet(access, write, own) and not self._replaces(number, access, write):
                    message = (
                        f"{plan.task_text(number)} writes {plan.access_text(write)} over what it "
                        f"reads, {plan.access_text(access)}"
                    )
                    self.problems.append(Problem(message=message))

    def _meet(self, access: Access, write: Access, number: int) -> bool:
        program, places = self.plan.program, self.plan.layout.places
        here, there = (places[program.root(a.buffer)] for a in (access, write))
        if here.space != there.space or here.begin >= there.end or there.begin >= here.end:
            return False
        return bool((self.memories.granules(access) == number).any())

    def _replaces(self, number: int, access: Access, write: Access) -> bool:
        program = self.plan.program
        if program.root(access.buffer) != program.root(write.buffer):
            return False
        if access.buffer == write.buffer:
            return access.box == write.box
        op = self.worker.ops.get(program.tasks[number].op)
        if op is None:
            return False
        if holds_partial_sums(program.buffers[access.buffer]):
            # A result may take the place of the sums that it is made of.
            return self.plan.layout.in_root(access) == self.plan.layout.in_root(write)
        tensor = program.buffers[access.buffer].tensor
        same = [o.index == op.outputs[0].index for o in op.inputs if o.tensor == tensor]
        in_root = self.plan.layout.in_root
        return all(same) and bool(same) and in_root(access) == in_root(write)


def _fingerprint(memories: Memories, access: Access) -> int:
    return crc32(np.ascontiguousarray(memories.granules(access)).data)


def _order_problems(
    plan: _Plan, prints: Mapping[tuple[int, int], int], order: list[int]
) -> list[Problem]:
    """Reads that find other writes than in the order of the timetable."""
    memories = empty_memories(plan.layout, plan.writes, plan.families, dtype=None)
    problems: list[Problem] = []
    for number in order:
        for position, access in enumerate(plan.program.tasks[number].reads):
            if _fingerprint(memories, access) != prints[number, position]:
                problems.append(_race(plan, memories, access, plan.task_text(number)))
        for write in plan.own_writes(number):
            memories.begin_write(write)
            memories.end_write(write)
        if len(problems) >= MOST_PROBLEMS:
            return problems
    for position, buffer in enumerate(plan.program.results):
        access = Access(buffer, plan.program.buffers[buffer].box)
        if _fingerprint(memories, access) != prints[-1, position]:
            problems.append(_race(plan, memories, access, "the end"))
    return problems


def _race(plan: _Plan, memories: Memories, access: Access, who: str) -> Problem:
    other = memories.foreign(access)
    last = int(memories.granules(access).max())
    found = plan.found_text(last if other is None else other)
    return Problem(
        message=f"in another order that the plan's waits allow, {who} reads "
        f"{plan.access_text(access)}: {found}",
        hint="the waits (after, edges) do not order the two tasks",
    )


def _value_type(network: Network) -> str:
    """Single precision where every value of the network fits, double otherwise."""
    plain = all(t.dtype in ("", *_SINGLE) for t in network.tensors)
    return "float32" if plain else "float64"
