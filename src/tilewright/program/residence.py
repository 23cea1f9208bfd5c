"""Where tensors live: which part of each stays in which core's scratchpad, and how ops are cut.

Ops are cut over the cores first. Then a tensor between two ops is *kept*, all that a core needs of
it in one buffer, unless an op that touches it has no room for its tiles beside it or would be
slower for it; what is not kept goes out to the external memory tile by tile and comes back so.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tilewright.machine.model import OUTPUT_OPERAND
from tilewright.mapping.network import default_vector_unit
from tilewright.network.graph import Network, Operand, Tensor
from tilewright.program.boxes import (
    Ranges,
    around,
    contains,
    covering,
    shifted,
    size_bytes,
    touched,
    whole,
)
from tilewright.program.cascade import Flow, Roll
from tilewright.program.cores import shares
from tilewright.program.model import Box, Space
from tilewright.program.places import Places
from tilewright.program.refusal import refusal
from tilewright.program.rings import ring_box
from tilewright.program.stages import Stage, Storage
from tilewright.program.tile import (
    Goal,
    Tenant,
    Tiling,
    Work,
    choose,
    tileable,
)
from tilewright.program.tile_cost import CARRIERS, TileCosts

SMALL_SHARE = 16
"""A constant beside the weights comes whole if it takes no more than this part of a memory."""

LEAST_POINTS = 2048
"""A vector op is cut no finer than this to keep step with another engine."""

LOOK_BACK = 4
"""Constants are thought to come while one of so many stages before is at work (measured)."""

ANYWHERE = ""
"""Instead of a memory's name: whatever scratchpad holds the tensor."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The ranges of each core per stage, the tiling of each stage, and what each core keeps."""

    parts: tuple[tuple[Ranges, ...], ...]
    tilings: tuple[Tiling, ...]
    kept: Mapping[tuple[str, int], Box]
    in_place: Mapping[int, str]
    """Stages whose result takes the place of an input: its root tensor."""
    flows: Mapping[int, Flow]
    """Cascades by each of their stages."""
    rings: Mapping[tuple[int, str], Roll]
    """Tensors that pass through rolling buffers, by the first stage of their cascade."""
    boxes: Mapping[tuple[str, int], Box]
    """What each core reads of a tensor."""
    lasting: frozenset[int]
    """Stages of cascades whose constants stay from the first turn to the last."""


@dataclass
class Residence:
    """What is known while it is decided where tensors live."""

    network: Network
    places: Places
    costs: TileCosts
    stages: Sequence[Stage]
    storage: Mapping[str, Storage]
    goal: Goal
    flows: Mapping[int, Flow] = field(default_factory=dict)
    """Cascades by each of their stages."""
    waiting: tuple[str, ...] | None = None
    """Roots that are not to be kept; given, the room of every stage is what all others leave."""
    parts: list[tuple[Ranges, ...]] = field(default_factory=list)
    unrolled: list[Mapping[str, int]] = field(default_factory=list)
    boxes: dict[tuple[str, int], Box] = field(default_factory=dict)
    """Per root and core all that the core's ops read of it."""
    gone: dict[str, None] = field(default_factory=dict)
    """Roots that are not kept, in the order in which that was decided."""
    _tilings: dict[object, Tiling | None] = field(default_factory=dict)
    _chosen: dict[int, Tiling | None] = field(default_factory=dict)
    """By stage, what was chosen when it was last looked at."""
    _names: Counter[str] = field(default_factory=Counter)
    _readers: Counter[str] = field(default_factory=Counter)

    def layout(self) -> Layout:
        """Decide everything.

        Raises:
            InfeasibleError: an op does not fit however it is cut.
        """
        self.begin()
        # What is sent out for one stage may have been the room of another's result: look again.
        settled = -1
        while settled != len(self.gone):
            settled = len(self.gone)
            for number in range(len(self.stages)):
                self._make_room(number)
                self._chosen[number] = self.tiling(number)
        tilings = [self._chosen[number] for number in range(len(self.stages))]
        in_place = ((n, self.overwritten(n)) for n in range(len(self.stages)))
        return Layout(
            parts=tuple(self.parts),
            tilings=tuple(t for t in tilings if t is not None),
            kept={key: box for key, box in self.boxes.items() if key[0] not in self.gone},
            in_place={number: name for number, name in in_place if name is not None},
            flows=self.flows,
            rings={
                (flow.cascade.first, root): roll
                for flow in self.flows.values()
                for root, roll in self._rings(flow)
            },
            boxes=self.boxes,
            lasting=frozenset(n for flow in self.flows.values() for n in self.lasting(flow)),
        )

    def begin(self) -> None:
        """Share ops out over the cores, and see what can be kept at all."""
        for number, stage in enumerate(self.stages):
            factors = self.costs.unrolled(stage.op) if stage.worker == "array" else {}
            self.unrolled.append(factors)
            setup = self.places.setup_cycles
            rows = self.flows[number].loops[number] if number in self.flows else ""
            cores = self.places.cores
            self.parts.append(shares(self.network, stage, factors, cores, setup, rows))
        self._find_boxes()
        for name in self.roots():
            if not self._may_keep(name):
                self.gone[name] = None
        self.gone.update(dict.fromkeys(self.waiting or ()))

    def _rings(self, flow: Flow) -> Iterator[tuple[str, Roll]]:
        """Tensors that a cascade holds some rows of: its own, and those from outside not kept."""
        yield from flow.rolls.items()
        for root, roll in flow.inputs.items():
            if root in self.gone:
                yield root, roll

    def _find_boxes(self) -> None:
        for stage, parts in zip(self.stages, self.parts, strict=True):
            for core, ranges in enumerate(parts):
                for operand in stage.inputs:
                    tensor = self.network.by_name[operand.tensor]
                    root, box = self.root_box(
                        operand.tensor, touched(operand, ranges, tensor.shape)
                    )
                    if self.network.by_name[root].role == "constant":
                        continue
                    key = (root, core)
                    self.boxes[key] = around(self.boxes[key], box) if key in self.boxes else box
        for root in self.roots():
            self._cover(root)

    def _cover(self, root: str) -> None:
        """Give elements that nobody reads to a core that keeps their neighbours."""
        keys = [key for key in self.boxes if key[0] == root]
        shape = self.network.by_name[root].shape
        boxes = covering([self.boxes[key] for key in keys], shape)
        self.boxes.update(zip(keys, boxes, strict=True))

    def root_box(self, tensor: str, box: Box) -> tuple[str, Box]:
        """The storage that a box of a tensor lies in, and where; all of it for another shape."""
        lies = self.storage[tensor]
        if lies.origin is None:
            return lies.root, whole(self.network.by_name[lies.root].shape)
        return lies.root, shifted(box, lies.origin)

    def roots(self) -> list[str]:
        """All tensors with storage of their own that ops read."""
        return list(dict.fromkeys(root for root, _ in self.boxes))

    def _may_keep(self, root: str) -> bool:
        """Inputs come tile by tile, unless they come only once."""
        tensor = self.network.by_name[root]
        if self.places.home(OUTPUT_OPERAND) is None or not self.bytes_of(root):
            return False
        if any(root in flow.rolls for flow in self.flows.values()):
            return False
        if tensor.role == "input":
            origin = self.places.origin("I1")
            return origin is not None and not origin.rereadable
        streamed = any(
            self.where(stage, operand) is None
            for stage in self.stages
            for operand in stage.inputs
            if self.storage[operand.tensor].root == root
        )
        return not streamed

    def comes_whole(self, stage: Stage, operand: Operand) -> bool:
        """Whether an operand is a small constant, which comes once for all tiles of a core."""
        tensor = self.network.by_name[operand.tensor]
        memory = self.where(stage, operand)
        if tensor.role != "constant" or not memory or operand.name == "W":
            return False
        return tensor.size_bytes * SMALL_SHARE <= self.places.named(memory, 0).size_bytes

    def where(self, stage: Stage, operand: Operand) -> str | None:
        """The memory in which a stage wants an operand; None: it reads or writes it outside."""
        constant = self.network.by_name[operand.tensor].role == "constant"
        if constant and stage.op.kind == "gather" and operand.index is None:
            return None
        if stage.worker == "array" and operand.name in CARRIERS:
            carrier = CARRIERS[operand.name]
        elif constant:
            carrier = "I2" if self.places.home("I2") is not None else "I1"
        elif any(operand.tensor == o.tensor for o in stage.results):
            carrier = OUTPUT_OPERAND
        else:
            return ANYWHERE
        home = self.places.home(carrier)
        return None if home is None else home.name

    def home_of_kept(self, root: str) -> str:
        """The memory that a kept tensor lies in."""
        is_input = self.network.by_name[root].role == "input"
        home = self.places.home("I1" if is_input else OUTPUT_OPERAND)
        assert home is not None
        return home.name

    def _make_room(self, number: int) -> None:
        """Send tensors of a stage out until it fits, and as long as that makes it faster."""
        while True:
            now = self.tiling(number)
            roots = [name for name in self._touched_roots(number) if self.may_send(name)]
            if not roots:
                break
            largest = max(roots, key=lambda name: (self.bytes_of(name), name))
            if now is not None and (number in self.flows or self.waiting is not None):
                return
            if now is not None:
                self.gone[largest] = None
                other = self.tiling(number)
                del self.gone[largest]
                if other is None or other.cycles + self._way_out(largest) >= now.cycles:
                    return
            self.gone[largest] = None
        if now is None:
            held = [name for name in self._touched_roots(number) if name not in self.gone]
            kept = {name: (self.home_of_kept(name), self.bytes_of(name)) for name in held}
            raise refusal(self.work(number), self.places, kept)

    def may_send(self, root: str) -> bool:
        """Whether a root can wait outside."""
        overflow = self.places.overflow()
        if root in self.gone or overflow is None or self.network.by_name[root].role == "input":
            return False
        near = self.places.named(self.home_of_kept(root), 0)
        return (near.name, overflow.name) in self.places.routes

    def _way_out(self, root: str) -> float:
        """Cycles of a tensor's transfers at its other end."""
        overflow, home = self.places.overflow(), self.home_of_kept(root)
        assert overflow is not None
        route = self.places.routes[self.places.named(home, 0).name, overflow.name]
        return 2 * self.bytes_of(root) / float(route.bytes_per_cycle)

    def _touched_roots(self, number: int) -> list[str]:
        """Roots of inputs and results of a stage, or of its cascade, that could be kept."""
        together = self.flows[number].cascade.stages if number in self.flows else (number,)
        stages = [self.stages[n] for n in together]
        names = [o.tensor for stage in stages for o in (*stage.inputs, *stage.results)]
        roots = dict.fromkeys(self.storage[name].root for name in names)
        return [root for root in roots if (root, 0) in self.boxes and self.bytes_of(root)]

    def _held_roots(self, number: int) -> list[str]:
        """Roots that take room from a stage's tiles."""
        if self.waiting is None:
            return self._touched_roots(number)
        stages = self.flows[number].cascade.stages if number in self.flows else (number,)
        return [
            root
            for root, (first, last) in self.lives.items()
            if root not in self.gone and first <= stages[-1] and last >= stages[0]
        ]

    @cached_property
    def lives(self) -> Mapping[str, tuple[int, int]]:
        """The first and the last stage that touch a root which could be kept."""
        found: dict[str, tuple[int, int]] = {}
        for number, stage in enumerate(self.stages):
            for operand in (*stage.inputs, *stage.results):
                root = self.storage[operand.tensor].root
                if (root, 0) in self.boxes and self.bytes_of(root):
                    found[root] = (found.get(root, (number, 0))[0], number)
        return found

    def bytes_of(self, root: str) -> int:
        """Bytes of what a core keeps of a root, of the core that keeps most."""
        tensor = self.network.by_name[root]
        cores = range(self.places.cores)
        return max(
            size_bytes(self.boxes[root, c], tensor) for c in cores if (root, c) in self.boxes
        )

    def overwritten(self, number: int) -> str | None:
        """The input whose place a stage's result may take: kept, and of no use to anybody else."""
        if number in self.flows:
            return None
        stage = self.stages[number]
        result = stage.results[0]
        made = self.storage[result.tensor].root
        if len(stage.op.outputs) != 1 or made != result.tensor or stage.worker == "move":
            return None
        if not self._is_plain(made) or made in self.gone or (made, 0) not in self.boxes:
            return None
        for operand in stage.inputs:
            name = operand.tensor
            if (
                operand.index == result.index
                and self._is_plain(name)
                and name not in self.gone
                and self._is_free_after(name)
                and self._same_size(name, made)
                and self.home_of_kept(name) == self.home_of_kept(made)
                and self.where(stage, operand) in (ANYWHERE, self.home_of_kept(name))
            ):
                return name
        return None

    def _is_plain(self, name: str) -> bool:
        """Whether a tensor is all of its storage, under one name."""
        if not self._names:
            self._names.update(lies.root for lies in self.storage.values())
        return self._names[name] == 1

    def _is_free_after(self, name: str) -> bool:
        if not self._readers:
            self._readers.update(o.tensor for s in self.stages for o in s.op.inputs)
        return self._readers[name] == 1 and self.network.by_name[name].role == "activation"

    def _same_size(self, a: str, b: str) -> bool:
        one, other = self.network.by_name[a], self.network.by_name[b]
        cores = range(self.places.cores)
        return (
            one.shape == other.shape
            and one.bits == other.bits
            and all(self.boxes.get((a, c)) == self.boxes.get((b, c)) for c in cores)
        )

    def tiling(self, number: int) -> Tiling | None:
        """How a stage is cut if what is not gone is kept; None if it does not fit."""
        work = self.work(number)
        key = _key(work)
        if key not in self._tilings:
            self._tilings[key] = choose(work, self.goal)
        return self._tilings[key]

    def work(self, number: int) -> Work:
        """A stage as the choice of tiles sees it, for its largest part."""
        stage, ranges = self.stages[number], self.parts[number][0]
        room = self._room(number)
        lengths = {dim: stop - start for dim, (start, stop) in ranges.items()}
        if number in self.flows:
            flow = self.flows[number]
            lengths[flow.loops[number]] = flow.turn_rows(number)
            for other in self.lasting(flow):
                if other != number:
                    for memory, size in self._constant_bytes(other, flow).items():
                        room[memory] -= size
        unit = self.places.core.vector or default_vector_unit(self.places.core)
        spaces = [s for s in self.places.spaces if s.kind == "scratchpad"]
        return Work(
            op=stage.op,
            lengths=lengths,
            tenants=tuple(self._tenants(number)),
            room=room,
            unrolled=self.unrolled[number],
            rate=1.0 if stage.worker == "array" else float(unit.lanes),
            alignment=max((s.alignment_bytes for s in spaces), default=1),
            partial=self._partial(stage),
            partial_bytes_per_cycle=self._sum_rate(),
            at_most=self._in_step(number),
            tile_cycles=self.costs.model_of(stage),
            lead_cycles=self._lead_cycles(number, room),
        )

    def _lead_cycles(self, number: int, room: Mapping[str, int]) -> int:
        """How long transfers have nothing to do before a stage; no more than there is room for."""
        home, origin = self.places.home("I2"), self.places.origin("I2")
        if self.costs.core_model is None or home is None or origin is None:
            return 0
        lead = 0.0
        for before in range(max(0, number - LOOK_BACK), number):
            tiling = self._chosen.get(before)
            if tiling is not None:
                lead = max(0.0, lead + tiling.cycles - tiling.moving_cycles)
        route = self.places.routes[origin.name, self.places.named(home.name, 0).name]
        lead = min(lead, max(0, room[home.name]) / 2 / float(route.bytes_per_cycle))
        # Rounded down to a power of two: stages that are alike then share their choice of tiles.
        return 1 << int(lead).bit_length() - 1 if lead >= 1 else 0

    def _room(self, number: int) -> dict[str, int]:
        """What each memory has left for the tiles of a stage, and for a cascade's constants."""
        room = {s.memory: s.size_bytes for s in self.places.spaces if s.kind == "scratchpad"}
        replaced = self.overwritten(number)
        for root in self._held_roots(number):
            if root not in self.gone and root != replaced:
                home = self.home_of_kept(root)
                room[home] -= _aligned(self.bytes_of(root), self.places.named(home, 0))
        for root, roll in self._rings(self.flows[number]) if number in self.flows else ():
            memory = self.ring_memory(root)
            room[memory] -= _aligned(self.ring_bytes(root, roll), self.places.named(memory, 0))
        return room

    def lasting(self, flow: Flow) -> list[int]:
        """Stages of a cascade whose constants stay for all turns; the others' come every time.

        All of them, if that leaves a quarter of the room; else the smallest, up to a half of it.
        """
        sizes = {number: self._constant_bytes(number, flow) for number in flow.cascade.stages}
        room = self._room(flow.cascade.first)
        found: list[int] = []
        for part in (0.75, 0.5):
            left = {memory: size * part for memory, size in room.items()}
            found = []
            for number in sorted(sizes, key=lambda n: (sum(sizes[n].values()), n)):
                if all(size <= left[memory] for memory, size in sizes[number].items()):
                    found.append(number)
                    for memory, size in sizes[number].items():
                        left[memory] -= size
            if len(found) == len(sizes):
                break
        return found

    def _constant_bytes(self, number: int, flow: Flow) -> dict[str, int]:
        """Bytes by memory of a stage's constants that every turn of a cascade needs."""
        stage, sizes = self.stages[number], dict[str, int]()
        for operand in stage.inputs:
            tensor, memory = self.network.by_name[operand.tensor], self.where(stage, operand)
            if tensor.role == "constant" and memory and not _walks(operand, flow.loops[number]):
                box = touched(operand, self.parts[number][0], tensor.shape)
                size = _aligned(size_bytes(box, tensor), self.places.named(memory, 0))
                sizes[memory] = sizes.get(memory, 0) + size
        return sizes

    def ring_memory(self, root: str) -> str:
        """The memory that a tensor passes through row by row."""
        made = any(root in flow.rolls for flow in self.flows.values())
        home = self.places.home(OUTPUT_OPERAND if made else "I1")
        assert home is not None
        return home.name

    def ring_bytes(self, root: str, roll: Roll) -> int:
        """Bytes of a core's rolling buffer, of the core that needs most."""
        tensor = self.network.by_name[root]
        boxes = [box for (name, _), box in self.boxes.items() if name == root]
        return max(size_bytes(ring_box(box, roll.axis, roll.rows), tensor) for box in boxes)

    def _in_step(self, number: int) -> dict[str, int]:
        """Tile lengths with which a vector op keeps step with the tiles of the op before it.

        Another engine then works on the next tile meanwhile.
        """
        stage = self.stages[number]
        if stage.worker != "vector" or number in self.flows:
            return {}
        before = [
            (n, o) for o in stage.op.inputs for n in range(number) if self._makes(n, o.tensor)
        ]
        if not before:
            return {}
        producer, operand = max(before, key=lambda pair: pair[0])
        tiling, result = self._chosen.get(producer), self.stages[producer].results[0]
        if tiling is None or operand.index is None or result.index is None:
            return {}
        for axis, made in zip(operand.index, result.index, strict=True):
            for loop, _ in made.terms:
                cut = tiling.lengths[loop] < self.stages[producer].op.sizes[loop]
                if cut and len(axis.terms) == 1 and axis.terms[0][0] in tileable(stage.op)[1]:
                    dim = axis.terms[0][0]
                    least = -(-LEAST_POINTS * stage.op.sizes[dim] // stage.op.points)
                    return {dim: max(1, least, tiling.lengths[loop])}
        return {}

    def _makes(self, number: int, tensor: str) -> bool:
        return any(o.tensor == tensor for o in self.stages[number].results)

    def _tenants(self, number: int) -> Iterator[Tenant]:
        stage = self.stages[number]
        for operand in stage.inputs:
            yield from self._tenant(number, operand, result=False)
        for operand in stage.results:
            yield from self._tenant(number, operand, result=True)

    def _tenant(self, number: int, operand: Operand, *, result: bool) -> Iterator[Tenant]:
        stage = self.stages[number]
        tensor = self.network.by_name[operand.tensor]
        memory = self.where(stage, operand)
        if memory is None:
            return
        if self.comes_whole(stage, operand):
            operand = replace(operand, index=None)
        root = self.storage[operand.tensor].root
        if number in self.flows and root in dict(self._rings(self.flows[number])):
            return
        kept = (root, 0) in self.boxes and root not in self.gone
        here = kept and memory in (ANYWHERE, self.home_of_kept(root))
        if self._is_stored_from_kept(number, operand) if kept and result else here:
            return
        home = self.places.home("I1")
        memory = memory or (home.name if home is not None else "")
        route = self.route(tensor, memory, kept=kept, result=result)
        yield Tenant(
            operand=operand,
            shape=tensor.shape,
            bits=tensor.bits,
            memory=memory,
            bytes_per_cycle=float(route[0]),
            setup_cycles=route[1],
            pj_per_byte=route[2],
            constant=tensor.role == "constant",
            result=result,
        )

    def _is_stored_from_kept(self, number: int, operand: Operand) -> bool:
        """Whether no core needs a tile beside what it keeps of a result to take it outside."""
        root = self.storage[operand.tensor].root
        if all(self.storage[t.name].root != root for t in self.network.outputs):
            return True
        shape = self.network.by_name[operand.tensor].shape
        made = (
            self.root_box(operand.tensor, touched(operand, ranges, shape))[1]
            for ranges in self.parts[number]
        )
        return all(
            (root, core) in self.boxes and contains(self.boxes[root, core], box)
            for core, box in enumerate(made)
        )

    def route(
        self, tensor: Tensor, memory: str, *, kept: bool, result: bool
    ) -> tuple[float, int, float]:
        """Bytes a cycle, set-up and energy a byte of the transfers of a tensor's tiles."""
        near = self.places.named(memory, 0).name
        if result:
            far = self.places.destination() or self.places.overflow()
            pair = (near, far.name if far else "")
        elif kept:
            pair = (
                self.places.named(self.home_of_kept(self.storage[tensor.name].root), 0).name,
                near,
            )
        else:
            source = self.outside(tensor)
            pair = (source.name if source else "", near)
        way = self.places.routes.get(pair)
        if way is None:
            return 1.0, 0, 0.0
        return (
            float(way.bytes_per_cycle),
            way.setup_cycles,
            way.read_pj_per_byte + way.write_pj_per_byte,
        )

    def outside(self, tensor: Tensor) -> Space | None:
        """Where a tensor lies outside the scratchpads."""
        root = self.network.by_name[self.storage[tensor.name].root]
        if root.role == "constant":
            return self.places.origin("I2") or self.places.origin("I1")
        if root.role == "input":
            return self.places.origin("I1")
        return self.places.overflow() or self.places.destination()

    def _partial(self, stage: Stage) -> Tenant | None:
        home = self.places.home(OUTPUT_OPERAND)
        if stage.worker != "array" or home is None:
            return None
        tensor = self.network.by_name[stage.op.outputs[0].tensor]
        bits = self.costs.nest(stage.op)[0].operands[0].bits
        return Tenant(
            operand=stage.op.outputs[0],
            shape=tensor.shape,
            bits=bits,
            memory=home.name,
            bytes_per_cycle=0.0,
            setup_cycles=0,
            pj_per_byte=0.0,
        )

    def _sum_rate(self) -> float:
        """Bytes of partial sums that can be taken up again in a cycle."""
        home = self.places.home(OUTPUT_OPERAND)
        port = home.port(OUTPUT_OPERAND, "tl") or home.ports[0] if home is not None else None
        return port.bits_per_cycle / 8 if port is not None else 1.0


def _key(work: Work) -> object:
    """What a choice of tiles depends on; names do not matter."""
    tenants = tuple(
        (t.operand.index, t.shape, t.bits, t.memory, t.bytes_per_cycle, t.constant, t.result)
        for t in work.tenants
    )
    return (
        work.op.kind,
        tuple(work.lengths.items()),
        tenants,
        tuple(work.room.items()),
        tuple(work.unrolled.items()),
        tuple(work.at_most.items()),
        work.lead_cycles,
        work.op.coupled,
        tuple(operand.index for operand in work.op.operands),
        work.partial.bits if work.partial is not None else 0,
    )


def _walks(operand: Operand, loop: str) -> bool:
    return any(dim == loop for axis in operand.index or () for dim, _ in axis.terms)


def _aligned(size: int, space: Space) -> int:
    return -(-size // space.alignment_bytes) * space.alignment_bytes
