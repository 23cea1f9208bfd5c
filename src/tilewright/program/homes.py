"""Where stages want their operands, where tensors lie that are kept, and where all others are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.errors import Problem
from tilewright.machine.model import INPUT_OPERANDS, OUTPUT_OPERAND, WEIGHTS, Memory
from tilewright.network.graph import Network, Operand
from tilewright.program.boxes import Ranges, shifted, touched, whole
from tilewright.program.model import Box, Route, Space
from tilewright.program.places import Places
from tilewright.program.stages import Stage, Storage
from tilewright.program.streams import CARRIERS, Stream, stream_of

ANYWHERE = ""
"""Instead of a memory's name: whatever scratchpad holds the tensor."""

GIVEN = ("input", "constant")
"""Roles of what is not made."""

SMALL_SHARE = 16
"""A constant beside the weights comes whole if it takes no more than this part of a memory."""


@dataclass(frozen=True)
class Homes:
    """What a network and a machine say about where tensors lie, before anything is decided."""

    network: Network
    places: Places
    storage: Mapping[str, Storage]

    def root(self, tensor: str) -> str:
        """The tensor in whose storage a tensor lies."""
        return self.storage[tensor].root

    def root_box(self, tensor: str, box: Box) -> tuple[str, Box]:
        """The storage that a box of a tensor lies in, and where; all of it for another shape."""
        lies = self.storage[tensor]
        if lies.root == tensor:
            return tensor, box
        if lies.origin is None:
            return lies.root, whole(self.network.by_name[lies.root].shape)
        return lies.root, shifted(box, lies.origin)

    @cached_property
    def given(self) -> frozenset[str]:
        """Inputs that lie whole in a scratchpad from the start: nobody brings them."""
        if self.places.machine.given.inputs is None:
            return frozenset()
        return frozenset(t.name for t in self.network.tensors if t.role == "input")

    @cached_property
    def staying(self) -> frozenset[str]:
        """Results that stay whole in a scratchpad to the end: nobody takes them outside."""
        return frozenset() if self.places.machine.given.outputs is None else self.results

    @cached_property
    def leaving(self) -> frozenset[str]:
        """Results that go outside."""
        return self.results - self.staying

    def lives_inside(
        self, lives: Mapping[str, tuple[int, int]], end: int
    ) -> dict[str, tuple[int, int]]:
        """The first and the last stage at which what nobody brings, or takes, is there."""
        return {
            root: (0 if root in self.given else first, end if root in self.staying else last)
            for root, (first, last) in lives.items()
            if root in self.given or root in self.staying
        }

    @cached_property
    def results(self) -> frozenset[str]:
        """The tensors in whose storage the network's outputs lie."""
        return frozenset(self.root(tensor.name) for tensor in self.network.outputs)

    def made_by(self, operand: Operand, parts: Sequence[Ranges]) -> Iterator[Box]:
        """What each core makes of a result, where it lies in its storage."""
        shape = self.network.by_name[operand.tensor].shape
        for ranges in parts:
            yield self.root_box(operand.tensor, touched(operand, ranges, shape))[1]

    def is_constant(self, tensor: str) -> bool:
        """Whether a tensor is a constant of the network."""
        return self.network.by_name[tensor].role == "constant"

    def where(self, stage: Stage, operand: Operand) -> str | None:
        """The memory in which a stage wants an operand; None: it reads or writes it outside."""
        constant = self.is_constant(operand.tensor)
        if constant and stage.op.kind == "gather" and stage.op.searches(operand):
            return None
        if constant and self.goes_past(stage, operand):
            return None
        if stage.worker == "array" and operand.name in CARRIERS:
            carrier = CARRIERS[operand.name]
        elif constant:
            return self._of_constants(operand.tensor)
        elif any(operand.tensor == o.tensor for o in stage.results):
            carrier = OUTPUT_OPERAND
        else:
            return ANYWHERE
        home = self.places.home(carrier)
        return None if home is None else home.name

    def _of_constants(self, tensor: str) -> str | None:
        """The memory for constants that are no weights; None: nothing brings them to any."""
        homes = self.places.home("I2"), self.places.home("I1")
        if homes[0] is not None or homes[1] is None:
            return None if homes[0] is None else homes[0].name
        is_brought = self.route_in(self.root(tensor), homes[1].name, kept=False) is not None
        return homes[1].name if is_brought else None

    def is_read_outside(self, stage: Stage, operand: Operand) -> bool:
        """Whether tasks read an input of a network, or a constant, where it lies outside."""
        memory = self.where(stage, operand)
        return memory is None or not self.memory_of_tiles(memory)

    def goes_past(self, stage: Stage, operand: Operand) -> bool:
        """Whether a constant goes past the scratchpads, as weights do that stream; biases, where
        the model of a core says that they come with the weights."""
        comes_along = CARRIERS.get(operand.name) == WEIGHTS or self.places.core.model is not None
        return stage.streams and comes_along and self.is_constant(operand.tensor)

    def streams(self, stage: Stage) -> dict[str, Stream | Problem]:
        """By letter how the array reads or writes what has no scratchpad, or why it cannot."""
        if stage.worker != "array" or not self._bare:
            return {}
        operands = {o.name: o for o in (*stage.op.inputs, *stage.op.outputs)}
        return {
            letter: self._stream(operands[letter], carrier)
            for letter, carrier in self._bare.items()
            if letter in operands
        }

    @cached_property
    def _bare(self) -> Mapping[str, str]:
        """Letters with their carriers that have no scratchpad."""
        return {letter: c for letter, c in CARRIERS.items() if self.places.home(c) is None}

    def _stream(self, operand: Operand, carrier: str) -> Stream | Problem:
        space = self._lies_in(self.root(operand.tensor), carrier)
        found = None if space is None else stream_of(self.places, carrier, space)
        if found is not None:
            return found
        what = f"{operand.tensor!r} is for {carrier}, which has no scratchpad, and "
        if space is None or (space.kind == "sink" and carrier != OUTPUT_OPERAND):
            text = "has nowhere to wait" if space else "has no place outside"
            hint = "declare an external memory for O, or a scratchpad that is large enough"
        else:
            text = f"nothing leads past the scratchpads between the array and {space.name}"
            hint = f"let {space.memory} hold {carrier}, or give {carrier} a scratchpad"
        return Problem(message=what + text, hint=hint)

    def _lies_in(self, root: str, carrier: str) -> Space | None:
        """Where the array finds, or leaves, something for which it has no scratchpad."""
        if carrier == OUTPUT_OPERAND:
            return self.places.destination()
        if root in self.near:
            return self.places.named(self.of_kept(root), 0)
        return self.outside(root)

    @cached_property
    def near(self) -> frozenset[str]:
        """Tensors that are kept as long as they are of use, whatever room they take."""
        return self._read_near | self.given | self.staying

    @cached_property
    def _read_near(self) -> frozenset[str]:
        """Those that the array reads where they are kept and nowhere else: what they are for has
        no scratchpad of its own."""
        if self.places.home(OUTPUT_OPERAND) is None:
            return frozenset()
        far, carriers = self.places.overflow(), []
        for carrier in INPUT_OPERANDS:
            is_far = far is not None and stream_of(self.places, carrier, far) is not None
            if self.places.home(carrier) is None and not is_far:
                carriers.append(carrier)
        if not carriers:
            return frozenset()
        read = {
            self.root(operand.tensor)
            for op in self.network.ops
            for operand in op.inputs
            if CARRIERS.get(operand.name) in carriers
        }
        made = {root for root in read if self.network.by_name[root].role not in GIVEN}
        return frozenset(made)

    def may_stream(self, stage: Stage) -> bool:
        """Whether a stage has weights that the array can read past the scratchpads."""
        return (
            self.places.weights_may_stream
            and stage.worker == "array"
            and any(
                CARRIERS.get(operand.name) == WEIGHTS and self.is_constant(operand.tensor)
                for operand in stage.inputs
            )
        )

    def memory_of_tiles(self, memory: str) -> str:
        """The scratchpad of tiles that come from outside to wherever a stage wants them."""
        home = self.places.home("I1")
        return memory or (home.name if home is not None else "")

    def comes_whole(self, stage: Stage, operand: Operand) -> bool:
        """Whether an operand is a small constant, which comes once for all tiles of a core."""
        tensor = self.network.by_name[operand.tensor]
        memory = self.where(stage, operand)
        if tensor.role != "constant" or not memory or operand.name == "W":
            return False
        return tensor.size_bytes * SMALL_SHARE <= self.places.named(memory, 0).size_bytes

    def has_home(self, root: str) -> bool:
        """Whether there is a memory that a tensor could be kept in."""
        return self._home_of_kept(root) is not None

    def of_kept(self, root: str) -> str:
        """The memory that a kept tensor lies in."""
        home = self._home_of_kept(root)
        assert home is not None
        return home.name

    def _home_of_kept(self, root: str) -> Memory | None:
        is_input = self.network.by_name[root].role == "input"
        return self.places.home("I1" if is_input else OUTPUT_OPERAND)

    def is_kept_once(self, root: str) -> bool:
        """Whether what several cores keep of a tensor is the same bytes."""
        home = self._home_of_kept(root)
        return home is not None and self.is_common(home.name)

    def is_common(self, memory: str) -> bool:
        """Whether several cores see one and the same scratchpad."""
        return self.places.cores > 1 and self.places.named(memory, 0).core is None

    def outside(self, root: str) -> Space | None:
        """Where a tensor with storage of its own lies outside the scratchpads."""
        role = self.network.by_name[root].role
        if role == "constant":
            return self.places.origin("I2") or self.places.origin("I1")
        if role == "input":
            return self.places.origin("I1")
        return self.places.overflow() or self.places.destination()

    def route_in(self, root: str, memory: str, *, kept: bool) -> Route | None:
        """The way of tiles to a memory, from where their tensor is kept or from outside."""
        source = self.places.named(self.of_kept(root), 0) if kept else self.outside(root)
        near = self.places.named(memory, 0).name
        return self.places.routes.get((source.name if source else "", near))

    def comes_by_way_of_outside(self, stage: Stage, operand: Operand) -> bool:
        """Whether a stage's input gets from where it would be kept to where it is wanted only if
        it goes out and comes in again."""
        memory, root = self.where(stage, operand), self.root(operand.tensor)
        if not memory or self.network.by_name[root].role in ("input", "constant"):
            return False
        near = self.of_kept(root)
        if memory == near or self.route_in(root, memory, kept=True) is not None:
            return False
        goes_out = self.route_out(near) is not None
        return goes_out and self.route_in(root, memory, kept=False) is not None

    def route_out(self, memory: str) -> Route | None:
        """The way of results from a memory to where they go in the end."""
        far = self.places.destination() or self.places.overflow()
        near = self.places.named(memory, 0).name
        return self.places.routes.get((near, far.name if far else ""))

    def way_out_cycles(self, root: str, size_bytes: int) -> float:
        """Cycles of the transfers of a tensor that is sent out, at its other end."""
        overflow = self.places.overflow()
        assert overflow is not None
        route = self.places.routes[self.places.named(self.of_kept(root), 0).name, overflow.name]
        return 2 * size_bytes / float(route.bytes_per_cycle)

    def aligned(self, size: int, memory: str) -> int:
        """Bytes that a buffer takes in a memory."""
        unit = self.places.named(memory, 0).alignment_bytes
        return -(-size // unit) * unit
