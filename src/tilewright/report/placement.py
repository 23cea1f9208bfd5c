"""A packing as a table and as JSON."""

from typing import Any

from tilewright.placement.problem import Buffer, Packing
from tilewright.report.tables import View, heading, shortened, table
from tilewright.units import format_bytes


def placement_json(packing: Packing) -> dict[str, Any]:
    """The packing as data."""
    return {
        "peak_bytes": packing.peak_bytes,
        "bound_bytes": packing.bound_bytes,
        "proven": packing.proven,
        "capacity_bytes": packing.problem.capacity_bytes,
        "method": packing.method,
        "nodes": packing.nodes,
        "addresses": packing.address_of(),
    }


def placement_view(packing: Packing, title: str) -> View:
    """The packing as text: how tight it is, then every buffer by its address."""
    peak, bound = packing.peak_bytes, packing.bound_bytes
    facts = [
        ("buffers", f"{len(packing.problem.buffers):,}"),
        ("peak", f"{peak:,} B ({format_bytes(peak)})"),
        ("lower bound", f"{bound:,} B, {_verdict(packing)}"),
    ]
    capacity = packing.problem.capacity_bytes
    if capacity is not None:
        facts.append(("capacity", f"{capacity:,} B, {capacity - peak:,} B left over"))
    nodes = f", {packing.nodes:,} nodes" if packing.nodes else ""
    facts.append(("found by", f"{packing.method}{nodes}"))
    grid = table(">address", ">end", ">size", "cycles", "?buffer")
    pairs = zip(packing.problem.buffers, packing.addresses, strict=True)
    for buffer, address in sorted(pairs, key=lambda pair: (pair[1], pair[0].start_cycle)):
        end = address + buffer.size_bytes
        size = f"{buffer.size_bytes:,}"
        grid.add_row(f"{address:,}", f"{end:,}", size, _cycles(buffer), shortened(buffer.name))
    return [heading(title, facts), grid]


def _verdict(packing: Packing) -> str:
    if packing.proven:
        return "reached: no placement is smaller"
    above = packing.peak_bytes - packing.bound_bytes
    return f"the peak is {above:,} B ({above / packing.bound_bytes:.2%}) above it"


def _cycles(buffer: Buffer) -> str:
    return ", ".join(f"{start} to {end}" for start, end in buffer.lives)
