from array import array

from tilewright.mapping.attach import Unrolling

def single_loops(
    dims: tuple[str, ...],
    loops: tuple[str, ...],
    numbers: array[int],
    figures: array[float],
    /,
) -> list[tuple[float, int, Unrolling]]: ...
