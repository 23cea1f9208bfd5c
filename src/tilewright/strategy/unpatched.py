"""A plan of a network in strips as one of the network itself: the same tasks under its own names.

Boxes of a strip's tensors are boxes of the network's tensors further along, and tiles of its ops
are tiles of the network's ops. Nothing else changes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.network.graph import Op
from tilewright.once import once
from tilewright.program.cascade import Strategy
from tilewright.program.model import Access, Box, Buffer, Program, Task, Timetable, View
from tilewright.program.stages import Stage
from tilewright.program.strips import strip_name
from tilewright.program.tiles import label
from tilewright.strategy.patches import OpStrip, Patches


def unpatched(timetable: Timetable, patches: Patches) -> Timetable | None:
    """The same timetable for the network as it is.

    None if the columns of a strip are copied from or to their place, as no op of the network does,
    or if strips that add to the same sums are cut differently: then these are no slices of them.
    """
    back = _Back(timetable.program, patches)
    if not back.is_possible():
        return None
    added = len(back.inputs)
    return replace(
        timetable, program=back.program(), addresses=(*timetable.addresses, *((0,) * added))
    )


def may_be_unpatched(program: Program, patches: Patches) -> bool:
    """Whether `unpatched` can tell a timetable of a program as one of the network itself."""
    return _Back(program, patches).is_possible()


def original_name(op: str, patches: Patches) -> str:
    """The name of the op that one of the rewritten network is, or is a part of."""
    part = patches.ops.get(op)
    return op if part is None else part.op


def unpatched_stages(stages: Sequence[Stage], patches: Patches) -> tuple[Stage, ...]:
    """The stages of the strips, each as that of which it is a part."""
    ops = {op.name: op for op in patches.original.ops}
    found = []
    for stage in stages:
        first, *fused = [
            ops.get(original_name(op.name, patches), op) for op in (stage.op, *stage.fused)
        ]
        found.append(Stage(op=first, fused=tuple(fused), worker=stage.worker))
    return tuple(found)


def unpatched_strategy(strategy: Strategy, patches: Patches) -> Strategy:
    """The strategy with tensors of the network in place of their strips."""
    if strategy.gone is None:
        return strategy
    parts = [patches.tensors.get(name) for name in strategy.gone]
    names = [
        name if part is None else part.tensor
        for name, part in zip(strategy.gone, parts, strict=True)
    ]
    return replace(strategy, gone=tuple(dict.fromkeys(names)))


@dataclass(frozen=True)
class _Back:
    """The way back from a program over strips."""

    strips: Program
    patches: Patches

    @once
    def inputs(self) -> dict[str, int]:
        """Inputs of the network that strips have columns of, with the number of their buffer."""
        found: dict[str, int] = {}
        for number in self._cut_inputs:
            part = self.patches.tensors[self.strips.buffers[number].tensor]
            found.setdefault(part.tensor, len(self.strips.buffers) + len(found))
        return found

    @once
    def _cut_inputs(self) -> dict[int, None]:
        """Buffers that are given, and hold no more than a strip's columns of an input."""
        given, tensors = self.strips.given, self.patches.tensors
        return dict.fromkeys(n for n in given if self.strips.buffers[n].tensor in tensors)

    def is_possible(self) -> bool:
        """Whether all ops are those of the network, no bytes of an input look another shape, and
        sums are cut alike in all strips that add to them."""
        known = {*self.patches.ops, *(op.name for op in self.patches.original.ops), ""}
        views = [buffer.view for buffer in self.strips.buffers if buffer.view is not None]
        return (
            all(task.op in known for task in self.strips.tasks)
            and not any(view.origin is None and view.buffer in self._cut_inputs for view in views)
            and all(len({*cuts.values()}) == 1 for cuts in self._sums().values())
        )

    def _sums(self) -> dict[tuple[str, int], dict[str, frozenset[object]]]:
        """By op and number of a strip, which those share that add to the same sums: the parts of
        the result that each of them makes."""
        adding = Counter((part.op, part.strip) for part in self.patches.ops.values())
        made: dict[tuple[str, int], dict[str, frozenset[object]]] = {}
        for task in self.strips.tasks:
            part = self.patches.ops.get(task.op)
            if part is None or adding[part.op, part.strip] == 1:
                continue
            index = self._ops[part.op].outputs[0].index or ()
            loops = {loop for axis in index for loop, _ in axis.terms}
            spans = tuple([span for span in task.tile if span[0] in loops])
            known = made.setdefault((part.op, part.strip), {})
            known[task.op] = known.get(task.op, frozenset()) | {spans}
        return made

    def program(self) -> Program:
        """The program of the network as it is."""
        buffers = [self._buffer(number) for number in range(len(self.strips.buffers))]
        given = [number for number in self.strips.given if number not in self._cut_inputs]
        return replace(
            self.strips,
            buffers=(*buffers, *map(self._input, self.inputs)),
            tasks=tuple(map(self._task, self.strips.tasks)),
            given=(*given, *self.inputs.values()),
        )

    def _input(self, name: str) -> Buffer:
        """An input as a whole, where its strips come from."""
        tensor = self.patches.original.by_name[name]
        spaces = {
            self.patches.tensors[strip.tensor].tensor: strip.space
            for strip in (self.strips.buffers[number] for number in self._cut_inputs)
        }
        return Buffer(
            name=name,
            tensor=name,
            box=tuple((0, size) for size in tensor.shape),
            space=spaces[name],
            size_bytes=tensor.size_bytes,
        )

    def _buffer(self, number: int) -> Buffer:
        buffer = self.strips.buffers[number]
        part = self.patches.tensors.get(buffer.tensor)
        box = self._shifted(buffer.tensor, buffer.box)
        view = self._view(buffer)
        if part is not None and number in self._cut_inputs:
            view = View(self.inputs[part.tensor], tuple(start for start, _ in box))
        if part is None:
            # Most buffers stay what they are.
            return buffer if view is buffer.view else replace(buffer, view=view)
        name = f"{part.tensor} partial sums" if part.unfinished else buffer.name
        return replace(buffer, name=name, tensor=part.tensor, box=box, view=view)

    def _view(self, buffer: Buffer) -> View | None:
        """Where a buffer lies in another one, which may have become a part of an input."""
        view = buffer.view
        if view is None or view.origin is None:
            return view
        root = self.strips.buffers[view.buffer]
        moved = self._shifted(root.tensor, tuple((at, at) for at in view.origin))
        number = view.buffer
        if number in self._cut_inputs:
            number = self.inputs[self.patches.tensors[root.tensor].tensor]
        return View(number, tuple(at for at, _ in moved))

    def _shifted(self, tensor: str, box: Box) -> Box:
        """A box of a tensor in the coordinates of that of which it is a part."""
        part = self.patches.tensors.get(tensor)
        if part is None or not part.start:
            return box
        start, stop = box[part.axis]
        moved = (start + part.start, stop + part.start)
        return (*box[: part.axis], moved, *box[part.axis + 1 :])

    def _accesses(self, accesses: tuple[Access, ...]) -> tuple[Access, ...]:
        """The same accesses, as the same objects where nothing is moved."""
        moved, buffers = self._moved, self.strips.buffers
        if not any(n in moved for n, _ in accesses):
            return accesses
        return tuple([Access(n, self._shifted(buffers[n].tensor, box)) for n, box in accesses])

    @once
    def _moved(self) -> frozenset[int]:
        """Buffers whose boxes lie further along in the network's tensors."""
        names = {name for name, part in self.patches.tensors.items() if part.start}
        return frozenset(n for n, b in enumerate(self.strips.buffers) if b.tensor in names)

    def _task(self, task: Task) -> Task:
        part = self.patches.ops.get(task.op)
        reads, writes = self._accesses(task.reads), self._accesses(task.writes)
        if part is None:
            is_same = reads is task.reads and writes is task.writes
            return task if is_same else replace(task, reads=reads, writes=writes)
        tile = tuple(
            [
                (dim, start + part.start, stop + part.start)
                if dim == part.loop
                else (dim, start, stop)
                for dim, start, stop in task.tile
            ]
        )
        return replace(
            task,
            name=self._name(task, part, tile),
            reads=reads,
            writes=writes,
            op=part.op,
            fused=tuple([original_name(name, self.patches) for name in task.fused]),
            tile=tile,
        )

    def _name(self, task: Task, part: OpStrip, tile: Sequence[tuple[str, int, int]]) -> str:
        """The name of a task, with its ranges as the network's op has them."""
        sizes, cut_sizes = (self._ops[name].sizes for name in (part.op, task.op))
        before = label(task.op, task.tile, cut_sizes)
        now = label(strip_name(part.op, part.strip), tile, sizes)
        # What stands behind the name says that a task is done again.
        return now + task.name[len(before) :] if task.name.startswith(before) else task.name

    @once
    def _ops(self) -> dict[str, Op]:
        return {op.name: op for op in (*self.patches.network.ops, *self.patches.original.ops)}
