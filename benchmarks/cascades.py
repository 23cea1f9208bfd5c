"""What cascades save: scratchpad and outside traffic, layer by layer against some rows at a time.

    python benchmarks/cascades.py [--machine NAME] [--network NAME ...] [--limit SIZE ...]
                                  [--table traffic|room|memory]

Prints Markdown tables, of networks at 8 bit without and with cascades: the bytes that are moved to
and from outside with scratchpads of given sizes (`--objective traffic`); the room that it takes to
move hardly more than what has to be moved; and the least scratchpad in which a plan was found
(`--objective memory`), with what that plan moves. The CPU of each line goes to standard error.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import tilewright
from tilewright.planner import PlanOptions, with_memory_limits
from tilewright.units import format_bytes, parse_bits

NETWORKS = ["mobilenetv2", "tiny_yolov2", "resnet18", "resnet50"]
MACHINES = {"traffic": "ethos_u65_256", "room": "ethos_u65_256", "memory": "ethos_u55_256"}
"""What each table is of, unless told otherwise."""
LIMITS = ["128 KiB", "512 KiB"]
ELEMENT_BITS = 8
MOST_BYTES, LEAST_BYTES = 2**24, 2**15
NEARLY = 1.01
"""Over what has to be moved at least."""
TRAFFIC_HEAD = (
    "network", "scratchpad", "traffic, layer by layer", "cascaded", "factor", "least possible",
    "stages in cascades", "cycles, of layer by layer",
)  # fmt: skip
ROOM_HEAD = ("network", "scratchpad, layer by layer", "cascaded", "factor")
MEMORY_HEAD = (
    "network", "least scratchpad, layer by layer", "cascaded", "factor", "`--thorough`", "factor",
    "its traffic, layer by layer", "cascaded", "`--thorough`",
)  # fmt: skip


def memory_row(network: tilewright.Network, machine: tilewright.Machine) -> list[str]:
    """The scratchpad filled by the smallest plans, and what these move."""
    memory = scratchpad(machine)
    whole = with_memory_limits(machine, ((memory, MOST_BYTES),))
    least = PlanOptions(objective="memory")
    options = (replace(least, cascades=False), least, replace(least, thorough=True))
    plans = [tilewright.plan(network, whole, option) for option in options]
    first, *others = (plan.peak_bytes[memory] for plan in plans)
    smaller = [(f"{size:,} B", f"{first / size:.2f}") for size in others]
    moved = [format_bytes(plan.outside_bytes) for plan in plans]
    return [f"`{network.name}`", f"{first:,} B", *chain(*smaller), *moved]


def within(
    network: tilewright.Network, machine: tilewright.Machine, size_bytes: int, *, cascades: bool
) -> tilewright.Plan:
    """The plan that moves least with a scratchpad of a given size."""
    limits = ((scratchpad(machine), size_bytes),)
    options = PlanOptions(objective="traffic", memory_limits=limits, cascades=cascades)
    return tilewright.plan(network, machine, options)


def room_row(network: tilewright.Network, machine: tilewright.Machine) -> list[str]:
    """The sizes, each half of another, in which next to nothing is moved that need not be."""
    least = []
    for cascades in (False, True):
        size_bytes = MOST_BYTES
        while size_bytes > LEAST_BYTES:
            plan = within(network, machine, size_bytes // 2, cascades=cascades)
            if plan.outside_bytes > NEARLY * plan.roofline.traffic_bytes:
                break
            size_bytes //= 2
        least.append(size_bytes)
    return [f"`{network.name}`", *map(format_bytes, least), f"{least[0] // least[1]}"]


def traffic_row(network: tilewright.Network, machine: tilewright.Machine, limit: str) -> list[str]:
    """Bytes to and from outside with a scratchpad of a given size, and the least there can be."""
    size_bytes = parse_bits(limit) // 8
    plans = [within(network, machine, size_bytes, cascades=cascades) for cascades in (False, True)]
    moved = [plan.outside_bytes for plan in plans]
    inside = [len(cascade.stages) for cascade in plans[1].strategy.cascades]
    return [
        f"`{network.name}`",
        limit,
        *map(format_bytes, moved),
        f"{moved[0] / moved[1]:.2f}",
        format_bytes(plans[1].roofline.traffic_bytes),
        f"{sum(number for number in inside if number > 1)} of {len(plans[1].stages)}",
        f"{plans[1].cycles / plans[0].cycles:.2f}",
    ]


def scratchpad(machine: tilewright.Machine) -> str:
    """The memory whose size is looked at."""
    return next(memory.name for memory in machine.memories if memory.role == "scratchpad")


def print_table(head: Sequence[str], rows: Sequence[Callable[[], list[str]]]) -> None:
    """A Markdown table, line by line as it is worked out; all columns but the first are numbers."""
    print(f"| {' | '.join(head)} |")
    print("| --- " + "| ---: " * (len(head) - 1) + "|", flush=True)
    for row in rows:
        start = time.process_time()
        cells = row()
        print(f"| {' | '.join(cells)} |", flush=True)
        print(f"{cells[0]}: {time.process_time() - start:.1f} s of CPU", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine")
    parser.add_argument("--network", action="append")
    parser.add_argument("--limit", action="append")
    parser.add_argument("--table", choices=list(MACHINES), action="append")
    given = parser.parse_args()
    names, limits = given.network or NETWORKS, given.limit or LIMITS
    networks = [tilewright.load_network(name, bits=ELEMENT_BITS) for name in names]
    for table in given.table or MACHINES:
        machine = tilewright.load_machine(given.machine or MACHINES[table])
        match table:
            case "traffic":
                pairs = [(network, limit) for network in networks for limit in limits]
                rows = [partial(traffic_row, net, machine, limit) for net, limit in pairs]
                print_table(TRAFFIC_HEAD, rows)
            case "room":
                print_table(ROOM_HEAD, [partial(room_row, net, machine) for net in networks])
            case _:
                print_table(MEMORY_HEAD, [partial(memory_row, net, machine) for net in networks])


if __name__ == "__main__":
    main()
