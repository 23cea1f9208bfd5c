"""Control edges by the compiled walk and by the one in Python: the same pairs."""

import random

import pytest
from tests.schedule_programs import random_program
from tests.schedule_rich_programs import rich_program
from tests.timetable_builder import Draft

from tilewright.program.model import Access, Box, Timetable, View
from tilewright.schedule import control_edges as module
from tilewright.schedule.control_edges import control_edges, is_compiled
from tilewright.schedule.schedule import schedule

pytestmark = pytest.mark.skipif(not is_compiled(), reason="the kernel is not compiled here")


def assert_same_edges(timetable: Timetable, monkeypatch: pytest.MonkeyPatch) -> int:
    found = control_edges(timetable)
    with monkeypatch.context() as patch:
        patch.setattr(module, "kernel", None)
        assert control_edges(timetable) == found
    return len(found)


def random_box(generator: random.Random, box: Box) -> Box:
    parts = []
    for begin, end in box:
        low = generator.randrange(begin, end)
        parts.append((low, generator.randint(low + 1, min(end, low + 3))))
    return box if generator.random() < 0.1 else tuple(parts)


def busy_timetable(seed: int) -> Timetable:
    """Short tasks on three engines that use boxes of roots and views on overlapping addresses."""
    generator = random.Random(seed)
    draft = Draft()
    for number in range(4):
        root = draft.buffer(f"x{number}@cmx[0]", ((0, 4), (0, 8)), 8 * generator.randrange(6))
        draft.buffer(f"part{number}@cmx[0]", ((3, 5), (1, 4)), 0, View(root, (1, 2)))
        draft.buffer(f"flat{number}@cmx[0]", ((0, 32),), 0, View(root))
    start = 0
    for number in range(generator.choice([20, 60, 250])):
        accesses = []
        for _ in range(generator.randint(1, 3)):
            buffer = generator.randrange(len(draft.buffers))
            accesses.append(Access(buffer, random_box(generator, draft.buffers[buffer].box)))
        start += generator.randrange(3)
        engine = generator.choice(["core[0]", "dma/0", "dma/1"])
        n_reads = generator.randint(0, len(accesses))
        reads, writes = tuple(accesses[:n_reads]), tuple(accesses[n_reads:])
        draft.task(f"t{number}", (engine, start, generator.randrange(3)), reads, writes)
    return draft.timetable()


@pytest.mark.parametrize("seed", range(60))
def test_the_kernel_and_python_find_the_same_edges_on_busy_addresses(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert assert_same_edges(busy_timetable(seed), monkeypatch) > 0


@pytest.mark.parametrize("seed", range(20))
def test_the_kernel_and_python_find_the_same_edges_of_a_schedule(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in (rich_program(seed, 3 + seed % 14), random_program(seed, 8 + seed % 40)):
        assert_same_edges(schedule(program), monkeypatch)
