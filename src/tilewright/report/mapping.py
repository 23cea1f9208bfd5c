"""A mapped network as a table and as JSON."""

from math import fsum
from typing import Any

from tilewright.machine.sharing import assumed_sharing
from tilewright.mapping.attach import fractional_factors
from tilewright.mapping.network import MappedNetwork, MappedOp
from tilewright.mapping.wires import misfits
from tilewright.report.tables import View, heading, shortened, table
from tilewright.units import format_count, format_energy


def mapping_json(result: MappedNetwork) -> dict[str, Any]:
    """Every op with its cost in parts, and the totals."""
    return {
        "network": result.network.name,
        "machine": result.machine.name,
        "model": result.model,
        "objective": result.options.objective,
        "totals": {
            "cycles": _whole(result.cycles),
            "energy_pj": result.energy_pj,
            "leakage_pj": result.leakage_pj,
            "macs": sum(op.macs for op in result.ops),
            "candidates": result.candidates,
            "searched": result.searched,
        },
        "assumptions": _assumed(result),
        "ops": [_op_json(op) for op in result.ops],
    }


def mapping_view(result: MappedNetwork) -> View:
    """What a person wants to know first, then a line for every op."""
    grid = table(
        "op", "?kind", ">cycles", ">busy", "?>stalls", "?>load", "?>store", ">energy",
        "?dearest", "bound by",
    )  # fmt: skip
    for op in result.ops:
        grid.add_row(*_row(op))
    total, seconds = result.cycles, ""
    if result.machine.clock_hz:
        seconds = f" ({total / result.machine.clock_hz * 1e3:.4g} ms)"
    macs = sum(op.macs for op in result.ops)
    lost = f", {format_energy(result.leakage_pj)} of it leaks" if result.leakage_pj else ""
    facts = [
        ("model", f"{result.model}, objective {result.options.objective}"),
        ("cycles", f"{_whole(total):,}{seconds}"),
        ("energy", format_energy(result.energy_pj) + lost),
        ("multiplications", format_count(macs)),
        ("busy", f"{_utilisation(result, macs):.1%} of the array"),
        ("tried", f"{result.candidates:,} mappings of {result.searched} different nests"),
        *(("assumed", text) for text in _assumed(result)),
        *_off_the_wires(result),
    ]
    return [heading(f"{result.network.name} on {result.machine.name}", facts), grid]


def _assumed(result: MappedNetwork) -> list[str]:
    """What the machine file leaves open and mappings depend on, where the model does not say it."""
    return [] if result.model == "zigzag-3.9" else list(assumed_sharing(result.machine))


def _off_the_wires(result: MappedNetwork) -> list[tuple[str, str]]:
    """Ops that cannot use the wires that the machine has for an operand; why the first cannot."""
    reasons = {op.name: text for op in result.ops for text in _misfits(op)[:1]}
    if not reasons:
        return []
    (name, reason), more = next(iter(reasons.items())), len(reasons) - 1
    return [("wires", f"not used by {name}{f' and {more} more' if more else ''}: {reason}")]


def _misfits(op: MappedOp) -> list[str]:
    """Why operands of an op cannot use the wires that they have."""
    if op.mapped is None:
        return []
    setup = op.mapped.setup
    factors = fractional_factors(setup.nest, setup.hierarchy, setup.spatial.unrolling)
    found = misfits(setup.nest, setup.hierarchy, factors)
    return [f"{letter} over {way}: {reason}" for letter, way, reason in found]


def _utilisation(result: MappedNetwork, macs: int) -> float:
    units = result.machine.cores[0].array.units
    return macs / (units * result.cycles) if result.cycles else 0.0


def _row(op: MappedOp) -> list[str]:
    name = shortened(op.name)
    if op.mapped is None:
        cycles = f"{_whole(op.cycles):,}" if op.cycles else ""
        energy = format_energy(op.energy_pj) if op.energy_pj else ""
        return [name, op.kind, cycles, "", "", "", "", energy, "", op.engine]
    cost = op.mapped.cost
    energies = _energy_by_memory(op)
    dearest = max(energies, key=lambda memory: energies[memory])
    return [
        name,
        op.kind,
        f"{_whole(op.cycles):,}",
        f"{cost.utilisation:.0%}",
        f"{_whole(cost.stall_cycles):,}",
        f"{_whole(cost.onload_cycles):,}",
        f"{_whole(cost.offload_cycles + cost.drain_cycles):,}",
        format_energy(op.energy_pj),
        f"{dearest} {energies[dearest] / op.energy_pj:.0%}" if op.energy_pj else "",
        op.bound_by,
    ]


def _energy_by_memory(op: MappedOp) -> dict[str, float]:
    assert op.mapped is not None
    cost = op.mapped.cost
    energies = {"array": cost.mac_pj}
    for link in cost.links:
        energies[link.memory] = energies.get(link.memory, 0.0) + link.energy_pj
    return energies


def _op_json(op: MappedOp) -> dict[str, Any]:
    common = {
        "name": op.name,
        "kind": op.kind,
        "engine": op.engine,
        "macs": op.macs,
        "cycles": _whole(op.cycles),
        "energy_pj": op.energy_pj,
        "bound_by": op.bound_by,
    }
    if op.mapped is None:
        zeros = ("compute", "stall", "onload", "offload")
        parts = {f"{part}_cycles": 0 for part in zeros}
        return {**common, **parts, "compute_cycles": _whole(op.cycles), "mapping": None}
    cost = op.mapped.cost
    return {
        **common,
        "compute_cycles": _whole(cost.compute_cycles),
        "stall_cycles": _whole(cost.stall_cycles),
        "onload_cycles": _whole(cost.onload_cycles),
        "offload_cycles": _whole(cost.offload_cycles),
        "drain_cycles": cost.drain_cycles,
        "utilisation": cost.utilisation,
        "mac_energy_pj": cost.mac_pj,
        "memory_energy_pj": fsum(link.energy_pj for link in cost.links),
        "energy_by_memory_pj": _energy_by_memory(op),
        "traffic": [
            {
                "operand": link.letter,
                "memory": link.memory,
                "direction": link.direction,
                "accesses": link.accesses,
                "energy_pj": link.energy_pj,
                "bits": link.bits,
            }
            for link in cost.links
        ],
        "port_stalls": [
            {"memory": memory, "port": port, "cycles": _whole(stall)}
            for memory, port, stall in cost.port_stalls
            if stall > 0
        ],
        "candidates": op.mapped.candidates,
        "proven": op.mapped.proven,
        "bound": op.mapped.bound,
        "mapping": op.text(),
    }


def _whole(cycles: float) -> int | float:
    """Cycles without a fraction as a whole number; loads may end between two cycles."""
    return int(cycles) if cycles == int(cycles) else cycles
