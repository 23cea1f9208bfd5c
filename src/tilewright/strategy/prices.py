"""What it takes to bring bytes to a scratchpad, and to take them from it."""

from dataclasses import dataclass

from tilewright.program.model import Space
from tilewright.program.places import Places


@dataclass(frozen=True, kw_only=True)
class Price:
    """What it takes to move a byte, and to begin a transfer."""

    cycles_per_byte: float
    pj_per_byte: float
    setup_cycles: int


FREE = Price(cycles_per_byte=0.0, pj_per_byte=0.0, setup_cycles=0)


def price_of(places: Places, outside: Space | None, memory: str, *, into: bool) -> Price:
    """The price of the way into a scratchpad or out of it; nothing where there is none."""
    if outside is None or not memory:
        return FREE
    near = places.named(memory, 0).name
    ends = (outside.name, near) if into else (near, outside.name)
    route = places.routes.get(ends)
    if route is None:
        return FREE
    return Price(
        cycles_per_byte=1 / float(route.bytes_per_cycle),
        pj_per_byte=route.read_pj_per_byte + route.write_pj_per_byte,
        setup_cycles=route.setup_cycles,
    )
