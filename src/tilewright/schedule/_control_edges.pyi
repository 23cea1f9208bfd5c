from array import array

from tilewright.program.model import Buffer, Task

def edges(given: tuple[array[int], ...], n_queues: int, n_spaces: int, n_axes: int, /) -> bytes: ...
def places(
    tasks: tuple[Task, ...],
    order: array[int],
    buffers: tuple[Buffer, ...],
    addresses: tuple[int, ...],
    given: tuple[int, ...],
    spaces: array[int],
    is_shared: bytes,
    /,
) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, int]: ...
