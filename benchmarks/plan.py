"""How close plans come to their bounds, and what they take: CNNs of the zoo on four machines.

    python benchmarks/plan.py [--machine NAME ...] [--network NAME ...]

For every pair: cycles, over the bound of the tiles in their order, over the sum of the latencies of
the ops one after the other as the model `zigzag-3.9` has them (it counts convolutions and products
only, and knows no set-up of transfers), the machine's bound (`roofline`) over the same sum,
tasks, and the CPU of planning and checking. Where that last ratio is above 1, marked `!`, no plan
is as short as the sum.
"""

import argparse
import time
from math import exp, log

import tilewright
from tilewright.mapping.network import MapOptions
from tilewright.report.plan import bound_cycles

_CNNS = """
lenet5 alexnet resnet18 resnet50 mobilenetv2 squeezenet tiny_yolov2 tiny_yolov3 ds_cnn
"""
CNNS = _CNNS.split()
MACHINES = ["edge_tpu_like", "meta_prototype_like", "tesla_npu_like", "npu_37xx"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", action="append")
    parser.add_argument("--network", action="append")
    given = parser.parse_args()
    ratios, longer, excluded = [], 0, 0
    print(
        f"{'machine':20} {'network':12} {'cycles':>12} {'bound':>12} {'/bound':>7} "
        f"{'sum of ops':>12} {'/ops':>6} {'roofline/ops':>13} {'tasks':>7} CPU s"
    )
    for name in given.machine or MACHINES:
        machine = tilewright.load_machine(name)
        for zoo in given.network or CNNS:
            network = tilewright.load_network(zoo)
            start = time.process_time()
            plan = tilewright.plan(network, machine)
            spent = time.process_time() - start
            bound, ops = bound_cycles(plan), one_by_one(network, machine)
            ratios.append(plan.cycles / bound)
            longer += plan.cycles > ops
            excluded += plan.roofline.cycles > ops
            print(
                f"{name:20} {zoo:12} {plan.cycles:12,} {bound:12,} {ratios[-1]:7.3f} "
                f"{ops:12,.0f} {plan.cycles / ops:6.3f} {plan.roofline.cycles / ops:11.3f} "
                f"{'!' if plan.roofline.cycles > ops else ' '} "
                f"{len(plan.program.tasks):7,} {spent:5.2f}",
                flush=True,
            )
    print(f"geomean over the bound: {exp(sum(map(log, ratios)) / len(ratios)):.3f}")
    print(
        f"longer than the sum of their ops: {longer}, of which no plan can be as short: {excluded}"
    )


def one_by_one(network: tilewright.Network, machine: tilewright.Machine) -> float:
    """Cycles of the ops one after the other, every operand from the top, as ZigZag counts them."""
    return tilewright.map_network(network, machine, MapOptions(model="zigzag-3.9")).cycles


if __name__ == "__main__":
    main()
