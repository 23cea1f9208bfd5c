"""The order of compute ops: the problem, what an order needs, and the depth-first order.

Copies are no part of the problem. The order of the ops that compute is decided first; a copy
belongs to its consumer and is put before it afterwards, so that it can never disturb the order.
"""

import heapq
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

Label = TypeVar("Label", bound=Hashable)
Order = tuple[int, ...]
"""Positions in `OrderProblem.ops`, first to run first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOp:
    """An op that reads and writes tensors, each given by its position in the problem's sizes."""

    name: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    in_place: bool = False
    """Whether the first write may take the bytes of the first read of its size, if that read is
    the tensor's last."""

    def __post_init__(self) -> None:
        if len(set(self.reads)) < len(self.reads):
            raise ValueError(f"op {self.name!r} reads a tensor twice")


@dataclass(frozen=True, kw_only=True)
class OrderProblem:
    """Ops in one order that works, and the bytes of the tensors between them.

    Inputs are alive from the start until their last use, outputs until the end, and a tensor that
    nothing reads only while its op runs.
    """

    ops: tuple[OrderOp, ...]
    sizes_bytes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        known = set(self.inputs)
        for op in self.ops:
            missing = [tensor for tensor in op.reads if tensor not in known]
            if missing:
                raise ValueError(f"op {op.name!r} reads tensor {missing[0]} before it is made")
            again = [tensor for tensor in op.writes if tensor in known]
            if again:
                raise ValueError(f"op {op.name!r} writes tensor {again[0]}, which is there already")
            known.update(op.writes)
        if known != set(range(len(self.sizes_bytes))):
            raise ValueError("every tensor must be an input or be written, and have a size")
        if not known.issuperset(self.outputs):
            raise ValueError("an output is neither an input nor written by any op")
        if min(self.sizes_bytes, default=0) < 0:
            raise ValueError("a tensor has a negative size")

    @cached_property
    def makers(self) -> tuple[int, ...]:
        """The op that writes each tensor; -1 for an input."""
        makers = [-1] * len(self.sizes_bytes)
        for number, op in enumerate(self.ops):
            for tensor in op.writes:
                makers[tensor] = number
        return tuple(makers)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """The ops that read each tensor."""
        readers: list[list[int]] = [[] for _ in self.sizes_bytes]
        for number, op in enumerate(self.ops):
            for tensor in op.reads:
                readers[tensor].append(number)
        return tuple(map(tuple, readers))

    @cached_property
    def producers(self) -> tuple[tuple[int, ...], ...]:
        """The ops each op must wait for, in the order of its reads."""
        return tuple(
            tuple(dict.fromkeys(self.makers[t] for t in op.reads if self.makers[t] >= 0))
            for op in self.ops
        )

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """The ops that wait for each op, in the order of `ops`."""
        consumers: list[list[int]] = [[] for _ in self.ops]
        for number, producers in enumerate(self.producers):
            for producer in producers:
                consumers[producer].append(number)
        return tuple(map(tuple, consumers))

    @cached_property
    def outlives(self) -> tuple[bool, ...]:
        """Whether each tensor is an output, hence alive until the end."""
        outputs = set(self.outputs)
        return tuple(tensor in outputs for tensor in range(len(self.sizes_bytes)))

    @cached_property
    def overwritable(self) -> tuple[int, ...]:
        """The tensor whose bytes each op may take over once nothing else reads it; -1 if none."""
        return tuple(self._overwritable(op) for op in self.ops)

    def _overwritable(self, op: OrderOp) -> int:
        if not (op.in_place and op.writes):
            return -1
        size = self.sizes_bytes[op.writes[0]]
        first = next((t for t in op.reads if self.sizes_bytes[t] == size), -1)
        return -1 if first < 0 or self.outlives[first] else first


def faults(problem: OrderProblem, order: Sequence[int]) -> Iterator[str]:
    """What keeps the order from being one of the problem's; nothing yielded = valid."""
    if sorted(order) != list(range(len(problem.ops))):
        yield f"{len(order)} places for {len(problem.ops)} ops that must each run once"
        return
    known = set(problem.inputs)
    for number in order:
        op = problem.ops[number]
        for tensor in op.reads:
            if tensor not in known:
                yield f"op {op.name!r} reads tensor {tensor} before it is made"
        known.update(op.writes)


def live_bytes(problem: OrderProblem, order: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Bytes alive before each op of the order, and while it runs, its writes included."""
    sizes, stays = problem.sizes_bytes, problem.outlives
    unread = [len(readers) for readers in problem.readers]
    alive = sum(sizes[t] for t in problem.inputs if unread[t] or stays[t])
    for number in order:
        op = problem.ops[number]
        taken = problem.overwritable[number]
        saved = sizes[taken] if taken >= 0 and unread[taken] == 1 else 0
        written = sum(sizes[t] for t in op.writes)
        yield alive, alive + written - saved
        for tensor in op.reads:
            unread[tensor] -= 1
        ended = sum(sizes[t] for t in (*op.reads, *op.writes) if not (unread[t] or stays[t]))
        alive += written - ended


def peak_bytes(problem: OrderProblem, order: Sequence[int]) -> int:
    """The most bytes alive at once when the ops run in this order; 0 without ops."""
    return max((during for _, during in live_bytes(problem, order)), default=0)


def depth_first(problem: OrderProblem) -> Order:
    """Depth-first from the outputs: at a join, the branch first that saves most by going first.

    That is the one with the largest difference between what it needs and what it leaves (Sethi and
    Ullman, JACM 17, 1970), so a short branch runs late, near its use; with equal differences the
    longer branch is first, and then the first read. An op that leaves fewer bytes alive than it
    found runs as soon as it can. Names and the order of `ops` do not matter.
    """
    return _release_early(problem, _from_outputs(problem))


def _from_outputs(problem: OrderProblem) -> Order:
    gains, depths = _branches(problem)

    def by_gain(producers: Iterable[int]) -> list[int]:
        return sorted(producers, key=lambda op: (-gains[op], -depths[op]))

    order: list[int] = []
    seen = [False] * len(problem.ops)
    for root in by_gain(_roots(problem)):
        stack = [(root, iter(by_gain(problem.producers[root])))]
        seen[root] = True
        while stack:
            op, producers = stack[-1]
            unseen = next((p for p in producers if not seen[p]), -1)
            if unseen < 0:
                order.append(op)
                stack.pop()
            else:
                seen[unseen] = True
                stack.append((unseen, iter(by_gain(problem.producers[unseen]))))
    return tuple(order)


def _release_early(problem: OrderProblem, order: Order) -> Order:
    """The order, with ops that end more bytes than they bring pulled to where they first can run.

    Ops whose writes nobody reads are pulled too: nothing else would call for them.
    """
    rank = {op: place for place, op in enumerate(order)}
    waiting = [len(producers) for producers in problem.producers]
    unread = [len(readers) for readers in problem.readers]
    result: list[int] = []
    has_run = [False] * len(order)

    def releases(op: int) -> bool:
        reads, writes = problem.ops[op].reads, problem.ops[op].writes
        kept = sum(problem.sizes_bytes[t] for t in writes if unread[t] or problem.outlives[t])
        ended = sum(
            problem.sizes_bytes[t] for t in reads if unread[t] == 1 and not problem.outlives[t]
        )
        return ended > kept or not any(unread[t] or problem.outlives[t] for t in writes)

    for next_op in order:
        candidates = [] if has_run[next_op] else [(rank[next_op], next_op)]
        while candidates:
            _, op = heapq.heappop(candidates)
            if has_run[op] or waiting[op] or not (op == next_op or releases(op)):
                continue
            has_run[op] = True
            result.append(op)
            for consumer in problem.consumers[op]:
                waiting[consumer] -= 1
            for tensor in problem.ops[op].reads:
                unread[tensor] -= 1
            rivals = (reader for t in problem.ops[op].reads for reader in problem.readers[t])
            for other in (*problem.consumers[op], *rivals):
                heapq.heappush(candidates, (rank[other], other))
    return tuple(result)


def _roots(problem: OrderProblem) -> list[int]:
    """The ops that write outputs, in the outputs' order, then those whose writes nobody reads."""
    makers = (problem.makers[tensor] for tensor in problem.outputs)
    idle = (op for op, consumers in enumerate(problem.consumers) if not consumers)
    return list(dict.fromkeys((*(op for op in makers if op >= 0), *idle)))


def _branches(problem: OrderProblem) -> tuple[list[int], list[int]]:
    """Per op: bytes its branch needs above what it leaves, and the ops on its longest path.

    A branch that is shared counts in full wherever it is read.
    """
    needs: list[int] = []
    gains: list[int] = []
    depths: list[int] = []
    for number, op in enumerate(problem.ops):
        producers = sorted(problem.producers[number], key=lambda p: (-gains[p], -depths[p]))
        held, need = 0, 0
        for producer in producers:
            need = max(need, held + needs[producer])
            held += needs[producer] - gains[producer]
        written = sum(problem.sizes_bytes[t] for t in op.writes)
        read = sum(problem.sizes_bytes[t] for t in op.reads)
        needs.append(max(need, read + written))
        gains.append(needs[-1] - written)
        depths.append(1 + max((depths[p] for p in producers), default=0))
    return gains, depths


def sink_late(
    problem: OrderProblem, order: Sequence[int], movable: Collection[int], joins: Collection[int]
) -> Order:
    """One sweep from the last op to the first that brings ops to where they are needed.

    A movable join goes directly after the last of its producers, any other movable op directly
    before the first of its consumers: a branch that stood before its sibling moves behind it.
    """
    places = list(order)
    for op in reversed(order):
        if op not in movable:
            continue
        if op in joins and problem.producers[op]:
            places.remove(op)
            places.insert(1 + max(places.index(p) for p in problem.producers[op]), op)
        elif op not in joins and problem.consumers[op]:
            places.remove(op)
            places.insert(min(places.index(c) for c in problem.consumers[op]), op)
    return tuple(places)


def with_copies(
    order: Sequence[Label], copies: Sequence[tuple[Label, Sequence[Label]]]
) -> tuple[Label, ...]:
    """The order with every copy directly before the first of its consumers.

    `copies` are pairs of a copy and those who read it; copies of one consumer keep their order.

    >>> with_copies("abc", [("x", "cb"), ("y", "a")])
    ('y', 'a', 'x', 'b', 'c')
    """
    rank = {op: place for place, op in enumerate(order)}
    before: list[list[Label]] = [[] for _ in order]
    for copy, consumers in copies:
        before[min(rank[consumer] for consumer in consumers)].append(copy)
    return tuple(label for place, op in enumerate(order) for label in (*before[place], op))
