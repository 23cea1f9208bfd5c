"""Prints the loop nests of a few ops."""

import tilewright

network = tilewright.load_network("mobilenetv2")
for op in network.ops[:5]:
    print(op.name, op.kind, {dim: size for dim, size in op.dims if size > 1})
    for operand in op.operands:
        axes = "any element" if operand.index is None else "".join(f"[{i}]" for i in operand.index)
        print(f"  {operand.name}{axes}")
