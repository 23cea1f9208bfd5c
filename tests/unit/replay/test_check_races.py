"""Who touches what another one is just writing, against one comparison per pair and element."""

import random
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from tests.timetable_builder import Draft

from tilewright.program.model import Access, Box, Timetable, View
from tilewright.replay.check_accesses import accesses_of
from tilewright.replay.check_data import start_order
from tilewright.replay.check_races import races


def random_timetable(generator: random.Random) -> Timetable:
    """Short tasks that read and write boxes of two buffers and of views of them."""
    draft = Draft()
    for name in ("x", "y"):
        root = draft.buffer(f"{name}@cmx[0]", ((0, 4), (0, 6)), 0)
        draft.buffer(f"part of {name}@cmx[0]", ((3, 5), (1, 4)), 0, View(root, (1, 2)))
        draft.buffer(f"flat {name}@cmx[0]", ((0, 24),), 0, View(root))
    for number in range(generator.randint(2, 8)):
        reads = [random_access(generator, draft) for _ in range(generator.randint(0, 2))]
        writes = [random_access(generator, draft) for _ in range(generator.randint(0, 1))]
        at = "core[0]", generator.randint(0, 8), generator.randint(0, 4)
        draft.task(f"t{number}", at, tuple(reads), tuple(writes))
    return draft.timetable()


def random_access(generator: random.Random, draft: Draft) -> Access:
    number = generator.randrange(len(draft.buffers))
    box = []
    for begin, end in draft.buffers[number].box:
        low = generator.randint(begin, end)
        box.append((low, generator.randint(low, min(end, low + 5))))
    return Access(number, tuple(box))


def elements(timetable: Timetable, access: Access) -> set[tuple[int, int]]:
    """The root of an access, and by number the elements of it."""
    program = timetable.program
    buffer, root = program.buffers[access.buffer], program.root(access.buffer)
    numbers: npt.NDArray[np.int64] = np.arange(24).reshape(4, 6)
    if buffer.view is not None and buffer.view.origin is None:
        numbers = numbers.reshape(24)
    elif buffer.view is not None and buffer.view.origin is not None:
        top, left = buffer.view.origin
        numbers = numbers[top : top + 2, left : left + 3]
    inside = tuple(
        slice(begin - start, end - start)
        for (begin, end), (start, _) in zip(access.box, buffer.box, strict=True)
    )
    return {(root, int(element)) for element in numbers[inside].ravel()}


def expected(timetable: Timetable) -> dict[int, int]:
    """By task how many others run when it starts and clash with it."""
    order = start_order(timetable)
    clashes: dict[int, int] = {}
    for place, later in enumerate(order):
        start = timetable.slots[later].start_cycle
        for earlier in order[:place]:
            if timetable.slots[earlier].end_cycle > start and clash(timetable, earlier, later):
                clashes[later] = clashes.get(later, 0) + 1
    return clashes


def clash(timetable: Timetable, one: int, other: int) -> bool:
    tasks = timetable.program.tasks
    sides = [
        [(access, is_write) for access, is_write in accesses]
        for accesses in (
            [(a, False) for a in tasks[n].reads] + [(a, True) for a in tasks[n].writes]
            for n in (one, other)
        )
    ]
    return any(
        (mine_writes or theirs_writes) and elements(timetable, mine) & elements(timetable, theirs)
        for (mine, mine_writes), (theirs, theirs_writes) in product(*sides)
    )


@pytest.mark.parametrize("seed", range(300))
def test_races_are_found_between_the_right_tasks(seed: int) -> None:
    timetable = random_timetable(random.Random(seed))
    found = races(timetable, accesses_of(timetable.program), start_order(timetable))
    names = [task.name for task in timetable.program.tasks]
    pairs = {
        (message.message.split(" ")[0], names[task])
        for task, messages in found.items()
        for message in messages
    }
    wanted = expected(timetable)
    assert sorted(found) == sorted(wanted)
    assert all(sum(second == names[task] for _, second in pairs) == wanted[task] for task in found)


def test_a_race_says_who_where_and_when() -> None:
    draft = Draft()
    whole: Box = ((0, 4), (0, 4))
    x = draft.buffer("x@cmx[0]", whole, 0)
    part = draft.buffer("part@cmx[0]", ((0, 2), (0, 4)), 0, View(x, (1, 0)))
    draft.task("exp[0]", ("core[0]", 0, 5), (), (Access(x, ((0, 4), (1, 3))),))
    draft.task("neg[0]", ("core[0].vector", 4, 5), (Access(part, ((1, 2), (2, 4))),), ())
    timetable = draft.timetable()
    found = races(timetable, accesses_of(timetable.program), start_order(timetable))
    assert {task: [p.message for p in problems] for task, problems in found.items()} == {
        1: [
            "exp[0] (cycles 0 to 5) writes and neg[0] (cycles 4 to 9) reads [2:3, 2:3] of buffer "
            "x@cmx[0] (1 bytes) at cycles 4 to 5"
        ]
    }
