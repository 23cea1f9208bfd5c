"""Whether more memory is slower: plans for sizes that are no halves of each other.

    nice python benchmarks/sizes.py [--odd] [--tight] [--network NAME ...] [--machine NAME ...]

`--odd`: eight networks of the zoo in all, 92, 85, 78, 70, 64, 55 and 50 % of the scratchpads of
four machines. `--tight`: three small ones on `ethos_u55_128`, where data have nowhere to wait, in
sizes 8 % apart, from one that is enough down to where two in a row have no plan. Both without
either. A network that is given by name, or as a file, takes the place of those. For every plan: its
cycles, by how much the next smaller size that has a plan is faster, by how much the best of all
smaller ones is, tasks and the CPU of planning, without the check. The person detector of MLPerf
Tiny is left out if the folder of reference data is not here (set TILEWRIGHT_SHARED).
"""

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

import tilewright
from tilewright.errors import InfeasibleError

_NETWORKS = """
lenet5 notes_cnn ds_cnn squeezenet mobilenetv2 resnet18 tiny_yolov3 vit_tiny
"""
NETWORKS = _NETWORKS.split()
MACHINES = ["ethos_u55_128", "edge_tpu_like", "npu_37xx", "eyeriss_like"]
PER_CENT = (100, 92, 85, 78, 70, 64, 55, 50)

BESIDE = Path(__file__).resolve().parents[2] / "shared"
REFERENCE = Path(os.environ.get("TILEWRIGHT_SHARED", BESIDE))
DETECTOR = REFERENCE / "models" / "mlperf_tiny_vww96_int8.tflite"
ENOUGH = {"lenet5": 12 << 10, "notes_cnn": 48 << 10, str(DETECTOR): 96 << 10}
TIGHT_MACHINE = "ethos_u55_128"
STEP = 1.08
WORSE = 1.05


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan for scratchpads of some size; without cycles if there is none."""

    size: str
    cycles: int | None
    tasks: int
    cpu_seconds: float


def planned(network: tilewright.Network, machine: tilewright.Machine, part: float) -> Planned:
    """The plan in a part of the scratchpads."""
    pads = [memory for memory in machine.memories if memory.role == "scratchpad"]
    limits = tuple(
        (m.name, int(m.size_bytes * part) // m.alignment_bytes * m.alignment_bytes) for m in pads
    )
    options = tilewright.PlanOptions(memory_limits=limits, checked=False)
    start = time.process_time()
    try:
        plan = tilewright.plan(network, machine, options)
    except InfeasibleError:
        plan = None
    return Planned(
        size="+".join(f"{size:,}" for _, size in limits),
        cycles=None if plan is None else plan.cycles,
        tasks=0 if plan is None else len(plan.program.tasks),
        cpu_seconds=time.process_time() - start,
    )


def odd(name: str, machine_name: str) -> list[Planned]:
    """Plans in parts of the scratchpads, large ones first."""
    network, machine = tilewright.load_network(name), tilewright.load_machine(machine_name)
    return [planned(network, machine, per_cent / 100) for per_cent in PER_CENT]


def tight(name: str) -> list[Planned]:
    """Plans in sizes that are a step apart, large ones first."""
    network, machine = tilewright.load_network(name), tilewright.load_machine(TIGHT_MACHINE)
    (pad,) = [memory for memory in machine.memories if memory.role == "scratchpad"]
    found, part = list[Planned](), ENOUGH.get(name, pad.size_bytes) / pad.size_bytes
    while len(found) < 2 or any(plan.cycles is not None for plan in found[-2:]):
        found.append(planned(network, machine, part))
        part /= STEP
    return found


def losses(plans: Sequence[Planned]) -> Iterator[tuple[Planned, float | None, float | None]]:
    """By which factors plans are slower than the next and than the best for less memory."""
    for number, plan in enumerate(plans):
        smaller = [other.cycles for other in plans[number + 1 :] if other.cycles is not None]
        if plan.cycles is None or not smaller:
            yield plan, None, None
        else:
            yield plan, plan.cycles / smaller[0], plan.cycles / min(smaller)


def show(title: str, sweeps: Iterator[tuple[str, str, list[Planned]]]) -> None:
    """A line for each plan, and how many of them are slower than others."""
    print(title)
    print(
        f"{'machine':15} {'network':12} {'bytes':>18} {'cycles':>12} {'/next':>7} {'/best':>7} "
        f"{'tasks':>6} CPU s"
    )
    pairs, bests, cycles, seconds = list[float](), list[float](), list[int](), list[float]()
    for machine, name, plans in sweeps:
        for plan, to_next, to_best in losses(plans):
            seconds.append(plan.cpu_seconds)
            pairs += [to_next] if to_next else []
            bests += [to_best] if to_best else []
            cycles += [plan.cycles] if plan.cycles else []
            shown = " ".join(f"{'' if r is None else f'{r:.4f}':>7}" for r in (to_next, to_best))
            print(
                f"{machine:15} {Path(name).stem[:12]:12} {plan.size:>18} {plan.cycles or '-':>12} "
                f"{shown} {plan.tasks:6} {plan.cpu_seconds:.2f}",
                flush=True,
            )
    for what, ratios in (("the next smaller size", pairs), ("the best smaller size", bests)):
        slower, much = (sum(r > most for r in ratios) for most in (1.0, WORSE))
        print(
            f"slower than with {what}: {slower} of {len(ratios)}, {much} by more than 5 %, "
            f"by {max(ratios) - 1:.1%} at most"
        )
    print(f"geomean cycles {geomean(cycles):,.0f}, CPU {geomean(seconds):.4f} s\n")


def geomean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return exp(sum(map(log, values)) / len(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--odd", action="store_true")
    parser.add_argument("--tight", action="store_true")
    parser.add_argument("--network", action="append")
    parser.add_argument("--machine", action="append")
    given = parser.parse_args()
    if given.odd or not given.tight:
        names = [(m, n) for m in given.machine or MACHINES for n in given.network or NETWORKS]
        show("parts of all scratchpads", ((m, n, odd(n, m)) for m, n in names))
    if given.tight or not given.odd:
        networks = given.network or [n for n in ENOUGH if n != str(DETECTOR) or DETECTOR.exists()]
        show("little room", ((TIGHT_MACHINE, n, tight(n)) for n in networks))


if __name__ == "__main__":
    main()
