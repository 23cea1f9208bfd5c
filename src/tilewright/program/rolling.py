"""What a cascade holds from first to last: rolling buffers, and constants that stay."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from tilewright.machine.model import OUTPUT_OPERAND
from tilewright.network.graph import Operand
from tilewright.program.boxes import Ranges, around, covering, is_empty, size_bytes, touched
from tilewright.program.cascade import Flow, Roll
from tilewright.program.homes import Homes
from tilewright.program.layout import RollingBuffer
from tilewright.program.model import Box
from tilewright.program.rings import ring_box
from tilewright.program.rows import unfinished_bits
from tilewright.program.stages import Stage
from tilewright.units import packed_bytes


@dataclass(frozen=True)
class Rolling:
    """Sizes of what cascades hold; `parts` are the ranges of each core by stage."""

    homes: Homes
    stages: Sequence[Stage]
    flows: Mapping[int, Flow]
    parts: Sequence[tuple[Ranges, ...]]
    boxes: Mapping[tuple[str, int], Box]
    """What each core reads of a tensor, in all stages."""
    _constants: dict[int, Mapping[str, int]] = field(default_factory=dict)
    _memories: dict[str, str] = field(default_factory=dict)
    _sizes: dict[tuple[str, Roll], int] = field(default_factory=dict)
    _row_bytes: dict[object, Mapping[str, int]] = field(default_factory=dict)
    """By cascade and the tensors of which it holds rows."""
    _lasting: dict[object, list[int]] = field(default_factory=dict)
    """By cascade and the room that there is."""

    def buffers(self, flow: Flow, rolls: Mapping[str, Roll]) -> Iterator[RollingBuffer]:
        """The rolling buffers of all cores for some tensors of a cascade."""
        for root, roll in rolls.items():
            for core in range(self.homes.places.cores):
                box = self._in_its_ring(flow, root, core)
                if box is not None:
                    yield RollingBuffer(
                        root=root, core=core, box=box, roll=roll, memory=self.memory(root)
                    )

    def memory(self, root: str) -> str:
        """The memory that a tensor passes through row by row."""
        if root not in self._memories:
            made = any(root in flow.rolls for flow in self.flows.values())
            home = self.homes.places.home(OUTPUT_OPERAND if made else "I1")
            assert home is not None
            self._memories[root] = home.name
        return self._memories[root]

    def row_bytes(self, flow: Flow, rolls: Mapping[str, Roll]) -> Mapping[str, int]:
        """Bytes by memory of rows that a cascade holds, those that it makes on demand too, and of
        what it makes of all rows."""
        key = flow.cascade.first, *rolls
        if key not in self._row_bytes:
            rows = [
                (self.memory(root), self._bytes_in(flow, root, roll))
                for root, roll in rolls.items()
            ]
            rows += [
                (self.homes.of_kept(root), self.buffer_bytes(root, roll))
                for root, roll in flow.pieces.items()
            ]
            found: dict[str, int] = {}
            for memory, size in rows:
                found[memory] = found.get(memory, 0) + self.homes.aligned(size, memory)
            found = self._with_passing(flow, found)
            for number in flow.reducing:
                memory, size = self._unfinished(number)
                found[memory] = found.get(memory, 0) + size
            self._row_bytes[key] = found
        return self._row_bytes[key]

    def _with_passing(self, flow: Flow, known: Mapping[str, int]) -> dict[str, int]:
        """Bytes by memory, with the most that rows take at once which do not stay."""
        most: dict[str, int] = {}
        for roots in flow.together:
            now: dict[str, int] = {}
            for root in roots:
                memory = self.homes.of_kept(root)
                size = self.homes.aligned(self.buffer_bytes(root, flow.passing[root]), memory)
                now[memory] = now.get(memory, 0) + size
            most = {m: max(most.get(m, 0), now.get(m, 0)) for m in (*most, *now)}
        return {m: known.get(m, 0) + most.get(m, 0) for m in (*known, *most)}

    def _unfinished(self, number: int) -> tuple[str, int]:
        """Where a result that is made of all rows lies until they are there, and its bytes."""
        op, home = self.stages[number].op, self.homes.places.home(OUTPUT_OPERAND)
        assert home is not None
        elements = self.homes.network.by_name[op.outputs[0].tensor].elements
        size = packed_bytes(elements, unfinished_bits(op))
        return home.name, self.homes.aligned(size, home.name)

    def _bytes_in(self, flow: Flow, root: str, roll: Roll) -> int:
        """Bytes of a core's rolling buffer in a cascade, of the core that needs most.

        What comes from outside is shared out as the cascade's own stages read it, whoever else
        reads it otherwise.
        """
        if root in flow.rolls:
            return self.buffer_bytes(root, roll)
        tensor = self.homes.network.by_name[root]
        passing = [self._in_its_ring(flow, root, core) for core in range(self.homes.places.cores)]
        boxes = covering([box for box in passing if box is not None], tensor.shape)
        rings = [ring_box(box, roll.axis, roll.rows) for box in boxes]
        return max((size_bytes(ring, tensor) for ring in rings), default=0)

    def buffer_bytes(self, root: str, roll: Roll) -> int:
        """Bytes of a core's rolling buffer, of the core that needs most."""
        if (root, roll) not in self._sizes:
            self._sizes[root, roll] = self._buffer_bytes(root, roll)
        return self._sizes[root, roll]

    def _buffer_bytes(self, root: str, roll: Roll) -> int:
        tensor = self.homes.network.by_name[root]
        keys = [(root, core) for core in range(self.homes.places.cores)]
        boxes = [
            ring_box(self.boxes[key], roll.axis, roll.rows) for key in keys if key in self.boxes
        ]
        return max(size_bytes(box, tensor) for box in boxes)

    def _in_its_ring(self, flow: Flow, root: str, core: int) -> Box | None:
        """What passes through a core's rolling buffer; all cores have the same one in a scratchpad
        that all of them see."""
        own = self._passing(flow, root, core)
        if own is None or not self.homes.is_common(self.memory(root)):
            return own
        parts = [self._passing(flow, root, other) for other in range(self.homes.places.cores)]
        return reduce(around, [part for part in parts if part is not None])

    def _passing(self, flow: Flow, root: str, core: int) -> Box | None:
        """What a core takes of what passes through: from outside, only what is read here.

        Other parts of a concatenation may not have been made yet.
        """
        if root in flow.rolls:
            return self.boxes.get((root, core))
        found: Box | None = None
        for number in flow.cascade.stages:
            for operand in self.stages[number].inputs:
                if core < len(self.parts[number]) and self.homes.root(operand.tensor) == root:
                    shape = self.homes.network.by_name[operand.tensor].shape
                    box = touched(operand, self.parts[number][core], shape)
                    box = self.homes.root_box(operand.tensor, box)[1]
                    found = box if found is None else around(found, box)
        return None if found is None or is_empty(found) else found

    def constant_bytes(self, number: int) -> Mapping[str, int]:
        """Bytes by memory of a stage's constants that every turn of its cascade needs."""
        if number not in self._constants:
            self._constants[number] = self._constant_bytes(number)
        return self._constants[number]

    def _constant_bytes(self, number: int) -> dict[str, int]:
        stage, loop, sizes = self.stages[number], self.flows[number].loops[number], dict[str, int]()
        for operand in stage.inputs:
            tensor = self.homes.network.by_name[operand.tensor]
            memory = self.homes.where(stage, operand)
            if tensor.role == "constant" and memory and not _walks(operand, loop):
                box = touched(operand, self.parts[number][0], tensor.shape)
                size = self.homes.aligned(size_bytes(box, tensor), memory)
                sizes[memory] = sizes.get(memory, 0) + size
        return sizes

    def lasting(self, flow: Flow, room: Mapping[str, int]) -> list[int]:
        """Stages of a cascade whose constants stay for all turns; the others' come every time.

        All of them, if that leaves a quarter of the room; else the smallest, up to a half of it.
        """
        key = flow.cascade.first, *room.items()
        if key not in self._lasting:
            self._lasting[key] = self._lasting_in(flow, room)
        return self._lasting[key]

    def _lasting_in(self, flow: Flow, room: Mapping[str, int]) -> list[int]:
        sizes = {number: self.constant_bytes(number) for number in flow.cascade.stages}
        smallest_first = sorted(sizes, key=lambda number: (sum(sizes[number].values()), number))
        found: list[int] = []
        for part in (0.75, 0.5):
            left = {memory: size * part for memory, size in room.items()}
            found = []
            for number in smallest_first:
                if all(size <= left[memory] for memory, size in sizes[number].items()):
                    found.append(number)
                    for memory, size in sizes[number].items():
                        left[memory] -= size
            if len(found) == len(sizes):
                break
        return found


def _walks(operand: Operand, loop: str) -> bool:
    return any(dim == loop for axis in operand.index or () for dim, _ in axis.terms)
