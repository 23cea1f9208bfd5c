"""On which engine a compute task runs, what it costs there, and which ports it holds meanwhile."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from tilewright.machine.model import INPUT_OPERANDS, WEIGHTS
from tilewright.network.graph import Index, Tensor
from tilewright.program.boxes import elements, size_bytes
from tilewright.program.build import Builder
from tilewright.program.model import Access, Charge, Route
from tilewright.program.places import Places, core_engine, vector_engine
from tilewright.program.stage_tiles import Tile, is_read_later
from tilewright.program.stages import Stage
from tilewright.program.streams import CARRIERS, Stream, straight
from tilewright.program.tile_cost import Sums, TileCost, TileCosts
from tilewright.program.uses import StageUses
from tilewright.units import packed_bytes


@dataclass
class TaskCosts:
    """Costs of tasks by what they read and write."""

    places: Places
    costs: TileCosts
    builder: Builder
    _on_array: dict[object, TileCost] = field(default_factory=dict)
    """By op, lengths of loops, what is known of sums, and operations in passing."""

    def engine(
        self, stage: Stage, core: int, reads: Sequence[Access], writes: Sequence[Access]
    ) -> str:
        """The name of the engine that runs a tile."""
        if stage.worker == "array":
            return core_engine(core)
        if stage.worker == "move":
            route = self._way(reads, writes)
            if route is not None:
                return route.engine
        # A core with a model of its own does everything on the same unit, one op after the other.
        return vector_engine(core) if self.costs.core_model is None else core_engine(core)

    def cost(
        self, stage: Stage, tile: Tile, reads: Sequence[Access], writes: Sequence[Access]
    ) -> TileCost:
        """Cycles and charges of a tile.

        Raises:
            InfeasibleError: the tile has no mapping.
        """
        if stage.worker == "move":
            return self._moving(stage, tile, reads, writes)
        passing = 0
        if stage.fused and not tile.sums.unfinished:
            passing = elements(tile.results[0]) * len(stage.fused)
        if stage.worker == "array":
            found = self._array_cost(stage, tile, passing)
            if found.is_mapped:
                return found
        return self._vector_cost(stage, tile, reads, writes, passing)

    def _array_cost(self, stage: Stage, tile: Tile, passing: int) -> TileCost:
        sums = tile.sums
        key = (stage.op.name, stage.streams, tile.shape, sums.continued, sums.unfinished, passing)
        found = self._on_array.get(key)
        if found is None:
            found = self.costs.of_stage(stage, tile.lengths, _sums(stage, tile))
            if stage.streams or self.costs.ways(stage.op) or self._reads_past(tile):
                found = self._with_streamed(stage, tile, found)
            if passing:
                # The vector unit applies ops to what the array makes, while it makes it.
                found = replace(found, charges=(*found.charges, self.costs.in_passing(passing)))
            self._on_array[key] = found
        return found

    def _reads_past(self, tile: Tile) -> bool:
        return not all(use.memory for use, _ in tile.reads)

    def _with_streamed(self, stage: Stage, tile: Tile, found: TileCost) -> TileCost:
        """A cost with what reading past the scratchpads takes beyond it: biases, and what a
        mapping leaves out, of which it does not count the last steps."""
        ways, past = self.costs.ways(stage.op), self._constants_way
        mapped: dict[Stream, int] = {}
        others: dict[Stream, int] = {}
        tensors = self.builder.network.by_name
        for operand in stage.op.inputs:
            # Tiles of one shape cost the same, also where some have padding to read.
            if operand.name in ways:
                way, tensor = ways[operand.name], tensors[operand.tensor]
                size = _reached_bytes(operand.index, tile.lengths, tensor)
                mapped[way] = mapped.get(way, 0) + size
        for use, box in tile.reads:
            is_read = use.memory is None and not is_read_later(use, tile, stage)
            if is_read and use.letter not in ways and past is not None:
                size = size_bytes(box, tensors[use.tensor])
                sizes = mapped if use.letter in CARRIERS else others
                sizes[past] = sizes.get(past, 0) + size
        found = _with_reads(found, mapped, others)
        out = ways.get("O")
        if out is None or tile.sums.unfinished:
            return found
        made = self.builder.network.by_name[stage.results[0].tensor]
        return _with_writes(found, out, size_bytes(tile.results[0], made))

    @cached_property
    def _constants_way(self) -> Stream | None:
        """The way of constants that no carrier stands for, or that stream past a scratchpad."""
        for carrier in (WEIGHTS, INPUT_OPERANDS[0]):
            origin = self.places.origin(carrier)
            if origin is not None:
                return straight(self.places, carrier, origin)
        return None

    def _vector_cost(
        self,
        stage: Stage,
        tile: Tile,
        reads: Sequence[Access],
        writes: Sequence[Access],
        passing: int,
    ) -> TileCost:
        """The cost of an op and of those applied to its result, one after the other."""
        lengths = tile.lengths
        operations = prod(lengths.values()) + passing
        read = self._read_bytes(stage, tile, reads)
        found = self.costs.on_vector_unit(operations, read, self._bytes(writes))
        return self.costs.by_core_model(found, stage, lengths, _sums(stage, tile))

    def _moving(
        self, stage: Stage, tile: Tile, reads: Sequence[Access], writes: Sequence[Access]
    ) -> TileCost:
        """The cost of rearranging elements: on a DMA engine if one serves, else the vector unit."""
        read, written = self._read_bytes(stage, tile, reads), self._bytes(writes)
        route = self._way(reads, writes)
        if route is None:
            return self.costs.on_vector_unit(sum(elements(w.box) for w in writes), read, written)
        size = max(sum(read.values()), sum(written.values()))
        charges = [Charge(m, n, 0, n * route.read_pj_per_byte) for m, n in read.items()]
        charges += [Charge(m, 0, n, n * route.write_pj_per_byte) for m, n in written.items()]
        return TileCost(cycles=route.cycles(size), charges=tuple(charges))

    def _way(self, reads: Sequence[Access], writes: Sequence[Access]) -> Route | None:
        """The route of a task that rearranges elements.

        A tile of nothing but padding has none, and a core rearranges by itself what stays in
        scratchpads of the same kind: cores do so at the same time.
        """
        if not reads:
            return None
        source, target = self._space(reads[0]), self._space(writes[0])
        memories = self.places.memory_of
        if memories[source] == memories[target]:
            return None
        return self.places.routes.get((source, target))

    def _read_bytes(self, stage: Stage, tile: Tile, reads: Sequence[Access]) -> dict[str, int]:
        """Bytes read by memory; of a table in which elements are looked up, those found."""
        if stage.op.kind != "gather":
            return self._bytes(reads)
        network, buffers = self.builder.network, self.builder.buffers
        tables = [operand.tensor for operand in stage.inputs if stage.op.searches(operand)]
        found = size_bytes(tile.results[0], network.by_name[stage.results[0].tensor])
        total: dict[str, int] = {}
        for access in reads:
            is_table = buffers[access.buffer].tensor in tables
            for memory, size in self._bytes([access]).items():
                total[memory] = total.get(memory, 0) + (min(size, found) if is_table else size)
        return total

    def _bytes(self, accesses: Sequence[Access]) -> dict[str, int]:
        """Bytes touched by memory."""
        total: dict[str, int] = {}
        for access in accesses:
            buffer = self.builder.buffers[access.buffer]
            bits = self.builder.wide_bits.get(access.buffer)
            bits = bits or self.builder.network.by_name[buffer.tensor].bits
            size = packed_bytes(elements(access.box), bits)
            memory = self.places.memory_of[buffer.space]
            total[memory] = total.get(memory, 0) + size
        return total

    def _space(self, access: Access) -> str:
        return self.builder.buffers[access.buffer].space

    def held(
        self, uses: StageUses, reads: Sequence[Access], writes: Sequence[Access]
    ) -> tuple[str, ...]:
        """What a task holds while it runs: what it reads or writes beside the scratchpads."""
        if not uses.streams:
            return ()
        if uses.stage.worker == "move" and (way := self._way(reads, writes)) is not None:
            return way.ports
        is_array = uses.stage.worker == "array"
        ways = self.costs.ways(uses.stage.op).values() if is_array else ()
        found = [way.held for way in ways]
        for accesses, is_read in ((reads, True), (writes, False)):
            spaces = [self._space(access) for access in accesses]
            found += [self.places.held(s, reads=is_read) for s in spaces if s in self._outside]
        most: Counter[str] = Counter()
        for lanes in found:
            most |= Counter(lanes)
        return tuple(most.elements())

    @cached_property
    def _outside(self) -> frozenset[str]:
        return frozenset(s.name for s in self.places.spaces if s.kind != "scratchpad")


def _sums(stage: Stage, tile: Tile) -> Sums:
    """Which part of a sum a tile adds, also if another op begins the sum or ends it."""
    return Sums(
        continued=tile.sums.continued or stage.op.goes_on,
        unfinished=tile.sums.unfinished or stage.op.is_unfinished,
    )


def _reached_bytes(
    index: Sequence[Index] | None, lengths: Mapping[str, int], tensor: Tensor
) -> int:
    """Bytes of what loops of some lengths reach of a tensor, wherever they are, without padding."""
    if index is None:
        return tensor.size_bytes
    reached = 1
    for axis, size in zip(index, tensor.shape, strict=True):
        last = axis.reach + sum(abs(factor) * (lengths[dim] - 1) for dim, factor in axis.terms)
        reached *= min(size, last // axis.divisor + 1)
    return packed_bytes(reached, tensor.bits)


def _with_writes(found: TileCost, way: Stream, size: int) -> TileCost:
    """A cost of no less than so many bytes that are written take along a way."""
    charged = [c.write_bytes for c in found.charges if c.memory == way.memory.name]
    missing = max(0, size - sum(charged))
    energy_pj = 8 * missing * way.memory.write_pj / way.port.bits_per_cycle
    more = (Charge(way.memory.name, 0, missing, energy_pj),) if missing else ()
    cycles = max(found.cycles, -(-8 * size // way.bits_per_cycle))
    return replace(found, cycles=cycles, charges=(*found.charges, *more))


def _with_reads(
    found: TileCost, mapped: Mapping[Stream, int], others: Mapping[Stream, int]
) -> TileCost:
    """A cost of no less than what comes along some ways: bytes that the mapping tells of, and
    others."""
    cycles, charges = found.cycles, list(found.charges)
    ports: dict[tuple[str, str], int] = {}
    for way in (*mapped, *(way for way in others if way not in mapped)):
        key = way.memory.name, way.port.name
        size = mapped.get(way, 0) + others.get(way, 0)
        ports[key] = ports.get(key, 0) + size
        cycles = max(
            cycles,
            -(-8 * size // way.bits_per_cycle),
            -(-8 * ports[key] // way.port.bits_per_cycle),
        )
    for memory in dict.fromkeys(way.memory.name for way in (*mapped, *others)):
        least = [(w, n) for w, n in mapped.items() if w.memory.name == memory]
        more = [(w, n) for w, n in others.items() if w.memory.name == memory]
        charged = [charge for charge in found.charges if charge.memory == memory]
        missing = sum(n for _, n in least) - sum(charge.read_bytes for charge in charged)
        missing_pj = sum(n * w.pj_per_byte for w, n in least)
        missing_pj -= sum(charge.energy_pj for charge in charged)
        size = max(0, missing) + sum(n for _, n in more)
        energy_pj = max(0.0, missing_pj) + sum(n * w.pj_per_byte for w, n in more)
        charges.append(Charge(memory, size, 0, energy_pj))
    return replace(found, cycles=cycles, charges=tuple(charges))
