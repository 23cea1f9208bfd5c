from array import array

def candidates(
    numbers: array[int], figures: array[float], /
) -> (
    list[tuple[int, int, tuple[tuple[int, float, float, float, float, float, float, float], ...]]]
    | None
): ...
