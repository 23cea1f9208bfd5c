"""From a network to a program: tiles become tasks, copies are put in where they are needed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest

from tilewright.errors import InfeasibleError, Problem
from tilewright.machine.model import OUTPUT_OPERAND, Machine
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network, Op, Operand
from tilewright.program.bounds import NetworkBounds, network_bounds
from tilewright.program.boxes import (
    Ranges,
    contains,
    elements,
    is_empty,
    overlap,
    shifted,
    size_bytes,
    touched,
)
from tilewright.program.build import Builder, Copy
from tilewright.program.cascade import PLAIN, Flow, Strategy, flow_of
from tilewright.program.model import Access, Box, Charge, Program, Route, Space, Task, TaskKind
from tilewright.program.places import Places, core_engine, places_of, vector_engine
from tilewright.program.residence import ANYWHERE, Layout, Residence
from tilewright.program.rings import Ring, ring_box
from tilewright.program.rows import Rows
from tilewright.program.stages import Stage, Storage, stages_of, storages
from tilewright.program.tile import Goal, tileable
from tilewright.program.tile_cost import Sums, TileCost, TileCosts
from tilewright.program.tiles import MOST_TILES, Tile, label, refuse_too_many, sums_of, tile_ranges


@dataclass(frozen=True, kw_only=True)
class Lowered:
    """A program and what was decided on the way to it."""

    program: Program
    stages: tuple[Stage, ...]
    layout: Layout
    assumptions: tuple[str, ...]
    bounds: NetworkBounds


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A network's stages on a machine, before it is decided how they are cut."""

    network: Network
    places: Places
    costs: TileCosts
    stages: tuple[Stage, ...]
    storage: Mapping[str, Storage]
    rows: Rows


def prepare(
    network: Network, machine: Machine, order: Sequence[Op], options: SearchOptions
) -> Prepared:
    """The stages of a network on a machine, its ops in the given order."""
    places = places_of(machine)
    homes = [places.home(carrier) for carrier in ("I1", "I2", OUTPUT_OPERAND)]
    joins = homes[0] is not None and all(home == homes[0] for home in homes)
    storage, stages = storages(network, stages_of(network, order, joins_on_array=joins))
    return Prepared(
        network=network,
        places=places,
        costs=TileCosts(network=network, places=places, options=options),
        stages=tuple(stages),
        storage=storage,
        rows=Rows(network, stages, storage),
    )


def lower(
    prepared: Prepared, goal: Goal, strategy: Strategy = PLAIN, most_tiles: int = MOST_TILES
) -> Lowered:
    """The program of a network on a machine.

    Raises:
        InfeasibleError: an op does not fit, or cannot be mapped.
    """
    network, places, costs = prepared.network, prepared.places, prepared.costs
    stages, storage = prepared.stages, prepared.storage
    flows = [flow_of(prepared.rows, cascade) for cascade in strategy.cascades]
    by_stage = {number: flow for flow in flows if flow for number in flow.cascade.stages}
    residence = Residence(network, places, costs, stages, storage, goal, by_stage, strategy.gone)
    layout = residence.layout()
    refuse_too_many(stages, layout, most_tiles)
    builder = Builder(network, places, storage)
    lowering = Lowering(network, places, costs, residence, layout, builder, strategy.frugal)
    for number in range(len(stages)):
        if number not in by_stage:
            lowering.emit(number)
        elif number == by_stage[number].cascade.first:
            lowering.emit_cascade(by_stage[number])
    return Lowered(
        program=lowering.program(),
        stages=stages,
        layout=layout,
        assumptions=places.assumptions,
        bounds=network_bounds(network, stages, storage, places, costs),
    )


@dataclass
class Lowering:
    """Emits the tasks of one stage after the other."""

    network: Network
    places: Places
    costs: TileCosts
    residence: Residence
    layout: Layout
    builder: Builder
    frugal: bool = False
    kept: dict[tuple[str, int], int] = field(default_factory=dict)
    staged: dict[tuple[str, Box, str], int] = field(default_factory=dict)
    """Buffers of tiles that were brought, by tensor, box and space."""
    pending: list[Copy] = field(default_factory=list)
    partial: dict[tuple[int, Box], int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    """Per core the last tile of the stage at hand."""
    rings: dict[tuple[str, int], Ring] = field(default_factory=dict)
    """Rolling buffers of the cascade at hand, by tensor and core."""

    @property
    def stages(self) -> Sequence[Stage]:
        """What is emitted."""
        return self.residence.stages

    @property
    def storage(self) -> Mapping[str, Storage]:
        """Where each tensor's elements lie."""
        return self.residence.storage

    def program(self) -> Program:
        """What was emitted."""
        builder = self.builder
        results = []
        for tensor in self.network.outputs:
            root = self.storage[tensor.name].root
            space = self._beyond(root)
            results.append(builder.view(builder.outside(root, space), tensor.name))
        used = sorted({t.mapping for t in builder.tasks if t.mapping is not None})
        new = {mapping: position for position, mapping in enumerate(used)}
        tasks = builder.tasks
        if len(used) < len(self.costs.mappings):
            tasks = [
                task if task.mapping is None else replace(task, mapping=new[task.mapping])
                for task in tasks
            ]
        return Program(
            name=self.network.name,
            spaces=self.places.spaces,
            engines=self.places.engines,
            routes=tuple(self.places.routes.values()),
            buffers=tuple(builder.buffers),
            tasks=tuple(tasks),
            given=tuple(builder.given),
            results=tuple(results),
            mappings=tuple(self.costs.mappings[mapping] for mapping in used),
        )

    def emit(self, number: int) -> None:
        """Emit a stage's tiles, one core's after the other's, in the order of its tiling."""
        stage, tiles = self.stages[number], self._tiles(number)
        sharing = self._sharing(stage, tiles)
        self.last = {}
        self._fetch_ahead(number)
        for column in zip_longest(*tiles):
            for tile in column:
                if tile is not None:
                    self._replace_input(number, stage, tile.core)
                    self._emit_tile(stage, tile, sharing)
        self.partial.clear()

    def emit_cascade(self, flow: Flow) -> None:
        """Emit the tiles of several stages, some rows of each in turn."""
        last: dict[int, dict[int, int]] = {number: {} for number in flow.cascade.stages}
        self.rings = self._rings_of(flow)
        for turn in flow.turns:
            stage, self.last = self.stages[turn.stage], last[turn.stage]
            rows = {flow.loops[turn.stage]: (turn.start, turn.stop)}
            tiles = self._tiles(turn.stage, rows)
            sharing = self._sharing(stage, tiles)
            for column in zip_longest(*tiles):
                for tile in column:
                    if tile is not None:
                        self._emit_tile(stage, tile, sharing)
            self.partial.clear()
            if turn.stage not in self.layout.lasting:
                self._forget_constants(stage)
        self.rings = {}

    def _forget_constants(self, stage: Stage) -> None:
        """Let a stage's constants come again when they are next needed."""
        constants = {o.tensor for o in stage.inputs}
        constants = {c for c in constants if self.network.by_name[c].role == "constant"}
        self.staged = {key: b for key, b in self.staged.items() if key[0] not in constants}

    def _rings_of(self, flow: Flow) -> dict[tuple[str, int], Ring]:
        """The rolling buffers of a cascade; those that fill from outside are empty at first."""
        found = {}
        for (first, root), roll in self.layout.rings.items():
            for core in range(self.places.cores):
                box = self.layout.boxes.get((root, core))
                if first != flow.cascade.first or box is None:
                    continue
                memory = self.residence.ring_memory(root)
                space = self.places.named(memory, core)
                buffer = self.builder.buffer(root, ring_box(box, roll.axis, roll.rows), space)
                found[root, core] = Ring(
                    builder=self.builder,
                    root=root,
                    box=box,
                    axis=roll.axis,
                    rows=roll.rows,
                    memory=memory,
                    buffer=buffer,
                    arrived=None if root in flow.rolls else 0,
                )
        return found

    def _tiles(self, number: int, rows: Ranges | None = None) -> list[list[Tile]]:
        """A stage's tiles by core; of a stage in a cascade, those of some of its rows."""
        tiling, parts = self.layout.tilings[number], self.layout.parts[number]
        parts = tuple({**part, **(rows or {})} for part in parts)
        sums = [d for d in tileable(self.stages[number].op)[2] if d in tiling.order]
        return [
            [
                Tile(core, part, ranges, sums_of(part, ranges, sums))
                for ranges in tile_ranges(part, tiling.lengths, tiling.order)
            ]
            for core, part in enumerate(parts)
        ]

    def _fetch_ahead(self, number: int) -> None:
        """Let small constants of the next stages come with this stage's, in its transfers.

        As many as a transfer moves while another one is set up; more would only come too early.
        """
        left = self._worth_joining() - self._constant_bytes(number)
        for later in range(number + 1, len(self.stages)):
            left -= self._constant_bytes(later)
            if later in self.layout.flows:
                return
            tiles = self._tiles(later)
            if left < 0 or any(len(of_core) > 1 for of_core in tiles):
                return
            stage = self.stages[later]
            sharing = self._sharing(stage, tiles)
            for tile in chain.from_iterable(tiles):
                for operand, box in self._boxes(stage, tile):
                    if self.network.by_name[operand.tensor].role == "constant":
                        cores = sharing.get((operand.tensor, box), (tile.core,))
                        self._read(stage, operand, box, tile.core, cores)

    def _worth_joining(self) -> int:
        """Bytes that move in the time in which a transfer of constants is set up."""
        origin, home = self.places.origin("I2"), self.places.home("I2")
        if origin is None or home is None:
            return 0
        route = self.places.routes.get((origin.name, self.places.named(home.name, 0).name))
        return 0 if route is None else int(route.setup_cycles * route.bytes_per_cycle)

    def _constant_bytes(self, number: int) -> int:
        tensors = [self.network.by_name[o.tensor] for o in self.stages[number].inputs]
        return sum(t.size_bytes for t in tensors if t.role == "constant")

    def _boxes(self, stage: Stage, tile: Tile) -> Iterator[tuple[Operand, Box]]:
        """What a tile reads; of a small constant, all that its core will ever want."""
        for operand in stage.inputs:
            ranges = tile.part if self.residence.comes_whole(stage, operand) else tile.ranges
            box = touched(operand, ranges, self.network.by_name[operand.tensor].shape)
            if not is_empty(box):
                yield operand, box

    def _sharing(
        self, stage: Stage, tiles: Sequence[Sequence[Tile]]
    ) -> Mapping[tuple[str, Box], tuple[int, ...]]:
        """Which cores want the same box of a tensor that comes from outside."""
        wanted: dict[tuple[str, Box], dict[int, None]] = {}
        if len(tiles) > 1:
            for tile in chain.from_iterable(tiles):
                for operand, box in self._boxes(stage, tile):
                    wanted.setdefault((operand.tensor, box), {})[tile.core] = None
        return {key: tuple(cores) for key, cores in wanted.items()}

    def _replace_input(self, number: int, stage: Stage, core: int) -> None:
        """Let a stage's result take the place of the input that it overwrites."""
        name = self.layout.in_place.get(number)
        made = self.storage[stage.results[0].tensor].root
        if name is not None and (made, core) not in self.kept and (name, core) in self.kept:
            self.kept[made, core] = self.builder.in_place(made, self.kept[name, core])

    def _emit_tile(
        self, stage: Stage, tile: Tile, sharing: Mapping[tuple[str, Box], tuple[int, ...]]
    ) -> None:
        core, ranges, sums = tile.core, tile.ranges, tile.sums
        reads = []
        for operand, box in self._boxes(stage, tile):
            cores = sharing.get((operand.tensor, box), (core,))
            reads += self._read(stage, operand, box, core, cores)
        self._start_copies()
        reads += self._partial_sums(stage, core, ranges, sums.continued)
        if sums.unfinished:
            writes = self._partial_sums(stage, core, ranges, True)
            outgoing: list[tuple[Access, Access]] = []
        else:
            writes, outgoing = self._write(stage, core, ranges)
        cost = self._cost(stage, ranges, sums, reads, writes)
        self.last[core] = self.builder.add(
            Task(
                name=label(stage.op.name, ranges, stage.op),
                kind="compute",
                engine=self._engine(stage, core, reads, writes),
                cycles=cost.cycles,
                reads=tuple(reads),
                writes=tuple(writes),
                after=(self.last[core],) if core in self.last else (),
                op=stage.op.name,
                fused=() if sums.unfinished else tuple(op.name for op in stage.fused),
                tile=tuple((dim, *span) for dim, span in ranges.items()),
                mapping=cost.mapping,
                ports=self._streamed_ports(reads, writes),
                charges=cost.charges,
            )
        )
        if self.frugal:
            used = {access.buffer for access in reads}
            self.staged = {key: buffer for key, buffer in self.staged.items() if buffer in used}
        for source, target in outgoing:
            name = f"{self.builder.buffers[source.buffer].tensor} out"
            self.builder.transfer([Copy(source, (target,), "store")], name=name)

    def _engine(
        self, stage: Stage, core: int, reads: Sequence[Access], writes: Sequence[Access]
    ) -> str:
        if stage.worker == "array":
            return core_engine(core)
        if stage.worker == "move":
            route = self._way(reads, writes)
            if route is not None:
                return route.engine
        # A core with a model of its own does everything on the same unit, one op after the other.
        return vector_engine(core) if self.costs.core_model is None else core_engine(core)

    def _cost(
        self,
        stage: Stage,
        ranges: Ranges,
        sums: Sums,
        reads: Sequence[Access],
        writes: Sequence[Access],
    ) -> TileCost:
        lengths = {dim: stop - start for dim, (start, stop) in ranges.items()}
        made = sum(elements(access.box) for access in writes[:1]) * len(stage.fused)
        extra = (self.costs.in_passing(made),) if stage.fused and not sums.unfinished else ()
        if stage.worker == "array":
            found = self.costs.on_array(stage.op, lengths, sums)
            found = self.costs.by_core_model(found, stage, lengths, sums)
            if not extra:
                return found
            return TileCost(
                cycles=found.cycles, charges=(*found.charges, *extra), mapping=found.mapping
            )
        read, written = self._bytes(reads), self._bytes(writes)
        if stage.worker == "vector":
            points = 1
            for length in lengths.values():
                points *= length
            found = self.costs.on_vector_unit(points, read, written)
            found = self.costs.by_core_model(found, stage, lengths, sums)
            return TileCost(cycles=found.cycles, charges=(*found.charges, *extra))
        return self._moving(reads, writes, read, written)

    def _moving(
        self,
        reads: Sequence[Access],
        writes: Sequence[Access],
        read: Mapping[str, int],
        written: Mapping[str, int],
    ) -> TileCost:
        """The cost of rearranging elements: on a DMA engine if one serves, else the vector unit."""
        route = self._way(reads, writes)
        if route is None:
            return self.costs.on_vector_unit(sum(elements(w.box) for w in writes), read, written)
        size = max(sum(read.values()), sum(written.values()))
        charges = [Charge(m, n, 0, n * route.read_pj_per_byte) for m, n in read.items()]
        charges += [Charge(m, 0, n, n * route.write_pj_per_byte) for m, n in written.items()]
        return TileCost(cycles=route.cycles(size), charges=tuple(charges))

    def _way(self, reads: Sequence[Access], writes: Sequence[Access]) -> Route | None:
        """The route of a task that rearranges elements; a tile of nothing but padding has none."""
        if not reads:
            return None
        buffers = self.builder.buffers
        pair = (buffers[reads[0].buffer].space, buffers[writes[0].buffer].space)
        return self.places.routes.get(pair)

    def _bytes(self, accesses: Sequence[Access]) -> dict[str, int]:
        """Bytes touched by memory."""
        memory = {space.name: space.memory for space in self.places.spaces}
        total: dict[str, int] = {}
        for access in accesses:
            buffer = self.builder.buffers[access.buffer]
            size = size_bytes(access.box, self.network.by_name[buffer.tensor])
            total[memory[buffer.space]] = total.get(memory[buffer.space], 0) + size
        return total

    def _streamed_ports(self, reads: Sequence[Access], writes: Sequence[Access]) -> tuple[str, ...]:
        """Ports of external memories that a task reads or writes while it runs."""
        found: dict[str, None] = {}
        for accesses, reading in ((reads, True), (writes, False)):
            for access in accesses:
                space = self.builder.buffers[access.buffer].space
                for route in self.places.routes.values():
                    if (route.source if reading else route.target) == space:
                        found.update(dict.fromkeys(route.ports if self._is_external(space) else ()))
                        break
        return tuple(found)

    def _is_external(self, space: str) -> bool:
        return any(s.name == space and s.kind == "external" for s in self.places.spaces)

    def _read(
        self, stage: Stage, operand: Operand, box: Box, core: int, sharing: Sequence[int]
    ) -> list[Access]:
        """Where a task finds a box of an operand; the copy that brings it there is put in."""
        tensor = operand.tensor
        root = self.storage[tensor].root
        memory = self.residence.where(stage, operand)
        ring = self.rings.get((root, core))
        kept = None if ring is not None else self._kept(root, core)
        if ring is not None or kept is not None:
            if ring is not None:
                self._fill(ring, box[ring.axis][1])
                held, here = ring.accesses(tensor, box), ring.memory
            else:
                assert kept is not None
                held = [Access(self.builder.view(kept, tensor), box)]
                here = self.residence.home_of_kept(root)
            if memory in (ANYWHERE, here):
                return held
            target = self.places.named(memory or here, core)
            return [self._bring(access, [target], target, kind="move") for access in held]
        outside = self.builder.view(self.builder.outside(root, self._beyond(root)), tensor)
        home = self.places.home("I1")
        if memory is None or (memory == ANYWHERE and home is None):
            return [Access(outside, box)]
        name = memory or (home.name if home is not None else "")
        targets = [self.places.named(name, number) for number in sharing]
        wanted = self.places.named(name, core)
        return [self._bring(Access(outside, box), targets, wanted, kind="load")]

    def _fill(self, ring: Ring, upto: int) -> None:
        """Bring rows from outside that have not come yet, to all cores that want the same."""
        if ring.arrived is None or upto <= ring.arrived:
            return
        alike = [
            other
            for (root, _), other in self.rings.items()
            if (root, other.box, other.arrived) == (ring.root, ring.box, ring.arrived)
        ]
        rows = (ring.arrived, upto)
        box = (*ring.box[: ring.axis], rows, *ring.box[ring.axis + 1 :])
        outside = self.builder.outside(ring.root, self._beyond(ring.root))
        for parts in zip(*(other.accesses(ring.root, box) for other in alike), strict=True):
            self.pending.append(Copy(Access(outside, parts[0].box), parts, "load"))
        for other in alike:
            other.arrived = upto

    def _kept(self, root: str, core: int) -> int | None:
        """The buffer in which a core keeps a tensor; an input that is kept is loaded at once."""
        if (root, core) not in self.layout.kept:
            return None
        if (root, core) not in self.kept:
            space = self.places.named(self.residence.home_of_kept(root), core)
            box = self.layout.kept[root, core]
            self.kept[root, core] = self.builder.buffer(root, box, space)
            if self.network.by_name[root].role in ("input", "constant"):
                source = Access(self.builder.outside(root, self._beyond(root)), box)
                target = Access(self.kept[root, core], box)
                self.builder.transfer([Copy(source, (target,), "load")], name=f"{root} in")
        return self.kept[root, core]

    def _beyond(self, root: str) -> Space:
        space = self.residence.outside(self.network.by_name[root])
        if space is None:
            message = f"tensor {root!r} has nowhere to come from or to go to"
            hint = "declare an external memory, or a source and a sink"
            raise InfeasibleError(Problem(message=message, hint=hint))
        return space

    def _bring(
        self, source: Access, targets: Sequence[Space], wanted: Space, *, kind: TaskKind
    ) -> Access:
        """A copy of a box in a space, made once; `targets` get it in the same transfer."""
        tensor = self.builder.buffers[source.buffer].tensor
        if (tensor, source.box, wanted.name) not in self.staged:
            fresh = [
                space
                for space in dict.fromkeys((*targets, wanted))
                if (tensor, source.box, space.name) not in self.staged
            ]
            made = [
                Access(self.builder.buffer(tensor, source.box, space), source.box)
                for space in fresh
            ]
            self.pending.append(Copy(source, tuple(made), kind))
            for space, access in zip(fresh, made, strict=True):
                self.staged[tensor, source.box, space.name] = access.buffer
        return Access(self.staged[tensor, source.box, wanted.name], source.box)

    def _start_copies(self) -> None:
        """Emit the copies that a task wants; those that take less than their set-up go together."""
        while self.pending:
            first = max(self.pending, key=lambda copy: elements(copy.source.box))
            together = [c for c in self.pending if c is not first and self._may_join(first, c)]
            self.pending = [c for c in self.pending if c is not first and c not in together]
            tensor = self.builder.buffers[first.source.buffer].tensor
            self.builder.transfer([first, *together], name=f"{tensor} in")

    def _may_join(self, first: Copy, other: Copy) -> bool:
        """Whether two copies go the same way and the second is hardly worth a transfer."""
        if first.kind != other.kind or self._ends(first) != self._ends(other):
            return False
        source, target, *_ = self._ends(other)
        route = self.places.routes.get((source, target))
        size = self.builder.copy_bytes(other)
        return route is not None and route.cycles(size) < 2 * route.setup_cycles

    def _ends(self, copy: Copy) -> tuple[str, ...]:
        buffers = self.builder.buffers
        return tuple(buffers[access.buffer].space for access in (copy.source, *copy.targets))

    def _partial_sums(self, stage: Stage, core: int, ranges: Ranges, wanted: bool) -> list[Access]:
        """Where a task finds or leaves partial sums."""
        if not wanted:
            return []
        result = stage.op.outputs[0]
        box = touched(result, ranges, self.network.by_name[result.tensor].shape)
        home = self.places.home(OUTPUT_OPERAND)
        assert home is not None
        if (core, box) not in self.partial:
            bits = self.costs.nest(stage.op)[0].operands[0].bits
            name = f"{result.tensor} partial sums"
            space = self.places.named(home.name, core)
            self.partial[core, box] = self.builder.buffer(
                result.tensor, box, space, name=name, bits=bits
            )
        return [Access(self.partial[core, box], box)]

    def _write(
        self, stage: Stage, core: int, ranges: Ranges
    ) -> tuple[list[Access], list[tuple[Access, Access]]]:
        """Where a task writes its results, and what of that has to be taken outside."""
        writes: list[Access] = []
        outgoing = []
        for operand in stage.results:
            shape = self.network.by_name[operand.tensor].shape
            box = touched(operand, ranges, shape)
            memory = self.residence.where(stage, operand)
            made = list(self._kept_copies(operand.tensor, box))
            own = next((a for c, a in made if c == core and contains(a.box, box)), None)
            writes += [access for _, access in made]
            if not made or self._goes_out(operand.tensor):
                root = self.storage[operand.tensor].root
                below = self.builder.outside(root, self._beyond(root))
                outside = Access(self.builder.view(below, operand.tensor), box)
                if memory is None:
                    writes.append(outside)
                    continue
                if own is None:
                    space = self.places.named(memory, core)
                    own = Access(self.builder.buffer(operand.tensor, box, space), box)
                    writes.append(own)
                outgoing.append((Access(own.buffer, box), outside))
        return writes, outgoing

    def _kept_copies(self, tensor: str, box: Box) -> Iterator[tuple[int, Access]]:
        """Parts of a box that cores keep."""
        root, below = self.residence.root_box(tensor, box)
        back = [start - moved for (start, _), (moved, _) in zip(box, below, strict=True)]
        for core in range(self.places.cores):
            if (root, core) in self.rings:
                yield from ((core, a) for a in self.rings[root, core].accesses(tensor, box))
            if (root, core) not in self.layout.kept:
                continue
            common = overlap(self.layout.kept[root, core], below)
            if is_empty(common):
                continue
            kept = self._kept(root, core)
            assert kept is not None
            yield core, Access(self.builder.view(kept, tensor), shifted(common, back))

    def _goes_out(self, tensor: str) -> bool:
        """Whether a tensor has to be outside: it is a result, or part of one, or is not kept."""
        root = self.storage[tensor].root
        keys = [(root, core) for core in range(self.places.cores)]
        is_kept = any(key in self.layout.kept or key in self.rings for key in keys)
        results = {self.storage[t.name].root for t in self.network.outputs}
        return root in results or not is_kept
