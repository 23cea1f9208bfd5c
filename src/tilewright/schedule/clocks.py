"""Who waits for whom, however indirectly, of tasks that run in queues.

Tasks are known by their turn: their place in an order in which whoever waits comes after those that
it waits for. The tasks of a queue run one after the other. So whoever waits for a task of a queue
waits for all before it there, and all that a task waits for is said by one turn per queue: the
latest one (-1 is none).
"""

from collections.abc import Iterable, Sequence

Clock = list[int]
"""By queue the latest turn that a task waits for; of its own queue, its own turn."""


class Clocks:
    """The clocks of the tasks up to some turn."""

    def __init__(self, queues: Sequence[int]) -> None:
        """Of no task yet; `queues` tells by turn the queue, numbered from 0."""
        self.queues = queues
        self.clocks: list[Clock] = []
        self.newest: Clock = [-1] * (max(queues, default=-1) + 1)

    def begin(self, waits: Iterable[int]) -> Clock:
        """The clock of the task whose turn it is, which waits for some turns and its queue."""
        turn = len(self.clocks)
        queue = self.queues[turn]
        ahead = self.newest[queue]
        clock = list(self.clocks[ahead]) if ahead >= 0 else [-1] * len(self.newest)
        self.clocks.append(clock)
        self.add(waits)
        clock[queue] = self.newest[queue] = turn
        return clock

    def add(self, waits: Iterable[int]) -> list[int]:
        """Those of some more turns that the last task did not wait for yet, nor by the others."""
        clock, added = self.clocks[-1], []
        for turn in sorted(waits, reverse=True):
            if clock[self.queues[turn]] < turn:
                clock[:] = map(max, clock, self.clocks[turn])
                added.append(turn)
        return added
