"""What one tile costs: on the array by its best mapping, on the vector unit by its points."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, floor, inf, prod
from typing import Final

from tilewright.errors import InfeasibleError, Problem
from tilewright.machine.model import OUTPUT_OPERAND, WEIGHTS, Memory
from tilewright.mapping.attach import Unrolling
from tilewright.mapping.diagnose import why_not
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of, partial_sum_bits
from tilewright.mapping.nest import (
    LoopNest,
    mapped_lengths,
    nest_of,
    window_elements,
    with_partial_sums,
)
from tilewright.mapping.network import default_vector_unit
from tilewright.mapping.obstacles import is_too_wide
from tilewright.mapping.search import Mapped, SearchOptions
from tilewright.mapping.tile_search import (
    fewest_steps,
    least_steps,
    map_tile,
    quick_cycles,
    ranked_unrollings,
)
from tilewright.mapping.timed_search import TimedOp, map_timed_op, map_timed_tile
from tilewright.network.graph import Network, Op
from tilewright.network.windows import interleaved
from tilewright.program.coming_once import mapped_once, read_again, refusal_of
from tilewright.program.core_model import CoreModelCosts, core_model_costs
from tilewright.program.model import Charge
from tilewright.program.places import Places
from tilewright.program.rows import unfinished_bits
from tilewright.program.stage_kinds import StageKinds
from tilewright.program.stages import Stage
from tilewright.program.streams import CARRIERS, Stream, with_streams
from tilewright.program.work import Known
from tilewright.records import quickly_made

UNLIMITED: Final = 2**62


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class TileCost:
    """Cycles and charges of a compute task; `mapping` is its index among all mappings, if any."""

    cycles: int
    charges: tuple[Charge, ...]
    mapping: int | None = None

    @property
    def is_mapped(self) -> bool:
        """Whether it is by a mapping, also where a model tells its cycles: products are charged."""
        return self.charges[0].memory == "array"


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Which part of a sum a task adds: it may start from partial sums, and may leave some."""

    continued: bool = False
    unfinished: bool = False


WHOLE_SUM = Sums()


@dataclass
class TileCosts:
    """Finds and remembers the mapping of every distinct tile."""

    network: Network
    places: Places
    options: SearchOptions
    streams: Mapping[str, Mapping[str, Stream | Problem]] = field(default_factory=dict)
    """By op and letter the ways of operands without a scratchpad, or why there is none."""
    mappings: list[Mapped] = field(default_factory=list)
    core_model: CoreModelCosts | None = field(init=False)
    """What tells the cycles of tiles instead of their mappings."""
    _kinds: StageKinds = field(init=False)
    _known: dict[int, Known] = field(default_factory=dict)
    _models: dict[int, Callable[[Mapping[str, int]], int | None]] = field(default_factory=dict)
    """By kind of stage, how long tiles take by the core's own model."""
    _found: dict[object, TileCost] = field(default_factory=dict)
    _of_stages: dict[object, TileCost] = field(default_factory=dict)
    """By op, lengths of all loops, and what is known of sums."""
    _on_vector: dict[object, TileCost] = field(default_factory=dict)
    """By points, and by the bytes that are read and written."""
    _quick: dict[object, int | None] = field(default_factory=dict)
    _nests: dict[tuple[str, bool], tuple[LoopNest, Hierarchy]] = field(default_factory=dict)
    """By op, and whether its weights stream."""
    _hierarchies: dict[object, Hierarchy] = field(default_factory=dict)
    """By letters, whether weights stream, and what has no scratchpad."""
    _timed: dict[tuple[LoopNest, Hierarchy], TimedOp] = field(default_factory=dict)
    _unrollings: dict[tuple[LoopNest, Hierarchy], list[tuple[int, Unrolling]]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self.core_model = core_model_costs(self.network, self.places)
        model = self.core_model
        self._kinds = StageKinds(self.network) if model is None else model.kinds

    def nest(self, op: Op, *, streams: bool = False) -> tuple[LoopNest, Hierarchy]:
        """An op's whole nest, and the levels between the array and the scratchpads, or beyond them
        for weights that stream.

        Raises:
            InfeasibleError: the array cannot run the op.
        """
        key = op.name, streams
        if key not in self._nests:
            machine, core = self.places.machine, self.places.core
            try:
                nest = nest_of(op, self.network)
                ways = self.ways(op)
                hierarchy = self._hierarchy(nest.letters, streams, ways)
            except ValueError as error:
                message = f"op {op.name!r} cannot be mapped: {error}"
                raise InfeasibleError(Problem(message=message)) from None
            width = partial_sum_bits(machine, core, op.accumulator_bits)
            if op.goes_on or op.is_unfinished:
                width = max(width, unfinished_bits(op))
            self._nests[key] = with_partial_sums(nest, width), hierarchy
        return self._nests[key]

    def ways(self, op: Op) -> dict[str, Stream]:
        """The ways of an op's operands that have no scratchpad, by letter.

        Raises:
            InfeasibleError: there is none.
        """
        found: dict[str, Stream] = {}
        for letter, stream in self.streams.get(op.name, {}).items():
            if isinstance(stream, Problem):
                message = f"op {op.name!r} cannot run: {stream.message}"
                raise InfeasibleError(replace(stream, message=message))
            found[letter] = stream
        return found

    def _hierarchy(
        self, letters: tuple[str, ...], streams: bool, ways: Mapping[str, Stream]
    ) -> Hierarchy:
        key = letters, streams, *ways.values()
        if key not in self._hierarchies:
            links = {letter: CARRIERS[letter] for letter in letters}
            homes = {letter: self.places.home(carrier) for letter, carrier in links.items()}
            tops = {letter: home.name for letter, home in homes.items() if home is not None}
            streamed = [letter for letter in tops if streams and links[letter] == WEIGHTS]
            passed = {letter: tops.pop(letter) for letter in streamed}
            found = hierarchy_of(self.places.machine, self.places.core, links, tops, passed)
            self._hierarchies[key] = with_streams(_with_room(found, tops), ways)
        return self._hierarchies[key]

    def unrolled(self, op: Op) -> Mapping[str, int]:
        """How many steps of each loop the array takes at once, in the most promising unrolling."""
        _, unrolling = self._ranked(*self.nest(op))[0]
        factors: dict[str, int] = {}
        for _, pairs in unrolling:
            for loop, factor in pairs:
                factors[loop] = factors.get(loop, 1) * factor
        for axis in interleaved(op, self.network):
            factors[axis.loop] = axis.stride * factors.pop(axis.walked, 1)
        return factors

    def _ranked(self, nest: LoopNest, hierarchy: Hierarchy) -> list[tuple[int, Unrolling]]:
        """The unrollings of an op with their steps, the most promising first."""
        key = nest, hierarchy
        if key not in self._unrollings:
            self._unrollings[key] = ranked_unrollings(nest, hierarchy)
        return self._unrollings[key]

    def fewest_cycles(self, op: Op) -> float:
        """What an op takes at least, however it is cut, where a model of the core knows."""
        return (self.core_model and self.core_model.fewest_cycles(op)) or 0.0

    def fewest_steps(self, op: Op, part: float = 1.0) -> float:
        """Steps that the array needs at least for a part of an op's points, with one loop over each
        array dim."""
        if self.core_model is not None:
            return floor(self.fewest_cycles(op)) * part
        return fewest_steps(*self.nest(op), part)

    def least_steps(self, op: Op, part: float = 1.0) -> float:
        """Steps that the array needs at least for a part of an op's points, whatever is unrolled
        over it."""
        if self.core_model is not None:
            return floor(self.fewest_cycles(op)) * part
        return least_steps(*self.nest(op), part)

    def least_array_pj(self, op: Op) -> float:
        """Energy of an op's products; in a memory it depends on what is unrolled."""
        array = self.places.core.array
        if array.in_memory is not None:
            return 0.0
        by_lane = self.least_vector_pj(op) if self.core_model is not None else inf
        return min(self.nest(op)[0].points * array.mac_pj, by_lane)

    def least_vector_pj(self, op: Op) -> float:
        """Energy of an op's operations on the vector unit."""
        unit = self.places.core.vector or default_vector_unit(self.places.core)
        return op.points * unit.op_pj

    def fewest_vector_cycles(self, op: Op) -> float:
        """Cycles that the vector unit needs for an op at least."""
        unit = self.places.core.vector or default_vector_unit(self.places.core)
        least = self.core_model.fewest_cycles(op) if self.core_model is not None else None
        return op.points / unit.lanes if least is None else least

    def model_of(self, stage: Stage) -> Callable[[Mapping[str, int]], int | None] | None:
        """Cycles of a stage's tiles by the lengths of their loops, if the core has a model."""
        if self.core_model is None:
            return None
        kind = self._kinds.kind(stage)
        if kind not in self._models:
            self._models[kind] = self._asking(self.core_model, stage)
        return self._models[kind]

    def _asking(
        self, model: CoreModelCosts, stage: Stage
    ) -> Callable[[Mapping[str, int]], int | None]:
        sizes = stage.op.sizes
        sums = [(loop, sizes[loop]) for loop in stage.tileable[2]]
        whole = model.asking(stage)
        if not sums:
            return whole
        part = model.asking(stage, (True, True))

        def cycles(lengths: Mapping[str, int]) -> int | None:
            for loop, size in sums:
                if lengths[loop] < size:
                    return part(lengths)
            return whole(lengths)

        return cycles

    def cycles_of(
        self, stage: Stage, *, quickly: bool
    ) -> Callable[[Mapping[str, int]], int | None] | None:
        """Cycles of a stage's tiles by the lengths of their loops, if they run by mappings.

        By the best mapping, or by a good one that is quickly found; None if a tile has none.
        """
        if self.core_model is not None or stage.worker != "array":
            return None
        loops = stage.tileable[2]

        def cycles(lengths: Mapping[str, int]) -> int | None:
            cut = any(lengths[loop] < stage.op.sizes[loop] for loop in loops)
            sums = Sums(continued=cut, unfinished=cut)
            if quickly:
                return self._quick_cycles(stage, lengths, sums)
            try:
                return self.on_array(stage.op, lengths, sums, streams=stage.streams).cycles
            except InfeasibleError:
                return None

        return cycles

    def _quick_cycles(self, stage: Stage, lengths: Mapping[str, int], sums: Sums) -> int | None:
        nest, hierarchy = self.nest(stage.op, streams=stage.streams)
        lengths = mapped_lengths(stage.op, self.network, lengths)
        tile = tile_nest(nest, lengths, unfinished=sums.unfinished)
        key = (tile, hierarchy, sums)
        if key not in self._quick:
            cycles = quick_cycles(tile, hierarchy, self.options, self._ranked(nest, hierarchy))
            if cycles is not None and sums.continued:
                cycles += self._taken_up(tile)[0]
            self._quick[key] = None if cycles is None else ceil(cycles)
        return self._quick[key]

    def known_of(self, stage: Stage) -> Known:
        """What is remembered of stages like this one, for the choice of tiles."""
        return self._known.setdefault(self._kinds.kind(stage), Known())

    def of_stage(self, stage: Stage, lengths: Mapping[str, int], sums: Sums) -> TileCost:
        """The cost of a tile of an op that the array runs, with the cycles of the core's own model.

        Raises:
            InfeasibleError: the tile has no mapping.
        """
        streams = stage.streams
        key = (stage.op.name, streams, tuple(lengths.values()), sums.continued, sums.unfinished)
        known = self._of_stages.get(key)
        if known is None:
            told = self._told(stage, lengths, sums)
            is_timed = told is not None
            known = self.on_array(stage.op, lengths, sums, is_timed=is_timed, streams=streams)
            if told is not None:
                # As the cycles are not the mapping's, its stalls would say nothing about them.
                known = TileCost(cycles=told, charges=known.charges)
            self._of_stages[key] = known
        return known

    def by_core_model(
        self, found: TileCost, stage: Stage, lengths: Mapping[str, int], sums: Sums
    ) -> TileCost:
        """The cost of a tile with the cycles that the core's own model tells, if it has one."""
        told = self._told(stage, lengths, sums)
        return found if told is None else TileCost(cycles=told, charges=found.charges)

    def _told(self, stage: Stage, lengths: Mapping[str, int], sums: Sums) -> int | None:
        if self.core_model is None:
            return None
        return self.core_model.cycles(stage, lengths, (sums.continued, sums.unfinished))

    def on_array(
        self,
        op: Op,
        lengths: Mapping[str, int],
        sums: Sums = WHOLE_SUM,
        *,
        is_timed: bool = False,
        streams: bool = False,
    ) -> TileCost:
        """The cost of the best mapping of a tile; of one of little energy if its cycles are known.

        Raises:
            InfeasibleError: the tile has no mapping.
        """
        nest, hierarchy = self.nest(op, streams=streams)
        lengths = mapped_lengths(op, self.network, lengths)
        tile = tile_nest(nest, lengths, unfinished=sums.unfinished)
        key = (tile, hierarchy, sums, is_timed)
        if key not in self._found:
            is_left = self.core_model is not None and is_too_wide(op, self.network)
            mapped = None if is_left else self._mapped(nest, tile, hierarchy, is_timed=is_timed)
            if mapped is None and self.core_model is not None:
                self._found[key] = self._without_mapping(tile)
                return self._found[key]
            if mapped is None:
                reason = why_not(tile, hierarchy, None)
                message = f"op {op.name!r} cannot be mapped: {reason.message}"
                raise InfeasibleError(replace(reason, message=message))
            if op.name in self.streams:
                mapped = self._without_reading_again(op, tile, hierarchy, mapped)
            self.mappings.append(mapped)
            found = self._with_sums(mapped, tile, sums)
            self._found[key] = self._along(self.ways(op), found)
        return self._found[key]

    def _without_reading_again(
        self, op: Op, tile: LoopNest, hierarchy: Hierarchy, found: Mapped
    ) -> Mapped:
        """The mapping of a tile, or another one, which reads once what comes once."""
        ways = self.ways(op)
        way = read_again(found, ways)
        if way is None:
            return found
        other = mapped_once(tile, hierarchy, self.options, ways)
        if other is None or read_again(other, ways) is not None:
            raise refusal_of(op.name, way.memory.name)
        return other

    def _along(self, ways: Mapping[str, Stream], found: TileCost) -> TileCost:
        """A cost of no less than what a mapping moves takes along the ways of what streams."""
        if not ways or found.mapping is None:
            return found
        cycles = found.cycles
        for link in self.mappings[found.mapping].cost.links:
            way = ways.get(link.letter)
            if way is not None and link.memory == way.memory.name:
                cycles = max(cycles, -(-link.bits // way.bits_per_cycle))
        return replace(found, cycles=cycles)

    def _mapped(
        self, nest: LoopNest, tile: LoopNest, hierarchy: Hierarchy, *, is_timed: bool
    ) -> Mapped | None:
        """The mapping of a tile of an op."""
        if not is_timed:
            ranked = self._ranked(tile, hierarchy)
            return map_tile(tile, hierarchy, self.options, ranked)
        if (nest, hierarchy) not in self._timed:
            ranked = self._ranked(nest, hierarchy)
            self._timed[nest, hierarchy] = map_timed_op(nest, hierarchy, ranked, self.options)
        return map_timed_tile(tile, hierarchy, self.options, self._timed[nest, hierarchy])

    def _without_mapping(self, tile: LoopNest) -> TileCost:
        """The cost of a tile that the model of the core can run although the array cannot."""
        read: dict[str, int] = {}
        written: dict[str, int] = {}
        sizes = tile.sizes | {relation.target: relation.size for relation in tile.relations}
        for operand in tile.operands:
            home = self.places.home(CARRIERS[operand.letter])
            if home is not None:
                is_result = operand is tile.operands[0]
                side, bits = (written, tile.final_bits) if is_result else (read, operand.bits)
                elements = prod(sizes.get(axis, 1) for axis in operand.axes)
                side[home.name] = side.get(home.name, 0) + ceil(elements * bits / 8)
        return self.on_vector_unit(tile.points, read, written)

    def _with_sums(self, mapped: Mapped, tile: LoopNest, sums: Sums) -> TileCost:
        """A mapping's cost, and that of reading the partial sums it goes on from."""
        cycles, charges = mapped.cost.cycles, _charges(mapped)
        if sums.continued:
            taken_up, more = self._taken_up(tile)
            cycles, charges = cycles + taken_up, (*charges, *more)
        return TileCost(cycles=ceil(cycles), charges=charges, mapping=len(self.mappings) - 1)

    def _taken_up(self, tile: LoopNest) -> tuple[int, tuple[Charge, ...]]:
        """What it costs to read the partial sums that a tile goes on from."""
        home = self.places.home(OUTPUT_OPERAND)
        if home is None:
            return 0, ()
        port = home.port(OUTPUT_OPERAND, "tl") or home.ports[0]
        result = tile.operands[0]
        bits = result.bits * prod(tile.sizes.get(axis, 1) for axis in result.axes)
        energy = bits / port.bits_per_cycle * home.read_pj
        return ceil(bits / port.bits_per_cycle), (Charge(home.name, ceil(bits / 8), 0, energy),)

    def on_vector_unit(
        self, points: int, reads: Mapping[str, int], writes: Mapping[str, int]
    ) -> TileCost:
        """The cost of `points` operations between bytes read from and written to memories."""
        key = (points, tuple(reads.items()), tuple(writes.items()))
        if key not in self._on_vector:
            self._on_vector[key] = self._vector_cost(points, reads, writes)
        return self._on_vector[key]

    def _vector_cost(
        self, points: int, reads: Mapping[str, int], writes: Mapping[str, int]
    ) -> TileCost:
        unit = self.places.core.vector or default_vector_unit(self.places.core)
        cycles = ceil(points / unit.lanes)
        charges = [Charge("vector", 0, 0, points * unit.op_pj)]
        for name in dict.fromkeys([*reads, *writes]):
            memory = self.places.levels[name]
            read, written = reads.get(name, 0), writes.get(name, 0)
            busy, energy = _access(memory, read, written)
            cycles = max(cycles, busy)
            charges.append(Charge(name, read, written, energy))
        return TileCost(cycles=max(1, cycles), charges=tuple(charges))

    def in_passing(self, elements: int) -> Charge:
        """The energy of an op that is applied to a result before it is written."""
        unit = self.places.core.vector or default_vector_unit(self.places.core)
        return Charge("vector", 0, 0, elements * unit.op_pj)


def _with_room(hierarchy: Hierarchy, tops: Mapping[str, str]) -> Hierarchy:
    """The levels with scratchpads that hold anything: what lies there is the program's to say."""
    return replace(
        hierarchy,
        levels=tuple(
            (replace(memory, size_bits=UNLIMITED) if memory.name in tops.values() else memory, held)
            for memory, held in hierarchy.levels
        ),
    )


def _access(memory: Memory, read_bytes: int, write_bytes: int) -> tuple[int, float]:
    """Cycles and energy of going through bytes of a memory, each port at its width."""
    reading = max((p.bits_per_cycle for p in memory.ports if p.kind != "write"), default=1)
    writing = max((p.bits_per_cycle for p in memory.ports if p.kind != "read"), default=1)
    shared = all(p.kind == "read_write" for p in memory.ports) and len(memory.ports) == 1
    cycles = ceil(8 * read_bytes / reading), ceil(8 * write_bytes / writing)
    energy = 8 * (read_bytes / reading * memory.read_pj + write_bytes / writing * memory.write_pj)
    return (sum(cycles) if shared else max(cycles)), energy


def tile_nest(nest: LoopNest, lengths: Mapping[str, int], *, unfinished: bool) -> LoopNest:
    """The nest with shorter loops; windows are as long as such loops reach, or shorter."""
    dims = tuple((loop, lengths.get(loop, size)) for loop, size in nest.dims)
    sizes = dict(dims)
    relations = []
    for r in nest.relations:
        reached = window_elements(r, sizes[r.terms[0][0]], sizes[r.terms[1][0]])
        relations.append(replace(r, size=min(reached, lengths.get(r.target, reached))))
    final = nest.operands[0].bits if unfinished else nest.final_bits
    return replace(nest, dims=dims, relations=tuple(relations), final_bits=final)


def _charges(mapped: Mapped) -> tuple[Charge, ...]:
    read: dict[str, float] = {}
    written: dict[str, float] = {}
    energy: dict[str, float] = {}
    for link in mapped.cost.links:
        side = read if link.direction in ("tl", "th") else written
        side[link.memory] = side.get(link.memory, 0) + link.bits / 8
        energy[link.memory] = energy.get(link.memory, 0.0) + link.energy_pj
    memories = tuple(
        Charge(name, ceil(read.get(name, 0)), ceil(written.get(name, 0)), pj)
        for name, pj in energy.items()
    )
    return (Charge("array", 0, 0, mapped.cost.mac_pj), *memories)
