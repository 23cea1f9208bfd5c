from array import array

import numpy as np
from numpy.typing import NDArray

def understands(description: array[float], /) -> bool: ...
def costs(
    description: array[float],
    dims: bytes,
    loops: NDArray[np.int64],
    sizes: NDArray[np.float64],
    ends: NDArray[np.int64],
    fits: NDArray[np.bool_],
    values: NDArray[np.float64],
    mode: int,
    /,
) -> None: ...
def best(
    description: array[float],
    dims: bytes,
    loops: NDArray[np.int64],
    sizes: NDArray[np.float64],
    figures: array[float],
    mode: int,
    objective: int,
    ends: NDArray[np.int64],
    values: NDArray[np.float64],
    /,
) -> int | None: ...
def least(
    description: array[float],
    frame: array[float],
    places: array[float],
    limit: int,
    mode: int,
    figures: array[float],
    /,
) -> tuple[int, float, bytes, list[int], list[int], list[float]] | None: ...
def details(
    description: array[float],
    dims: bytes,
    loops: NDArray[np.int64],
    sizes: NDArray[np.float64],
    ends: NDArray[np.int64],
    values: array[float],
    /,
) -> bool: ...
def arrange(items: NDArray[np.int64], out: NDArray[np.int64], /) -> int: ...
