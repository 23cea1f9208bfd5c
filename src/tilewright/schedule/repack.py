"""Addresses for a finished run that only counted bytes: all lives are known now."""

from tilewright.placement.pack import PackOptions, pack
from tilewright.placement.problem import Buffer, PlacementProblem
from tilewright.schedule.state import State


def find_addresses(state: State, node_budget: int) -> bool:
    """Addresses for everything a run had in its scratchpads; whether any were found."""
    options = PackOptions(node_budget=node_budget, climb_evaluations=0, above_capacity=False)
    for pad, name in enumerate(state.tables.scratchpads):
        copies = [key for key in state.copy_address if state.tables.scratchpad[key[0]] == pad]
        problem = PlacementProblem(
            buffers=(*(_buffer(state, key) for key in copies), *_reserved(state, name)),
            capacity_bytes=state.tables.program.space[name].size_bytes,
        )
        packing = pack(problem, options)
        if not packing.fits:
            return False
        state.copy_address.update(zip(copies, packing.addresses, strict=False))
    return True


def _buffer(state: State, key: tuple[int, int]) -> Buffer:
    root, copy = key
    begin = state.copy_begin[key]
    return Buffer(
        name=f"{root}#{copy}",
        lives=((begin, max(begin + 1, state.copy_end.get(key, state.now))),),
        size_bytes=max(1, state.tables.size_bytes[root]),
        alignment_bytes=state.tables.alignment[state.tables.scratchpad[root]],
    )


def _reserved(state: State, name: str) -> list[Buffer]:
    return [
        Buffer(
            name=f"reserved at {begin}",
            lives=((0, state.now + 1),),
            size_bytes=end - begin,
            address=begin,
        )
        for begin, end in state.tables.program.space[name].reserved
    ]
