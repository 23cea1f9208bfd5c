from array import array
from collections.abc import Callable

INPUTS: tuple[str, ...]

def simulate(
    arrays: tuple[array[int], ...],
    price: Callable[[int], tuple[int, ...]],
    survivors: Callable[[int, list[int], int], list[int] | None],
    /,
) -> tuple[int, bool, list[list[int]]]: ...
