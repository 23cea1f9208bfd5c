"""What lies in a buffer: the pieces of data in it, and which of them a box meets."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tilewright.program.model import Box
from tilewright.records import quickly_made
from tilewright.replay.check_boxes import Boxes, box_array, common, contains, minus, overlaps

FEW_PIECES = 32
"""Up to so many pieces are compared one by one; any limit from 8 to 64 takes the same time."""


@quickly_made
class Piece(NamedTuple):
    """What a box of a root holds: data of `tensors`, made by one task.

    `shift` leads from the root's coordinates to the tensor's; it is None, and there may be several
    tensors, where bytes were copied under another shape.
    """

    box: Box
    tensors: tuple[str, ...]
    shift: tuple[int, ...] | None
    maker: int


class Contents:
    """The pieces of one root, by box; no two of them overlap.

    A large buffer is written in thousands of pieces. So all boxes but a few, `loose`, are also in
    an array, to be compared all at once: those of `filed`, some of which may hold nothing any more.
    """

    def __init__(self) -> None:
        self.pieces: dict[Box, Piece] = {}
        self.loose: dict[Box, None] = {}
        self.filed: list[Box] = []
        self.is_filed: set[Box] = set()
        self.array: Boxes | None = None

    def met(self, box: Box) -> list[Piece]:
        """The pieces that share elements with a box."""
        exact = self.pieces.get(box)
        if exact is not None:
            return [exact]
        met = [self.pieces[other] for other in self.loose if overlaps(other, box)]
        if self.array is None:
            return met
        begins, ends = self.array
        begin, end = np.array(box, dtype=np.int64).T[:, :, None]
        shares = ((begins < end) & (begin < ends)).all(axis=0)
        found = [self.pieces.get(self.filed[at]) for at in np.flatnonzero(shares).tolist()]
        return [*(piece for piece in found if piece is not None), *met]

    def under(self, box: Box) -> list[Piece]:
        """What is found in a box, cut to it."""
        return [_cut(piece, box) for piece in self.met(box)]

    def put(self, pieces: Sequence[Piece], places: Sequence[Box]) -> None:
        """The pieces take the place of whatever was in `places`."""
        for box in places:
            for old in self.met(box):
                del self.pieces[old.box]
                self.loose.pop(old.box, None)
                if old.box != box:
                    self._add([old._replace(box=part) for part in minus(old.box, box)])
        self._add(pieces)
        if len(self.loose) > FEW_PIECES:
            self._file()

    def _add(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            self.pieces[piece.box] = piece
            if piece.box not in self.is_filed:
                self.loose[piece.box] = None

    def _file(self) -> None:
        """Put all boxes into the array; what holds nothing any more goes once it is the most."""
        if len(self.filed) > 2 * len(self.pieces):
            self.loose, self.filed, self.array = dict.fromkeys(self.pieces), [], None
            self.is_filed = set()
        new = box_array([*self.loose], len(next(iter(self.loose))))
        self.array = new if self.array is None else np.concatenate([self.array, new], axis=2)
        self.filed += self.loose
        self.is_filed.update(self.loose)
        self.loose = {}


def _cut(piece: Piece, box: Box) -> Piece:
    """The part of a piece, which shares elements with a box, in it."""
    if contains(box, piece.box):
        return piece
    return Piece(common(piece.box, box), piece.tensors, piece.shift, piece.maker)
