"""Waits between many uses of one place: thousands of boxes are not compared one by one."""

import random
from itertools import combinations, product

import pytest
from tests.place_runs import PlaceUse, place_edges

from tilewright.program.model import Box
from tilewright.schedule import place_edges as module


def conflicts(one: PlaceUse, other: PlaceUse) -> bool:
    """Two uses of one holder by two tasks, one of which writes an element that both touch."""
    if one.task == other.task or not (one.is_write or other.is_write):
        return False
    if one.box is None or other.box is None:
        return True
    return all(a < d and c < b for (a, b), (c, d) in zip(one.box, other.box, strict=True))


def waits_by_path(count: int, edges: set[tuple[int, int]]) -> list[int]:
    """By task the tasks, as bits, that it waits for, however indirectly; numbers ascend in time."""
    before = [0] * count
    for first, second in sorted(edges, key=lambda edge: (edge[1], edge[0])):
        before[second] |= 1 << first | before[first]
    return before


def random_box(generator: random.Random, shape: tuple[int, ...]) -> Box:
    begins = [generator.randrange(size) for size in shape]
    return tuple(
        (begin, generator.randint(begin + 1, min(begin + 2, size)))
        for begin, size in zip(begins, shape, strict=True)
    )


def random_uses(generator: random.Random) -> list[PlaceUse]:
    """Far more uses of one holder than are compared one by one."""
    shape = generator.choice([(40,), (9, 9), (2, 5, 6)])
    n_queues = generator.randint(1, 3)
    uses = []
    for task in range(150):
        box = random_box(generator, shape) if generator.random() < 0.97 else None
        is_write = generator.random() < 0.4
        uses.append(PlaceUse(task, 0, 8, is_write, "a", box, task % n_queues))
    return uses


@pytest.mark.parametrize("seed", range(30))
def test_among_many_uses_every_pair_that_conflicts_is_ordered_and_no_other(seed: int) -> None:
    uses = random_uses(random.Random(seed))
    edges = set(place_edges(uses))
    wanted = {(a.task, b.task) for a, b in combinations(uses, 2) if conflicts(a, b)}
    last: dict[int, int] = {}
    queued = set()
    for use in uses:
        if use.queue in last:
            queued.add((last[use.queue], use.task))
        last[use.queue] = use.task
    before = waits_by_path(len(uses), edges | queued)
    assert edges <= wanted
    assert all(before[second] >> first & 1 for first, second in wanted)


@pytest.mark.parametrize("seed", range(30))
def test_the_array_of_corners_changes_no_edge(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    uses = random_uses(random.Random(seed))
    holders = [use._replace(begin=use.task % 3, holder=use.task // 60) for use in uses]
    one_by_one = [place_edges(uses), place_edges(holders)]
    monkeypatch.setattr(module, "_FEW_USES", 2)
    assert one_by_one == [place_edges(uses), place_edges(holders)]


def test_whoever_reads_all_waits_for_every_writer_and_the_next_holder_for_the_reader() -> None:
    tiles = [((x, x + 1), (y, y + 1)) for x, y in product(range(12), range(12))]
    writes = [PlaceUse(task, 0, 144, True, "a", box) for task, box in enumerate(tiles)]
    reader = PlaceUse(144, 0, 144, False, "a", ((0, 12), (0, 12)))
    next_holder = PlaceUse(145, 0, 144, True, "b", ((0, 144),))
    edges = place_edges([*writes, reader, next_holder])
    assert edges == [*((task, 144) for task in range(144)), (144, 145)]


def test_whole_uses_and_scalars_may_be_many() -> None:
    # A scalar's box is (): every two meet, and a reader with a queue of its own replaces no other.
    scalars = [PlaceUse(task, 0, 4, False, "a", ()) for task in range(100)]
    whole = [PlaceUse(task, 0, 4, False, "a", None) for task in range(100, 200)]
    writer = PlaceUse(200, 0, 4, True, "a", ())
    for readers in (scalars, whole, [*scalars, *whole], [*whole, *scalars]):
        wanted = sorted((reader.task, 200) for reader in readers)
        assert place_edges([*readers, writer]) == wanted
