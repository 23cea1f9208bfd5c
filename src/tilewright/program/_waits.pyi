from collections.abc import Sequence

from tilewright.program.model import Access, Buffer

class Waits:
    def __init__(self, buffers: list[Buffer], /) -> None: ...
    def lap(
        self, buffer: int, ring: int, axis: int, steps: tuple[int, ...], number: int, /
    ) -> None: ...
    def before(
        self, reads: Sequence[Access], writes: Sequence[Access], known: Sequence[int], /
    ) -> tuple[int, ...]: ...
    def note(
        self, reads: Sequence[Access], writes: Sequence[Access], chain: int, task: int, /
    ) -> None: ...
