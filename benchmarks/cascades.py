"""What cascades save: scratchpad and outside traffic, layer by layer against some rows at a time.

    python benchmarks/cascades.py [--machine NAME] [--limit SIZE] [--network NAME ...]

For every network, at 8 bit: the scratchpad that the smallest plan fills (`--objective memory`),
with what it then moves to and from outside, and what is moved at least with a scratchpad of a given
size (`--objective traffic`); each without and with cascades. Prints a Markdown table, and the CPU.
"""

import argparse
import sys
import time
from dataclasses import dataclass

import tilewright
from tilewright.planner import PlanObjective, PlanOptions
from tilewright.units import format_bytes, parse_bits

NETWORKS = ["resnet18", "resnet50", "mobilenetv2", "tiny_yolov2"]
ELEMENT_BITS = 8
HEAD = (
    "| network | least scratchpad, layer by layer | cascaded | factor | its traffic, layer by layer "
    "| cascaded | traffic at {limit}, layer by layer | cascaded | factor | least possible |"
)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A network on a machine whose scratchpad is given, or not."""

    network: tilewright.Network
    machine: tilewright.Machine
    scratchpad: str
    limit_bytes: int

    def plan(self, objective: PlanObjective, *, cascades: bool) -> tilewright.Plan:
        """The plan, in as much room as the objective has to live with."""
        limits = () if objective == "memory" else ((self.scratchpad, self.limit_bytes),)
        options = PlanOptions(objective=objective, memory_limits=limits, cascades=cascades)
        return tilewright.plan(self.network, self.machine, options)


def row(asked: Asked) -> str:
    """A line of the table."""
    small = [asked.plan("memory", cascades=cascades) for cascades in (False, True)]
    still = [asked.plan("traffic", cascades=cascades) for cascades in (False, True)]
    sizes = [plan.peak_bytes[asked.scratchpad] for plan in small]
    moved = [plan.outside_bytes for plan in small]
    traffic = [plan.outside_bytes for plan in still]
    cells = [
        f"`{asked.network.name}`",
        *map(format_bytes, sizes),
        f"{sizes[0] / sizes[1]:.2f}",
        *map(format_bytes, moved),
        *map(format_bytes, traffic),
        f"{traffic[0] / traffic[1]:.2f}",
        format_bytes(still[1].roofline.traffic_bytes),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", default="ethos_u65_256")
    parser.add_argument("--limit", default="128 KiB")
    parser.add_argument("--network", action="append")
    given = parser.parse_args()
    machine = tilewright.load_machine(given.machine)
    scratchpad = next(m.name for m in machine.memories if m.role == "scratchpad")
    print(HEAD.format(limit=given.limit))
    print("| --- " + "| ---: " * (HEAD.count("|") - 2) + "|")
    for name in given.network or NETWORKS:
        start = time.process_time()
        asked = Asked(
            network=tilewright.load_network(name, bits=ELEMENT_BITS),
            machine=machine,
            scratchpad=scratchpad,
            limit_bytes=parse_bits(given.limit) // 8,
        )
        print(row(asked), flush=True)
        print(f"{name}: {time.process_time() - start:.1f} s of CPU", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
