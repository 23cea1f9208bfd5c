"""What stays in which core's scratchpad, and how ops are cut beside it.

Ops are cut over the cores first. Then a tensor between two ops is *kept*, all that a core needs of
it in one buffer, unless an op that touches it has no room beside it or would be slower for it; what
is not kept goes out to the external memory tile by tile and comes back so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

from tilewright.mapping.network import default_vector_unit
from tilewright.network.graph import Network, Operand
from tilewright.program.boxes import Ranges, contains, lengths_of, size_bytes
from tilewright.program.cascade import Cascade, Flow, Roll
from tilewright.program.cores import Shares, shared_out, whole_boxes
from tilewright.program.homes import ANYWHERE, Homes
from tilewright.program.in_place import Replacement, replacements
from tilewright.program.layout import Layout, Passing
from tilewright.program.model import Box
from tilewright.program.pace import behind, in_step, lead_cycles
from tilewright.program.part_cycles import part_cycles
from tilewright.program.passes import has_passes, passing_tiles
from tilewright.program.places import Places
from tilewright.program.refusal import refusal
from tilewright.program.rolling import Rolling
from tilewright.program.rounds import go_round, inverted
from tilewright.program.slicing import SLICE
from tilewright.program.stages import Stage, Storage
from tilewright.program.tenants import (
    FORGOTTEN_IN_ROOM,
    SLICES_IN_ROOM,
    partial_sums,
    partial_sums_per_cycle,
    piece_of,
    slice_constants,
    slice_length,
    streamed_operands,
    streaming_cycles,
    tenant_of,
)
from tilewright.program.tile import Goal, Tenant, Tiling, Work
from tilewright.program.tile_choice import FAR_BETTER, TileChoice, better_of
from tilewright.program.tile_cost import TileCosts
from tilewright.program.work import NEARLY


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
    shares: dict[tuple[str, ...], Shares] = field(default_factory=dict)
    """What is known of how stages are shared out, by the loops along which cascades go."""
    tenants: dict[tuple[int, int, bool, bool, int], Tenant] = field(default_factory=dict)
    """By stage, operand, whether that is kept and comes whole, and who has parts of their own."""
    rollings: dict[tuple[Cascade, ...], Rolling] = field(default_factory=dict)
    """What is known of rows that are held, by cascades."""
    parts: list[tuple[Ranges, ...]] = field(default_factory=list)
    apart: list[tuple[tuple[int, int], ...]] = field(default_factory=list)
    unrolled: list[Mapping[str, int]] = field(default_factory=list)
    uncut: list[frozenset[str]] = field(default_factory=list)
    boxes: dict[tuple[str, int], Box] = field(default_factory=dict)
    """Per root and core all that the core's ops read of it."""
    gone: dict[str, None] = field(default_factory=dict)
    """Roots that are not kept, in the order in which that was decided."""
    _behind: list[set[int]] = field(default_factory=list)
    _chosen: dict[int, Tiling | None] = field(default_factory=dict)
    """By stage, what was chosen when it was last looked at."""
    _partials: dict[int, Tenant | None] = field(default_factory=dict)
    _kept_rooms: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By root the memory that it is kept in, and the bytes that it takes there."""

    def layout(self) -> Layout:
        """Decide everything.

        Raises:
            InfeasibleError: an op does not fit however it is cut.
        """
        self.begin()
        # What is sent out for one stage may have been the room of another's result: look again.
        go_round(len(self.stages), self._settle)
        tilings = [self._chosen[number] for number in range(len(self.stages))]
        in_place = ((n, self.overwritten(n)) for n in range(len(self.stages)))
        cascades = {flow.cascade.first: flow for flow in self.flows.values()}
        return Layout(
            parts=tuple(self.parts),
            tilings=tuple(t for t in tilings if t is not None),
            kept={key: box for key, box in self.boxes.items() if key[0] not in self.gone},
            in_place={number: name for number, name in in_place if name is not None},
            flows=self.flows,
            rolling={
                first: tuple(self._rolling.buffers(flow, self._rolls(flow)))
                for first, flow in cascades.items()
            },
            lasting=frozenset(n for flow in cascades.values() for n in self._lasting(flow)),
            passing={n: left for n in range(len(self.stages)) if (left := self._passing_tiles(n))},
            makers={
                self.storage[self.stages[number].results[0].tensor].root: number
                for flow in cascades.values()
                for number in flow.cascade.on_demand
            },
        )

    def _settle(self, number: int) -> set[int]:
        """Make room for a stage; returns others to which it matters what is done for it."""
        sent, known = len(self.gone), self._chosen.get(number)
        self._chosen[number] = self._make_room(number)
        roots = islice(reversed(self.gone), len(self.gone) - sent)
        found = {other for root in roots for other in self._touching[root]}
        return found if self._chosen[number] == known else found | self._behind[number]

    @cached_property
    def _touching(self) -> Mapping[str, list[int]]:
        """By root the stages whose room depends on whether it is kept."""
        return inverted(self._touched if self.waiting is None else self._alive)

    def _passing_tiles(self, number: int) -> Mapping[str, Passing]:
        """Operands of a stage whose tiles come again."""
        tiling = self._chosen[number]
        if tiling is None or number in self.flows or not has_passes(self.parts[number][0], tiling):
            return {}
        stage = self.stages[number].streaming if tiling.streams else None
        return passing_tiles(self.work(number, stage), tiling)

    def begin(self) -> None:
        """Share ops out over the cores, and see what can be kept at all."""
        # A single core has everything, whatever the cascades.
        flows = self.flows if self.places.cores > 1 else {}
        numbers = range(len(self.stages))
        rows = tuple(flows[n].loops[n] if n in flows else "" for n in numbers)
        if rows not in self.shares:
            self.shares[rows] = shared_out(self.homes, self.costs, self.stages, rows)
        shares = self.shares[rows]
        self._behind.extend(behind(self.stages))
        self.unrolled.extend(shares.unrolled)
        self.parts.extend(shares.parts)
        self.apart.extend(shares.apart)
        self.uncut.extend(shares.uncut)
        self.boxes.update({**shares.boxes, **whole_boxes(self.homes)})
        roots = dict.fromkeys(root for root, _ in self.boxes)
        self.gone.update({root: None for root in roots if not self._may_keep(root)})
        self.gone.update({root: None for root in self.waiting or () if root not in self.homes.near})

    @cached_property
    def homes(self) -> Homes:
        """Where operands lie."""
        return Homes(self.network, self.places, self.storage)

    @cached_property
    def _rolling(self) -> Rolling:
        key = tuple(dict.fromkeys(flow.cascade for flow in self.flows.values()))
        if key not in self.rollings:
            known = self.homes, self.stages, self.flows, self.parts, self.boxes
            self.rollings[key] = Rolling(*known)
        return self.rollings[key]

    def _may_keep(self, root: str) -> bool:
        """Inputs come tile by tile, unless they come only once."""
        if not self.homes.has_home(root) or not self.bytes_of(root) or root in self._passing:
            return False
        if root in self.homes.near:
            return True
        if self.network.by_name[root].role == "input":
            origin = self.places.origin("I1")
            return origin is not None and not origin.rereadable
        return root not in self._streamed

    @cached_property
    def _passing(self) -> Mapping[str, None]:
        """Roots that pass through cascades row by row."""
        flows = {flow.cascade.first: flow for flow in self.flows.values()}
        return {
            root: None
            for flow in flows.values()
            for root in (*flow.rolls, *flow.pieces, *flow.passing)
        }

    @cached_property
    def _streamed(self) -> Mapping[str, None]:
        """Roots that some stage reads outside the scratchpads, or can only get from there."""
        return {
            self.storage[operand.tensor].root: None
            for stage in self.stages
            for operand in stage.inputs
            if self.homes.where(stage, operand) is None
            or self.homes.comes_by_way_of_outside(stage, operand)
        }

    def may_send(self, root: str) -> bool:
        """Whether a root can wait outside."""
        overflow = self.places.overflow()
        stays = root in self.homes.near or self.network.by_name[root].role == "input"
        if stays or root in self.gone or overflow is None:
            return False
        near = self.places.named(self.homes.of_kept(root), 0)
        return (near.name, overflow.name) in self.places.routes

    def bytes_of(self, root: str) -> int:
        """Bytes of what a core keeps of a root, of the core that keeps most."""
        return self._sizes[root]

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        sizes: dict[str, int] = {}
        for (root, _), box in self.boxes.items():
            size = size_bytes(box, self.network.by_name[root])
            sizes[root] = max(sizes.get(root, 0), size)
        return sizes

    @cached_property
    def lives(self) -> Mapping[str, tuple[int, int]]:
        """The first and the last stage that touch a root which could be kept."""
        found: dict[str, tuple[int, int]] = {}
        for number in range(len(self.stages)):
            for root in self._roots_of(number):
                found[root] = (found.get(root, (number, 0))[0], number)
        return found | self.homes.lives_inside(found, len(self.stages) - 1)

    def _roots_of(self, number: int) -> list[str]:
        """Roots of a stage's inputs and results that could be kept."""
        stage = self.stages[number]
        roots = [self.storage[o.tensor].root for o in (*stage.inputs, *stage.results)]
        return [
            root for root in dict.fromkeys(roots) if (root, 0) in self.boxes and self._sizes[root]
        ]

    @cached_property
    def _touched(self) -> list[list[str]]:
        """By stage, roots that it, or its cascade, touches and that could be kept."""
        own = [self._roots_of(number) for number in range(len(self.stages))]
        return [
            list(dict.fromkeys(root for other in self._together(number) for root in own[other]))
            for number in range(len(self.stages))
        ]

    def _together(self, number: int) -> range:
        """A stage, or all stages of its cascade."""
        flow = self.flows.get(number)
        return range(number, number + 1) if flow is None else flow.cascade.stages

    def _held(self, number: int) -> list[str]:
        """Kept roots that take room from a stage's tiles."""
        there = self._touched if self.waiting is None else self._alive
        return [root for root in there[number] if root not in self.gone]

    @cached_property
    def _alive(self) -> list[list[str]]:
        """By stage, roots that could be kept and are of use while it, or its cascade, runs."""
        together = [self._together(number) for number in range(len(self.stages))]
        places = {stages: place for place, stages in enumerate(dict.fromkeys(together))}
        alive: list[list[str]] = [[] for _ in places]
        for root, (first, last) in self.lives.items():
            for place in range(places[together[first]], places[together[last]] + 1):
                alive[place].append(root)
        return [alive[places[stages]] for stages in together]

    def _make_room(self, number: int) -> Tiling:
        """Send tensors of a stage out until it fits, and as long as that makes it faster.

        Returns how the stage is cut then.
        """
        while True:
            now = self.tiling(number)
            if now is not None and (number in self.flows or self.waiting is not None):
                return now
            roots = [name for name in self._touched[number] if self.may_send(name)]
            if not roots:
                break
            largest = max(roots, key=lambda name: (self.bytes_of(name), name))
            if now is not None and not self._is_faster_without(number, largest, now):
                return now
            self.gone[largest] = None
        if now is None:
            held = [name for name in self._touched[number] if name not in self.gone]
            kept = {name: (self.homes.of_kept(name), self.bytes_of(name)) for name in held}
            raise refusal(self.work(number), self.places, kept)
        return now

    def _is_faster_without(self, number: int, root: str, now: Tiling) -> bool:
        """Whether a stage and the transfers of a tensor are quicker if that is sent out."""
        way_out = self.homes.way_out_cycles(root, self.bytes_of(root))
        if self.costs.fewest_cycles(self.stages[number].op) + way_out >= now.cycles:
            return False
        self.gone[root] = None
        other = self.tiling(number)
        del self.gone[root]
        return other is not None and other.cycles + way_out < now.cycles

    def overwritten(self, number: int) -> str | None:
        """The input whose place a stage's result may take: kept, and of no use to anybody else."""
        may = self._replacements.get(number)
        if may is None or number in self.flows or may.made in self.gone:
            return None
        return next((name for name in may.inputs if name not in self.gone), None)

    @cached_property
    def _replacements(self) -> Mapping[int, Replacement]:
        return replacements(self.homes, self.stages, self.boxes)

    def tiling(self, number: int) -> Tiling | None:
        """How a stage is cut if what is not gone is kept; None if it does not fit.

        Its constants stream if they may, do not last, and that seems to be better.
        """
        brought, streaming = self.stages[number], self._streaming(number)
        if streaming is None:
            return self._tiling(number, brought)
        flow = self.flows.get(number)
        if flow is not None and (flow.cascade.forgets or number in flow.cascade.on_demand):
            return self._tiling(number, streaming)
        found = self._tiling(number, brought)
        if found is None or flow is not None:
            return better_of(found, self._tiling(number, streaming), in_turns=flow is not None)
        least = max(self.costs.fewest_cycles(brought.op), streaming_cycles(self.homes, streaming))
        computing = self._computing_cycles(number, found) if self.goal == "latency" else 0
        if found.is_good(self.goal, least * FAR_BETTER) and computing <= least * NEARLY:
            return found
        streamed = self._tiling(number, streaming)
        if streamed is not None and streamed.cycles * NEARLY < computing:
            # That is better even if all that is brought comes while others are at work.
            return streamed
        return better_of(found, streamed, in_turns=False)

    def _computing_cycles(self, number: int, tiling: Tiling) -> int:
        """What a stage takes if it waits for no transfer, where a model of the core knows."""
        model, lengths = self.costs.core_model, lengths_of(self.parts[number][0])
        return part_cycles(model, self.stages[number], lengths, tiling) if model else 0

    def _streaming(self, number: int) -> Stage | None:
        """A stage with constants that stream, if they may and do not last."""
        stage, flow = self.stages[number], self.flows.get(number)
        if not self.homes.may_stream(stage) or (flow and number in self._lasting(flow)):
            return None
        return stage.streaming

    def _tiling(self, number: int, stage: Stage) -> Tiling | None:
        found, flow = self._tiles.of(stage, self.work(number, stage)), self.flows.get(number)
        slicing = flow.slicings.get(number) if flow is not None else None
        if slicing is None:
            return found
        if found is None:
            # Who makes the slices takes more constants for long ones.
            found = self._tiles.of(stage, self.work(number, stage, shortest_slices=True))
        if found is None or slicing.loop in found.order:
            return found
        return replace(found, order=(slicing.loop, *found.order))

    @cached_property
    def _tiles(self) -> TileChoice:
        return TileChoice(self.costs, self.goal)

    def work(
        self, number: int, stage: Stage | None = None, *, shortest_slices: bool = False
    ) -> Work:
        """The largest part of a stage, with constants that stream or not, as tiles are chosen."""
        stage, room = stage or self.stages[number], self._room(number)
        lengths, flow = lengths_of(self.parts[number][0]), self.flows.get(number)
        if flow is not None:
            lengths[flow.loops[number]] = flow.turn_rows(number)
            slicing = flow.slicings.get(number)
            if slicing is not None:
                pieces = [o for o in stage.inputs if self.storage[o.tensor].root in flow.pieces]
                piece = piece_of(self.homes, stage, pieces[0])
                parts = FORGOTTEN_IN_ROOM if flow.cascade.forgets else SLICES_IN_ROOM
                share = room[piece.memory] / parts
                part = slice_length(piece, lengths, slicing.loop, share)
                part = lengths[slicing.loop] = min(part, SLICE) if shortest_slices else part
                maker = self._streaming(slicing.maker) or self.stages[slicing.maker]
                for memory, size in slice_constants(self.homes, maker, slicing, part).items():
                    room[memory] -= size
            for other in self._rolling.lasting(flow, room):
                if other != number:
                    for memory, size in self._rolling.constant_bytes(other).items():
                        room[memory] -= size
        model = self.costs.core_model
        unit = self.places.core.vector or default_vector_unit(self.places.core)
        return Work(
            op=stage.op,
            lengths=lengths,
            tenants=tuple(self._tenants_of(number, stage)),
            streamed=streamed_operands(self.homes, stage),
            room=room,
            unrolled=self.unrolled[number],
            rate=1.0 if stage.worker == "array" else float(unit.lanes),
            alignment=self.places.alignment_bytes,
            partial=self._partial_sums(number),
            partial_bytes_per_cycle=partial_sums_per_cycle(self.places),
            at_most={} if flow else in_step(self.stages, self._chosen, number),
            uncut=self.uncut[number],
            multiples=stage.multiples,
            tile_cycles=self.costs.model_of(stage),
            known=self.costs.known_of(stage),
            lead_cycles=lead_cycles(self.places, self._chosen, number, room) if model else 0,
        )

    def in_any_room(self, number: int) -> Work:
        """A stage by itself as the choice of tiles sees it, but for the room that it has."""
        # Where tensors can wait outside there is room for constants, and they mostly come.
        streaming = None if self.places.overflow() is not None else self._streaming(number)
        stage = streaming or self.stages[number]
        return Work(
            op=stage.op,
            lengths=lengths_of(self.parts[number][0]),
            tenants=tuple(self._tenants_of(number, stage)),
            room={},
            unrolled=self.unrolled[number],
            alignment=self.places.alignment_bytes,
            partial=self._partial_sums(number),
            multiples=stage.multiples,
            known=self.costs.known_of(stage),
        )

    def _partial_sums(self, number: int) -> Tenant | None:
        if number not in self._partials:
            self._partials[number] = partial_sums(self.homes, self.costs, self.stages[number])
        return self._partials[number]

    def _room(self, number: int) -> dict[str, int]:
        """What each memory has left for the tiles of a stage, and for a cascade's constants."""
        room = dict(self._scratchpads)
        replaced = self.overwritten(number)
        for root in self._held(number):
            if root != replaced:
                home, size = self._kept_room(root)
                room[home] -= size
        flow = self.flows.get(number)
        if flow is not None:
            for memory, size in self._rolling.row_bytes(flow, self._rolls(flow)).items():
                room[memory] -= size
        return room

    @cached_property
    def _scratchpads(self) -> Mapping[str, int]:
        return {s.memory: s.size_bytes for s in self.places.spaces if s.kind == "scratchpad"}

    def _kept_room(self, root: str) -> tuple[str, int]:
        """The memory that a root is kept in, and the bytes that it takes there."""
        if root not in self._kept_rooms:
            home = self.homes.of_kept(root)
            self._kept_rooms[root] = home, self.homes.aligned(self.bytes_of(root), home)
        return self._kept_rooms[root]

    def _rolls(self, flow: Flow) -> dict[str, Roll]:
        """Tensors that a cascade holds some rows of: its own, and those from outside not kept."""
        inputs = {root: roll for root, roll in flow.inputs.items() if root in self.gone}
        return {**flow.rolls, **inputs}

    def _lasting(self, flow: Flow) -> list[int]:
        return self._rolling.lasting(flow, self._room(flow.cascade.first))

    def _tenants_of(self, number: int, stage: Stage) -> Iterator[Tenant]:
        """Operands of which a stage's tiles need a place beside what is kept."""
        flow = self.flows.get(number)
        rolls = self._rolls(flow) if flow is not None else {}
        for position, operand in enumerate((*stage.inputs, *stage.results)):
            result = position >= len(stage.inputs)
            memory = self.homes.where(stage, operand)
            root = self.storage[operand.tensor].root
            if memory is None or root in rolls or (flow is not None and root in flow.passing):
                continue
            if flow is not None and root in flow.pieces:
                if not result:
                    yield piece_of(self.homes, stage, operand)
                continue
            kept = (root, 0) in self.boxes and root not in self.gone
            if kept and result and self._is_stored_from_kept(number, operand):
                continue
            if kept and not result and memory in (ANYWHERE, self.homes.of_kept(root)):
                continue
            home = self.homes.memory_of_tiles(memory)
            if not home:
                continue
            cores, own_bytes = self.apart[number][position]
            # What fits comes early, while others have nothing to move.
            sharing = 1 if kept or 2 * own_bytes <= self._scratchpads[home] else cores
            key = (number, position, kept, self.homes.comes_whole(stage, operand), sharing)
            if key not in self.tenants:
                self.tenants[key] = tenant_of(
                    self.homes, stage, operand, kept=kept, result=result, cores=sharing
                )
            yield self.tenants[key]

    def _is_stored_from_kept(self, number: int, operand: Operand) -> bool:
        """Whether no core needs a tile beside what it keeps of a result to take it outside."""
        root = self.storage[operand.tensor].root
        return root not in self.homes.leaving or all(
            (root, core) in self.boxes and contains(self.boxes[root, core], box)
            for core, box in enumerate(self.homes.made_by(operand, self.parts[number]))
        )
