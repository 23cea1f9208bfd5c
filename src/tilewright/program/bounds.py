"""What no plan can do better: work of the engines, bytes that must move, and both together.

The joint bound holds for every plan that runs the stages in the given order. Let A(i) be the cycles
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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from tilewright.machine.model import INPUT_OPERANDS, OUTPUT_OPERAND
from tilewright.network.graph import Network, Operand, Tensor
from tilewright.program.needed import Needed, needed_of, takes_all
from tilewright.program.places import Places
from tilewright.program.stages import Stage, Storage
from tilewright.program.tile_cost import TileCosts
from tilewright.units import packed_bytes


@dataclass(frozen=True, kw_only=True)
class NetworkBounds:
    """Lower bounds of a network on a machine, whatever the plan; cycles of each kind of engine."""

    array_cycles: int
    vector_cycles: int
    transfer_cycles: int
    """Every constant and what is read of every input comes once."""
    joint_cycles: int
    """With what a scratchpad can hold in advance, for this order of the stages."""
    ends_cycles: int
    """What comes before and behind each of these: the first transfer's set-up and the last one."""
    traffic_bytes: int
    """The bytes that come so, and every result goes once."""

    @property
    def cycles(self) -> int:
        """The largest of the bounds, with what comes before and behind."""
        middle = max(self.array_cycles, self.vector_cycles, self.transfer_cycles, self.joint_cycles)
        return middle + self.ends_cycles


@dataclass(frozen=True, kw_only=True)
class LeastWork:
    """What every plan of a network has to do, whatever the sizes of scratchpads."""

    array_cycles: np.ndarray[tuple[int], np.dtype[np.float64]]
    """By stage; 0 for those of another engine."""
    vector_cycles: float
    constant_bytes: np.ndarray[tuple[int], np.dtype[np.float64]]
    """By stage, those that it is the first to read."""
    entering_bytes: int
    leaving_bytes: int
    ends_cycles: int


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
    array, vector = np.zeros(len(stages)), 0.0
    constants = np.zeros(len(stages))
    known: set[str] = set()
    needed = needed_of(network)
    for number, stage in enumerate(stages):
        # Both are in proportion to the points.
        part = needed.points[stage.op.name] / max(1, stage.op.points) / places.cores
        if stage.worker == "array":
            array[number] = costs.fewest_steps(stage.op) * part
        elif stage.worker == "vector":
            vector += costs.fewest_vector_cycles(stage.op) * part
        constants[number] = sum(_constant_bytes(network, stage, known, needed))
    return LeastWork(
        array_cycles=array,
        vector_cycles=vector,
        constant_bytes=constants,
        entering_bytes=int(constants.sum()) + _input_bytes(network, stages, storage, needed),
        leaving_bytes=sum(t.size_bytes for t in network.outputs),
        ends_cycles=_ends_cycles(network, stages, storage, places),
    )


def bounds_of(work: LeastWork, places: Places) -> NetworkBounds:
    """Bounds from the least work, with scratchpads of some sizes."""
    array, constants = work.array_cycles, work.constant_bytes
    rate, room = _rate(places), _room(places)
    joint = _joint(array, constants if room else np.zeros(len(constants)), room, rate)
    return NetworkBounds(
        array_cycles=ceil(array.sum()),
        vector_cycles=ceil(work.vector_cycles),
        transfer_cycles=ceil(work.entering_bytes / rate),
        joint_cycles=ceil(joint),
        ends_cycles=work.ends_cycles,
        traffic_bytes=work.entering_bytes + work.leaving_bytes,
    )


def _ends_cycles(
    network: Network, stages: Sequence[Stage], storage: Mapping[str, Storage], places: Places
) -> int:
    """Set-up of the first transfer, and the last transfer of a byte; 0 where some may do without.

    A stage that only moves, or reads nothing, may come before the one or after the other.
    """

    def is_whole(tensor: Tensor) -> bool:
        return tensor.elements == network.by_name[storage[tensor.name].root].elements

    carriers = (*INPUT_OPERANDS, OUTPUT_OPERAND)
    if any(places.home(carrier) is None for carrier in carriers) or any(
        stage.worker == "move" or not stage.inputs for stage in stages
    ):
        return 0
    wanted = {storage[tensor.name].root for tensor in network.outputs if is_whole(tensor)}
    for stage in reversed(stages):
        if not all(storage[made.tensor].root in wanted for made in stage.results):
            return 0
        for operand in stage.inputs:
            tensor = network.by_name[operand.tensor]
            is_made = tensor.role != "constant"
            if is_made and is_whole(tensor) and _reads_all(stage, operand, tensor):
                wanted.add(storage[tensor.name].root)
    kinds = {space.name: space.kind for space in places.spaces}
    coming = [r for r in places.routes.values() if kinds[r.source] in ("external", "source")]
    going = [r for r in places.routes.values() if kinds[r.target] in ("external", "sink")]
    first = min((route.setup_cycles for route in coming), default=0)
    return first + min((route.cycles(1) for route in going), default=0)


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


def _constant_bytes(
    network: Network, stage: Stage, known: set[str], needed: Needed
) -> Iterator[int]:
    """Bytes of constants that a stage is the first to read; of a table, no more than it takes."""
    for operand in stage.inputs:
        tensor = network.by_name[operand.tensor]
        if tensor.role == "constant" and tensor.name not in known:
            known.add(tensor.name)
            looked_up = stage.op.kind == "gather" and stage.op.searches(operand)
            made = network.by_name[stage.results[0].tensor].size_bytes
            read = packed_bytes(needed.elements[tensor.name], tensor.bits)
            yield min(made, tensor.size_bytes) if looked_up else read


def _input_bytes(
    network: Network, stages: Sequence[Stage], storage: Mapping[str, Storage], needed: Needed
) -> int:
    """Bytes of each input that some stage reads at once, the most over all stages; not those that
    no result depends on."""
    most: dict[str, int] = {}
    for stage in stages:
        for operand in stage.inputs:
            root = storage[operand.tensor].root
            if network.by_name[root].role == "input":
                bits = network.by_name[operand.tensor].bits
                size = packed_bytes(needed.elements[operand.tensor], bits)
                most[root] = max(most.get(root, 0), size)
    return sum(most.values())


def _rate(places: Places) -> float:
    """Bytes a cycle that can come from outside over all engines and lanes at once."""
    lanes = {engine.name: engine.count for engine in places.engines}
    outside = {space.name for space in places.spaces if space.kind in ("external", "source")}
    rates: dict[tuple[str, ...], float] = {}
    for route in places.routes.values():
        if route.source in outside:
            several = min([lanes[route.engine], *(lanes[port] for port in route.ports)])
            key = (route.engine, *route.ports)
            rates[key] = max(rates.get(key, 0.0), several * float(route.bytes_per_cycle))
    return sum(rates.values()) or float("inf")


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
