"""A network as a table and as JSON."""

from typing import Any

from tilewright.network.counts import constant_bytes, macs, weight_bytes
from tilewright.network.graph import Network, Op
from tilewright.report.tables import View, heading, shortened, table
from tilewright.units import format_bytes, format_count


def network_json(network: Network) -> dict[str, Any]:
    """Every op and tensor, with totals."""
    counted = [macs(op, network) for op in network.ops]
    return {
        "name": network.name,
        "source": network.source,
        "ops": [_op_json(op, n, network) for op, n in zip(network.ops, counted, strict=True)],
        "tensors": [
            {
                "name": t.name,
                "shape": list(t.shape),
                "bits": t.bits,
                "dtype": t.dtype,
                "role": t.role,
                "size_bytes": t.size_bytes,
            }
            for t in network.tensors
        ],
        "totals": _totals(network, sum(counted)),
    }


def network_view(network: Network) -> View:
    """What a person wants to know first, then a line for every op."""
    counted = [macs(op, network) for op in network.ops]
    totals = _totals(network, sum(counted))
    grid = table("op", "kind", "?loops", "?result", ">MACs", ">weights", ">result size")
    for op, n in zip(network.ops, counted, strict=True):
        result = network.by_name[op.outputs[0].tensor]
        grid.add_row(
            shortened(op.name),
            op.kind,
            " ".join(f"{dim} {size}" for dim, size in op.dims if size > 1) or "1",
            "x".join(map(str, result.shape)) or "scalar",
            format_count(n) if n else "",
            format_bytes(_own_weights(op, network)) if _own_weights(op, network) else "",
            format_bytes(result.size_bytes),
        )
    facts = [
        ("ops", f"{totals['ops']:,}"),
        ("multiplications", f"{totals['macs']:,} ({format_count(totals['macs'])})"),
        ("weights", _exact_bytes(totals["weight_bytes"])),
        ("all constants", format_bytes(totals["constant_bytes"])),
        ("largest activation", _largest(network)),
        ("inputs", _tensors(network, "input")),
        ("outputs", _tensors(network, "output")),
    ]
    return [heading(network.name, facts), grid]


def _totals(network: Network, total_macs: int) -> dict[str, int]:
    return {
        "ops": len(network.ops),
        "macs": total_macs,
        "weight_bytes": weight_bytes(network),
        "constant_bytes": constant_bytes(network),
    }


def _op_json(op: Op, count: int, network: Network) -> dict[str, Any]:
    result = network.by_name[op.outputs[0].tensor]
    return {
        "name": op.name,
        "kind": op.kind,
        "macs": count,
        "points": op.points,
        "dims": dict(op.dims),
        "inputs": [o.tensor for o in op.inputs],
        "outputs": [o.tensor for o in op.outputs],
        "index": {
            o.name: None if o.index is None else [str(i) for i in o.index] for o in op.operands
        },
        "shape": list(result.shape),
        "weight_bytes": _own_weights(op, network),
        "output_bytes": sum(network.by_name[o.tensor].size_bytes for o in op.outputs),
        "accumulator_bits": op.accumulator_bits,
        "attributes": {
            key: list(value) if isinstance(value, tuple) else value for key, value in op.attributes
        },
    }


def _own_weights(op: Op, network: Network) -> int:
    tensors = (network.by_name[o.tensor] for o in op.inputs)
    return sum(t.size_bytes for t in tensors if t.role == "constant")


def _exact_bytes(size: int) -> str:
    exact, short = f"{size:,} B", format_bytes(size)
    return exact if exact == short else f"{exact} ({short})"


def _tensors(network: Network, role: str) -> str:
    found = [t for t in network.tensors if t.role == role]
    texts = [
        f"{shortened(t.name)} {'x'.join(map(str, t.shape))} at {t.bits} bit" for t in found[:4]
    ]
    return ", ".join(texts) + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _largest(network: Network) -> str:
    made = [network.by_name[o.tensor] for op in network.ops for o in op.outputs]
    if not made:
        return "none"
    tensor = max(made, key=lambda t: (t.size_bytes, t.name))
    return f"{format_bytes(tensor.size_bytes)} ({shortened(tensor.name)})"
