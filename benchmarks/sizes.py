"""Whether more memory is worse: plans of the same network for many sizes of the scratchpads.

    nice python benchmarks/sizes.py [--halves] [--odd] [--tight] [--objective NAME]
        [--network NAME ...] [--machine NAME ...]

`--halves`: ten networks of the zoo in all, a half, a quarter and an eighth of the scratchpads of
every machine of the library. `--odd`: eight of them in all, 92, 85, 78, 70, 64, 55 and 50 % on four
machines. `--tight`: three small ones on `ethos_u55_128`, where data have nowhere to wait, in sizes
8 % apart, from one that is enough down to where two in a row have no plan. All three without any.
A network that is given by name, or as a file, takes the place of those. For every plan: what the
objective makes small (cycles, pJ or bytes moved outside), by how much the next smaller size that
has a plan is better, by how much the best of all smaller ones is, tasks and the CPU of planning,
without the check. The person detector of MLPerf Tiny is left out if the folder of reference data is
not here (set TILEWRIGHT_SHARED).
"""

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import get_args

import tilewright
from tilewright.errors import InfeasibleError
from tilewright.machine.load import library_names
from tilewright.plan_sizes import value_of
from tilewright.program.tile import Goal

_NETWORKS = """
lenet5 notes_cnn ds_cnn squeezenet mobilenetv2 resnet18 tiny_yolov3 vit_tiny
"""
NETWORKS = _NETWORKS.split()
MACHINES = ["ethos_u55_128", "edge_tpu_like", "npu_37xx", "eyeriss_like"]
PER_CENT = (100, 92, 85, 78, 70, 64, 55, 50)
HALVES = (100, 50, 25, 12.5)
MORE_NETWORKS = ["tiny_yolov2", "alexnet"]

BESIDE = Path(__file__).resolve().parents[2] / "shared"
REFERENCE = Path(os.environ.get("TILEWRIGHT_SHARED", BESIDE))
DETECTOR = REFERENCE / "models" / "mlperf_tiny_vww96_int8.tflite"
ENOUGH = {"lenet5": 12 << 10, "notes_cnn": 48 << 10, str(DETECTOR): 96 << 10}
TIGHT_MACHINE = "ethos_u55_128"
STEP = 1.08
WORSE = (1 + 1e-9, 1.05)
"""Factors beyond which a plan is worse than another, and much worse; energies are rounded."""
PARTS = {
    "halves": (HALVES, library_names(), NETWORKS + MORE_NETWORKS),
    "odd": (PER_CENT, MACHINES, NETWORKS),
}
SWEEPS = [*PARTS, "tight"]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan for scratchpads of some size; without a value if there is none."""

    size: str
    value: float | None
    tasks: int
    cpu_seconds: float


def planned(
    network: tilewright.Network, machine: tilewright.Machine, objective: Goal, part: float
) -> Planned:
    """The plan in a part of the scratchpads."""
    pads = [memory for memory in machine.memories if memory.role == "scratchpad"]
    limits = tuple(
        (m.name, int(m.size_bytes * part) // m.alignment_bytes * m.alignment_bytes) for m in pads
    )
    options = tilewright.PlanOptions(objective=objective, memory_limits=limits, checked=False)
    start = time.process_time()
    try:
        plan = tilewright.plan(network, machine, options)
    except InfeasibleError:
        plan = None
    return Planned(
        size="+".join(f"{size:,}" for _, size in limits),
        value=None if plan is None else value_of(plan)[0],
        tasks=0 if plan is None else len(plan.program.tasks),
        cpu_seconds=time.process_time() - start,
    )


def in_parts(
    name: str, machine_name: str, objective: Goal, per_cent: Sequence[float]
) -> list[Planned]:
    """Plans in parts of the scratchpads, large ones first."""
    network, machine = tilewright.load_network(name), tilewright.load_machine(machine_name)
    return [planned(network, machine, objective, part / 100) for part in per_cent]


def tight(name: str, objective: Goal) -> list[Planned]:
    """Plans in sizes that are a step apart, large ones first."""
    network, machine = tilewright.load_network(name), tilewright.load_machine(TIGHT_MACHINE)
    (pad,) = [memory for memory in machine.memories if memory.role == "scratchpad"]
    found, part = list[Planned](), ENOUGH.get(name, pad.size_bytes) / pad.size_bytes
    while len(found) < 2 or any(plan.value is not None for plan in found[-2:]):
        found.append(planned(network, machine, objective, part))
        part /= STEP
    return found


def losses(plans: Sequence[Planned]) -> Iterator[tuple[Planned, float | None, float | None]]:
    """By which factors plans are worse than the next and than the best for less memory."""
    for number, plan in enumerate(plans):
        smaller = [other.value for other in plans[number + 1 :] if other.value is not None]
        if plan.value is None or not smaller:
            yield plan, None, None
        else:
            yield plan, plan.value / smaller[0], plan.value / min(smaller)


def show(title: str, sweeps: Iterator[tuple[str, str, list[Planned]]]) -> None:
    """A line for each plan, and how many of them are worse than others."""
    print(title)
    print(
        f"{'machine':19} {'network':12} {'bytes':>18} {'value':>14} {'/next':>7} {'/best':>7} "
        f"{'tasks':>6} CPU s"
    )
    pairs, bests, values, seconds = list[float](), list[float](), list[float](), list[float]()
    for machine, name, plans in sweeps:
        for plan, to_next, to_best in losses(plans):
            seconds.append(plan.cpu_seconds)
            pairs += [to_next] if to_next else []
            bests += [to_best] if to_best else []
            values += [plan.value] if plan.value else []
            shown = " ".join(f"{'' if r is None else f'{r:.4f}':>7}" for r in (to_next, to_best))
            value = "-" if plan.value is None else f"{plan.value:,.0f}"
            print(
                f"{machine:19} {Path(name).stem[:12]:12} {plan.size:>18} {value:>14} "
                f"{shown} {plan.tasks:6} {plan.cpu_seconds:.2f}",
                flush=True,
            )
    for what, ratios in (("the next smaller size", pairs), ("the best smaller size", bests)):
        worse, much = (sum(r > most for r in ratios) for most in WORSE)
        print(
            f"worse than with {what}: {worse} of {len(ratios)}, {much} by more than 5 %, "
            f"by {max(ratios) - 1:.2%} at most"
        )
    print(f"geomean {geomean(values):,.0f}, CPU {geomean(seconds):.4f} s\n")


def geomean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return exp(sum(map(log, values)) / len(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for flag in SWEEPS:
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--objective", choices=get_args(Goal), default="latency")
    parser.add_argument("--network", action="append")
    parser.add_argument("--machine", action="append")
    given = parser.parse_args()
    wanted = [flag for flag in SWEEPS if getattr(given, flag)] or SWEEPS
    for flag in wanted:
        if flag == "tight":
            networks = given.network or [
                n for n in ENOUGH if n != str(DETECTOR) or DETECTOR.exists()
            ]
            show("little room", ((TIGHT_MACHINE, n, tight(n, given.objective)) for n in networks))
            continue
        per_cent, machines, networks = PARTS[flag]
        pairs = [(m, n) for m in given.machine or machines for n in given.network or networks]
        sweeps = ((m, n, in_parts(n, m, given.objective, per_cent)) for m, n in pairs)
        show(f"{flag}: parts of all scratchpads, {given.objective}", sweeps)


if __name__ == "__main__":
    main()
