"""The best of several axes: files reshape these to one before they ask for its place."""

from collections import Counter
from dataclasses import replace
from math import prod

from tilewright.network.graph import Index, Network, Op, Tensor
from tilewright.network.nests import along_dim


def unmerged(network: Network) -> Network:
    """The network without reshapes that only merge the axes that an arg_max behind them compares.

    It goes through the axes themselves instead, and counts places in their order.
    """
    tensors = network.by_name
    readers = Counter(operand.tensor for op in network.ops for operand in op.inputs)
    merged: dict[str, tuple[Op, Tensor]] = {}
    ops: list[Op] = []
    dropped: list[Op] = []
    for op in network.ops:
        result = tensors[op.outputs[0].tensor]
        if op.kind == "reshape" and result.role == "activation" and readers[result.name] == 1:
            merged[result.name] = (op, tensors[op.inputs[0].tensor])
        if op.kind in ("arg_max", "arg_min") and op.inputs[0].tensor in merged:
            reshape, source = merged[op.inputs[0].tensor]
            apart = _over_axes_of(op, source, tensors[op.inputs[0].tensor])
            if apart is not None:
                dropped.append(reshape)
                op = apart
        ops.append(op)
    if not dropped:
        return network
    left = tuple(op for op in ops if op not in dropped)
    touched = {operand.tensor for op in left for operand in op.operands}
    kept = (t for t in network.tensors if t.name in touched or t.role == "input")
    return replace(network, ops=left, tensors=tuple(kept))


def _over_axes_of(op: Op, source: Tensor, data: Tensor) -> Op | None:
    """An arg_max of data as one of the source, axes of which the data merge to the one compared.

    None where the data have other axes of their own.
    """
    index = op.inputs[0].index
    walked = {dim for axis in op.outputs[0].index or () for dim, _ in axis.terms}
    compared = [dim for dim, _ in op.dims if dim not in walked]
    if index is None or len(compared) != 1 or along_dim(compared[0]) not in index:
        return None
    axis = index.index(along_dim(compared[0]))
    end = len(source.shape) - (len(data.shape) - axis - 1)
    if end - axis < 2 or source.bits != data.bits:
        return None
    if (*source.shape[:axis], op.sizes[compared[0]], *source.shape[end:]) != data.shape:
        return None
    loops = {f"{compared[0]}{i}": size for i, size in enumerate(source.shape[axis:end])}
    if prod(loops.values()) != op.sizes[compared[0]] or any(dim in loops for dim, _ in op.dims):
        return None
    at = [dim for dim, _ in op.dims].index(compared[0])
    own: tuple[Index, ...] = tuple(map(along_dim, loops))
    operand = replace(
        op.inputs[0], tensor=source.name, index=(*index[:axis], *own, *index[axis + 1 :])
    )
    return replace(
        op,
        dims=(*op.dims[:at], *loops.items(), *op.dims[at + 1 :]),
        inputs=(operand, *op.inputs[1:]),
    )
