from array import array

def times(
    program: tuple[array[int], ...], n_pads: int, start: array[int], instance: array[int], /
) -> None: ...
