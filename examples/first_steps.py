"""Loads a network and a machine and looks at both."""

import tilewright

network = tilewright.load_network("lenet5")
conv = network.ops[3]
print(conv.name, conv.kind, conv.sizes)
for operand in conv.operands:
    print(" ", operand.name, operand.tensor, [str(index) for index in operand.index or ()])

machine = tilewright.load_machine("edge_tpu_like")
core = machine.cores[0]
print(machine.name, core.array.units, "multipliers")
for memory in machine.chain(core, "I2"):
    print(" ", memory.name, memory.role, memory.size_bytes, "B")

try:
    tilewright.load_network("lenet")
except tilewright.InputError as error:
    print(error)
