"""What strategies are chosen by: room in memories, lives and bytes of tensors, prices of transfers.

All figures are estimates from sizes and rates alone; whoever chooses lowers and schedules its
choice in the end, and keeps what is really best.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tilewright.machine.model import OUTPUT_OPERAND
from tilewright.mapping.network import default_vector_unit
from tilewright.program.homes import Homes
from tilewright.program.lower import Prepared
from tilewright.program.residence import Residence
from tilewright.program.slicing import SLICE, Slicing
from tilewright.program.tenants import slice_constants
from tilewright.program.tile import TASK_CYCLES, Goal, smallest, tile_bytes


@dataclass(frozen=True, kw_only=True)
class Life:
    """A tensor between stages: when it lives, how large it is, and where it may be."""

    first: int
    last: int
    size_bytes: int
    memory: str
    may_stay: bool
    may_go: bool
    is_result: bool
    """Whether it has to be taken outside in any case."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """What it takes to move a byte, and to begin a transfer."""

    cycles_per_byte: float
    pj_per_byte: float
    setup_cycles: int


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A prepared network, with everything undecided."""

    prepared: Prepared
    residence: Residence
    _constants: dict[tuple[int, str], list[tuple[str, int, bool]]] = field(default_factory=dict)
    _cycles: dict[tuple[int, str, int], float] = field(default_factory=dict)

    @cached_property
    def room(self) -> Mapping[str, int]:
        """Bytes by scratchpad."""
        spaces = self.prepared.places.spaces
        return {s.memory: s.size_bytes for s in spaces if s.kind == "scratchpad"}

    @cached_property
    def lives(self) -> Mapping[str, Life]:
        """Tensors that stages read, by their storage."""
        residence, network = self.residence, self.prepared.network
        results = {self.prepared.storage[t.name].root for t in network.outputs}
        found = {}
        for root, (first, last) in residence.lives.items():
            memory = residence.home_of_kept(root)
            space = self.prepared.places.named(memory, 0)
            is_input = network.by_name[root].role == "input"
            may_stay = root not in residence.gone
            found[root] = Life(
                first=-1 if is_input else first,
                last=last,
                size_bytes=_rounded(residence.bytes_of(root), space.alignment_bytes),
                memory=memory,
                may_stay=may_stay,
                may_go=(is_input and not may_stay) or residence.may_send(root),
                is_result=root in results,
            )
        return found

    def rounded(self, memory: str, size: int) -> int:
        """Bytes that a buffer takes in a memory."""
        return _rounded(size, self.prepared.places.named(memory, 0).alignment_bytes)

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

    def constants(self, number: int, loop: str) -> list[tuple[str, int, bool]]:
        """A stage's constants: memory, bytes, and whether rows along a loop have their own."""
        if (number, loop) not in self._constants:
            self._constants[number, loop] = self._constants_of(number, loop)
        return self._constants[number, loop]

    def _constants_of(self, number: int, loop: str) -> list[tuple[str, int, bool]]:
        stage = self.prepared.stages[number]
        found = []
        for operand in stage.inputs:
            tensor = self.prepared.network.by_name[operand.tensor]
            memory = self.residence.where(stage, operand)
            if tensor.role == "constant":
                apart = operand.index is not None and any(
                    dim == loop for axis in operand.index for dim, _ in axis.terms
                )
                found.append((memory or "", tensor.size_bytes, apart))
        return found

    def slice_constants(self, slicing: Slicing) -> Mapping[str, int]:
        """Bytes by memory of the constants for the smallest slice of what is made on demand."""
        maker = self.prepared.stages[slicing.maker]
        homes = Homes(self.prepared.network, self.prepared.places, self.prepared.storage)
        length = min(SLICE, maker.op.sizes[slicing.made_loop])
        return slice_constants(homes, maker, slicing, length)

    def least_constants(self, number: int) -> Mapping[str, int]:
        """Bytes by memory of the smallest tile of a stage's constants."""
        return self._least_constants[number]

    @cached_property
    def _least_constants(self) -> list[dict[str, int]]:
        return [self._smallest(number) for number in range(len(self.prepared.stages))]

    def _smallest(self, number: int) -> dict[str, int]:
        return self.smallest_tiles(number, constants=True)

    def smallest_tiles(self, number: int, *, constants: bool = False) -> dict[str, int]:
        """Bytes by memory of the smallest tiles of a stage's operands, or of its constants."""
        tenants, lengths = smallest(self.residence.work(number))
        found: dict[str, int] = {}
        for tenant in tenants:
            if tenant.constant or not constants:
                size = self.rounded(tenant.memory, int(tile_bytes(tenant, lengths, 1)))
                found[tenant.memory] = found.get(tenant.memory, 0) + size
        return found

    def compute_cycles(self, number: int, loop: str, rows: int, turns: int) -> float:
        """Cycles of a stage that makes so many rows at once, in so many turns."""
        key = number, loop, rows
        if key not in self._cycles:
            self._cycles[key] = self._turn_cycles(number, loop, rows)
        return turns * self._cycles[key]

    def _turn_cycles(self, number: int, loop: str, rows: int) -> float:
        stage = self.prepared.stages[number]
        part = self.residence.parts[number][0]
        lengths = {dim: stop - start for dim, (start, stop) in part.items()}
        if loop:
            lengths[loop] = min(rows, lengths[loop])
        if stage.worker == "array":
            steps = 1.0
            for dim, length in lengths.items():
                steps *= -(-length // self.residence.unrolled[number].get(dim, 1))
        else:
            core = self.prepared.places.core
            lanes = (core.vector or default_vector_unit(core)).lanes
            steps = 1.0
            for length in lengths.values():
                steps *= length
            steps /= lanes
        return steps + TASK_CYCLES

    @cached_property
    def coming(self) -> Price:
        """Bringing bytes of an activation from outside."""
        return self._price(self.prepared.places.origin("I1"), self.input_memory, into=True)

    @cached_property
    def constant(self) -> Price:
        """Bringing bytes of a constant."""
        places = self.prepared.places
        home = places.home("I2")
        origin = places.origin("I2") or places.origin("I1")
        return self._price(origin, home.name if home else self.input_memory, into=True)

    @cached_property
    def going(self) -> Price:
        """Taking bytes of a result outside."""
        return self._price(self.prepared.places.destination(), self.result_memory, into=False)

    def _price(self, outside: object, memory: str, *, into: bool) -> Price:
        places = self.prepared.places
        names = (getattr(outside, "name", ""), places.named(memory, 0).name if memory else "")
        route = places.routes.get(names if into else (names[1], names[0]))
        if route is None:
            return Price(cycles_per_byte=0.0, pj_per_byte=0.0, setup_cycles=0)
        return Price(
            cycles_per_byte=1 / float(route.bytes_per_cycle),
            pj_per_byte=route.read_pj_per_byte + route.write_pj_per_byte,
            setup_cycles=route.setup_cycles,
        )


def scene_of(prepared: Prepared, goal: Goal) -> Scene | None:
    """What can be decided for a prepared network; nothing where results have no scratchpad."""
    if prepared.places.home(OUTPUT_OPERAND) is None:
        return None
    residence = Residence(
        prepared.network,
        prepared.places,
        prepared.costs,
        prepared.stages,
        prepared.storage,
        goal,
    )
    residence.begin()
    return Scene(prepared=prepared, residence=residence)


def _rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
