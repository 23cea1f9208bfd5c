"""Plans for smaller scratchpads, too: with more memory a plan is then never worse, and there may be
one in less than was thought to be the least.

A plan for less memory is one for more of it. If the sizes to plan for are a fixed set, of which
those are taken that are no larger than what there is, then more memory only adds to them, and what
is best among their plans gets no worse. The set is a grid: sizes m * 2^k with m from 8 to 15, and
those of the machine itself. A size between two of them counts as the one below.

Of several scratchpads the set has those that lie on lines through the sizes of the machine: all
get smaller together, a step of the grid each, or one of them does and the others stay.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

from tilewright.errors import InfeasibleError
from tilewright.machine.limits import with_memory_limits
from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.plan_memory import resized
from tilewright.plan_model import Plan, PlanOptions
from tilewright.program.lower import Prepared
from tilewright.replay.check import check
from tilewright.schedule.bounds import bounds

STEPS = 8
"""Sizes of the grid from one power of two to the next."""

MANY_TILES = 5_000
"""No plans are made for sizes in which a network is cut into more of them."""

LITTLE_WORK = 2_048
"""Nor where tiles compute fewer points than this on average."""

FEW_TILES = 250
"""So many are never too many."""

GAP = 2
"""So many sizes in a row without a plan, or with too many tiles, end a line."""

MOST_TRIALS = 6
"""In so many sizes a plan is looked for that takes less memory than the one that is known."""


def best_of_sizes(
    plan_on: Callable[[Machine], Plan | None],
    machine: Machine,
    whole: Prepared,
    options: PlanOptions,
) -> Plan | None:
    """The best of the plans for sizes of the grid that are no larger than the scratchpads; None if
    none of them has one.

    `machine` has the sizes through which lines go, `whole` those that there are.

    Raises:
        LimitError: the plan did not pass its check, which is a fault of Tilewright.
    """
    limited = whole.places.machine
    best: Plan | None = None
    has_plan: dict[Machine, bool] = {}
    for line in _lines(_pads(machine, limited)):
        missing = 0
        for sizes in line:
            smaller = with_memory_limits(machine, tuple(sizes.items()))
            if smaller not in has_plan:
                found = plan_on(smaller)
                has_plan[smaller] = found is not None
                best = min((p for p in (best, found) if p is not None), key=value_of, default=None)
            missing = 0 if has_plan[smaller] else missing + 1
            if missing == GAP or (best is not None and _is_best(best, whole)):
                break
    return None if best is None else on_sizes_of(whole, best, options)


def least_of_sizes(
    plan_on: Callable[[Machine], Plan | None], known: Plan, whole: Prepared, options: PlanOptions
) -> Plan:
    """The plan in the least memory: one that is known and checked, or of those for a half of what
    it takes, and for sizes between what is enough and what is not.

    Raises:
        LimitError: the plan did not pass its check, which is a fault of Tilewright.
    """
    best, too_little = known, 0.0
    for _ in range(MOST_TRIALS):
        enough = _filled(best, whole.places.machine)
        size = sqrt(enough * too_little) if too_little else enough / 2
        found = plan_on(resized(whole.places.machine, size)) if size else None
        if found is None or _filled(found, whole.places.machine) >= enough:
            too_little = size
        else:
            best = found
    return known if best is known else on_sizes_of(whole, best, options)


def _filled(plan: Plan, machine: Machine) -> float:
    """The part of the scratchpads that a plan takes, of the one that is filled most."""
    pads = [memory for memory in machine.memories if memory.role == "scratchpad"]
    return max([plan.peak_bytes[pad.name] / pad.size_bytes for pad in pads], default=0.0)


def most_tiles(network: Network) -> int:
    """Into how many tiles a network is cut in the smallest sizes that are worth a plan."""
    points = sum(op.points for op in network.ops)
    return min(MANY_TILES, max(FEW_TILES, points // LITTLE_WORK))


def value_of(plan: Plan) -> tuple[float, ...]:
    """What the objective of a plan makes small."""
    match plan.options.objective:
        case "traffic":
            return plan.outside_bytes, plan.cycles
        case "energy":
            return sum(plan.energy_pj.values()), plan.cycles
        case _:
            return plan.cycles, plan.outside_bytes


def fits(plan: Plan, machine: Machine) -> bool:
    """Whether the memories of a machine hold what a plan takes of them."""
    sizes = {memory.name: memory.size_bytes for memory in machine.memories}
    return all(taken <= sizes.get(name, taken) for name, taken in plan.peak_bytes.items())


def of_less_energy(
    found: Plan | InfeasibleError, fast: Plan | None, options: PlanOptions
) -> Plan | InfeasibleError:
    """A plan for less energy, or one for less latency if that takes less: it ends earlier, and less
    leaks until then."""
    if fast is None:
        return found
    fast = replace(fast, options=options)
    return fast if isinstance(found, InfeasibleError) else min(found, fast, key=value_of)


def of_less_memory(
    found: Plan | InfeasibleError, fast: Plan | None, machine: Machine, options: PlanOptions
) -> Plan | InfeasibleError:
    """A plan for less memory, or one for less latency if that takes less: it may have more tiles
    than seem worth the memory that they save."""
    if fast is None:
        return found
    fast = replace(fast, options=options)
    if isinstance(found, InfeasibleError):
        return fast
    return min(found, fast, key=lambda plan: _filled(plan, machine))


def step_of(size: int) -> int:
    """The place in the grid of a size, or of the next smaller one that is in it."""
    shift = max(0, size.bit_length() - (2 * STEPS - 1).bit_length())
    return STEPS * shift + (size >> shift)


def size_at(step: int) -> int:
    """The size at a place in the grid."""
    shift = max(0, step // STEPS - 1)
    return (step - STEPS * shift) << shift


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pad:
    """A scratchpad of a machine, and how much of it there is."""

    name: str
    alignment_bytes: int
    machine_bytes: int
    at_hand_bytes: int

    @property
    def is_whole(self) -> bool:
        """Whether there is as much as the machine has."""
        return self.machine_bytes <= self.at_hand_bytes

    @property
    def machine_step(self) -> int:
        """Where in the grid the size of the machine is."""
        return step_of(self.machine_bytes // self.alignment_bytes)

    @property
    def at_hand_step(self) -> int:
        """Where in the grid the size is that there is."""
        return step_of(self.at_hand_bytes // self.alignment_bytes)

    def bytes_at(self, step: int) -> int:
        """The size at a place in the grid."""
        return size_at(step) * self.alignment_bytes

    @property
    def counts_as_bytes(self) -> int:
        """The largest size of the set that there is."""
        on_grid = self.bytes_at(self.at_hand_step)
        return max(on_grid, self.machine_bytes) if self.is_whole else on_grid


def _pads(machine: Machine, limited: Machine) -> list[_Pad]:
    return [
        _Pad(
            name=memory.name,
            alignment_bytes=memory.alignment_bytes,
            machine_bytes=memory.size_bytes,
            at_hand_bytes=other.size_bytes,
        )
        for memory, other in zip(machine.memories, limited.memories, strict=True)
        if memory.role == "scratchpad"
    ]


def _lines(pads: Sequence[_Pad]) -> Iterator[Iterator[Mapping[str, int]]]:
    """Sizes to plan for, in bytes by name, each line from large to small."""
    yield iter([{pad.name: pad.counts_as_bytes for pad in pads}])
    yield _line(pads, pads)
    for pad in pads if len(pads) > 1 else ():
        yield _line([pad], pads)


def _line(moving: Sequence[_Pad], pads: Sequence[_Pad]) -> Iterator[Mapping[str, int]]:
    """Sizes of the set, some scratchpads smaller by the same steps and the others whole."""
    if not all(pad.is_whole for pad in pads if pad not in moving):
        return
    whole = {pad.name: pad.machine_bytes for pad in pads}
    first = min((pad.at_hand_step - pad.machine_step for pad in moving), default=0)
    for steps in range(first, -min((pad.machine_step for pad in moving), default=0), -1):
        if steps == 0 and all(pad.is_whole for pad in pads):
            yield whole
        yield whole | {pad.name: pad.bytes_at(pad.machine_step + steps) for pad in moving}


def _is_best(plan: Plan, whole: Prepared) -> bool:
    """Whether no plan has a better value."""
    match plan.options.objective:
        case "traffic":
            return plan.outside_bytes <= whole.bounds.traffic_bytes
        case "energy":
            return False
        case _:
            return plan.cycles <= whole.bounds.in_order_cycles


def on_sizes_of(whole: Prepared, other: Plan, options: PlanOptions) -> Plan:
    """A plan for other scratchpads, that fits in those that there are, as one for these, checked.

    Raises:
        LimitError: the plan did not pass its check, which is a fault of Tilewright.
    """
    spaces = whole.places.spaces
    program = replace(other.program, spaces=spaces)
    timetable = replace(other.timetable, program=program)
    if options.checked:
        check(timetable, whole.network, whole.places.machine)
    return replace(
        other,
        machine=whole.places.machine,
        options=options,
        timetable=timetable,
        bounds=bounds(replace(other.bounds.tables.program, spaces=spaces)),
        roofline=whole.bounds,
        assumptions=whole.places.assumptions,
    )
