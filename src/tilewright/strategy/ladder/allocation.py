"""Addresses for the chunks of a run, so tight that its peak is the most bytes alive at once.

Whole tensors get their addresses first, by packing. Then, in the order of time, a cell goes to the
smallest hole that holds it; where no hole does, it is cut into pieces along its longest axis, which
fill several. Bytes never have to be moved.
"""

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from tilewright.placement.pack import PackOptions, pack
from tilewright.placement.problem import Buffer, PlacementProblem
from tilewright.program.boxes import elements
from tilewright.program.model import Box
from tilewright.strategy.ladder.liveness import lives_of
from tilewright.strategy.ladder.steps import Chunk, Run

Hole = tuple[int, int]
"""Where it begins, and its bytes."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a chunk that lies together."""

    box: Box
    address: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """By chunk its pieces (none if it is never touched), and the highest address in use."""

    pieces: tuple[tuple[Piece, ...], ...]
    peak_bytes: int


Life = tuple[int, int]
"""The first and the last step."""


def allocate(run: Run, *, alignment_bytes: int = 1) -> Allocation:
    """Addresses of all chunks from 0 on; those that take another's place have its pieces.

    Whole tensors are cut too if that lowers the peak, unless they are seen under another shape.
    """
    lives = lives_of(run)
    least = _most_alive(run, lives, alignment_bytes)
    best: Allocation | None = None
    for is_solid in (_is_whole(run), _is_seen_as_one(run)):
        found = _Allocator(run, lives, alignment_bytes, least).allocation(is_solid)
        if best is None or found.peak_bytes < best.peak_bytes:
            best = found
        if best.peak_bytes == least:
            break
    assert best is not None
    return best


def _is_whole(run: Run) -> list[bool]:
    return [chunk.is_whole for chunk in run.chunks]


def _is_seen_as_one(run: Run) -> list[bool]:
    return [chunk.is_whole and run.work.held[chunk.tensor].is_seen_as_one for chunk in run.chunks]


def _most_alive(run: Run, lives: Sequence[Life | None], alignment: int) -> int:
    change = [0] * (len(run.steps) + 1)
    for chunk, life in zip(run.chunks, lives, strict=True):
        if life is not None:
            size = _aligned(chunk.size_bytes, alignment)
            change[life[0]] += size
            change[life[1] + 1] -= size
    return max(accumulate(change), default=0)


def _aligned(size_bytes: int, alignment: int) -> int:
    return -(-size_bytes // alignment) * alignment


@dataclass(frozen=True, slots=True)
class _Allocator:
    run: Run
    lives: Sequence[Life | None]
    alignment: int
    least_bytes: int

    def allocation(self, is_solid: Sequence[bool]) -> Allocation:
        """Solid chunks packed first, all others into the holes that they leave."""
        run = self.run
        fixed = self._packed([n for n, solid in enumerate(is_solid) if solid and self.lives[n]])
        pieces: list[tuple[Piece, ...]] = [()] * len(run.chunks)
        for number, piece in fixed.items():
            pieces[number] = (piece,)
        births: list[list[int]] = [[] for _ in run.steps]
        deaths: list[list[int]] = [[] for _ in run.steps]
        for number, life in enumerate(self.lives):
            if life is not None and number not in fixed:
                births[life[0]].append(number)
                deaths[life[1]].append(number)
        memory = _Memory(self.alignment, self.least_bytes)
        for step in range(len(run.steps)):
            for number in sorted(births[step], key=lambda n: (-run.chunks[n].size_bytes, n)):
                taken = self._taken(fixed, number)
                pieces[number] = tuple(memory.place(run.chunks[number], taken))
            for number in deaths[step]:
                for piece in pieces[number]:
                    memory.free(piece)
        for number, chunk in enumerate(run.chunks):
            if chunk.over is not None:
                pieces[number] = pieces[chunk.over]
        ends = [
            p.address + _aligned(p.size_bytes, self.alignment) for parts in pieces for p in parts
        ]
        return Allocation(pieces=tuple(pieces), peak_bytes=max(ends, default=0))

    def _packed(self, numbers: Sequence[int]) -> dict[int, Piece]:
        problem = PlacementProblem(
            buffers=tuple(
                Buffer(
                    name=str(number),
                    lives=((life[0], life[1] + 1),),
                    size_bytes=self.run.chunks[number].size_bytes,
                    alignment_bytes=self.alignment,
                )
                for number in numbers
                if (life := self.lives[number]) is not None
            )
        )
        options = PackOptions(node_budget=20_000, climb_evaluations=0)
        chunks = [self.run.chunks[number] for number in numbers]
        addresses = pack(problem, options).addresses if numbers else ()
        return {
            number: Piece(chunk.box, address, chunk.size_bytes)
            for number, chunk, address in zip(numbers, chunks, addresses, strict=True)
        }

    def _taken(self, fixed: Mapping[int, Piece], number: int) -> list[Hole]:
        """Where solid chunks lie at some time of a chunk's life, in order of address."""
        life = self.lives[number]
        assert life is not None
        return sorted(
            (piece.address, _aligned(piece.size_bytes, self.alignment))
            for other, piece in fixed.items()
            if (theirs := self.lives[other]) is not None
            and theirs[0] <= life[1]
            and life[0] <= theirs[1]
        )


def _without(holes: Sequence[Hole], taken: Sequence[Hole]) -> list[Hole]:
    """What is left of holes when other stretches are taken away."""
    left = list(holes)
    for begin, size in taken:
        end = begin + size
        left = [
            (start, stop - start)
            for hole in left
            for start, stop in ((hole[0], min(sum(hole), begin)), (max(hole[0], end), sum(hole)))
            if stop > start
        ]
    return left


class _Memory:
    """Holes of a memory, in order of address."""

    def __init__(self, alignment: int, size_bytes: int) -> None:
        self.alignment = alignment
        self.holes: list[Hole] = [(0, size_bytes)]
        self.end = size_bytes
        """What lies behind is added when nothing else is left."""

    def place(self, chunk: Chunk, taken: Sequence[Hole]) -> list[Piece]:
        """The pieces of a chunk outside what is taken."""
        size = _aligned(chunk.size_bytes, self.alignment)
        holes = _without(self.holes, taken)
        fitting = [hole for hole in holes if hole[1] >= size]
        if fitting:
            hole = min(fitting, key=lambda hole: (hole[1], hole[0]))
            return [self._take(hole[0], chunk.box, chunk.size_bytes)]
        return self._cut(chunk, holes, taken)

    def free(self, piece: Piece) -> None:
        """Make a hole of a piece, together with the holes beside it."""
        begin = piece.address
        end = begin + _aligned(piece.size_bytes, self.alignment)
        around = [hole for hole in self.holes if hole[0] == end or sum(hole) == begin]
        for hole in around:
            self.holes.remove(hole)
            begin, end = min(begin, hole[0]), max(end, sum(hole))
        insort(self.holes, (begin, end - begin))

    def _cut(self, chunk: Chunk, holes: Sequence[Hole], taken: Sequence[Hole]) -> list[Piece]:
        """Pieces of a chunk that no hole holds, in the largest holes there are."""
        axis = max(range(len(chunk.box)), key=lambda a: (chunk.box[a][1] - chunk.box[a][0], -a))
        start, stop = chunk.box[axis]
        bits = chunk.size_bytes * 8 // max(1, elements(chunk.box))
        slice_bits = bits * prod(b - a for n, (a, b) in enumerate(chunk.box) if n != axis)
        found: list[Piece] = []
        for hole in sorted(holes, key=lambda hole: (-hole[1], hole[0])):
            count = min(stop - start, hole[1] * 8 // slice_bits)
            # All pieces but the last one end where the next byte that may be an address begins.
            while count and count < stop - start and count * slice_bits % (8 * self.alignment):
                count -= 1
            if count:
                cut = (axis, start, start + count)
                found.append(self._part(hole[0], chunk.box, cut, slice_bits))
                start += count
            if start == stop:
                return found
        size = _aligned(-(-(stop - start) * slice_bits // 8), self.alignment)
        address = self._grow(size, taken)
        return [*found, self._part(address, chunk.box, (axis, start, stop), slice_bits)]

    def _grow(self, size: int, taken: Sequence[Hole]) -> int:
        """Room behind the end, also behind what is taken there."""
        address = max([self.end, *(begin + length for begin, length in taken)])
        self.free(Piece((), self.end, address + size - self.end))
        self.end = address + size
        return address

    def _part(self, address: int, box: Box, cut: tuple[int, int, int], slice_bits: int) -> Piece:
        axis, start, stop = cut
        part = (*box[:axis], (start, stop), *box[axis + 1 :])
        return self._take(address, part, -(-(stop - start) * slice_bits // 8))

    def _take(self, address: int, box: Box, size_bytes: int) -> Piece:
        end = address + _aligned(size_bytes, self.alignment)
        self.holes = _without(self.holes, [(address, end - address)])
        return Piece(box, address, size_bytes)
