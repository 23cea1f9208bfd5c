"""Why an op cannot be cut to fit: the memory, what lies in it, and the size that would do."""

from collections.abc import Mapping

from tilewright.errors import InfeasibleError, Problem
from tilewright.program.places import Places
from tilewright.program.tile import Work, smallest, tile_bytes
from tilewright.units import format_bytes


def refusal(work: Work, places: Places, kept: Mapping[str, tuple[str, int]]) -> InfeasibleError:
    """An error for every memory that is too small; `kept` has the memory and bytes of tensors."""
    tenants, least = smallest(work)
    problems = []
    for space in places.spaces:
        if space.kind != "scratchpad" or space.core not in (0, None):
            continue
        tiles = [t for t in tenants if t.memory == space.memory]
        sizes = [int(tile_bytes(t, least, work.alignment)) for t in tiles]
        short = sum(sizes) - work.room[space.memory]
        if short <= 0:
            continue
        held = [
            f"{name} {format_bytes(size)}"
            for name, (memory, size) in kept.items()
            if memory == space.memory
        ]
        for tenant, size in zip(tiles, sizes, strict=True):
            what = " partial sums" if tenant is work.partial else ""
            held.append(f"{tenant.operand.tensor}{what} {format_bytes(size)}")
        wanted = space.size_bytes + short
        problems.append(
            Problem(
                message=(
                    f"op {work.op.name!r} does not fit in {space.memory}: it needs {wanted:,} B at "
                    f"once, {short:,} B more than there are ({', '.join(held)})"
                ),
                hint=f"{space.memory} would have to hold at least {wanted:,} B",
            )
        )
    message = f"op {work.op.name!r} does not fit however it is cut"
    return InfeasibleError(*(problems or [Problem(message=message)]))
