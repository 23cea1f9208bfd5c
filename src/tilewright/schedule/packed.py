"""Packing a timetable again, now that all lives are known: never a higher peak than before."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

from tilewright.placement.pack import PackOptions, pack
from tilewright.placement.problem import Buffer, Life, PlacementProblem
from tilewright.program.model import Space, Timetable
from tilewright.schedule.spans import spans_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """How full a space gets: the highest address in use, and what no placement can go below."""

    peak_bytes: int
    bound_bytes: int


def packed(timetable: Timetable, options: PackOptions) -> tuple[Timetable, Mapping[str, Fill]]:
    """The timetable with the tightest addresses found, and how full each placed space gets."""
    program, lives = timetable.program, buffer_lives(timetable)
    spaces = [buffer.space for buffer in program.buffers]
    addresses = list(timetable.addresses)
    fills: dict[str, Fill] = {}
    for space in program.spaces:
        if space.kind in ("scratchpad", "external"):
            here = {n: life for n, life in lives.items() if spaces[n] == space.name}
            before = max((addresses[n] + program.buffers[n].size_bytes for n in here), default=0)
            most = _most_live(timetable, here)
            if before == most:
                fills[space.name] = Fill(peak_bytes=before, bound_bytes=most)
                continue
            packing = pack(_problem(timetable, space, here), options)
            peak_bytes = packing.peak_bytes
            if peak_bytes < before:
                addresses[: len(addresses)] = _moved(
                    timetable, addresses, dict(zip(here, packing.addresses, strict=False))
                )
            fills[space.name] = Fill(
                peak_bytes=min(before, peak_bytes), bound_bytes=packing.bound_bytes
            )
    return replace(timetable, addresses=tuple(addresses)), fills


def most_live(timetable: Timetable, space: str) -> int:
    """The most bytes of a space that are alive at once."""
    spaces = [buffer.space for buffer in timetable.program.buffers]
    lives = buffer_lives(timetable)
    return _most_live(timetable, {n: life for n, life in lives.items() if spaces[n] == space})


def _most_live(timetable: Timetable, lives: Mapping[int, Life]) -> int:
    """The most bytes that are alive at once."""
    buffers = timetable.program.buffers
    change: dict[int, int] = defaultdict(int)
    for number, (first, last) in lives.items():
        size = buffers[number].size_bytes
        change[first] += size
        change[last] -= size
    return max(accumulate(change[cycle] for cycle in sorted(change)), default=0)


def _problem(timetable: Timetable, space: Space, lives: Mapping[int, Life]) -> PlacementProblem:
    alignment_bytes, known = space.alignment_bytes, timetable.program.buffers
    buffers = [
        Buffer(
            name=str(number),
            lives=(life,),
            size_bytes=known[number].size_bytes,
            alignment_bytes=alignment_bytes,
        )
        for number, life in lives.items()
    ]
    whole = (0, max(1, timetable.cycles))
    reserved = [
        Buffer(name=f"reserved at {begin}", lives=(whole,), size_bytes=end - begin, address=begin)
        for begin, end in space.reserved
    ]
    return PlacementProblem(buffers=(*buffers, *reserved))


def _moved(timetable: Timetable, addresses: list[int], moved: Mapping[int, int]) -> list[int]:
    """Addresses after some buffers moved; views go with their roots."""
    program = timetable.program
    found = []
    for number, address in enumerate(addresses):
        root = program.root(number)
        found.append(moved[root] + address - addresses[root] if root in moved else address)
    return found


def buffer_lives(timetable: Timetable) -> dict[int, Life]:
    """From the start of its first writer to the end of its last user, by buffer that is no view.

    What is given outside stays to the end: the next run may want it again. In a scratchpad it is
    there from the start, and leaves when it was used last.
    """
    program, end = timetable.program, max(1, timetable.cycles)
    roots = [program.root(number) for number in range(len(program.buffers))]
    lives = spans_of(program, timetable.slots, roots)
    pads = [space.name for space in program.spaces if space.kind == "scratchpad"]
    for number in program.given:
        root = roots[number]
        is_inside = program.buffers[root].space in pads
        lives[root] = 0, lives.get(root, (0, 1))[1] if is_inside else end
    for number in program.results:
        root = roots[number]
        lives[root] = lives.get(root, (0, end))[0], end
    return {root: (first, max(first + 1, last)) for root, (first, last) in lives.items()}
