"""Whom a task waits for: those who wrote what it reads, and who used what it writes over.

Where it was built, compiled code keeps the books (`_waits.c`): it gives the same answers, faster. A
change has to be made in both; `tests/property/test_waits.py` tells the two apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from tilewright.network.graph import Network
from tilewright.program.boxes import elements, shifted
from tilewright.program.model import Access, Box, Buffer
from tilewright.program.ring_waits import Lap, RingWaits
from tilewright.program.writers import Writers

try:
    from tilewright.program import _waits
except ImportError:
    _IS_BUILT = False
else:
    _IS_BUILT = True

MOST_AXES: Final = 16
"""Of tensors that the compiled code has room for."""


class Waits(Protocol):
    """Books of what tasks read and wrote, in the order of the tasks."""

    def lap(
        self, buffer: int, ring: int, axis: int, steps: tuple[int, ...], number: int, /
    ) -> None:
        """A buffer is a lap of a ring: see `Lap`."""
        ...

    def before(
        self, reads: Sequence[Access], writes: Sequence[Access], known: Sequence[int], /
    ) -> tuple[int, ...]:
        """All tasks that the next one waits for, in order: the known ones, and those found here."""
        ...

    def note(
        self, reads: Sequence[Access], writes: Sequence[Access], chain: int, task: int, /
    ) -> None:
        """A task of a chain, whose tasks run one after the other, reads and writes."""
        ...


def is_used(network: Network) -> bool:
    """Whether compiled code keeps the books for a network."""
    return _IS_BUILT and all(len(tensor.shape) <= MOST_AXES for tensor in network.tensors)


def waits_for(network: Network, buffers: list[Buffer]) -> Waits:
    """Empty books of a program whose list of buffers grows."""
    return _waits.Waits(buffers) if is_used(network) else PlainWaits(buffers)


@dataclass
class PlainWaits:
    """The books in Python."""

    buffers: list[Buffer]
    _writers: Writers = field(default_factory=Writers)
    _rings: RingWaits = field(default_factory=RingWaits)

    def lap(
        self, buffer: int, ring: int, axis: int, steps: tuple[int, ...], number: int, /
    ) -> None:
        """See `Waits`."""
        self._rings.laps[buffer] = Lap(ring, axis, steps, number)

    def before(
        self, reads: Sequence[Access], writes: Sequence[Access], known: Sequence[int], /
    ) -> tuple[int, ...]:
        """See `Waits`."""
        after = set(known)
        for access in filter(_is_something, reads):
            if access.buffer in self._rings.laps:
                after.update(self._rings.makers(access))
            else:
                after.update(self._writers.last(*self._below(access)))
        for access in filter(_is_something, writes):
            if access.buffer in self._rings.laps:
                after.update(self._rings.before_write(access))
        return tuple(sorted(after))

    def note(
        self, reads: Sequence[Access], writes: Sequence[Access], chain: int, task: int, /
    ) -> None:
        """See `Waits`."""
        for access in filter(_is_something, reads):
            if access.buffer in self._rings.laps:
                self._rings.read(access, chain, task)
        for access in filter(_is_something, writes):
            if access.buffer in self._rings.laps:
                self._rings.write(access, chain, task)
            else:
                self._writers.add(*self._below(access), chain, task)

    def _below(self, access: Access) -> tuple[int, Box | None]:
        """The buffer that holds the bytes of an access, and where; None: under another shape."""
        buffer = self.buffers[access.buffer]
        if buffer.view is None:
            return access.buffer, access.box
        if buffer.view.origin is None:
            return buffer.view.buffer, None
        steps = [
            origin - start
            for origin, (start, _) in zip(buffer.view.origin, buffer.box, strict=True)
        ]
        return buffer.view.buffer, shifted(access.box, steps)


def _is_something(access: Access) -> bool:
    """Whether anything is touched: nobody waits for the sake of an empty box."""
    return elements(access.box) > 0
