from array import array
from collections.abc import Callable

Found = tuple[int, int, int, float, float, float, float]

def best(
    numbers: array[int], figures: array[float], ask: Callable[[int], int | None], /
) -> tuple[list[Found], tuple[int, ...]] | None: ...
