"""How many bytes are alive at each step, and whose they are when there are most."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from tilewright.strategy.ladder.steps import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    """Bytes of a tensor that are alive at the peak: so many chunks of it."""

    tensor: str
    size_bytes: int
    chunks: int
    is_sum: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The most bytes alive at once, the first step at which they are, and whose they are."""

    size_bytes: int
    step: int
    alive: tuple[Alive, ...]


def lives_of(run: Run) -> list[tuple[int, int] | None]:
    """By chunk the first and the last step that touch its bytes; None where it has none of its own.

    What takes the place of a chunk prolongs that chunk's life.
    """
    lives: list[tuple[int, int] | None] = [None] * len(run.chunks)
    root = [n if chunk.over is None else chunk.over for n, chunk in enumerate(run.chunks)]
    for number, step in enumerate(run.steps):
        for touched in (*step.reads, *step.writes):
            chunk = root[touched]
            life = lives[chunk]
            lives[chunk] = (number if life is None else life[0], number)
    return lives


def alive_bytes(run: Run) -> list[int]:
    """By step the bytes alive: a chunk lives from the first to the last step that touches it."""
    change = [0] * (len(run.steps) + 1)
    for chunk, life in zip(run.chunks, lives_of(run), strict=True):
        if life is not None:
            change[life[0]] += chunk.size_bytes
            change[life[1] + 1] -= chunk.size_bytes
    return list(accumulate(change[:-1]))


def peak_of(run: Run) -> Peak:
    """The most bytes that are alive at a step."""
    totals = alive_bytes(run)
    at = max(range(len(totals)), key=lambda step: (totals[step], -step), default=0)
    size = totals[at] if totals else 0
    return Peak(size_bytes=size, step=at, alive=_alive(run, lives_of(run), at))


def _alive(run: Run, lives: Sequence[tuple[int, int] | None], at: int) -> tuple[Alive, ...]:
    sizes: dict[tuple[str, bool], list[int]] = {}
    for chunk, life in zip(run.chunks, lives, strict=True):
        if life is not None and life[0] <= at <= life[1]:
            sizes.setdefault((chunk.tensor, chunk.is_sum), []).append(chunk.size_bytes)
    found = [
        Alive(tensor=tensor, is_sum=is_sum, size_bytes=sum(parts), chunks=len(parts))
        for (tensor, is_sum), parts in sizes.items()
    ]
    return tuple(sorted(found, key=lambda alive: (-alive.size_bytes, alive.tensor, alive.is_sum)))
