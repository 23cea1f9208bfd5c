"""An order of the compute tasks that fits when nothing can be written out, if there is one.

One task at a time, data fetched right before it and results stored right behind it: what is in the
way then is only what was computed, is still needed, and cannot be fetched again. That depends on
*which* tasks are done, not on their order, so every set of tasks is looked at once.
"""

from collections.abc import Iterator, Sequence

from tilewright.schedule.tables import COMPUTE, LOAD, Tables

MOST_LOOKS = 1_000_000
"""A program whose shortest search looks at more buffers than this, one by one, is not searched."""


def feasible_order(tables: Tables, nodes: int) -> list[int] | None:
    """A topological order of all tasks that fits, or None if none was found in so many sets."""
    n_computes = sum(kind == COMPUTE for kind in tables.kind)
    # Even without a single wrong turn there are as many sets as tasks, and each looks at all data.
    if n_computes > nodes or n_computes * len(tables.users) > MOST_LOOKS:
        return None
    found = _Orders(tables, nodes).first()
    return None if found is None else _with_transfers(tables, found)


class _Orders:
    def __init__(self, tables: Tables, nodes: int) -> None:
        self.tables = tables
        self.nodes = nodes
        self.computes = [t for t, kind in enumerate(tables.kind) if kind == COMPUTE]
        self.before = {task: self._compute_before(task) for task in self.computes}
        self.dead_ends: set[frozenset[int]] = set()

    def _compute_before(self, task: int) -> frozenset[int]:
        """Compute tasks that must be done, also through transfers."""
        found: set[int] = set()
        open_tasks = list(self.tables.after[task])
        while open_tasks:
            other = open_tasks.pop()
            if other in found:
                continue
            found.add(other)
            if self.tables.kind[other] != COMPUTE:
                open_tasks.extend(self.tables.after[other])
        return frozenset(t for t in found if self.tables.kind[t] == COMPUTE)

    def first(self) -> list[int] | None:
        """The first order of all compute tasks that fits, depth first, or None."""
        done: frozenset[int] = frozenset()
        order: list[int] = []
        choices = [self._choices(done)]
        while choices and len(order) < len(self.computes):
            task = next(choices[-1], None)
            if task is not None:
                order.append(task)
                done |= {task}
                choices.append(self._choices(done))
                continue
            choices.pop()
            self.dead_ends.add(done)
            if order:
                done -= {order.pop()}
        return order if choices else None

    def _choices(self, done: frozenset[int]) -> Iterator[int]:
        """Tasks that may follow a set of done ones; none if that set is known to lead nowhere."""
        if done in self.dead_ends or self.nodes <= 0:
            return
        self.nodes -= 1
        kept = self._kept(done)
        for task in self.computes:
            if task not in done and self.before[task] <= done and self._fits(task, kept):
                yield task

    def _kept(self, done: frozenset[int]) -> frozenset[int]:
        """Roots that exist nowhere else and that tasks to come still touch."""
        tables = self.tables
        kept = set()
        for root, users in enumerate(tables.users):
            made = any(user in done and self._makes(user, root) for user in users)
            needed = any(tables.kind[user] == COMPUTE and user not in done for user in users)
            waits = any(
                tables.kind[user] != COMPUTE
                and not self._compute_before(user) <= done
                and not self._makes(user, root)
                for user in users
            )
            if made and (needed or waits):
                kept.add(root)
        return frozenset(kept)

    def _makes(self, user: int, root: int) -> bool:
        """Whether a task leaves data in a root that cannot be fetched again."""
        tables = self.tables
        if tables.kind[user] == LOAD and tables.reloadable[user]:
            return False
        return any(tables.root[buffer] == root for buffer, _ in tables.writes[user])

    def _fits(self, task: int, kept: frozenset[int]) -> bool:
        tables = self.tables
        used = [0] * len(tables.scratchpads)
        for root in sorted(kept | set(tables.touched[task])):
            used[tables.scratchpad[root]] += tables.aligned_bytes[root]
        return all(a <= b for a, b in zip(used, tables.room_bytes, strict=True))


def _with_transfers(tables: Tables, computes: Sequence[int]) -> list[int]:
    """Put every transfer where it is first needed or first possible."""
    order: list[int] = []
    placed: set[int] = set()

    def place(task: int) -> None:
        if task in placed:
            return
        placed.add(task)
        for before in tables.after[task]:
            place(before)
        order.append(task)

    for task in computes:
        place(task)
        for other in tables.followers[task]:
            if tables.kind[other] != COMPUTE and all(b in placed for b in tables.after[other]):
                place(other)
    for task in range(len(tables.engine)):
        place(task)
    return order
