"""The complete search against LOMA: how much better, how often proven, and what it takes.

    python benchmarks/complete_search.py --results FILE [--machine NAME] [--network NAME]
        [--objective NAME] [--budget N] [--limit-nests N]

Every different nest of the zoo's networks is searched once on each machine of the library, for
latency and for energy: by LOMA with 6 and with 8 loop factors, and by the complete search with a
budget of candidates. Prints a line per machine and objective, and one for all. Exits with 1 if the
complete search is worse anywhere.

Everything but processor time is the same in each run. A row is appended to the results file, as
JSON, as soon as it is known; rows found there are not searched again, so a run can be interrupted,
and two runs over different machines may share a file.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import exp, inf, log
from pathlib import Path

import tilewright
from tilewright.machine.load import library_names
from tilewright.mapping.batch import chunks
from tilewright.mapping.complete.search import complete
from tilewright.mapping.constraints import DEFAULT_LINKS
from tilewright.mapping.evaluate import evaluate
from tilewright.mapping.hierarchy import Hierarchy, hierarchy_of, partial_sum_bits
from tilewright.mapping.nest import LoopNest, nest_of, runs_on_array, with_partial_sums
from tilewright.mapping.search import Objective, SearchOptions, loma_candidates, rank
from tilewright.network.zoo import names

OBJECTIVES: tuple[Objective, ...] = ("latency", "energy")
LIMITS = (6, 8)
TOLERANCE = 1e-12
"""Relative: sums of floats depend on their order."""

HEADING = (
    "| machine | objective | nests | proven | largest gap | over LOMA 6 | best | over LOMA 8 "
    "| best | CPU s |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One nest on one machine under one objective; values are cycles or pJ, None: no mapping."""

    machine: str
    objective: Objective
    nest: str
    first_op: str
    budget: int
    loma_6: float | None
    loma_8: float | None
    found: float | None
    bound: float | None
    proven: bool
    seconds: float

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.machine, self.objective, self.nest, self.budget

    @property
    def is_worse(self) -> bool:
        others = [value for value in (self.loma_6, self.loma_8) if value is not None]
        mine = inf if self.found is None else self.found
        return any(mine > other * (1 + TOLERANCE) for other in others)


@dataclass(frozen=True)
class Layer:
    """A nest, where it is to run, and the first op that has it."""

    machine: str
    first_op: str
    nest: LoopNest
    hierarchy: Hierarchy

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(self.nest).encode()).hexdigest()[:16]


def layers(machine_name: str, network_names: Iterable[str]) -> Iterator[Layer]:
    """Every different nest of some networks that a machine's array runs."""
    machine = tilewright.load_machine(machine_name)
    core = machine.cores[0]
    seen: set[LoopNest] = set()
    for network_name in network_names:
        network = tilewright.load_network(network_name)
        for op in network.ops:
            if not runs_on_array(op, network):
                continue
            width = partial_sum_bits(machine, core, op.accumulator_bits)
            nest = with_partial_sums(nest_of(op, network), width)
            if nest not in seen:
                seen.add(nest)
                links = {o.letter: dict(DEFAULT_LINKS)[o.letter] for o in nest.operands}
                where = hierarchy_of(machine, core, links)
                yield Layer(machine_name, f"{network_name}/{op.name}", nest, where)


def loma_values(layer: Layer, limit: int) -> dict[Objective, float | None]:
    """The least cycles and energy of all orders that LOMA tries."""
    cycles = energy = inf
    options = SearchOptions(lpf_limit=limit)
    for setup, orders in loma_candidates(layer.nest, layer.hierarchy, None, options):
        for part in chunks(orders):
            batch = evaluate(setup, part)
            cycles = min(cycles, float(batch.cycles.min()))
            energy = min(energy, float(batch.energy_pj.min()))
    least: dict[Objective, float] = {"latency": cycles, "energy": energy}
    return {objective: value if value < inf else None for objective, value in least.items()}


def searched(layer: Layer, objectives: Sequence[Objective], budget: int) -> Iterator[Row]:
    loma = {limit: loma_values(layer, limit) for limit in LIMITS}
    for objective in objectives:
        begin = time.process_time()
        options = SearchOptions(objective=objective, budget=budget)
        found = complete(layer.nest, layer.hierarchy, None, options)
        seconds = time.process_time() - begin
        value = None
        if found is not None:
            value = rank(objective, found.cost.cycles, found.cost.energy_pj)[0]
        yield Row(
            machine=layer.machine,
            objective=objective,
            nest=layer.digest,
            first_op=layer.first_op,
            budget=budget,
            loma_6=loma[6][objective],
            loma_8=loma[8][objective],
            found=value,
            bound=None if found is None else found.bound,
            proven=found is not None and found.proven,
            seconds=round(seconds, 3),
        )


def mean(factors: Sequence[float]) -> float:
    return exp(sum(map(log, factors)) / len(factors))


def gains(rows: Sequence[Row], limit: int) -> str:
    """Geometric mean and largest of the factors by which LOMA's values are higher, less 1."""
    factors = []
    for row in rows:
        other = row.loma_6 if limit == LIMITS[0] else row.loma_8
        if row.found is not None and other is not None:
            factors.append(other / row.found)
    return f"{mean(factors) - 1:.2%} | {max(factors) - 1:.1%}" if factors else "– | –"


def summary(machine: str, objective: str, rows: Sequence[Row]) -> str:
    mapped = [row for row in rows if row.found is not None]
    proven = sum(row.proven for row in mapped)
    gap = max((row.found / row.bound - 1 for row in mapped if row.found and row.bound), default=0.0)
    return (
        f"| {machine} | {objective} | {len(mapped)} | {proven / max(len(mapped), 1):.1%} "
        f"| {max(gap, 0.0):.2%} | {gains(mapped, 6)} | {gains(mapped, 8)} "
        f"| {sum(row.seconds for row in rows):.0f} |"
    )


def report(rows: Sequence[Row]) -> None:
    print(HEADING)
    machines = dict.fromkeys(row.machine for row in rows)
    for objective in dict.fromkeys(row.objective for row in rows):
        mine = [row for row in rows if row.objective == objective]
        for machine in machines:
            print(summary(machine, objective, [row for row in mine if row.machine == machine]))
        print(summary("**all**", objective, mine))
    unmapped = [row for row in rows if row.found is None]
    only_complete = [row for row in rows if row.found is not None and row.loma_8 is None]
    print(f"\nno mapping at all: {len(unmapped)} of {len(rows)} searches")
    print(f"mapped by the complete search alone: {len(only_complete)}")
    worse = [row for row in rows if row.is_worse]
    print(f"worse than LOMA: {len(worse)}")
    for row in worse:
        print(f"  {row.machine} {row.objective} {row.first_op}: {row.found}")


def recorded(path: Path | None) -> dict[tuple[str, str, str, int], Row]:
    if path is None or not path.exists():
        return {}
    rows = [Row(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    return {row.key: row for row in rows}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", action="append", choices=library_names())
    parser.add_argument("--network", action="append", choices=names())
    parser.add_argument("--objective", action="append", choices=OBJECTIVES)
    parser.add_argument("--budget", type=int, default=20_000, help="candidates for each search")
    parser.add_argument("--limit-nests", type=int, help="nests of each machine, at most")
    parser.add_argument("--results", type=Path, help="a file to resume from and to append to")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    objectives = given.objective or OBJECTIVES
    known = recorded(given.results)
    rows = []
    for machine in given.machine or library_names():
        chosen = list(layers(machine, given.network or names()))[: given.limit_nests]
        for layer in chosen:
            keys = [(machine, objective, layer.digest, given.budget) for objective in objectives]
            if all(key in known for key in keys):
                rows += [known[key] for key in keys]
                continue
            for row in searched(layer, objectives, given.budget):
                rows.append(row)
                if given.results is not None:
                    with given.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(row)) + "\n")
        print(f"{machine}: {len(chosen)} nests", file=sys.stderr, flush=True)
    report(rows)
    return int(any(row.is_worse for row in rows))


if __name__ == "__main__":
    sys.exit(main())
