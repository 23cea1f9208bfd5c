"""Who wrote a box: found by looking at every write, one after the other."""

from itertools import product
from random import Random

from tilewright.program.model import Access, Box
from tilewright.program.ring_waits import Lap, RingWaits
from tilewright.program.writers import Writers

WHOLE: Box = ((0, 4), (0, 6))


def shares_an_element(one: Box, other: Box) -> bool:
    points = product(*(range(*ends) for ends in one))
    return any(all(s <= at < t for at, (s, t) in zip(p, other, strict=True)) for p in points)


def some_box(random: Random) -> Box:
    return tuple(
        (start, random.randint(start + 1, stop))
        for start, stop in ((random.randrange(stop), stop) for _, stop in WHOLE)
    )


def test_the_last_task_of_every_chain_that_wrote_there_is_found() -> None:
    random = Random(5)
    for _ in range(60):
        writers = Writers()
        written: list[tuple[Box | None, int, int]] = []
        for task in range(random.randint(1, 12)):
            box = None if random.random() < 0.1 else some_box(random)
            chain = random.randrange(4)
            writers.add(7, box, chain, task)
            written.append((box, chain, task))
            for asked in (some_box(random), WHOLE, None):
                last = {
                    chain: task
                    for box, chain, task in written
                    if asked is None or box is None or shares_an_element(asked, box)
                }
                assert sorted(writers.last(7, asked)) == sorted(last.values())


def test_nobody_wrote_to_another_buffer_or_beside_the_only_box() -> None:
    writers = Writers()
    writers.add(1, ((0, 2), (0, 3)), 0, 0)
    assert writers.last(2, WHOLE) == ()
    assert writers.last(1, ((2, 4), (0, 3))) == ()
    assert writers.last(1, ((1, 2), (2, 6))) == (0,)


def test_rows_of_a_ring_remember_who_wrote_which_columns_in_this_lap() -> None:
    # A ring of two rows, axis 0; the second tensor stands three columns to the right of the first.
    waits = RingWaits()
    waits.laps = {
        10: Lap(0, 0, (0, 0), 0),
        11: Lap(0, 0, (-2, 0), 1),
        20: Lap(0, 0, (0, 3), 0),
    }
    waits.write(Access(10, ((0, 2), (0, 3))), 0, 100)
    waits.write(Access(20, ((1, 2), (0, 2))), 1, 101)
    assert waits.makers(Access(10, ((0, 2), (0, 6)))) == (100, 101)
    assert waits.makers(Access(10, ((0, 1), (0, 6)))) == (100,)
    # Columns 3 to 5 of the first tensor are columns 0 to 2 of the second.
    assert waits.makers(Access(20, ((1, 2), (1, 2)))) == (101,)
    assert waits.makers(Access(10, ((1, 2), (5, 6)))) == ()
    beside = Access(20, ((0, 1), (0, 2)))
    assert waits.makers(beside) == ()
    waits.write(beside, 1, 104)
    assert waits.makers(beside) == (104,)
    # Row 2 takes the place of row 0, which task 102 has read.
    waits.read(Access(10, ((0, 1), (0, 3))), 2, 102)
    again = Access(11, ((2, 3), (0, 3)))
    assert waits.before_write(again) == {100, 102, 104}
    waits.write(again, 0, 105)
    assert waits.makers(again) == (105,)
    assert waits.makers(Access(10, ((1, 2), (0, 3)))) == (100,)
