from array import array

def scan(
    start: array[int],
    end: array[int],
    size: array[int],
    alignment: array[int],
    by_start: array[int],
    by_end: array[int],
    from_top: array[int],
    addresses: array[int],
    capacity_bytes: int,
    /,
) -> bool: ...
def first_fit(
    sizes: array[int],
    alignments: array[int],
    hints: array[int],
    order: array[int],
    meetings_at: array[int],
    meetings: array[int],
    addresses: array[int],
    /,
) -> None: ...
def meetings(
    start: array[int],
    end: array[int],
    by_start: array[int],
    by_end: array[int],
    meetings_at: array[int],
    meetings: array[int],
    /,
) -> None: ...
