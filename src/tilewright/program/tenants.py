"""What tiles of a stage hold in memories, as the choice of tiles sees it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tilewright.machine.model import OUTPUT_OPERAND, WEIGHTS
from tilewright.network.graph import Operand
from tilewright.program.homes import Homes
from tilewright.program.model import Route
from tilewright.program.places import Places
from tilewright.program.slicing import SLICE, Slicing
from tilewright.program.stages import Stage
from tilewright.program.streams import Stream, stream_of
from tilewright.program.tile import Tenant, tile_bytes
from tilewright.program.tile_cost import TileCosts

SLICES_IN_ROOM: Final = 8
"""A slice of what is made on demand takes no more than this part of the room, if it can."""

FORGOTTEN_IN_ROOM: Final = 2
"""The same for what is made again and again: the longer slices are, the fewer there are."""


def tenant_of(
    homes: Homes, stage: Stage, operand: Operand, *, kept: bool, result: bool, cores: int = 1
) -> Tenant:
    """An operand whose tiles come from where it is kept or from outside, or go outside.

    So many cores have tiles of their own, and share the engines that move them.
    """
    tensor = homes.network.by_name[operand.tensor]
    memory = homes.where(stage, operand)
    assert memory is not None
    memory = homes.memory_of_tiles(memory)
    if result:
        route = homes.route_out(memory)
    else:
        route = homes.route_in(homes.root(operand.tensor), memory, kept=kept)
    energy = 0.0 if route is None else route.read_pj_per_byte + route.write_pj_per_byte
    whole = homes.comes_whole(stage, operand)
    return Tenant(
        operand=replace(operand, index=None) if whole else operand,
        shape=tensor.shape,
        bits=tensor.bits,
        memory=memory,
        bytes_per_cycle=1.0 if route is None else _bytes_per_cycle(homes.places, route, cores),
        setup_cycles=0 if route is None else route.setup_cycles,
        pj_per_byte=energy,
        constant=tensor.role == "constant",
        result=result,
    )


def _bytes_per_cycle(places: Places, route: Route, cores: int) -> float:
    """What a route moves for each of some cores that use it at the same time."""
    lanes = {engine.name: engine.count for engine in places.engines}
    at_once = min(lanes[name] for name in (route.engine, *route.ports))
    return float(route.bytes_per_cycle) * min(1.0, at_once / cores)


def streamed_operands(homes: Homes, stage: Stage) -> tuple[Tenant, ...]:
    """Inputs that the array reads straight from where they lie, tile by tile."""
    ways = homes.streams(stage)
    found = [(o, ways.get(o.name)) for o in stage.op.inputs]
    if stage.streams:
        origin = homes.places.origin(WEIGHTS)
        way = stream_of(homes.places, WEIGHTS, origin) if origin is not None else None
        found += [(o, way) for o in stage.inputs if homes.goes_past(stage, o)]
    return tuple([_streamed(homes, o, way) for o, way in found if isinstance(way, Stream)])


def streaming_cycles(homes: Homes, stage: Stage) -> float:
    """Cycles that a stage takes at least if its weights stream: as long as these take to come."""
    tensors = homes.network.by_name
    return sum(
        tensors[tenant.operand.tensor].size_bytes / tenant.bytes_per_cycle / homes.places.cores
        for tenant in streamed_operands(homes, stage)
    )


def _streamed(homes: Homes, operand: Operand, way: Stream) -> Tenant:
    tensor = homes.network.by_name[operand.tensor]
    return Tenant(
        operand=operand,
        shape=tensor.shape,
        bits=tensor.bits,
        memory="",
        bytes_per_cycle=way.bits_per_cycle / 8,
        setup_cycles=0,
        pj_per_byte=way.pj_per_byte,
    )


def piece_of(homes: Homes, stage: Stage, operand: Operand) -> Tenant:
    """An operand of which every tile is made just before it is read."""
    made = tenant_of(homes, stage, operand, kept=False, result=False)
    memory = homes.of_kept(homes.root(operand.tensor))
    return replace(made, memory=memory, bytes_per_cycle=0.0, setup_cycles=0, pj_per_byte=0.0)


def slice_length(piece: Tenant, lengths: Mapping[str, int], loop: str, room: float) -> int:
    """How many channels are made at once: as many as this room is enough for."""
    length = lengths[loop]
    while length > SLICE:
        size = int(tile_bytes(piece, {**lengths, loop: length}, 1))
        if size <= room:
            break
        length = -(-length // (2 * SLICE)) * SLICE
    return length


def slice_constants(homes: Homes, maker: Stage, slicing: Slicing, length: int) -> dict[str, int]:
    """Bytes by memory of the constants that a stage takes for a slice that is asked of it."""
    sizes: dict[str, int] = {}
    for operand in maker.inputs:
        memory = homes.where(maker, operand)
        if homes.is_constant(operand.tensor) and memory:
            terms = [term for axis in operand.index or () for term in axis.terms]
            part = any(dim == slicing.made_loop for dim, _ in terms)
            size = homes.network.by_name[operand.tensor].size_bytes
            if part and not homes.comes_whole(maker, operand):
                size = -(-size * length // maker.op.sizes[slicing.made_loop])
            sizes[memory] = sizes.get(memory, 0) + homes.aligned(size, memory)
    return sizes


def partial_sums(homes: Homes, costs: TileCosts, stage: Stage) -> Tenant | None:
    """The sums that a stage's tiles leave unfinished, if some loop of sums is cut."""
    home = homes.places.home(OUTPUT_OPERAND)
    if stage.worker != "array" or home is None:
        return None
    result = stage.op.outputs[0]
    return Tenant(
        operand=result,
        shape=homes.network.by_name[result.tensor].shape,
        bits=costs.nest(stage.op)[0].operands[0].bits,
        memory=home.name,
        bytes_per_cycle=0.0,
        setup_cycles=0,
        pj_per_byte=0.0,
    )


def partial_sums_per_cycle(places: Places) -> float:
    """Bytes of partial sums that can be taken up again in a cycle."""
    home = places.home(OUTPUT_OPERAND)
    port = home.port(OUTPUT_OPERAND, "tl") or home.ports[0] if home is not None else None
    return port.bits_per_cycle / 8 if port is not None else 1.0
