"""Emitting tasks: the tiles of one stage after the other, or of a cascade's stages in turns."""

from collections import ChainMap
from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, zip_longest

from tilewright.program.boxes import Ranges
from tilewright.program.build import Builder, Copy
from tilewright.program.cascade import Flow
from tilewright.program.held import Held
from tilewright.program.homes import Homes
from tilewright.program.layout import Layout
from tilewright.program.model import Access, Box, Route, Task
from tilewright.program.passes import Passes, passes_of
from tilewright.program.reads import Reads
from tilewright.program.stage_tiles import StageTiles, Tile, is_read_later
from tilewright.program.stages import Stage
from tilewright.program.task_cost import TaskCosts
from tilewright.program.tile_cost import TileCosts
from tilewright.program.tiles import tiles_in
from tilewright.program.uses import StageUses, Use, stage_uses
from tilewright.program.writes import Writes

Sharing = MutableMapping[tuple[str, Box], tuple[int, ...]]
"""Cores that want the same box of a tensor, where there are several cores."""

KnownTiles = dict[tuple[int, tuple[bool, ...]], StageTiles]
"""Tiles by stage, whether its constants stream, and which come once for all tiles of a core."""

Columns = Sequence[Sequence[Tile]]
"""The tiles of each core."""


@dataclass
class Emitter:
    """Emits the tasks of stages into a builder."""

    homes: Homes
    costs: TileCosts
    stages: Sequence[Stage]
    layout: Layout
    builder: Builder
    frugal: bool = False
    """Whether no tile is held that the next task does not need."""
    known_tiles: KnownTiles = field(default_factory=dict)
    """What is remembered of other layouts."""
    _tiles: dict[int, StageTiles] = field(default_factory=dict)
    _last: dict[int, dict[int, int]] = field(default_factory=dict)
    """By stage, each core's last tile."""
    _forgets: bool = False
    """Whether the cascade at hand makes slices again for every row."""
    _sliced: tuple[int, ...] = ()
    """Stages that then make or read them: small constants stay for all slices of a row."""
    _repeated: int = 0
    """How many tiles so far do what others have done."""

    @cached_property
    def _held(self) -> Held:
        return Held(self.homes, self.layout, self.builder)

    @cached_property
    def _reads(self) -> Reads:
        return Reads(self.homes, self._held, self.builder)

    @cached_property
    def _writes(self) -> Writes:
        return Writes(self.homes, self.costs, self._held, self.builder)

    @cached_property
    def _task_costs(self) -> TaskCosts:
        return TaskCosts(self.homes.places, self.costs, self.builder)

    def emit(self) -> None:
        """Emit all stages.

        Raises:
            InfeasibleError: a tile has no mapping, or nothing moves its operands.
        """
        for tensor in self.homes.network.tensors:
            if tensor.name in self.homes.given:
                self._held.kept(tensor.name, 0)
        for number in range(len(self.stages)):
            flow = self.layout.flows.get(number)
            if flow is None:
                self._emit_stage(number)
            elif number == flow.cascade.first:
                self._emit_cascade(flow)

    def results(self) -> tuple[int, ...]:
        """The buffers that hold the network's outputs in the end."""
        found = []
        for tensor in self.homes.network.outputs:
            root = self.homes.root(tensor.name)
            kept = self._held.kept(root, 0) if root in self.homes.staying else None
            lies = self._held.outside(root) if kept is None else kept
            found.append(self.builder.view(lies, tensor.name))
        return tuple(found)

    def _emit_stage(self, number: int) -> None:
        """Emit a stage's tiles, one core's after the other's, in the order of its tiling."""
        replaced = self.layout.in_place.get(number)
        columns = self._columns(number, self.layout.parts[number])
        sharing = _sharing(columns)
        ahead = self._stages_ahead(number)
        if number == 0 and self._delays_much(ahead):
            self._fetch_first(columns, sharing)
        self._fetch_ahead(ahead)
        passes = passes_of(columns, self.layout.passing.get(number, {}))
        for row in _rows(columns):
            if replaced is not None:
                made = self._tiles_of(number).uses.results[0].root
                for tile in row:
                    self._held.take_place(replaced, made, tile.core)
            self._emit_row(number, row, sharing, passes)
        self._writes.forget_sums(self._tiles_of(number).uses)

    def _emit_cascade(self, flow: Flow) -> None:
        """Emit the tiles of several stages, some rows of each in turn."""
        self._held.begin_cascade(flow)
        self._forgets = flow.cascade.forgets
        self._sliced = (*flow.cascade.on_demand, *flow.slicings) if self._forgets else ()
        self._reads.look_again()
        passing = {number: self._passing_constants(flow, number) for number in flow.cascade.stages}
        for turn in flow.turns:
            number = turn.stage
            if number in flow.cascade.on_demand:
                continue
            rows = {flow.loops[number]: (turn.start, turn.stop)}
            columns = self._columns(number, [{**p, **rows} for p in self.layout.parts[number]])
            sharing = _sharing(columns)
            for row in _rows(columns):
                self._emit_row(number, row, sharing)
            if number not in flow.reducing:
                self._writes.forget_sums(self._tiles_of(number).uses)
            self._reads.forget(passing[number])
            if self._forgets:
                self._forget_slices(number)
        self._held.end_cascade()
        self._reads.look_again()

    def _forget_slices(self, number: int) -> None:
        """Let slices go that a stage has read: for its next rows they are made again."""
        for use in self._tiles_of(number).uses.inputs:
            pieces = self._held.pieces.get(use.root)
            if pieces is not None and pieces.slicing is not None:
                pieces.forget()
                self._reads.look_again()

    def _passing_constants(self, flow: Flow, number: int) -> list[str]:
        """Constants that come again in every turn of a stage, those of what it lets make too."""
        uses = self._tiles_of(number).uses
        makers = [
            way.maker
            for use in uses.inputs
            if use.root in flow.pieces and (way := self._held.pieces[use.root].slicing) is not None
        ]
        return [
            tensor
            for stage in (number, *makers)
            if stage not in self.layout.lasting
            for tensor in self._tiles_of(stage).uses.constants
        ]

    def _tiles_of(self, number: int) -> StageTiles:
        if number not in self._tiles:
            stage = self.stages[number]
            whole = (self.homes.comes_whole(stage, operand) for operand in stage.inputs)
            key = number, (stage.streams, *whole)
            if key not in self.known_tiles:
                self.known_tiles[key] = StageTiles(stage_uses(self.homes, stage))
            self._tiles[number] = self.known_tiles[key]
        return self._tiles[number]

    def _columns(self, number: int, parts: Sequence[Ranges]) -> Columns:
        """The tiles of each core, given their parts of a stage."""
        tiles, tiling = self._tiles_of(number), self.layout.tilings[number]
        return [tiles.of_part(core, part, tiling) for core, part in enumerate(parts)]

    def _fetch_first(self, columns: Columns, sharing: Sharing) -> None:
        """Let what the very first tiles need come by itself: everything waits for it."""
        for tile in chain.from_iterable(column[:1] for column in columns):
            for use, box in tile.reads:
                cores = sharing.get((use.tensor, box), (tile.core,))
                self._reads.accesses(use, box, tile.core, cores)
        self._reads.start_copies()

    def _delays_much(self, ahead: Sequence[int]) -> bool:
        """Whether constants of the stages ahead take long, and could be set up at the same time."""
        route = self._constants_route
        engines = {engine.name: engine.count for engine in self.homes.places.engines}
        if route is None or engines[route.engine] < 2:
            return False
        return 2 * sum(map(self._constant_bytes, ahead)) > self._worth_joining

    def _stages_ahead(self, number: int) -> list[int]:
        """The next stages whose constants are so few that they come with those of a stage.

        As many as a transfer moves while another one is set up; more would only come too early.
        """
        found: list[int] = []
        left = self._worth_joining - self._constant_bytes(number)
        for later in range(number + 1, len(self.stages)):
            left -= self._constant_bytes(later)
            parts, tiling = self.layout.parts[later], self.layout.tilings[later]
            if left < 0 or later in self.layout.flows:
                break
            if any(tiles_in(part, tiling) > 1 for part in parts):
                break
            found.append(later)
        return found

    def _fetch_ahead(self, stages: Sequence[int]) -> None:
        """Let small constants of the next stages come with a stage's own, in its transfers."""
        for later in stages:
            columns = self._columns(later, self.layout.parts[later])
            sharing = _sharing(columns)
            for tile in chain.from_iterable(columns):
                for use, box in tile.reads:
                    if use.is_constant:
                        cores = sharing.get((use.tensor, box), (tile.core,))
                        self._reads.accesses(use, box, tile.core, cores)

    @cached_property
    def _worth_joining(self) -> int:
        """Bytes that move in the time in which a transfer of constants is set up."""
        route = self._constants_route
        return 0 if route is None else int(route.setup_cycles * route.bytes_per_cycle)

    @cached_property
    def _constants_route(self) -> Route | None:
        places = self.homes.places
        origin, home = places.origin("I2"), places.home("I2")
        if origin is None or home is None:
            return None
        return places.routes.get((origin.name, places.named(home.name, 0).name))

    def _constant_bytes(self, number: int) -> int:
        """Bytes of the constants that are brought for a stage."""
        if self.stages[number].streams:
            return 0
        tensors = [self.homes.network.by_name[o.tensor] for o in self.stages[number].inputs]
        return sum(t.size_bytes for t in tensors if t.role == "constant")

    def _emit_row(
        self, number: int, row: Sequence[Tile], sharing: Sharing, passes: Passes | None = None
    ) -> None:
        """Emit tiles of several cores, side by side."""
        if passes is not None:
            wanted = passes.wanted_by(row)
            self._reads.forget_others(passes.tensors, wanted, passes.staying)
            sharing = ChainMap(wanted, sharing)
        reads = [access for tile in row for access in self._emit_tile(number, tile, sharing)]
        if self.frugal and number not in self._sliced:
            self._reads.forget_all_but(reads)

    def _emit_tile(self, number: int, tile: Tile, sharing: Sharing) -> Sequence[Access]:
        """Emit a tile: first the copies that it waits for, in the end those of its results.

        Returns what it reads, or brings for a later one.
        """
        uses, core = self._tiles_of(number).uses, tile.core
        if self._held.pieces:
            for use, box in tile.reads:
                if use.root in self._held.pieces:
                    self._make_pieces(use, box, core)
        reads: list[Access] = []
        later: list[Access] = []
        alone = (core,)
        for use, box in tile.reads:
            cores = sharing.get((use.tensor, box), alone) if sharing else alone
            read = later if is_read_later(use, tile, uses.stage) else reads
            read += self._reads.accesses(use, box, core, cores)
        self._reads.start_copies()
        if tile.sums.continued:
            reads.append(self._writes.partial_sums(uses, core, tile.ranges))
        outgoing: list[Copy] = []
        if tile.sums.unfinished:
            writes = [self._writes.partial_sums(uses, core, tile.ranges)]
        else:
            writes, outgoing = self._writes.results(uses, tile)
        last = self._last.setdefault(number, {})
        before = (last[core],) if core in last else ()
        task = self._task(uses, tile, reads, writes, before)
        last[core] = self.builder.append(task, before)
        for copy in outgoing:
            name = f"{self.builder.buffers[copy.source.buffer].tensor} out"
            self.builder.transfer([copy], name=name)
        return [*reads, *later]

    def _make_pieces(self, use: Use, box: Box, core: int) -> None:
        """Emit the tile that makes what is missing of a tensor that is made on demand."""
        pieces = self._held.pieces[use.root]
        if pieces.slicing is None:
            return
        if self._forgets:
            pieces.forget_others(box)
        missing = pieces.missing(box)
        if missing is None:
            return
        maker = pieces.slicing.maker
        part = self.layout.parts[maker][core]
        for rows, is_old in pieces.old_and_new(missing):
            tile = self._tiles_of(maker).making(core, part, rows)
            if is_old:
                self._repeated += 1
                tile = replace(tile, name=f"{tile.name} #{self._repeated}")
            self._emit_row(maker, [tile], {})

    def _task(
        self,
        uses: StageUses,
        tile: Tile,
        reads: Sequence[Access],
        writes: Sequence[Access],
        before: tuple[int, ...],
    ) -> Task:
        stage = uses.stage
        cost = self._task_costs.cost(stage, tile, reads, writes)
        return Task(
            name=tile.name,
            kind="compute",
            engine=self._task_costs.engine(stage, tile.core, reads, writes),
            cycles=cost.cycles,
            reads=tuple(reads),
            writes=tuple(writes),
            after=self.builder.before(reads, writes, before),
            op=stage.op.name,
            fused=() if tile.sums.unfinished else uses.fused,
            tile=tile.spans,
            mapping=cost.mapping,
            ports=self._task_costs.held(uses, reads, writes),
            charges=cost.charges,
        )


def _rows(columns: Columns) -> Iterable[Sequence[Tile]]:
    """The first tile of every core, then the second, and so on."""
    for row in zip_longest(*columns):
        yield [tile for tile in row if tile is not None]


def _sharing(columns: Columns) -> Sharing:
    """Which cores want the same box of a tensor that comes from outside."""
    if len(columns) == 1:
        return {}
    wanted: dict[tuple[str, Box], dict[int, None]] = {}
    for tile in chain.from_iterable(columns):
        for use, box in tile.reads:
            wanted.setdefault((use.tensor, box), {})[tile.core] = None
    return {key: tuple(cores) for key, cores in wanted.items()}
