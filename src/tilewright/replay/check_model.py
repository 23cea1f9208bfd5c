"""How long a tile takes on a core that has a model of its own, looked up again from the plan."""

from dataclasses import dataclass, field
from functools import cached_property

from tilewright.machine.model import Machine, Memory
from tilewright.mapping.ethos_u.configuration import CONFIGURATIONS
from tilewright.mapping.ethos_u.formats import feature_map_formats
from tilewright.mapping.ethos_u.tile_cycles import EthosU, memory_timing, tile_cycles
from tilewright.mapping.ethos_u.translate import Tile, TiledOp
from tilewright.network.graph import Network
from tilewright.program.model import Box, Program, Task
from tilewright.replay.check_boxes import shape_of, volume
from tilewright.replay.check_streams import streamed_reads

Sums = tuple[bool, bool]
"""Whether a task goes on from sums, and whether it leaves some."""

PRODUCTS_AT_ONCE = 8
"""Input channels that an Ethos-U multiplies in a cycle for each output that it works at."""


@dataclass(frozen=True)
class CoreCycles:
    """What a machine's model of its cores says, and what was asked already."""

    program: Program
    network: Network
    machine: Machine
    has_strips: bool
    """Whether any task is part of a strip."""
    _known: dict[object, int | None] = field(default_factory=dict)

    @cached_property
    def is_modelled(self) -> bool:
        """Whether a model says how long tiles take; it knows only what lies in scratchpads."""
        has_room = any(space.kind == "scratchpad" for space in self.program.spaces)
        return has_room and self.machine.cores[0].model is not None

    def of(self, task: Task, tile: Box, sums: Sums) -> int | None:
        """Cycles of a task; None where the cores have no model, or one that does not know.

        What runs in strips, or again, was costed with other borders than the op has, and what such
        ops make, or read, may have another format than in the network.
        """
        if not self.is_modelled or self.has_strips or not volume(tile):
            return None
        # Sums are left in the format of what will be made of them.
        fused = self._fused.get(task.op, ()) if sums[1] else task.fused
        streams = bool(streamed_reads(self.program, self.network, task, self._ops[task.op].op))
        key = task.op, fused, shape_of(tile), sums, streams
        if key not in self._known:
            self._known[key] = self._cycles((task.op, *fused), tile, sums, streams)
        return self._known[key]

    def _cycles(self, names: tuple[str, ...], tile: Box, sums: Sums, streams: bool) -> int | None:
        ops = [self._ops.get(name) for name in names]
        first, *fused = [op for op in ops if op is not None]
        shape = zip((dim for dim, _ in first.op.dims), shape_of(tile), strict=True)
        asked = Tile(
            of=first,
            fused=tuple(fused),
            lengths=dict(shape),
            is_continued=sums[0],
            is_unfinished=sums[1],
            streams=streams,
        )
        return tile_cycles(asked, self._member)

    def products_at_once(self) -> int:
        """The most products that a core makes in a cycle."""
        model = self.machine.cores[0].model
        if model is None or not self.is_modelled:
            return self.machine.cores[0].array.units
        return PRODUCTS_AT_ONCE * CONFIGURATIONS[model.configuration].micro_block.elements

    @cached_property
    def _fused(self) -> dict[str, tuple[str, ...]]:
        """By op what is applied to its result."""
        return {task.op: task.fused for task in self.program.tasks if task.fused}

    @cached_property
    def _ops(self) -> dict[str, TiledOp]:
        return {op.name: TiledOp(op=op, network=self.network) for op in self.network.ops}

    @cached_property
    def _member(self) -> EthosU:
        """The core with the memory where tiles lie, and that from which constants come."""
        model = self.machine.cores[0].model
        assert model is not None
        near = self._memory([s.memory for s in self.program.spaces if s.kind == "scratchpad"])
        buffers, tensors = self.program.buffers, self.network.by_name
        constants = [b for b in self.program.given if tensors[buffers[b].tensor].role == "constant"]
        far = self._memory([self.program.space[buffers[b].space].memory for b in constants])
        either = near or far or self.machine.memories[-1]
        return EthosU(
            configuration=CONFIGURATIONS[model.configuration],
            near=memory_timing(near or either),
            far=memory_timing(far or either),
            formats=feature_map_formats(self.network),
        )

    def _memory(self, names: list[str]) -> Memory | None:
        found = (m for name in names[:1] for m in self.machine.memories if m.name == name)
        return next(found, None)
