from array import array
from collections.abc import Callable

def best(
    numbers: array[int], figures: array[float], ask: Callable[[int], int | None], /
) -> list[tuple[int, int, int, float, float, float, float]] | None: ...
