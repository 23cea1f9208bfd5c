"""Readers apart: who has to make a tensor again because it is too large to wait for him.

Of a tensor that is made and read in one cascade, some rows are there at a time. If it has another
reader whom no cascade reaches together with the first, all of it has to wait; and a tensor that
takes more than a part of the room leaves too little to go on with.
"""

from dataclasses import dataclass, replace
from itertools import takewhile

from tilewright.network.graph import Network, Op
from tilewright.program.lower import Prepared
from tilewright.strategy.again import Again, Waits
from tilewright.strategy.spans import span_of


@dataclass(frozen=True, kw_only=True)
class Apart:
    """A network's ops in an order, on a machine with so many bytes of room."""

    network: Network
    order: tuple[Op, ...]
    prepared: Prepared
    room: int
    most_stages: int
    """Of a cascade."""
    part: float
    """Of the room, that what waits may take."""

    def first(self) -> Again | None:
        """How to make the first tensor again that is too large to wait for some of its readers."""
        for number, stage in enumerate(self.prepared.stages):
            name = stage.results[0].tensor
            if self.network.by_name[name].size_bytes > self.part * self.room:
                way = self._made_again(number, name)
                if way is not None:
                    return way
        return None

    def _made_again(self, number: int, name: str) -> Again | None:
        """How to make the result of a stage again for those whom no cascade reaches with it."""
        rows = self.prepared.rows
        if rows.root(number) != name:
            return None
        readers = [user for user in rows.users[name] if user > number]
        near = [*takewhile(lambda reader: self._goes_on(number, reader), readers)]
        late = readers[len(near) :]
        if not near or not late:
            return None
        late = [*takewhile(lambda reader: self._goes_on(late[0], reader), late)]
        ops = [op.name for reader in late for op in self._ops(reader)]
        place = max(self.order.index(op) for op in self._ops(near[-1]))
        ways = Waits(network=self.network, order=self.order).ways(place)
        most = self.part * self.room
        found = [way for way in ways if way.tensor == name and way.waiting_bytes <= most]
        if not found:
            return None
        chosen = found[0]
        return replace(chosen, readers=tuple(op for op in chosen.readers if op in ops))

    def _ops(self, number: int) -> tuple[Op, ...]:
        stage = self.prepared.stages[number]
        return (stage.op, *stage.fused)

    def _goes_on(self, first: int, last: int) -> bool:
        """Whether a cascade leads from one stage to another."""
        rows = self.prepared.rows
        return last - first < self.most_stages and any(
            span_of(rows, first, last, axis) is not None for axis in rows.axes(last)
        )
