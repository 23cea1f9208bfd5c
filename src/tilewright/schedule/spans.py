"""When buffers are in use, from the times of the tasks that touch them."""

from collections.abc import Sequence

from tilewright.program.model import Program, Slot


def spans_of(
    program: Program, slots: Sequence[Slot], roots: Sequence[int]
) -> dict[int, tuple[int, int]]:
    """By root, in the order of first use: the first start and the last end of what touches it.

    `roots` are by buffer; a buffer whose root is negative is left out.
    """
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    for task, slot in zip(program.tasks, slots, strict=True):
        start, end = slot.start_cycle, slot.end_cycle
        for buffer, _ in (*task.reads, *task.writes):
            root = roots[buffer]
            if root < 0:
                continue
            if root not in begins:
                begins[root], ends[root] = start, end
                continue
            if start < begins[root]:
                begins[root] = start
            if end > ends[root]:
                ends[root] = end
    return {root: (begin, ends[root]) for root, begin in begins.items()}
