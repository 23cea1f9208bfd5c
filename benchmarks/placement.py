"""Placement: speed and tightness, beside MiniMalloc where its binary is given.

    python benchmarks/placement.py --hard DIR [--minimalloc PATH] [--lives DIR] [--growth] [-o FILE]

`--hard` is a folder of files NAME.CAPACITY.csv, `--lives` one of live ranges without a capacity;
`--growth` places up to 100,000 buffers such as a large model has. Every placement is checked.
CPU seconds are those of one thread; a peer's are those of its process.
"""

import argparse
import json
import math
import platform
import random
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tilewright.placement.check import violations
from tilewright.placement.files import read_csv
from tilewright.placement.fit import linear_scan, times_of
from tilewright.placement.pack import PackOptions, pack
from tilewright.placement.problem import Buffer, Packing, PlacementProblem
from tilewright.placement.search import is_compiled

GROWTH_SIZES = (12_500, 25_000, 50_000, 100_000)


def timed(problem: PlacementProblem, options: PackOptions) -> tuple[Packing, float]:
    began = time.process_time()
    packing = pack(problem, options)
    return packing, time.process_time() - began


def faults(packing: Packing) -> int:
    return len(list(violations(packing.problem, packing.address_of())))


def hard(folder: Path, binary: str | None, options: PackOptions) -> list[dict[str, Any]]:
    """Each instance within its capacity, by us and by the peer, one after the other."""
    rows = []
    for path in sorted(folder.glob("*.csv")):
        capacity = int(path.name.split(".")[1])
        packing, seconds = timed(read_csv(path, capacity), options)
        row = {
            "instance": path.name,
            "buffers": len(packing.problem.buffers),
            "fits": packing.fits,
            "peak_bytes": packing.peak_bytes,
            "bound_bytes": packing.bound_bytes,
            "nodes": packing.nodes,
            "faults": faults(packing),
            "cpu_seconds": round(seconds, 3),
        }
        if binary is not None:
            row["minimalloc_cpu_seconds"] = round(peer_seconds(binary, path, capacity), 3)
        rows.append(row)
        print(row, flush=True)
    return rows


def peer_seconds(binary: str, path: Path, capacity: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [binary, f"--input={path}", f"--output={folder}/out.csv", f"--capacity={capacity}"],
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def smallest(folder: Path, options: PackOptions) -> dict[str, Any]:
    """The smallest peak of every instance of a folder."""
    proven = at_volume = total = wrong = 0
    seconds = 0.0
    for path in sorted(folder.glob("*.csv")):
        if path.name == "index.csv":
            continue
        packing, taken = timed(read_csv(path), options)
        total += 1
        seconds += taken
        proven += packing.proven
        at_volume += packing.nodes == 0 and packing.proven
        wrong += faults(packing)
    row = {
        "instances": total,
        "proven": proven,
        "without_search": at_volume,
        "faults": wrong,
        "cpu_seconds": round(seconds, 3),
    }
    print(row, flush=True)
    return row


def large_model(count: int, seed: int) -> PlacementProblem:
    """Activations that live for a few steps, residuals for dozens, a few buffers throughout."""
    chance = random.Random(seed)
    buffers = []
    for number in range(count):
        length = chance.choices([3, 12, 60, 400], weights=[70, 24, 5, 1])[0]
        size = 64 * chance.choice([1, 4, 16, 49, 64, 196, 256, 784, 1024])
        life = (number, number + 1 + chance.randrange(length))
        buffers.append(Buffer(name=str(number), lives=(life,), size_bytes=size, alignment_bytes=64))
    return PlacementProblem(buffers=tuple(buffers))


def growth(options: PackOptions) -> list[dict[str, Any]]:
    """CPU time of the heuristics against buffers; the scan also in ns per n log2 n."""
    rows: list[dict[str, Any]] = []
    for count in GROWTH_SIZES:
        problem = large_model(count, seed=0)
        began = time.process_time()
        linear_scan(times_of(problem.buffers))
        scan_seconds = time.process_time() - began
        packing, seconds = timed(problem, options)
        row = {
            "buffers": count,
            "linear_scan_cpu_seconds": round(scan_seconds, 3),
            "over_n_log_n": round(scan_seconds / (count * math.log2(count)) * 1e9, 1),
            "all_cpu_seconds": round(seconds, 3),
            "peak_bytes": packing.peak_bytes,
            "above_bound_percent": round(100 * packing.peak_bytes / packing.bound_bytes - 100, 2),
            "method": packing.method,
        }
        rows.append(row)
        print(row, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--hard", type=Path)
    parser.add_argument("--lives", type=Path)
    parser.add_argument("--minimalloc", help="path of its binary")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--budget", type=int, default=PackOptions().node_budget)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    options = PackOptions(node_budget=arguments.budget, seed=arguments.seed)
    result: dict[str, Any] = {"machine": platform.processor(), "compiled": is_compiled()}
    if arguments.hard:
        rows = hard(arguments.hard, arguments.minimalloc, options)
        result["hard"] = rows
        ours = sum(row["cpu_seconds"] for row in rows)
        print(f"solved {sum(row['fits'] for row in rows)} of {len(rows)}, {ours:.2f} s of CPU")
        if arguments.minimalloc:
            theirs = sum(row["minimalloc_cpu_seconds"] for row in rows)
            print(f"MiniMalloc: {theirs:.2f} s, {theirs / ours:.1f} times as much")
    if arguments.lives:
        result["lives"] = smallest(arguments.lives, options)
    if arguments.growth:
        result["growth"] = growth(PackOptions(node_budget=0, climb_evaluations=0))
    if arguments.output:
        arguments.output.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
