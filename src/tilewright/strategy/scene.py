"""What strategies are chosen by: room in memories, lives and bytes of tensors, prices of transfers.

All figures are estimates from sizes and rates alone; whoever chooses lowers and schedules its
choice in the end, and keeps what is really best.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import NamedTuple

from tilewright.machine.model import OUTPUT_OPERAND
from tilewright.mapping.network import default_vector_unit
from tilewright.program.homes import Homes
from tilewright.program.lower import Prepared
from tilewright.program.residence import Residence
from tilewright.program.slicing import SLICE, Slicing
from tilewright.program.tenants import slice_constants
from tilewright.program.tile import TASK_CYCLES, Goal, Tiling, Work, smallest, tile_bytes
from tilewright.strategy.core_parts import CoreParts
from tilewright.strategy.cut_bounds import LeastMoved, least_moved
from tilewright.strategy.prices import Price, price_of
from tilewright.strategy.room import Room, Usage

MOST_KEEPINGS = 8
"""So many ways to keep some of a unit's results are looked at; otherwise all or none."""

Keeping = tuple[int, Usage]
"""Tensors that are kept, as bits, and the room that they take."""


@dataclass(frozen=True, kw_only=True)
class Life:
    """A tensor between stages: when it lives, how large it is, and where it may be."""

    first: int
    last: int
    size_bytes: int
    """Bytes in the scratchpad that has most of it, if it is kept in one."""
    whole_bytes: int
    memory: str
    may_stay: bool
    may_go: bool
    is_result: bool
    """Whether it has to be taken outside in any case."""


class Constant(NamedTuple):
    """A constant of a stage."""

    memory: str
    size_bytes: int
    core_bytes: int
    """Bytes in the scratchpad that has most of it."""
    has_rows: bool
    """Whether every row has a part of its own."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A prepared network, with everything undecided."""

    prepared: Prepared
    residence: Residence
    larger: Mapping[str, int] = field(default_factory=dict)
    """Bytes of tensors of which cores keep more than they would if all stages ran by themselves."""
    firm: bool = False
    """Whether no cascade may read kept tensors so that cores keep more of them than is believed."""
    _constants: dict[tuple[int, str], list[Constant]] = field(default_factory=dict)
    _constant_sums: dict[tuple[int, str], tuple[int, Usage]] = field(default_factory=dict)
    _uses: dict[int, Usage] = field(default_factory=dict)
    _keepings: dict[tuple[str, ...], tuple[Keeping, ...]] = field(default_factory=dict)
    _slice_constants: dict[Slicing, Mapping[str, int]] = field(default_factory=dict)
    _cycles: dict[tuple[int, str, int], float] = field(default_factory=dict)
    _works: dict[tuple[int, int], Work] = field(default_factory=dict)
    _smallest: dict[tuple[int, int], Usage] = field(default_factory=dict)
    _least_cuts: dict[tuple[int, int], LeastMoved] = field(default_factory=dict)
    _tilings: dict[tuple[Goal, int, int], Tiling | None] = field(default_factory=dict)
    _residences: dict[Goal, Residence] = field(default_factory=dict)

    @cached_property
    def remembered(self) -> dict[tuple[int, int, int], object]:
        """What others work out about spans: the same for all goals, and for all sizes of
        scratchpads with which tensors and constants have the same places."""
        return self.prepared.remembered.setdefault(self._alike, {})

    @cached_property
    def _alike(self) -> object:
        """What the figures of spans depend on and sizes of scratchpads might change."""
        stages = range(len(self.prepared.stages))
        return (
            tuple(self.room.sizes),
            tuple(self.lives.items()),
            tuple(tuple(self.constants(number, "")) for number in stages),
            tuple(tuple(sizes.items()) for sizes in self._least_constants),
        )

    @cached_property
    def room(self) -> Room:
        """Bytes by scratchpad."""
        spaces = self.prepared.places.spaces
        return Room(sizes={s.memory: s.size_bytes for s in spaces if s.kind == "scratchpad"})

    @cached_property
    def lives(self) -> Mapping[str, Life]:
        """Tensors that stages read, by their storage."""
        residence, network = self.residence, self.prepared.network
        found = {}
        for root, (first, last) in residence.lives.items():
            memory = residence.homes.of_kept(root)
            space = self.prepared.places.named(memory, 0)
            is_input = network.by_name[root].role == "input"
            may_stay = root not in residence.gone
            found[root] = Life(
                first=-1 if is_input else first,
                last=last,
                size_bytes=self.larger.get(root) or self.kept_bytes(root, {}),
                whole_bytes=_rounded(network.by_name[root].size_bytes, space.alignment_bytes),
                memory=memory,
                may_stay=may_stay,
                may_go=(is_input and not may_stay) or residence.may_send(root),
                is_result=root in residence.homes.leaving,
            )
        return found

    def kept_bytes(self, root: str, loops: Mapping[int, str]) -> int:
        """Bytes of a tensor that is kept in the scratchpad that has most of it, if some of those
        that read it go along loops, in cascades."""
        homes = self.residence.homes
        lies_inside = root in homes.given or root in homes.staying
        if self.prepared.places.cores == 1 or lies_inside:
            # It has everything, whatever the loops.
            return homes.aligned(self.residence.bytes_of(root), homes.of_kept(root))
        readers = [(number, loops.get(number, "")) for number in self._readers[root]]
        return self.core_parts.kept_bytes(root, readers, homes.of_kept(root))

    @cached_property
    def _readers(self) -> Mapping[str, list[int]]:
        """By tensor the stages that read it."""
        found: dict[str, list[int]] = {}
        for number, stage in enumerate(self.prepared.stages):
            for root in dict.fromkeys(self.prepared.storage[o.tensor].root for o in stage.inputs):
                found.setdefault(root, []).append(number)
        return found

    @cached_property
    def coming_once(self) -> int:
        """Inputs that cannot be read again, as bits: they may stay, and others need not."""
        inside = self.residence.homes.given
        lives = [(root, life) for root, life in self.lives.items() if root not in inside]
        return self.mask(root for root, life in lives if life.first < 0 and life.may_stay)

    def believing(self, larger: Mapping[str, int]) -> "Scene":
        """The same with more bytes of some tensors."""
        return replace(self, larger={**self.larger, **larger}, _uses={}, _keepings={})

    @cached_property
    def core_parts(self) -> CoreParts:
        """What cores have of rows, results and constants."""
        prepared = self.prepared
        return CoreParts(
            homes=Homes(prepared.network, prepared.places, prepared.storage),
            stages=prepared.stages,
            unrolled=self.residence.unrolled,
        )

    @cached_property
    def bits(self) -> Mapping[str, int]:
        """By tensor between stages the bit that stands for it in a number that stands for some."""
        return {root: 1 << at for at, root in enumerate(self.lives)}

    def mask(self, roots: Iterable[str]) -> int:
        """The number that stands for some tensors; those that do not lie between stages have no
        part in it."""
        found = 0
        for root in roots:
            found |= self.bits.get(root, 0)
        return found

    def roots(self, mask: int) -> tuple[str, ...]:
        """The tensors for which a number stands, in a fixed order."""
        return tuple([self._figures[bit][0] for bit in _bits_in(mask)])

    @cached_property
    def everything(self) -> int:
        """The number that stands for all tensors."""
        return self.mask(self.bits)

    def use_of(self, mask: int) -> Usage:
        """Room that some tensors take if they are kept."""
        if mask not in self._uses:
            self._uses[mask] = sum([self._figures[bit][1] for bit in _bits_in(mask)])
        return self._uses[mask]

    def keepings(self, roots: tuple[str, ...]) -> tuple[Keeping, ...]:
        """All ways to keep some of the tensors that a unit makes."""
        if roots not in self._keepings:
            ways = []
            for root in roots:
                life, bit = self.lives[root], self.bits[root]
                ways.append([kept for kept, may in ((bit, life.may_stay), (0, life.may_go)) if may])
            if prod(map(len, ways)) > MOST_KEEPINGS:
                # All or nothing: what is between is for smaller units to decide.
                choices = dict.fromkeys((sum(w[0] for w in ways), sum(w[-1] for w in ways)))
            else:
                choices = dict.fromkeys(map(sum, product(*ways)))
            self._keepings[roots] = tuple([(mask, self.use_of(mask)) for mask in choices])
        return self._keepings[roots]

    @cached_property
    def _figures(self) -> Mapping[int, tuple[str, Usage]]:
        """By bit its tensor and the room that this takes."""
        return {
            self.bits[root]: (root, self.room.use(life.memory, life.size_bytes))
            for root, life in self.lives.items()
        }

    @cached_property
    def made(self) -> Sequence[tuple[str, ...]]:
        """By stage, the tensors whose lives begin there."""
        found: list[list[str]] = [[] for _ in self.prepared.stages]
        for root, life in self.lives.items():
            if life.first >= 0:
                found[life.first].append(root)
        return [tuple(roots) for roots in found]

    @cached_property
    def results(self) -> Sequence[Sequence[tuple[int, int]]]:
        """By stage the bytes of each result, and the bit that says that it is kept and stays
        inside."""
        network, found = self.prepared.network, []
        for number, stage in enumerate(self.prepared.stages):
            root = self.prepared.rows.root(number)
            life = self.lives.get(root)
            bit = 0 if life is None or life.is_result else self.bits[root]
            found.append([(bit, network.by_name[o.tensor].size_bytes) for o in stage.results])
        return found

    @cached_property
    def later(self) -> Sequence[int]:
        """By cut between stages, the tensors that are still wanted behind it."""
        count = len(self.prepared.stages)
        found = [0] * (count + 1)
        for root, life in self.lives.items():
            found[min(life.last, count)] |= self.bits[root]
        for cut in range(count, 0, -1):
            found[cut - 1] |= found[cut]
        return found

    def rounded(self, memory: str, size: int) -> int:
        """Bytes that a buffer takes in a memory."""
        return _rounded(size, self.alignment(memory))

    def alignment(self, memory: str) -> int:
        """What the bytes of buffers in a memory are rounded up to."""
        return self.prepared.places.named(memory, 0).alignment_bytes

    @cached_property
    def input_memory(self) -> str:
        """Where rows that come from outside are held."""
        home = self.prepared.places.home("I1") or self.prepared.places.home(OUTPUT_OPERAND)
        return home.name if home is not None else ""

    @cached_property
    def result_memory(self) -> str:
        """Where results are held."""
        home = self.prepared.places.home(OUTPUT_OPERAND)
        return home.name if home is not None else ""

    def replaced(self, number: int) -> str | None:
        """The tensor whose place a stage's result takes if both are kept."""
        return self._replaced[number]

    @cached_property
    def _replaced(self) -> list[str | None]:
        return [self.residence.overwritten(n) for n in range(len(self.prepared.stages))]

    def constants(self, number: int, loop: str) -> list[Constant]:
        """The constants of a stage whose cascade goes along a loop."""
        if (number, loop) not in self._constants:
            self._constants[number, loop] = self._constants_of(number, loop)
        return self._constants[number, loop]

    def constant_sums(self, number: int, loop: str) -> tuple[int, Usage]:
        """Bytes of all constants of a stage, and room for those that all rows along a loop need."""
        key = number, loop
        if key not in self._constant_sums:
            found = self.constants(number, loop)
            lasting = [(c.memory, c.core_bytes) for c in found if c.memory and not c.has_rows]
            uses = [self.room.use(memory, self.rounded(memory, size)) for memory, size in lasting]
            self._constant_sums[key] = sum([c.size_bytes for c in found]), sum(uses)
        return self._constant_sums[key]

    def _constants_of(self, number: int, loop: str) -> list[Constant]:
        stage = self.prepared.stages[number]
        found = []
        for operand in stage.inputs:
            tensor = self.prepared.network.by_name[operand.tensor]
            if tensor.role == "constant":
                memory = self.residence.homes.where(stage, operand) or ""
                has_rows = operand.index is not None and any(
                    dim == loop for axis in operand.index for dim, _ in axis.terms
                )
                core_bytes = tensor.size_bytes
                if memory:
                    core_bytes = self.core_parts.constant_bytes(number, loop, operand, memory)
                found.append(Constant(memory, tensor.size_bytes, core_bytes, has_rows))
        return found

    def slice_constants(self, slicing: Slicing) -> Mapping[str, int]:
        """Bytes by memory of the constants for the smallest slice of what is made on demand."""
        if slicing not in self._slice_constants:
            self._slice_constants[slicing] = self._slice_constants_of(slicing)
        return self._slice_constants[slicing]

    def _slice_constants_of(self, slicing: Slicing) -> Mapping[str, int]:
        maker = self.prepared.stages[slicing.maker]
        homes = Homes(self.prepared.network, self.prepared.places, self.prepared.storage)
        if homes.may_stream(maker):
            return {}
        length = min(SLICE, maker.op.sizes[slicing.made_loop])
        return slice_constants(homes, maker, slicing, length)

    def least_constants(self, number: int) -> Mapping[str, int]:
        """Bytes by memory of the smallest tile of a stage's constants."""
        return self._least_constants[number]

    @cached_property
    def _least_constants(self) -> list[dict[str, int]]:
        return [
            self._tile_sizes(self.residence.in_any_room(number), constants=True)
            for number in range(len(self.prepared.stages))
        ]

    def _tile_sizes(self, work: Work, *, constants: bool) -> dict[str, int]:
        """Bytes by memory of the smallest tiles of a stage's operands, or of its constants."""
        tenants, lengths = smallest(work)
        found: dict[str, int] = {}
        for tenant in tenants:
            if tenant.constant or not constants:
                size = self.rounded(tenant.memory, int(tile_bytes(tenant, lengths, 1)))
                found[tenant.memory] = found.get(tenant.memory, 0) + size
        return found

    def smallest_tiles(self, number: int, held: int) -> Usage:
        """Room for the smallest tiles of a stage's operands, if only some tensors are kept."""
        key = number, held & self._touched[number]
        if key not in self._smallest:
            sizes = self._tile_sizes(self._work(*key), constants=False)
            self._smallest[key] = self.room.uses(sizes)
        return self._smallest[key]

    def least_cut(self, number: int, held: int) -> LeastMoved:
        """What has to be moved however a stage is cut, if only some tensors are kept."""
        key = number, held & self._touched[number]
        if key not in self._least_cuts:
            self._least_cuts[key] = least_moved(self._work(*key))
        return self._least_cuts[key]

    def _work(self, number: int, held: int) -> Work:
        """A stage with tiles of what is not kept; which other tensors are kept does not matter."""
        key = number, held
        if key not in self._works:
            with _only(self.residence, self.roots(self._touched[number] & ~held)):
                self._works[key] = self.residence.in_any_room(number)
        return self._works[key]

    @cached_property
    def _touched(self) -> list[int]:
        """By stage the tensors that it reads or makes, as bits."""
        storage = self.prepared.storage
        return [
            self.mask(storage[o.tensor].root for o in (*stage.inputs, *stage.results))
            for stage in self.prepared.stages
        ]

    def tiling(self, number: int, held: int, goal: Goal) -> Tiling | None:
        """How a stage is cut for a goal if only some tensors are kept; None if it does not fit."""
        key = goal, number, held
        if key not in self._tilings:
            residence = self._residence(goal)
            with _only(residence, self._others(held)):
                self._tilings[key] = residence.tiling(number)
        return self._tilings[key]

    def _residence(self, goal: Goal) -> Residence:
        """The residence that chooses tiles for a goal."""
        if goal not in self._residences:
            self._residences[goal] = replace(self.residence, goal=goal)
        return self._residences[goal]

    def _others(self, held: int) -> list[str]:
        """All tensors but some."""
        return [root for root, bit in self.bits.items() if not held & bit]

    def compute_cycles(self, number: int, loop: str, rows: int, turns: int) -> float:
        """Cycles of a stage that makes so many rows at once, in so many turns."""
        key = number, loop, rows
        if key not in self._cycles:
            self._cycles[key] = self._turn_cycles(number, loop, rows)
        return turns * self._cycles[key]

    def least_cycles(self, number: int, goal: Goal) -> float:
        """What a stage takes to compute however it is cut for a goal, as far as that is known."""
        if self.prepared.costs.core_model is None and goal == "latency":
            # Cycles are those of mappings in the end.
            return 0.0
        return self._least_cycles[number]

    @cached_property
    def _least_cycles(self) -> list[float]:
        model, stages = self.prepared.costs.core_model, self.prepared.stages
        estimates = [self.compute_cycles(number, "", 0, 1) for number in range(len(stages))]
        if model is None:
            return estimates
        if self.prepared.places.cores > 1:
            return [0.0] * len(stages)
        known = [model.fewest_cycles(stage.op) for stage in stages]
        return [
            # Tiles that the model does not know are estimated.
            estimate if fewest is None else min(estimate, fewest + TASK_CYCLES)
            for estimate, fewest in zip(estimates, known, strict=True)
        ]

    def _turn_cycles(self, number: int, loop: str, rows: int) -> float:
        stage = self.prepared.stages[number]
        part = self.core_parts.ranges(number, loop)[0]
        lengths = {dim: stop - start for dim, (start, stop) in part.items()}
        if loop:
            lengths[loop] = min(rows, lengths[loop])
        steps = 1.0
        for dim, length in lengths.items():
            steps *= -(-length // self.residence.unrolled[number].get(dim, 1))
        if stage.worker != "array":
            core = self.prepared.places.core
            steps /= (core.vector or default_vector_unit(core)).lanes
        return steps + TASK_CYCLES

    @cached_property
    def coming(self) -> Price:
        """Bringing bytes of an activation from outside."""
        places = self.prepared.places
        return price_of(places, places.origin("I1"), self.input_memory, into=True)

    @cached_property
    def constant(self) -> Price:
        """Bringing bytes of a constant."""
        places = self.prepared.places
        home = places.home("I2")
        origin = places.origin("I2") or places.origin("I1")
        memory = home.name if home else self.input_memory
        return price_of(places, origin, memory, into=True)

    @cached_property
    def going(self) -> Price:
        """Taking bytes of a result outside."""
        places = self.prepared.places
        return price_of(places, places.destination(), self.result_memory, into=False)


def scene_of(prepared: Prepared) -> Scene | None:
    """What can be decided for a prepared network; nothing where data or results stream."""
    if any(prepared.places.home(carrier) is None for carrier in ("I1", OUTPUT_OPERAND)):
        return None
    residence = Residence(
        prepared.network,
        prepared.places,
        prepared.costs,
        prepared.stages,
        prepared.storage,
        "latency",
        shares=prepared.shares,
        tenants=prepared.tenants,
    )
    residence.begin()
    return Scene(prepared=prepared, residence=residence)


@contextmanager
def _only(residence: Residence, gone: Sequence[str]) -> Iterator[None]:
    """A residence while some tensors are not kept."""
    before, waiting = residence.gone, residence.waiting
    residence.gone, residence.waiting = {**before, **dict.fromkeys(gone)}, ()
    yield
    residence.gone, residence.waiting = before, waiting


def _bits_in(mask: int) -> Iterator[int]:
    """The bits of a number, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest
        mask ^= lowest


def _rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
