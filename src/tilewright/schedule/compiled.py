"""Simulations by the compiled kernel: a program as flat arrays, and a finished run as a state.

`_simulate.c` makes the decisions of `simulate`, as long as nothing is computed again; a run that
it does not carry to its end is left to `simulate`.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain

from tilewright.program.model import Box
from tilewright.schedule.claims import StuckError
from tilewright.schedule.contents import Held, box_bytes, surviving
from tilewright.schedule.evict import Like, is_repeatable, like_route, reload_like
from tilewright.schedule.options import Policy
from tilewright.schedule.order import Order
from tilewright.schedule.state import Added, Score, State, TooSlowError, planned_bytes
from tilewright.schedule.tables import LOAD, STORE, Tables

try:
    from tilewright.schedule import _simulate as kernel
except ImportError:
    kernel = None  # type: ignore[assignment]  # not compiled here

_DONE, _TOO_SLOW, _STUCK = range(3)
"""How a run of the kernel ends; otherwise it is not one for the kernel."""

_MOST = 1 << 56
"""Cycles or bytes of a program; the kernel counts in 64 bits, and tasks are added."""

_NO_WAY: Like = (0, 0, 0, ())


def is_compiled() -> bool:
    """Whether the compiled simulation is there."""
    return kernel is not None


def compiled_of(tables: Tables) -> "Compiled | None":
    """A program for the kernel; None if that is not there, or its numbers are too small."""
    largest = max(sum(tables.work_cycles), sum(tables.aligned_bytes), *tables.room_bytes, 0)
    return Compiled(tables) if is_compiled() and largest < _MOST else None


class Compiled:
    """A program as the kernel wants it, for all runs."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.made = [
            (task, *written) for task, writes in enumerate(tables.writes) for written in writes
        ]
        """The task, the buffer and the box of everything that is written."""
        routes = tables.program.routes
        engines = {name: number for number, name in enumerate(tables.engine_names)}
        ports = (*tables.ports, *(tuple(engines[p] for p in route.ports) for route in routes))
        self.port_lists = {
            ports: number for number, ports in enumerate(dict.fromkeys((*ports, ())))
        }
        self._arrays = self._of_tables()
        self._uses: list[list[int]] | None = None
        """Of the order whose arrays are there; orders that only let go otherwise share them."""
        self._prices: dict[int, tuple[int, ...]] = {}
        self._parts: dict[tuple[int, Box], int] = {}
        self._survivors: dict[tuple[int, int, tuple[int, ...]], list[int] | None] = {}

    def run(self, order: Order, policy: Policy, keys: list[int], limit: Score) -> State | None:
        """Run a program to its end; None if the run is not one for the kernel.

        Raises what `simulate` raises.
        """
        if order.uses is not self._uses:
            self._uses = order.uses
            self._arrays |= _of_order(order)
        arrays = {
            **self._arrays,
            "release": array("q", order.release),
            "key": array("q", keys),
            "planned": array("q", planned_bytes(self.tables, policy)),
            "rules": _rules(policy, limit),
        }
        given = tuple([arrays[name] for name in kernel.INPUTS])
        ending, is_short, lists = kernel.simulate(given, self.price, self.survivors)
        if ending == _TOO_SLOW:
            raise TooSlowError(is_short)
        if ending == _STUCK:
            raise self._stuck(*lists)
        if ending != _DONE:
            return None
        state = State(self.tables, order, policy, keys)
        state.is_short = is_short
        self._finish(state, lists)
        return state

    def price(self, number: int) -> tuple[int, ...]:
        """Whether something made exists elsewhere or can be repeated, and how it is moved.

        There are three ways to move it: fetched from elsewhere, written out, and back.
        """
        if number not in self._prices:
            tables = self.tables
            task, buffer, box = self.made[number]
            held = Held(buffer, box, task)
            root = tables.root[buffer]
            is_clean = tables.reloadable[task]
            spill = tables.spill[tables.scratchpad[root]]
            ways = [reload_like(tables, root, held) if is_clean else _NO_WAY, _NO_WAY, _NO_WAY]
            if spill is not None:
                size_bytes = box_bytes(tables.program, held)
                ways[1:] = [like_route(tables, way, size_bytes) for way in (spill.out, spill.back)]
            flat = [(*way[:3], self.port_lists[way[3]]) for way in ways]
            again = is_repeatable(tables, root, task)
            self._prices[number] = (1, is_clean, again, *flat[0], *flat[1], *flat[2])
        return self._prices[number]

    def survivors(self, root: int, made: list[int], settled: int) -> list[int] | None:
        """What is left of all that was written; None if it cannot be told.

        Three numbers for each piece: which one it was, its own, and whether it is only a part.
        """
        key = root, settled, tuple(made)
        if key not in self._survivors:
            self._survivors[key] = self._surviving(root, made, settled)
        return self._survivors[key]

    def _surviving(self, root: int, made: list[int], settled: int) -> list[int] | None:
        held = [Held(*self.made[number][1:], i) for i, number in enumerate(made)]
        left = surviving(self.tables.program, root, held, settled)
        if left is None:
            return None
        numbers: list[int] = []
        for piece in left:
            number = made[piece.writer]
            if not piece.whole:
                number = self._part(number, piece.box)
            numbers += (piece.writer, number, not piece.whole)
        return numbers

    def _part(self, number: int, box: Box) -> int:
        """The number of a part of what was written."""
        task, buffer, _ = self.made[number]
        if (number, box) not in self._parts:
            self._parts[number, box] = len(self.made)
            self.made.append((task, buffer, box))
        return self._parts[number, box]

    def _of_tables(self) -> dict[str, "array[int]"]:
        tables = self.tables
        return {
            "engine": array("q", tables.engine),
            "cycles": array("q", tables.cycles),
            "setup": array("q", tables.setup),
            "kind": array("q", tables.kind),
            "ports": array("q", [self.port_lists[ports] for ports in tables.ports]),
            "pending": array("q", map(len, tables.after)),
            "instances": array("q", tables.instances),
            "work": array("q", tables.work_cycles),
            **_flat("touched", tables.touched),
            **_flat("written", tables.written),
            **_flat("sources", tables.sources),
            **_flat("after", tables.after),
            **_flat("followers", tables.followers),
            "made_at": array("q", accumulate(map(len, tables.writes), initial=0)),
            "made_root": array("q", [tables.root[buffer] for _, buffer, _ in self.made]),
            **_flat("port_list", self.port_lists),
            "pad_of": array("q", tables.scratchpad),
            "size": array("q", tables.size_bytes),
            "aligned": array("q", tables.aligned_bytes),
            "rolling": array("q", tables.rolling),
            "transfer_engines": array("q", tables.transfer_engines),
            **_of_spaces(tables),
        }

    def _stuck(self, task: list[int], pairs: list[int]) -> StuckError:
        lying: list[list[int]] = [[] for _ in self.tables.scratchpads]
        for pad, root in sorted(_rows(pairs, 2)):
            lying[pad].append(root)
        return StuckError(task[0], lying)

    def _finish(self, state: State, lists: Sequence[list[int]]) -> None:
        """Make a new state the one at the end of a run."""
        (state.now, added_cycles), start, instance, likes, added, copies, used_copies = lists
        port_lists = list(self.port_lists)
        for (engine, cycles, setup, ports), row in zip(
            _rows(likes, 4), _rows(added, 8), strict=True
        ):
            root, made, writer, is_part, out, copy, saved, origin = row
            _, buffer, box = self.made[made]
            held = Held(buffer, box, writer, not is_part)
            task = Added(root=root, held=held, out=bool(out), copy=copy, saved=saved, origin=origin)
            state.add_task(task, (engine, cycles, setup, port_lists[ports]), STORE if out else LOAD)
        assert state.added_cycles == added_cycles
        state.start, state.instance = start, instance
        state.unfinished, state.current = 0, len(state.order.steps)
        for root, copy, address, begin, end in _rows(copies, 5):
            state.copy_address[root, copy] = address
            state.copy_begin[root, copy] = begin
            if end >= 0:
                state.copy_end[root, copy] = end
        for user, root, copy in _rows(used_copies, 3):
            state.used_copies.setdefault(user, []).append((root, copy))


def _of_order(order: Order) -> dict[str, "array[int]"]:
    position = order.position
    return {
        "position": array("q", position),
        "left_cycles": array("q", order.left_cycles),
        "sequence": array("q", order.sequence),
        "steps": array("q", order.steps),
        **_flat("queues", order.queues),
        **_flat("uses", order.uses),
        "last_step": array("q", [position[uses[-1]] if uses else 0 for uses in order.uses]),
        "live": array("q", chain.from_iterable(order.live_bytes)),
    }


def _of_spaces(tables: Tables) -> dict[str, "array[int]"]:
    spaces = [tables.program.space[name] for name in tables.scratchpads]
    walls = [
        (pad, begin, end)
        for pad, space in enumerate(spaces)
        for begin, end in sorted(space.reserved)
    ]
    return {
        "pad_size": array("q", [space.size_bytes for space in spaces]),
        "pad_alignment": array("q", tables.alignment),
        "has_spill": array("q", [spill is not None for spill in tables.spill]),
        "walls": array("q", chain.from_iterable(walls)),
    }


def _rules(policy: Policy, limit: Score) -> "array[int]":
    return array(
        "q",
        (
            policy.prefetch,
            policy.guarded,
            policy.stores_first,
            policy.by_life,
            policy.both_ends,
            policy.eviction == "distance",
            policy.key == "slack",
            policy.addresses_later,
            policy.recompute,
            policy.window,
            policy.lookahead_steps,
            *limit,
        ),
    )


def _flat(name: str, lists: Iterable[Sequence[int]]) -> Mapping[str, "array[int]"]:
    """All lists in one, and where each of them begins (and the last one ends)."""
    known = list(lists)
    return {
        name: array("q", chain.from_iterable(known)),
        f"{name}_at": array("q", accumulate(map(len, known), initial=0)),
    }


def _rows(numbers: list[int], width: int) -> Iterable[tuple[int, ...]]:
    return zip(*[iter(numbers)] * width, strict=True)
