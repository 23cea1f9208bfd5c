"""Where the elements of every buffer lie: granules of a space, by buffer and box."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd, prod

from tilewright.errors import Problem
from tilewright.network.graph import Network
from tilewright.program.model import Access, Box, Buffer, Program, Timetable

PARTIAL_SUMS = " partial sums"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The elements of a root buffer: granules [begin, begin + elements × per_element) of a space.

    A granule is as many bits as divide the width of every element of the space and every address.
    """

    space: str
    begin: int
    shape: tuple[int, ...]
    per_element: int

    @property
    def end(self) -> int:
        """Behind the last granule."""
        return self.begin + prod(self.shape) * self.per_element


def holds_partial_sums(buffer: Buffer) -> bool:
    """Whether a buffer's values are unfinished sums: it says so behind the name of its tensor."""
    return PARTIAL_SUMS in buffer.name.removeprefix(buffer.tensor)


def element_bits(buffer: Buffer, network: Network) -> int:
    """Bits of an element; unfinished sums are as wide as their buffer has room for."""
    bits = network.by_name[buffer.tensor].bits
    elements = prod(end - begin for begin, end in buffer.box)
    if holds_partial_sums(buffer) and elements:
        return max(bits, buffer.size_bytes // elements * 8)
    return bits


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Places of all root buffers, and the size of a granule and the extent of every space."""

    program: Program
    bits: tuple[int, ...]
    """Of an element, by buffer."""
    places: Mapping[int, Place]
    granule_bits: Mapping[str, int]
    extents: Mapping[str, tuple[int, int]]
    """First and behind the last granule that any buffer of a space has."""

    def address_bytes(self, access: Access) -> int:
        """Where the first element of an access lies."""
        root = self.program.root(access.buffer)
        place = self.places[root]
        boxes = self.in_root(access)
        index = 0
        if boxes is not None:
            starts = ((at, low) for (at, _), (low, _) in zip(boxes, self._box(root), strict=True))
            for (at, low), size in zip(starts, place.shape, strict=True):
                index = index * size + at - low
        granule = place.begin + index * place.per_element
        return granule * self.granule_bits[place.space] // 8

    def in_root(self, access: Access) -> Box | None:
        """The box of an access in its root's coordinates; None where the shape is another one."""
        buffer = self.program.buffers[access.buffer]
        if buffer.view is None:
            return access.box
        if buffer.view.origin is None:
            return None
        origins = zip(access.box, buffer.view.origin, buffer.box, strict=True)
        return tuple((a - low + at, b - low + at) for (a, b), at, (low, _) in origins)

    def _box(self, buffer: int) -> Box:
        return self.program.buffers[buffer].box


def layout_of(timetable: Timetable, network: Network) -> Layout:
    """Places for every root; sources and sinks have no addresses, so their buffers are stacked."""
    program = timetable.program
    bits = tuple(element_bits(buffer, network) for buffer in program.buffers)
    roots = [n for n, buffer in enumerate(program.buffers) if buffer.view is None]
    granules = {space.name: 0 for space in program.spaces}
    for root in roots:
        space = program.buffers[root].space
        address = timetable.addresses[root] * 8 if _has_addresses(program, space) else 0
        granules[space] = gcd(granules[space], bits[root], address)
    tops = dict.fromkeys(granules, 0)
    places = {}
    for root in roots:
        buffer = program.buffers[root]
        granule = granules[buffer.space]
        shape = tuple(end - begin for begin, end in buffer.box)
        begin = timetable.addresses[root] * 8 // granule
        if not _has_addresses(program, buffer.space):
            begin = tops[buffer.space]
            tops[buffer.space] += prod(shape) * bits[root] // granule
        places[root] = Place(
            space=buffer.space, begin=begin, shape=shape, per_element=bits[root] // granule
        )
    return Layout(
        program=program,
        bits=bits,
        places=places,
        granule_bits=granules,
        extents=_extents(places.values()),
    )


def _extents(places: Iterable[Place]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for place in places:
        low, high = found.get(place.space, (place.begin, place.end))
        found[place.space] = (min(low, place.begin), max(high, place.end))
    return found


def _has_addresses(program: Program, space: str) -> bool:
    return program.space[space].kind in ("scratchpad", "external")


def layout_problems(timetable: Timetable, network: Network) -> Iterator[Problem]:
    """What keeps a timetable from being run at all: things that are not there, or do not fit."""
    program = timetable.program
    for number, buffer in enumerate(program.buffers):
        yield from _buffer_problems(timetable, network, number, buffer)
    for task in program.tasks:
        for access in (*task.reads, *task.writes):
            if not 0 <= access.buffer < len(program.buffers):
                yield Problem(
                    message=f"task {task.name} uses buffer {access.buffer}: there is none"
                )
                continue
            buffer = program.buffers[access.buffer]
            if not _contains(buffer.box, access.box):
                yield Problem(
                    message=f"task {task.name} uses {box_text(access.box)} of buffer "
                    f"{buffer.name}, which holds {box_text(buffer.box)}"
                )


def _buffer_problems(
    timetable: Timetable, network: Network, number: int, buffer: Buffer
) -> Iterator[Problem]:
    program = timetable.program
    tensor = network.by_name.get(buffer.tensor)
    if tensor is None:
        yield Problem(message=f"buffer {buffer.name}: the network has no tensor {buffer.tensor}")
        return
    whole = tuple((0, size) for size in tensor.shape)
    if not _contains(whole, buffer.box):
        yield Problem(
            message=f"buffer {buffer.name} holds {box_text(buffer.box)} of {tensor.name}, which "
            f"is {box_text(whole)}"
        )
        return
    elements = prod(end - begin for begin, end in buffer.box)
    bits = element_bits(buffer, network)
    need = -(-elements * bits // 8)
    if buffer.size_bytes < need or (holds_partial_sums(buffer) and buffer.size_bytes != need):
        yield Problem(
            message=f"buffer {buffer.name} has {buffer.size_bytes} bytes; {elements} elements of "
            f"{bits} bits take {need}"
        )
    if buffer.view is not None:
        yield from _view_problems(timetable, number, buffer)
        return
    space = program.space[buffer.space]
    begin = timetable.addresses[number]
    end = begin + buffer.size_bytes
    if _has_addresses(program, space.name) and (begin < 0 or end > space.size_bytes):
        yield Problem(
            message=f"buffer {buffer.name} lies at {begin}:{end} of {space.name}, which has "
            f"{space.size_bytes} bytes"
        )
    if _has_addresses(program, space.name) and begin % space.alignment_bytes:
        yield Problem(
            message=f"buffer {buffer.name} lies at {begin} of {space.name}, whose addresses are "
            f"multiples of {space.alignment_bytes}"
        )
    for low, high in space.reserved:
        if begin < high and low < end and buffer.size_bytes:
            yield Problem(
                message=f"buffer {buffer.name} lies at {begin}:{end} of {space.name}, where "
                f"{low}:{high} is reserved"
            )


def _view_problems(timetable: Timetable, number: int, buffer: Buffer) -> Iterator[Problem]:
    program = timetable.program
    view = buffer.view
    assert view is not None
    if not 0 <= view.buffer < len(program.buffers) or program.buffers[view.buffer].view is not None:
        yield Problem(message=f"buffer {buffer.name} is a view of what is no buffer of its own")
        return
    root = program.buffers[view.buffer]
    offset = 0
    if view.origin is None:
        inside = prod(b - a for a, b in buffer.box) == prod(b - a for a, b in root.box)
    else:
        ends = zip(view.origin, buffer.box, strict=True)
        box = tuple((at, at + high - low) for at, (low, high) in ends)
        inside = _contains(root.box, box)
        for at, (low, high) in zip(view.origin, root.box, strict=True):
            offset = offset * (high - low) + at - low
    if not inside:
        yield Problem(message=f"buffer {buffer.name} does not fit into {root.name}, its place")
        return
    elements = max(1, prod(b - a for a, b in root.box))
    expected = timetable.addresses[view.buffer] + offset * root.size_bytes // elements
    if timetable.addresses[number] != expected and _has_addresses(program, root.space):
        yield Problem(
            message=f"buffer {buffer.name} is said to lie at {timetable.addresses[number]} of "
            f"{root.space}; as a part of {root.name} it lies at {expected}"
        )


def _contains(outer: Box, inner: Box) -> bool:
    return len(outer) == len(inner) and all(
        low <= a <= b <= high for (low, high), (a, b) in zip(outer, inner, strict=True)
    )


def box_text(box: Box) -> str:
    """A box as a slice: `[0:4, 8:16]`."""
    return "[" + ", ".join(f"{begin}:{end}" for begin, end in box) + "]"
