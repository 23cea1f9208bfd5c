"""Map LeNet-5 on a machine of the library, and print the mapping of one op."""

import tilewright

network = tilewright.load_network("lenet5")
machine = tilewright.load_machine("edge_tpu_like")
result = tilewright.map_network(network, machine)
conv2 = result.op("conv2")
print(f"{result.cycles:,.0f} cycles, {result.energy_pj / 1e6:.3f} µJ in all")
print(conv2.text())
