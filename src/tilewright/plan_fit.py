"""The ladder of a network on a machine, with the least memory that a plan was found for."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from tilewright.errors import InfeasibleError
from tilewright.machine.model import Machine
from tilewright.network.counts import macs
from tilewright.network.graph import Network
from tilewright.plan_model import Plan, PlanOptions, Watcher
from tilewright.planner import plan, plan_that_fits
from tilewright.program.executed import macs_executed
from tilewright.schedule.packed import buffer_lives
from tilewright.strategy.ladder import fit as ladder
from tilewright.strategy.ladder.fit import Fit, with_least
from tilewright.strategy.ladder.liveness import Alive
from tilewright.strategy.ladder.rungs import Rung

LEAST = PlanOptions(objective="memory")


def fit(
    network: Network, machine: Machine | None = None, watcher: Watcher = lambda step: None
) -> Fit:
    """The capacity ladder of a network, judged by a machine's scratchpads.

    On a machine it has the rung `cascades`: what the plan in the least memory takes, whose weights
    may come in pieces, unless it is more than another rung needs.
    """
    found = ladder.fit(network, machine)
    if machine is None or found.rooms is None or not found.rooms.rooms:
        return found
    with suppress(InfeasibleError):
        made = plan(network, machine, replace(LEAST, checked=False), watcher)
        return with_least(found, rung_of(made))
    return found


def plan_of_fit(found: Fit, watcher: Watcher = lambda step: None) -> Plan:
    """The plan of the first rung that fits; an ordinary one if it has none.

    Raises:
        InfeasibleError: no rung fits and there is no ordinary plan either.
    """
    if found.machine is not None and found.first is not None and found.first.name == "cascades":
        return plan(found.network, found.machine, LEAST, watcher)
    return plan_that_fits(found, watcher)


def rung_of(made: Plan) -> Rung:
    """What a plan takes of the scratchpads, as a rung."""
    memories = {s.memory for s in made.program.spaces if s.kind == "scratchpad"}
    alive = _alive(made)
    multiplied = sum(macs(op, made.network) for op in made.network.ops)
    done = macs_executed(made.program, made.network)
    return Rung(
        name="cascades",
        activation_bytes=sum(tensor.size_bytes for tensor in alive),
        total_bytes=sum(made.peak_bytes[memory] for memory in sorted(memories)),
        macs_factor=done / multiplied if multiplied else 1.0,
        granularity=None,
        alive=alive,
    )


def _alive(made: Plan) -> tuple[Alive, ...]:
    """What a plan holds beside constants where most of that is alive: in each memory, on the core
    that holds most."""
    program, lives = made.program, _lives(made)
    most: dict[str, tuple[int, tuple[int, ...]]] = {}
    for space in program.spaces:
        if space.kind == "scratchpad":
            own = {n: life for n, life in lives.items() if program.buffers[n].space == space.name}
            most[space.memory] = max(most.get(space.memory, (0, ())), _peak(made, own))
    found: dict[tuple[str, bool], list[int]] = {}
    for buffer in (program.buffers[n] for _, numbers in most.values() for n in numbers):
        is_sum = "partial sums" in buffer.name.removeprefix(buffer.tensor)
        found.setdefault((buffer.tensor, is_sum), []).append(buffer.size_bytes)
    alive = [
        Alive(tensor=tensor, size_bytes=sum(sizes), chunks=len(sizes), is_sum=is_sum)
        for (tensor, is_sum), sizes in found.items()
    ]
    return tuple(sorted(alive, key=lambda a: (-a.size_bytes, a.tensor, a.is_sum)))


def _lives(made: Plan) -> dict[int, tuple[int, int]]:
    """From when to when each buffer is there, constants left out."""
    buffers, tensors = made.program.buffers, made.network.by_name
    lives = buffer_lives(made.timetable).items()
    return {n: life for n, life in lives if tensors[buffers[n].tensor].role != "constant"}


def _peak(made: Plan, lives: Mapping[int, tuple[int, int]]) -> tuple[int, tuple[int, ...]]:
    """The most bytes at once, and whose they are."""
    sizes = {number: made.program.buffers[number].size_bytes for number in lives}
    changes = [(start, sizes[n]) for n, (start, _) in lives.items()]
    changes += [(end, -sizes[n]) for n, (_, end) in lives.items()]
    size = peak = when = 0
    for at, change in sorted(changes):
        size += change
        if size > peak:
            peak, when = size, at
    return peak, tuple(sorted(n for n, (start, end) in lives.items() if start <= when < end))
