"""Spills that only move a result: it is written to its final place at once instead."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

StepKind = Literal["compute", "spill_write", "spill_read"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A buffer at the addresses [begin, end)."""

    buffer: str
    begin: int
    end: int

    def meets(self, other: "Piece") -> bool:
        """Whether the two share addresses."""
        return self.begin < other.end and other.begin < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An entry in a log of what happens on a scratchpad during [start_cycle, end_cycle)."""

    name: str
    kind: StepKind
    start_cycle: int
    end_cycle: int
    reads: tuple[Piece, ...] = ()
    writes: tuple[Piece, ...] = ()

    @property
    def is_in_place(self) -> bool:
        """Whether it overwrites what it reads."""
        return any(piece in self.reads for piece in self.writes)


def relocated(log: Sequence[Step]) -> tuple[Step, ...]:
    """The log, in order of start, without spills that only move a result elsewhere.

    A compute step whose result is spilled and read back in the next two starts writes to where the
    spill read would have put it, if it is the only one that makes that buffer, or makes it anew
    from its old content, and nobody else touches the new place, or reads the buffer, meanwhile.
    """
    steps = sorted(log, key=lambda step: (step.start_cycle, step.end_cycle, step.name))
    starts = sorted(dict.fromkeys(step.start_cycle for step in steps))
    turn = {start: number for number, start in enumerate(starts)}
    gone: list[Step] = []
    for write in tuple(steps):
        if write.kind != "spill_write" or write in gone:
            continue
        maker = _neighbour(steps, turn, write, -1)
        read = _neighbour(steps, turn, write, 1)
        if maker is None or read is None or not _is_free(steps, maker, write, read):
            continue
        old, new = write.reads[0], read.writes[0]
        moved = tuple(new if piece == old else piece for piece in maker.writes)
        steps[steps.index(maker)] = replace(maker, writes=moved)
        gone += [write, read]
    return tuple(step for step in steps if step not in gone)


def _neighbour(steps: Sequence[Step], turn: dict[int, int], write: Step, by: int) -> Step | None:
    """The compute step one start before that makes what is spilled, or the read one start after."""
    old = write.reads[0]
    for step in steps:
        if turn[step.start_cycle] != turn[write.start_cycle] + by:
            continue
        if by < 0 and step.kind == "compute" and old in step.writes:
            return step
        if by > 0 and step.kind == "spill_read" and step.writes[0].buffer == old.buffer:
            return step
    return None


def _is_free(steps: Sequence[Step], maker: Step, write: Step, read: Step) -> bool:
    old, new = write.reads[0], read.writes[0]
    if any(piece.meets(new) for piece in (*maker.reads, *maker.writes) if piece != old):
        return False
    if old.meets(new) and maker.is_in_place:
        return False
    others = [step for step in steps if step not in (maker, write, read)]
    shared = any(old in step.writes for step in others if step.start_cycle <= maker.start_cycle)
    if shared and old not in maker.reads:
        return False
    meanwhile = [
        step
        for step in others
        if step.start_cycle < read.end_cycle and maker.start_cycle < step.end_cycle
    ]
    touched = [piece for step in meanwhile for piece in (*step.reads, *step.writes)]
    return not any(piece == old or piece.meets(new) for piece in touched)
