"""The mappings of a plan that was read from a file, worked out again from their text.

A file says beside the text of a mapping what that takes. Neither is believed: what a task's tile is
follows from the network, where its operands lie from what the task reads and writes, and what its
loops take there from the model. So the same is asked of a plan from a file as of one just made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from tilewright.errors import InputError, Problem
from tilewright.machine.model import Machine
from tilewright.mapping.constraints import DEFAULT_LINKS
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of, partial_sum_bits
from tilewright.mapping.nest import LoopNest, nest_of, window_elements, with_partial_sums
from tilewright.mapping.network import costed
from tilewright.mapping.search import Mapped, SearchOptions
from tilewright.mapping.spatial import violations
from tilewright.mapping.text import GivenMapping, read_mappings
from tilewright.network.graph import Network, Op
from tilewright.program.model import Access, Program, Task
from tilewright.program.strips import strip_of
from tilewright.replay.check_taps import mapped_loops, taps_of
from tilewright.replay.emulate_layout import holds_partial_sums
from tilewright.replay.restored_rooms import ROUNDING, shares
from tilewright.replay.restored_streams import streaming_levels

CARRIERS = dict(DEFAULT_LINKS)
"""Which operand of the array carries which letter of a nest."""

UNLIMITED = 2**62
"""Bits of a scratchpad as mappings see it: what lies there is the program's to say."""

POOLS = ("average_pool", "max_pool")

WIDEST_SUM = 32
"""Bits of what a pool adds up, where it leaves sums to another strip."""

_Shape = tuple[tuple[tuple[str, int], ...], frozenset[str], tuple[tuple[str, int], ...]]
"""Lengths of loops, those that may run further, and elements along axes of the result."""


@dataclass(frozen=True, slots=True)
class _Tile:
    """What tasks of one mapping have in common."""

    op: str
    lengths: tuple[tuple[str, int], ...]
    """Of the loops of the nest."""
    least: frozenset[str]
    """Loops that may run further: tiles at a border reach less far than others."""
    made: tuple[tuple[str, int], ...]
    """Elements along the axes of the result, where windows meet there."""
    strip: int
    is_continued: bool
    is_unfinished: bool
    homes: tuple[tuple[str, str], ...]
    """By letter the scratchpad in which the operand lies; for one that has none, where it streams
    from, or to; none for what goes past its scratchpad. Operands that are not touched, as in tiles
    of nothing but padding, are not there unless they stream."""


@dataclass(frozen=True, kw_only=True)
class Restored:
    """Mappings with what they take; those are missing that no task names, as on a core with a
    model of its own, or with which anything is wrong."""

    mappings: tuple[Mapped | None, ...]
    problems: tuple[Problem, ...]

    def program_of(self, program: Program) -> Program:
        """The program with its mappings, if they are right."""
        known = [mapped for mapped in self.mappings if mapped is not None]
        if self.problems or not known:
            return program
        # Which one stands where nobody looks does not matter.
        filled = tuple([known[0] if mapped is None else mapped for mapped in self.mappings])
        return replace(program, mappings=filled)


def restored(
    program: Program, texts: Sequence[str], network: Network, machine: Machine | None
) -> Restored:
    """The mappings of a plan's texts, as its tasks use them.

    Without a machine none can be worked out: it is seen whether they are of their tasks' tiles.
    """
    reading = _Reading(program, network, machine)
    found: list[Mapped | None] = []
    problems: list[Problem] = []
    for number, (text, tiles) in enumerate(zip(texts, reading.tiles(len(texts)), strict=True)):
        mapped: Mapped | None = None
        try:
            (given,) = read_mappings(text, "plan.json").values()
        except (InputError, ValueError):
            problems.append(_wrong(number, "cannot be read"))
        else:
            for tile, task in tiles.items():
                try:
                    mapped = reading.mapped(given, tile)
                except (ValueError, KeyError) as error:
                    what = f"does not do what task {task.name} does: {error}"
                    problems.append(_wrong(number, what))
        found.append(mapped)
    return Restored(mappings=tuple(found), problems=tuple(problems))


def _wrong(number: int, what: str) -> Problem:
    return Problem(message=f"mapping {number} of the plan file {what}")


@dataclass(frozen=True)
class _Reading:
    """What mappings are read against."""

    program: Program
    network: Network
    machine: Machine | None
    _nests: dict[str, LoopNest] = field(default_factory=dict)
    _hierarchies: dict[object, Hierarchy] = field(default_factory=dict)

    @cached_property
    def ops(self) -> Mapping[str, Op]:
        """Ops by name."""
        return {op.name: op for op in self.network.ops}

    def tiles(self, count: int) -> list[dict[_Tile, Task]]:
        """By mapping the different tiles that it is said to be of, each with a task."""
        found: list[dict[_Tile, Task]] = [{} for _ in range(count)]
        shapes: dict[object, _Shape] = {}
        for task in self.program.tasks:
            if task.mapping is None or task.op not in self.ops or not 0 <= task.mapping < count:
                continue
            key = task.op, task.tile
            if key not in shapes:
                shapes[key] = self._shape(task)
            lengths, least, made = shapes[key]
            tile = _Tile(
                op=task.op,
                lengths=lengths,
                least=least,
                made=made,
                strip=strip_of(task),
                is_continued=self._has_sums(task.reads),
                is_unfinished=self._has_sums(task.writes),
                homes=self._homes(task),
            )
            found[task.mapping].setdefault(tile, task)
        return found

    def _shape(self, task: Task) -> "_Shape":
        """How far the loops of a task's nest run, over the input of a transposed convolution."""
        op = self.ops[task.op]
        named = {dim: (begin, end) for dim, begin, end in task.tile}
        box = tuple([named.get(dim, (0, size)) for dim, size in op.dims])
        taps = taps_of(op, self.network)
        found, least = mapped_loops(op, taps, box)
        axes = {
            index.terms[0][0]: f"O{at}"
            for at, index in enumerate(op.outputs[0].index or ())
            if index.terms
        }
        made = [(axes[axis.loop], named[axis.loop]) for axis in taps if axis.loop in named]
        sizes = tuple((axis, end - begin) for axis, (begin, end) in made)
        return tuple(found.items()), frozenset(least), sizes

    def _has_sums(self, accesses: Sequence[Access]) -> bool:
        return any(holds_partial_sums(self.program.buffers[a.buffer]) for a in accesses)

    def _homes(self, task: Task) -> tuple[tuple[str, str], ...]:
        """By letter the memory of the scratchpad in which a task finds, or leaves, an operand."""
        op = self.ops[task.op]
        found: dict[str, str] = {}
        sides = [(a, name) for a in task.reads for name in self._letters(op, a)]
        for access, letter in (*sides, *((a, "O") for a in task.writes)):
            space = self.program.space[self.program.buffers[access.buffer].space]
            streams = letter in self._bare
            here = space.memory if space.kind == "scratchpad" or streams else ""
            found[letter] = found.get(letter) or here
        for operand in (*op.inputs, *op.outputs):
            if operand.name in self._bare:
                found.setdefault(operand.name, self._lies_in(operand.tensor))
        return tuple(sorted(found.items()))

    def _letters(self, op: Op, access: Access) -> Sequence[str]:
        """The operands that an access is of: one tensor may be both, and each lie elsewhere."""
        buffer = self.program.buffers[access.buffer]
        found = [o.name for o in op.inputs if o.name in ("I", "W") and o.tensor == buffer.tensor]
        if len(found) < 2 or self.machine is None:
            return found
        space = self.program.space[buffer.space]
        memories = [m for m in self.machine.memories if m.name == space.memory]
        held = {operand for memory in memories for operand in memory.operands}
        is_pad = space.kind == "scratchpad"
        fitting = [o for o in found if (CARRIERS[o] in held if is_pad else o in self._bare)]
        return fitting or found

    @cached_property
    def _bare(self) -> frozenset[str]:
        """Letters that no scratchpad is for."""
        if self.machine is None:
            return frozenset()
        pads = [m for m in self.machine.levels(self.machine.cores[0]) if m.role == "scratchpad"]
        held = {operand for memory in pads for operand in memory.operands}
        return frozenset([letter for letter, carrier in CARRIERS.items() if carrier not in held])

    def _lies_in(self, tensor: str) -> str:
        """The memory of a tensor that a task does not touch, outside the chip if it is there."""
        spaces = [self.program.space[b.space] for b in self.program.buffers if b.tensor == tensor]
        outside = [space.memory for space in spaces if space.kind != "scratchpad"]
        return [*outside, *(space.memory for space in spaces), ""][0]

    def mapped(self, given: GivenMapping, tile: _Tile) -> Mapped | None:
        """A mapping with what it takes of a tile; None without a machine.

        Raises:
            ValueError: it is none of the tile, or none that the array can run.
        """
        told = dict(given.nest)
        sizes = {
            dim: max(size, told.get(dim, 0)) if dim in tile.least else size
            for dim, size in tile.lengths
        }
        if sizes != told:
            raise ValueError(f"that runs loops of {_text(sizes)}, and this those of {_text(told)}")
        if self.machine is None:
            return None
        nest = self._nest(self.machine, tile, sizes)
        return _legal(nest, self._hierarchy(self.machine, nest.letters, dict(tile.homes)), given)

    def _nest(self, machine: Machine, tile: _Tile, sizes: Mapping[str, int]) -> LoopNest:
        """The nest of a tile: its windows are as long as its loops reach."""
        op = self.ops[tile.op]
        if op.name not in self._nests:
            self._nests[op.name] = nest_of(op, self.network)
        bits = partial_sum_bits(machine, machine.cores[0], op.accumulator_bits)
        if tile.strip and op.kind in POOLS and (tile.is_continued or tile.is_unfinished):
            bits = max(bits, WIDEST_SUM)
        nest = with_partial_sums(self._nests[op.name], bits)
        made, relations = dict(tile.made), []
        for relation in nest.relations:
            reached = window_elements(relation, *(sizes[loop] for loop, _ in relation.terms))
            reached = min(reached, made.get(relation.target, reached))
            relations.append(replace(relation, size=reached))
        return replace(
            nest,
            dims=tuple((dim, sizes[dim]) for dim, _ in nest.dims),
            relations=tuple(relations),
            final_bits=nest.operands[0].bits if tile.is_unfinished else nest.final_bits,
        )

    def _hierarchy(
        self, machine: Machine, letters: tuple[str, ...], homes: Mapping[str, str]
    ) -> Hierarchy:
        """The levels between the array and where operands lie."""
        core = machine.cores[0]
        links = {letter: CARRIERS[letter] for letter in letters}
        pads = {
            letter: memory.name
            for memory in machine.levels(core)
            for letter in letters
            if memory.role == "scratchpad" and links[letter] in memory.operands
        }
        streams = {letter: homes[letter] for letter in letters if letter in self._bare}
        tops = {letter: homes.get(letter, pads.get(letter, "")) for letter in letters}
        tops = {o: home for o, home in tops.items() if home and o not in streams}
        key = letters, tuple(tops.items()), tuple(streams.items())
        if key not in self._hierarchies:
            passed = {letter: pad for letter, pad in pads.items() if letter not in tops}
            found = hierarchy_of(machine, core, links, tops, passed)
            levels = tuple(
                (replace(m, size_bits=UNLIMITED) if m.name in tops.values() else m, held)
                for m, held in found.levels
            )
            found = replace(found, levels=levels)
            self._hierarchies[key] = streaming_levels(machine, found, streams)
        return self._hierarchies[key]


def _text(lengths: Mapping[str, int]) -> str:
    return ", ".join(f"{dim} {length}" for dim, length in lengths.items())


def _legal(nest: LoopNest, hierarchy: Hierarchy, given: GivenMapping) -> Mapped:
    """A mapping that the array can run, with its cost.

    Raises:
        ValueError: it cannot.
    """
    for wrong in violations(nest, hierarchy, given.unrolling, may_idle=True):
        raise ValueError(wrong)
    found = costed(nest, hierarchy, given, SearchOptions())
    if found is None:
        raise ValueError("a memory has no port for what moves there")
    left = dict(found.setup.spatial.temporal)
    for loop in nest.sizes:
        steps = prod([n for name, n in given.loops if name == loop])
        if steps < left.get(loop, 1):
            raise ValueError(f"{loop} takes {left.get(loop, 1)} steps, and {steps} are made")
    strange = [loop for loop, _ in given.loops if loop not in nest.sizes]
    if strange:
        raise ValueError(f"there is no loop {strange[0]}")
    for memory, share in shares(found).items():
        if share > 1 + ROUNDING:
            raise ValueError(f"{memory} holds {share:.3g} times what it has room for")
    return found
