"""Cycles of our plans on Arm's Ethos-U against those that Vela 5.2 estimates for its own schedules.

    python benchmarks/ethos_u.py [--machine NAME ...] [--network NAME ...] [--reference FOLDER]

Both are told by the same cycle model. For every TFLite network and machine: cycles of the plan, of
its compute tasks, Vela's `cycles_total` (Python core, optimised for speed, without a limit), the
ratio, and the CPU of planning. Vela compresses weights, our plans do not: where weights come from
flash at a byte a cycle that decides. `encoded` is the ratio of a plan whose flash is as much faster
as Vela's weights are smaller, rounded down to whole bits a cycle. What Vela leaves to the CPU it
counts as nothing; operators it leaves there are told. Reference data (networks, Vela's results)
lies outside the repository.
"""

import argparse
import csv
import os
import sys
import time
from dataclasses import replace
from math import exp, log
from pathlib import Path

import tilewright
from tilewright.errors import TilewrightError

MACHINES = {
    "ethos_u55_128": "ethos-u55-128",
    "ethos_u55_256": "ethos-u55-256",
    "ethos_u65_256": "ethos-u65-256",
}
BESIDE = Path(__file__).resolve().parents[2] / "shared"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", action="append", choices=list(MACHINES))
    parser.add_argument("--network", action="append")
    parser.add_argument("--reference", default=os.environ.get("TILEWRIGHT_SHARED", str(BESIDE)))
    given = parser.parse_args()
    reference = Path(given.reference)
    told = vela_rows(reference)
    if not told:
        sys.exit("the folder of reference data is not here (give --reference)")
    print(
        f"{'machine':14} {'network':40} {'plan':>12} {'compute':>12} {'vela':>12} "
        f"{'ratio':>6} {'encoded':>7} {'on CPU':>6} CPU s"
    )
    ratios: list[tuple[float, float]] = []
    for name in given.machine or MACHINES:
        for path in sorted((reference / "models").glob("*.tflite")):
            row = told.get((path.name, MACHINES[name]))
            if row is not None and (not given.network or path.stem in given.network):
                ratios += compared(name, path, row)
    if ratios:
        plain, encoded = (
            exp(sum(map(log, column)) / len(ratios)) for column in zip(*ratios, strict=True)
        )
        print(f"geomean of networks wholly on the NPU: {plain:.3f}, encoded {encoded:.3f}")


def vela_rows(reference: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Rows of Vela's default runs by network and accelerator."""
    path = reference / "oracle" / "vela" / "summary.csv"
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        return {
            (row["model"], row["accelerator"]): row
            for row in csv.DictReader(lines)
            if row["core"] == "legacy"
            and row["setting"] == "perf-default"
            and row["rc"] == "0"
            and row["memory_mode"] != "Sram_Only"
        }


def compared(name: str, path: Path, row: dict[str, str]) -> list[tuple[float, float]]:
    """Print a line; the ratios if Vela leaves nothing to the CPU."""
    start = time.process_time()
    network, machine = tilewright.load_network(str(path)), tilewright.load_machine(name)
    try:
        plan = tilewright.plan(network, machine)
    except TilewrightError as error:
        print(f"{name:14} {path.stem:40} no plan: {error.problems[0].message}")
        return []
    spent = time.process_time() - start
    faster = with_faster_flash(
        machine, float(row["total_original_weights"]), float(row["total_npu_encoded_weights"])
    )
    encoded = plan if faster == machine else tilewright.plan(network, faster)
    compute = sum(t.cycles for t in plan.program.tasks if t.kind == "compute")
    vela = float(row["cycles_total"])
    ratios = plan.cycles / vela, encoded.cycles / vela
    print(
        f"{name:14} {path.stem:40} {plan.cycles:12,} {compute:12,} {vela:12,.0f} "
        f"{ratios[0]:6.3f} {ratios[1]:7.3f} {row['cpu_ops']:>6} {spent:5.2f}"
    )
    return [ratios] if row["cpu_ops"] == "0" else []


def with_faster_flash(
    machine: tilewright.Machine, original: float, encoded: float
) -> tilewright.Machine:
    """The machine with a flash, which holds weights only, that makes up for their encoding."""
    core = machine.cores[0]
    memories = [
        replace(
            memory,
            ports=tuple(
                replace(port, bits_per_cycle=int(port.bits_per_cycle * original / encoded))
                for port in memory.ports
            ),
        )
        if memory.name == "flash"
        else memory
        for memory in core.memories
    ]
    return replace(machine, cores=(replace(core, memories=tuple(memories)),))


if __name__ == "__main__":
    main()
