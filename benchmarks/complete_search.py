"""How much better than LOMA the complete search is, how often it is proven best, and what it takes.

    python benchmarks/complete_search.py [--machines NAME ...] [--networks NAME ...]

Prints one line per machine and objective: geometric mean and best improvement over LOMA with 6 and
with 8 loop factors, the share of layers proven, and seconds of processor time per layer.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp, log

import tilewright
from tilewright.mapping.complete import complete
from tilewright.mapping.constraints import DEFAULT_LINKS
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of, partial_sum_bits
from tilewright.mapping.nest import LoopNest, nest_of, runs_on_array, with_partial_sums
from tilewright.mapping.search import Mapped, Objective, SearchOptions, loma, rank

MACHINES = ("edge_tpu_like", "tpu_like", "eyeriss_like", "ascend_like", "ethos_u55_256", "npu_37xx")
NETWORKS = ("resnet18", "mobilenetv2", "squeezenet", "vit_tiny", "tiny_yolov2")
OBJECTIVES: tuple[Objective, ...] = ("latency", "energy")


@dataclass(frozen=True)
class Row:
    """One layer: by what factor the complete search is better, and how it went."""

    name: str
    over_6: float
    over_8: float
    gap: float
    proven: bool
    seconds: float


def layers(network_name: str, machine_name: str) -> Iterator[tuple[str, LoopNest, Hierarchy]]:
    """Every different nest of a network that the machine's array runs."""
    network = tilewright.load_network(network_name)
    machine = tilewright.load_machine(machine_name)
    core = machine.cores[0]
    seen: set[LoopNest] = set()
    for op in network.ops:
        if not runs_on_array(op, network):
            continue
        nest = nest_of(op, network)
        nest = with_partial_sums(nest, partial_sum_bits(machine, core, op.accumulator_bits))
        if nest not in seen:
            seen.add(nest)
            links = {o.letter: dict(DEFAULT_LINKS)[o.letter] for o in nest.operands}
            yield f"{network_name}/{op.name}", nest, hierarchy_of(machine, core, links)


def compared(name: str, nest: LoopNest, where: Hierarchy, objective: Objective) -> Row | None:
    """The three searches on one layer; None if nothing fits."""
    options = SearchOptions(objective=objective)
    begin = time.process_time()
    found = complete(nest, where, None, options)
    seconds = time.process_time() - begin
    if found is None or found.bound is None:
        return None

    def value(mapped: Mapped) -> float:
        return rank(objective, mapped.cost.cycles, mapped.cost.energy_pj)[0]

    factors = []
    for limit in (6, 8):
        other = loma(nest, where, None, replace(options, lpf_limit=limit))
        factors.append(value(other) / value(found) if other is not None else 1.0)
    return Row(
        name=name,
        over_6=factors[0],
        over_8=factors[1],
        gap=value(found) / found.bound - 1,
        proven=found.proven,
        seconds=seconds,
    )


def mean(factors: list[float]) -> float:
    return exp(sum(map(log, factors)) / len(factors))


def summary(machine: str, objective: Objective, rows: list[Row]) -> str:
    over_6, over_8 = [row.over_6 for row in rows], [row.over_8 for row in rows]
    proven = sum(row.proven for row in rows)
    seconds = [row.seconds for row in rows]
    widest = max(row.gap for row in rows)
    return (
        f"{machine:20} {objective:8} {len(rows):6} {proven:6} {widest:9.2%} "
        f"{mean(over_6) - 1:8.2%} {max(over_6) - 1:8.1%} "
        f"{mean(over_8) - 1:8.2%} {max(over_8) - 1:8.1%} "
        f"{sum(seconds) / len(seconds):7.2f} {max(seconds):7.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", nargs="+", default=MACHINES)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--objectives", nargs="+", default=OBJECTIVES)
    parser.add_argument("--layers", action="store_true", help="print a line for every layer")
    arguments = parser.parse_args()
    print(
        f"{'machine':20} {'':8} {'layers':>6} {'proven':>6} {'worst gap':>9} "
        f"{'over 6':>8} {'best':>8} {'over 8':>8} {'best':>8} {'s/layer':>7} {'most':>7}"
    )
    for machine in arguments.machines:
        for objective in arguments.objectives:
            rows = []
            for network in arguments.networks:
                for name, nest, where in layers(network, machine):
                    row = compared(name, nest, where, objective)
                    if row is not None:
                        rows.append(row)
                        if arguments.layers:
                            print(summary(row.name[-20:], objective, [row]), flush=True)
            if rows:
                print(summary(machine, objective, rows), flush=True)


if __name__ == "__main__":
    main()
