"""A run as a timetable on a machine with one scratchpad: its steps one after the other.

Constants are loaded first and stay. Every step is a task; what is in the way of a task by its
address is told by control edges, not by times, so a machine may overlap what is independent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from tilewright.errors import InfeasibleError, Problem
from tilewright.machine.model import NOTHING_GIVEN, OUTPUT_OPERAND
from tilewright.network.graph import BIAS, Operand
from tilewright.program.boxes import elements, is_empty, overlap, shifted, touched, whole
from tilewright.program.build import Builder
from tilewright.program.lower import Prepared, emitted_program
from tilewright.program.model import (
    Access,
    Box,
    Buffer,
    Slot,
    Space,
    Task,
    Timetable,
    View,
)
from tilewright.program.places import core_engine, vector_engine
from tilewright.program.stages import Stage
from tilewright.program.tile_cost import Sums, TileCost
from tilewright.program.tiles import label
from tilewright.strategy.ladder.allocation import Allocation, Piece, allocate
from tilewright.strategy.ladder.steps import LOAD, STORE, Run, Step

Ranges = dict[str, tuple[int, int]]


def only_scratchpad(prepared: Prepared) -> Space | None:
    """The scratchpad of the first core in which all operands lie; None if they lie apart, or inputs
    are there from the start or outputs stay, which steps pixel by pixel cannot know."""
    if prepared.places.machine.given != NOTHING_GIVEN:
        return None
    homes = [prepared.places.home(carrier) for carrier in ("I1", "I2", OUTPUT_OPERAND)]
    if homes[0] is None or any(home != homes[0] for home in homes):
        return None
    return prepared.places.named(homes[0].name, 0)


def timetable_of(prepared: Prepared, run: Run) -> Timetable:
    """A run in its order, with the addresses of its allocation.

    Raises:
        InfeasibleError: it does not fit, operands lie apart, or nothing brings them.
    """
    space = only_scratchpad(prepared)
    if space is None or space.reserved:
        message = "pixels are run in one scratchpad that holds every operand, and there is none"
        raise InfeasibleError(Problem(message=message))
    allocation = allocate(run, alignment_bytes=space.alignment_bytes)
    writer = _Writer(
        prepared,
        run,
        allocation,
        space,
        Builder(prepared.network, prepared.places, run.work.storage),
    )
    writer.load_constants()
    needs = writer.floor + allocation.peak_bytes
    if needs > space.size_bytes:
        message = (
            f"{prepared.network.name} needs {needs:,} B of {space.memory} at once, "
            f"{needs - space.size_bytes:,} B more than it has"
        )
        raise InfeasibleError(Problem(message=message, hint=f"give {space.memory} {needs:,} B"))
    for step in run.steps:
        writer.emit(step)
    return writer.timetable()


@dataclass
class _Writer:
    """Turns steps into tasks."""

    prepared: Prepared
    run: Run
    allocation: Allocation
    space: Space
    builder: Builder
    floor: int = 0
    """Where constants end and all else begins."""
    constants: dict[str, int] = field(default_factory=dict)
    buffers: dict[int, list[int]] = field(default_factory=dict)
    """By chunk, a buffer for every piece."""
    addresses: dict[int, int] = field(default_factory=dict)
    _costs: dict[tuple[int, tuple[int, ...], Sums, int], TileCost] = field(default_factory=dict)

    def load_constants(self) -> None:
        """Bring all constants, to stay."""
        places, alignment = self.prepared.places, self.space.alignment_bytes
        origin = places.origin("I2") or places.origin("I1")
        for name in self.run.work.constants:
            tensor = self.prepared.network.by_name[name]
            box = whole(tensor.shape)
            number = self.builder.buffer(name, box, self.space)
            self.addresses[number] = self.floor
            self.floor += -(-self.builder.buffers[number].size_bytes // alignment) * alignment
            self.constants[name] = number
            self._transfer(self._outside(name, origin), [number], is_load=True)

    def emit(self, step: Step) -> None:
        """Add the task of a step."""
        if step.stage in (LOAD, STORE):
            held = self.run.work.held[step.tensor]
            places = self.prepared.places
            is_load = step.stage == LOAD
            there = places.origin("I1") if is_load else places.destination()
            outside = self._outside(held.root, there)
            numbers = [b for c in (*step.reads, *step.writes) for b in self._buffers(c)]
            self._transfer(outside, numbers, is_load=is_load)
            return
        stage = self.run.work.stages[step.stage]
        ranges = {dim: (0, size) for dim, size in stage.op.dims}
        ranges.update((dim, (start, stop)) for dim, start, stop in step.ranges)
        sums = Sums(continued=step.continued, unfinished=step.unfinished)
        # The last step of a sum adds the bias, and it alone.
        inputs = [o for o in stage.inputs if o.name != BIAS or not step.unfinished]
        reads = [a for operand in inputs for a in self._reads(operand, ranges, step)]
        if step.continued:
            reads += [Access(b, self.builder.buffers[b].box) for b in self._buffers(step.reads[0])]
        writes = [a for operand in stage.results for a in self._writes(operand, ranges, step)]
        cost = self._cost(step.stage, ranges, sums, reads, writes)
        tile = tuple((dim, *span) for dim, span in ranges.items())
        name = label(stage.op.name, tile, stage.op.sizes)
        self.builder.add(
            Task(
                name=f"{name} #{step.again}" if step.again else name,
                kind="compute",
                engine=self._engine(stage),
                cycles=cost.cycles,
                reads=tuple(reads),
                writes=tuple(writes),
                op=stage.op.name,
                fused=() if sums.unfinished else tuple(op.name for op in stage.fused),
                tile=tile,
                mapping=cost.mapping,
                charges=cost.charges,
            )
        )

    def timetable(self) -> Timetable:
        """What was emitted, one task after the other."""
        network, builder, places = self.prepared.network, self.builder, self.prepared.places
        results = []
        for tensor in network.outputs:
            root = self.run.work.storage[tensor.name].root
            results.append(builder.view(self._outside(root, places.destination()), tensor.name))
        handed_out = (*results, *self.constants.values())
        program = emitted_program(self.prepared, builder, handed_out)
        slots, now = [], 0
        for task in program.tasks:
            slots.append(Slot(start_cycle=now, end_cycle=now + task.cycles))
            now += task.cycles
        return Timetable(
            program=program,
            slots=tuple(slots),
            addresses=tuple(self._address(n, b) for n, b in enumerate(program.buffers)),
        )

    def _address(self, number: int, buffer: Buffer) -> int:
        """A buffer's address; that of a view is where its first element lies."""
        if buffer.view is None:
            return self.addresses.get(number, 0)
        root = self.builder.buffers[buffer.view.buffer]
        start = self.addresses.get(buffer.view.buffer, 0)
        if buffer.view.origin is None:
            return start
        at = 0
        for origin, (low, high) in zip(buffer.view.origin, root.box, strict=True):
            at = at * (high - low) + origin - low
        return start + at * self.prepared.network.by_name[root.tensor].bits // 8

    def _outside(self, root: str, space: Space | None) -> int:
        if space is None:
            message = f"tensor {root!r} has nowhere to come from or to go to"
            hint = "declare an external memory, or a source and a sink"
            raise InfeasibleError(Problem(message=message, hint=hint))
        return self.builder.outside(root, space)

    def _transfer(self, outside: int, numbers: Sequence[int], *, is_load: bool) -> None:
        copies = []
        for number in numbers:
            box = self.builder.buffers[number].box
            ends = Access(outside, box), Access(number, box)
            source, target = ends if is_load else ends[::-1]
            copies.append(self.builder.copy(source, (target,), "load" if is_load else "store"))
        tensor = self.builder.buffers[outside].tensor
        self.builder.transfer(copies, name=f"{tensor} {'in' if is_load else 'out'}")

    def _buffers(self, chunk: int) -> list[int]:
        """The buffers of a chunk's pieces, made when first asked for."""
        if chunk not in self.buffers:
            made = self.run.chunks[chunk]
            below = [] if made.over is None else self._buffers(made.over)
            pieces = self.allocation.pieces[chunk]
            self.buffers[chunk] = [
                self._buffer(chunk, piece, below[n] if below else None)
                for n, piece in enumerate(pieces)
            ]
        return self.buffers[chunk]

    def _buffer(self, chunk: int, piece: Piece, below: int | None) -> int:
        made, work = self.run.chunks[chunk], self.run.work
        held = work.held[made.tensor]
        tensor, box, name = held.root, shifted(piece.box, held.origin), held.root
        if made.is_sum:
            # Sums are what the op itself makes, before anything is applied to it.
            tensor = work.stages[work.makers[made.tensor]].op.outputs[0].tensor
            box, name = piece.box, f"{tensor} partial sums"
        view = None if below is None else View(below, tuple(start for start, _ in box))
        buffer = Buffer(
            name=name,
            tensor=tensor,
            box=box,
            space=self.space.name,
            size_bytes=piece.size_bytes,
            view=view,
        )
        self.builder.buffers.append(buffer)
        number = len(self.builder.buffers) - 1
        if below is None:
            self.addresses[number] = self.floor + piece.address
        return number

    def _reads(self, operand: Operand, ranges: Ranges, step: Step) -> Iterator[Access]:
        tensor = self.prepared.network.by_name[operand.tensor]
        box = touched(operand, ranges, tensor.shape)
        root = self.run.work.storage[operand.tensor].root
        if root in self.constants:
            if not is_empty(box):
                yield Access(self.builder.view(self.constants[root], operand.tensor), box)
            return
        for chunk in step.reads:
            made = self.run.chunks[chunk]
            if not made.is_sum and self.run.work.held[made.tensor].root == root:
                yield from self._accesses(operand.tensor, box, chunk)

    def _writes(self, operand: Operand, ranges: Ranges, step: Step) -> Iterator[Access]:
        if step.unfinished:
            for number in self._buffers(step.writes[0]):
                yield Access(number, self.builder.buffers[number].box)
            return
        box = touched(operand, ranges, self.prepared.network.by_name[operand.tensor].shape)
        for chunk in step.writes:
            if self.run.chunks[chunk].tensor == operand.tensor:
                yield from self._accesses(operand.tensor, box, chunk)

    def _accesses(self, tensor: str, box: Box, chunk: int) -> Iterator[Access]:
        """Where a box of a tensor lies in the buffers of a chunk."""
        lies = self.run.work.storage[tensor]
        for number in self._buffers(chunk):
            if lies.origin is None:
                yield Access(self.builder.view(number, tensor), box)
                continue
            common = overlap(shifted(box, lies.origin), self.builder.buffers[number].box)
            if not is_empty(common):
                back = shifted(common, [-step for step in lies.origin])
                yield Access(self.builder.view(number, tensor), back)

    def _engine(self, stage: Stage) -> str:
        own = stage.worker == "array" or self.prepared.costs.core_model is not None
        return core_engine(0) if own else vector_engine(0)

    def _cost(
        self,
        number: int,
        ranges: Ranges,
        sums: Sums,
        reads: Sequence[Access],
        writes: Sequence[Access],
    ) -> TileCost:
        """The cost of a step; that of an equal one is looked up."""
        stage, costs = self.run.work.stages[number], self.prepared.costs
        lengths = {dim: stop - start for dim, (start, stop) in ranges.items()}
        read, written = self._bytes(reads), self._bytes(writes)
        key = (number, tuple(lengths.values()), sums, sum((*read.values(), *written.values())))
        if key not in self._costs:
            passing = 0
            if not sums.unfinished:
                passing = sum(elements(access.box) for access in writes) * len(stage.fused)
            found = costs.on_array(stage.op, lengths, sums) if stage.worker == "array" else None
            if found is None or not found.is_mapped:
                points = prod(n for dim, n in lengths.items() if dim not in stage.op.searched)
                found = costs.on_vector_unit(points + passing, read, written)
            elif passing:
                found = replace(found, charges=(*found.charges, costs.in_passing(passing)))
            self._costs[key] = costs.by_core_model(found, stage, lengths, sums)
        return self._costs[key]

    def _bytes(self, accesses: Sequence[Access]) -> Mapping[str, int]:
        """Bytes touched, all of them in the one memory."""
        total = 0
        for access in accesses:
            buffer = self.builder.buffers[access.buffer]
            count = max(1, elements(buffer.box))
            total += -(-elements(access.box) * buffer.size_bytes // count)
        return {self.space.memory: total}
