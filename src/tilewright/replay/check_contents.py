"""What lies in a buffer: the pieces of data in it, and which of them a box meets."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.program.model import Box
from tilewright.replay.check_boxes import common, contains, minus, overlaps

FEW_PIECES = 32
"""Up to so many pieces are compared one by one; any limit from 8 to 64 takes the same time."""


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
    """The pieces of one root, no two of which overlap.

    A large buffer is written in thousands of pieces. So the boxes of the first of them, all but a
    few, are also in an array, as [begin or end, axis, piece], to be compared all at once.
    """

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.boxes: npt.NDArray[np.int64] | None = None

    def under(self, wanted: Sequence[Box]) -> list[Piece]:
        """What is found in some boxes, cut to them, in the order of the pieces."""
        found = [(at, number) for number, box in enumerate(wanted) for at in self._met(box)]
        return [_cut(self.pieces[at], wanted[number]) for at, number in sorted(found)]

    def put(self, pieces: Sequence[Piece], places: Sequence[Box]) -> None:
        """The pieces take the place of whatever was in `places`."""
        for box in places:
            self._clear(box)
        self.pieces += pieces
        filed = self._filed()
        if len(self.pieces) - filed > FEW_PIECES:
            tail = _array(self.pieces[filed:])
            whole = tail if self.boxes is None else np.concatenate([self.boxes, tail], axis=2)
            self.boxes = np.ascontiguousarray(whole)

    def _filed(self) -> int:
        """How many pieces, from the first on, are in the array."""
        return 0 if self.boxes is None else self.boxes.shape[2]

    def _met(self, box: Box) -> list[int]:
        """The places of the pieces that share elements with a box, ascending."""
        filed = self._filed()
        rest = self.pieces[filed:] if filed else self.pieces
        met = [at for at, piece in enumerate(rest, filed) if overlaps(piece.box, box)]
        if self.boxes is None:
            return met
        begins, ends = self.boxes
        begin, end = np.array(box, dtype=np.int64).reshape(-1, 2, 1).swapaxes(0, 1)
        shares = ((begins < end) & (begin < ends)).all(axis=0)
        return [*np.flatnonzero(shares).tolist(), *met]

    def _clear(self, box: Box) -> None:
        """Take a box out of all pieces; what is left of one stays in its place."""
        filed, met = self._filed(), self._met(box)
        if not met:
            return
        left = [_without(self.pieces[at], box) for at in met]
        for at, parts in zip(reversed(met), reversed(left), strict=True):
            self.pieces[at : at + 1] = parts
        gone = [at for at in met if at < filed]
        if self.boxes is not None and gone:
            self.boxes = np.delete(self.boxes, gone, axis=2)
            parts = [part for there in left[: len(gone)] for part in there]
            if parts:
                # Counted without those that are gone, of which n lie before the n-th.
                places = [at - n for n, at in enumerate(gone) for _ in left[n]]
                self.boxes = np.insert(self.boxes, places, _array(parts), axis=2)


def _array(pieces: Sequence[Piece]) -> npt.NDArray[np.int64]:
    """Boxes of pieces as [begin or end, axis, piece]."""
    boxes = np.array([piece.box for piece in pieces], dtype=np.int64)
    return boxes.reshape(len(pieces), -1, 2).transpose(2, 1, 0)


def _cut(piece: Piece, box: Box) -> Piece:
    """The part of a piece in a box."""
    return piece if contains(box, piece.box) else piece._replace(box=common(piece.box, box))


def _without(piece: Piece, hole: Box) -> list[Piece]:
    """What a box leaves of a piece."""
    return [piece._replace(box=part) for part in minus(piece.box, hole)]
