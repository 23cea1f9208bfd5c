from array import array

def search(
    sizes: array[int],
    alignments: array[int],
    fixed: array[int],
    twins: array[int],
    order: array[int],
    section_at: array[int],
    section_buffers: array[int],
    sections_at: array[int],
    sections_of: array[int],
    neighbours_at: array[int],
    neighbours: array[int],
    addresses: array[int],
    capacity_bytes: int,
    node_budget: int,
    lowest_section_first: bool,
    /,
) -> tuple[int, int]: ...
