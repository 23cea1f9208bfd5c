"""What no plan can do better: work of the engines, and bytes that must move.

Beside these, what no plan can do better that unrolls one loop over each array dim and runs the
stages in the given order, one after the other: such plans are made here. Let A(i) be the cycles
that the array needs for the stages before i, and E(i) the moment when all of that work is done. At
E(j) at most a scratchpad full of constants for the stages from j + 1 on can be on the chip (stage j
itself may be under way on some cores); the rest of what the stages up to i - 1 need still has to be
loaded before E(i):

    E(i) >= E(j) + max(A(i) - A(j), (W(j + 1 .. i - 1) - room) / rate)      for all j < i
    E(i) >= W(0 .. i - 1) / rate

Before the first byte comes a transfer is set up, and the part of a result that is computed last, or
from what came last, leaves by a transfer that is set up only then. Both come on top of all of these
where every operand lies in a scratchpad while it is used, and every element that is computed is
used for a result: then some transfer of a result waits for the task that ends last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from tilewright.network.graph import Network, Operand, Tensor
from tilewright.program.crossings import (
    carriers_have_homes,
    crossings,
    least_cycles,
    least_pj,
    rate_of,
)
from tilewright.program.homes import Homes
from tilewright.program.needed import needed_of, takes_all
from tilewright.program.places import Places
from tilewright.program.stages import Stage, Storage
from tilewright.program.tile_cost import TileCosts


@dataclass(frozen=True, kw_only=True)
class NetworkBounds:
    """Lower bounds of a network on a machine, whatever the plan; cycles of each kind of engine."""

    array_cycles: int
    """Every product on a unit of its own, as far as loops reach along the dims of the array."""
    vector_cycles: int
    transfer_cycles: int
    """Every constant and what is read of every input comes once."""
    shared_cycles: int
    """The same, and every result goes once, where both go through the same engines or ports."""
    begin_cycles: int
    """What comes before each of these: the first transfer's set-up."""
    end_cycles: int
    """What comes behind the work of engines and what comes in: the last transfer."""
    traffic_bytes: int
    """The bytes that come so, and every result goes once."""
    energy_pj: float
    """Of these bytes by their cheapest ways, of products and operations, and what leaks in
    `cycles`."""
    in_order_cycles: int
    """What no plan beats that unrolls one loop over each array dim, in this order of the stages."""

    @property
    def cycles(self) -> int:
        """The largest of the bounds that hold for every plan, with what comes before and behind."""
        work = max(self.array_cycles, self.vector_cycles, self.transfer_cycles)
        return self.begin_cycles + max(work + self.end_cycles, self.shared_cycles)


@dataclass(frozen=True, kw_only=True)
class LeastWork:
    """What every plan of a network has to do, whatever the sizes of scratchpads."""

    array_cycles: float
    own_array_cycles: np.ndarray[tuple[int], np.dtype[np.float64]]
    """By stage, with one loop over each array dim; 0 for those of another engine."""
    vector_cycles: float
    constant_bytes: np.ndarray[tuple[int], np.dtype[np.float64]]
    """By stage, those that it is the first to read."""
    entering_bytes: int
    leaving_bytes: int
    rate: float
    """Bytes a cycle that can come at once."""
    transfer_cycles: int
    shared_cycles: int
    ends_cycles: tuple[int, int]
    """What comes before, and behind."""
    energy_pj: float


def network_bounds(
    network: Network,
    stages: Sequence[Stage],
    storage: Mapping[str, Storage],
    places: Places,
    costs: TileCosts,
) -> NetworkBounds:
    """Bounds from the least work of every stage and the bytes that must come and go."""
    return bounds_of(least_work(network, stages, storage, places, costs), places)


def least_work(
    network: Network,
    stages: Sequence[Stage],
    storage: Mapping[str, Storage],
    places: Places,
    costs: TileCosts,
) -> LeastWork:
    """The least work of every stage and the bytes that must come and go."""
    own, array, vector, energy = np.zeros(len(stages)), 0.0, 0.0, 0.0
    needed = needed_of(network)
    for number, stage in enumerate(stages):
        # All are in proportion to the points.
        part = needed.points[stage.op.name] / max(1, stage.op.points)
        if stage.worker == "array":
            array += costs.least_steps(stage.op, part) / places.cores
            own[number] = costs.fewest_steps(stage.op, part) / places.cores
            energy += costs.least_array_pj(stage.op) * part
        elif stage.worker == "vector":
            vector += costs.fewest_vector_cycles(stage.op) * part / places.cores
            energy += costs.least_vector_pj(stage.op) * part
    moved, constants = crossings(stages, Homes(network, places, storage), needed)
    coming = [crossing for crossing in moved if not crossing.leaves]
    return LeastWork(
        array_cycles=array,
        own_array_cycles=own,
        vector_cycles=vector,
        constant_bytes=np.array(constants, dtype=np.float64),
        entering_bytes=sum(crossing.size_bytes for crossing in coming),
        leaving_bytes=sum(crossing.size_bytes for crossing in moved if crossing.leaves),
        rate=rate_of(coming, places),
        transfer_cycles=least_cycles(coming, places),
        shared_cycles=least_cycles(moved, places),
        ends_cycles=_ends_cycles(network, stages, storage, places),
        energy_pj=energy + least_pj(moved, places),
    )


def bounds_of(work: LeastWork, places: Places) -> NetworkBounds:
    """Bounds from the least work, with scratchpads of some sizes."""
    begin, end = work.ends_cycles
    least = NetworkBounds(
        array_cycles=_whole(work.array_cycles),
        vector_cycles=_whole(work.vector_cycles),
        transfer_cycles=work.transfer_cycles,
        shared_cycles=work.shared_cycles,
        begin_cycles=begin,
        end_cycles=end,
        traffic_bytes=work.entering_bytes + work.leaving_bytes,
        energy_pj=work.energy_pj,
        in_order_cycles=0,
    )
    lost_pj = places.leakage_pj_per_cycle * least.cycles
    least = replace(least, energy_pj=work.energy_pj + lost_pj)
    constants, room = work.constant_bytes, _room(places)
    joint = _joint(work.own_array_cycles, constants if room else 0 * constants, room, work.rate)
    return replace(least, in_order_cycles=max(least.cycles, begin + _whole(joint) + end))


def _whole(cycles: float) -> int:
    """Whole cycles of a sum, that may have gained its last digits by rounding."""
    return ceil(cycles * (1 - 1e-12))


def _ends_cycles(
    network: Network, stages: Sequence[Stage], storage: Mapping[str, Storage], places: Places
) -> tuple[int, int]:
    """Set-up of the first transfer, and the last transfer of a byte; 0 where some may do without.

    A stage that only moves, or reads nothing, or nothing but what may stream, may come before the
    one or after the other.
    """

    def is_whole(tensor: Tensor) -> bool:
        return tensor.elements == network.by_name[storage[tensor.name].root].elements

    def waits(stage: Stage) -> bool:
        roles = [network.by_name[operand.tensor].role for operand in stage.inputs]
        may_stream = places.weights_may_stream
        return stage.worker != "move" and any(r != "constant" or not may_stream for r in roles)

    given = places.machine.given
    if (
        given.inputs
        or given.outputs
        or not carriers_have_homes(places)
        or not all(waits(stage) for stage in stages)
    ):
        return 0, 0
    wanted = {storage[tensor.name].root for tensor in network.outputs if is_whole(tensor)}
    for stage in reversed(stages):
        if not all(storage[made.tensor].root in wanted for made in stage.results):
            return 0, 0
        for operand in stage.inputs:
            tensor = network.by_name[operand.tensor]
            is_made = tensor.role != "constant"
            if is_made and is_whole(tensor) and _reads_all(stage, operand, tensor):
                wanted.add(storage[tensor.name].root)
    kinds = {space.name: space.kind for space in places.spaces}
    coming = [r for r in places.routes.values() if kinds[r.source] in ("external", "source")]
    going = [r for r in places.routes.values() if kinds[r.target] in ("external", "sink")]
    first = min((route.setup_cycles for route in coming), default=0)
    return first, min((route.cycles(1) for route in going), default=0)


def _reads_all(stage: Stage, operand: Operand, tensor: Tensor) -> bool:
    """Whether a stage surely reads every element of an operand, as strides may leave some out."""
    if operand.index is None or stage.op.searches(operand):
        return False
    loops = [dim for axis in operand.index for dim, _ in axis.terms]
    # In a window of more than one element, it is not said which of them are used.
    is_vague = any(axis.reach >= axis.divisor for axis in operand.index)
    if is_vague or len(loops) > len(dict.fromkeys(loops)):
        return False
    return all(
        takes_all(axis, size, stage.op.sizes)
        for axis, size in zip(operand.index, tensor.shape, strict=True)
    )


def _room(places: Places) -> int:
    """Bytes of constants that the scratchpads can hold ahead of their use; 0 if they stream."""
    home = places.home("I2")
    return 0 if home is None else home.size_bytes * places.cores


def _joint(
    array: np.ndarray[tuple[int], np.dtype[np.float64]],
    weights: np.ndarray[tuple[int], np.dtype[np.float64]],
    room: int,
    rate: float,
) -> float:
    count = len(array)
    work = np.concatenate([[0.0], np.cumsum(array)])
    loaded = np.concatenate([[0.0], np.cumsum(weights)])
    done = np.zeros(count + 1)
    for i in range(1, count + 1):
        moved = (loaded[i] - loaded[1 : i + 1] - room) / rate
        steps = done[:i] + np.maximum(work[i] - work[:i], moved)
        done[i] = max(loaded[i] / rate, float(steps.max()))
    return float(done[count])
