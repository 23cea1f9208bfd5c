"""Tilewright beside ZigZag 3.9.1: the same files, the same figures, and what each of them takes.

    python benchmarks/zigzag.py --network N.onnx --machine M.yaml --mapping P.yaml
    python benchmarks/zigzag.py --random 300 --seed 1
    python benchmarks/zigzag.py --plot growth.svg

Both tools run in the same call, so that a busy machine slows both. Exit code 1 if a layer differs.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from zigzag_cases import Case, write_cases
from zigzag_peer import VERSION, run_many, run_one, run_process, zigzag_python
from zigzag_plot import fitted, measured, write_svg

from tilewright.compat.zigzag import get_hardware_performance_zigzag
from tilewright.errors import TilewrightError
from tilewright.machine.load import load_machine
from tilewright.mapping.network import MapOptions, map_network
from tilewright.mapping.saved import read_mapping_file
from tilewright.mapping.search import SearchOptions
from tilewright.network.load import load_network

PARTS = ("compute", "stall", "onload", "offload", "drain", "latency")
ENERGY_TOLERANCE = 1e-9
Layer = dict[str, Any]


def differences(ours: Layer, theirs: Layer) -> dict[str, tuple[float, float]]:
    """Figures that differ: energy by more than 1e-9 of it, cycles at all."""
    found = {p: (ours[p], theirs[p]) for p in PARTS if ours[p] != theirs[p]}
    if abs(ours["energy"] - theirs["energy"]) > ENERGY_TOLERANCE * abs(theirs["energy"]):
        found["energy"] = (ours["energy"], theirs["energy"])
    return found


def compare_layers(ours: list[Layer], theirs: list[Layer]) -> list[str]:
    """A line for every layer that differs or is missing."""
    mine = {layer["name"]: layer for layer in ours}
    lines = []
    for layer in theirs:
        if layer["name"] not in mine:
            lines.append(f"{layer['name']}: missing")
            continue
        found = differences(mine[layer["name"]], layer)
        lines += [f"{layer['name']}: {what}: {a} and {b}" for what, (a, b) in found.items()]
    return lines


def run_network(arguments: argparse.Namespace) -> int:
    """One network on one machine, with the whole process of both tools measured."""
    python = zigzag_python(arguments.zigzag_python)
    job = {
        "workload": arguments.network,
        "accelerator": arguments.machine,
        "mapping": arguments.mapping,
        "options": {"opt": arguments.objective, "lpf_limit": arguments.lpf_limit},
    }
    theirs, their_cpu_s = run_one(python, job)
    if "error" in theirs:
        raise SystemExit(f"ZigZag: {theirs['error']}")
    command = [sys.executable, "-c", "from tilewright.cli import main; main()", "map"]
    command += [arguments.network, "--on", arguments.our_machine or arguments.machine]
    command += ["--mapping", arguments.mapping, "--objective", arguments.objective.lower()]
    command += ["--lpf-limit", str(arguments.lpf_limit), "--model", "zigzag-3.9", "--json"]
    runs = [run_process(command) for _ in range(3)]
    ours = json.loads(runs[0].output)
    our_cpu_s = median(run.cpu_s for run in runs)
    lines = compare_layers([_layer_of_json(op) for op in ours["ops"]], theirs["layers"])
    mappings, search_cpu_s = searched(arguments)
    print(f"{Path(arguments.network).name} on {Path(arguments.machine).name}: ", end="")
    print(f"{len(theirs['layers'])} layers, {len(lines)} differences\n")
    _row("", f"ZigZag {VERSION}", "Tilewright", "ratio")
    _figures("CPU s, process start included", their_cpu_s, our_cpu_s, their_cpu_s / our_cpu_s)
    _figures("mappings costed", theirs["mappings"], mappings, None)
    _figures("CPU s of the search", theirs["cpu_s"], search_cpu_s, theirs["cpu_s"] / search_cpu_s)
    rates = theirs["mappings"] / theirs["cpu_s"], mappings / search_cpu_s
    _figures("mappings per CPU s", *rates, rates[1] / rates[0])
    print("\n".join(["", *lines]))
    return 1 if lines else 0


def searched(arguments: argparse.Namespace) -> tuple[int, float]:
    """Mappings that Tilewright costs, equal nests once, and the CPU seconds of nothing but that.

    Measured on the first call, before anything is cached. ZigZag's figure includes reading and
    writing its files, which is less than a hundredth of it.
    """
    network = load_network(arguments.network)
    machine = load_machine(arguments.our_machine or arguments.machine)
    constraints, _ = read_mapping_file(arguments.mapping)
    options = SearchOptions(
        objective=arguments.objective.lower(), lpf_limit=arguments.lpf_limit, round_off=True
    )
    how = MapOptions(options=options, model="zigzag-3.9", constraints=constraints)
    start = time.process_time()
    result = map_network(network, machine, how)
    return result.candidates, time.process_time() - start


def run_random(arguments: argparse.Namespace) -> int:
    """Random cases: every answer of ZigZag has to be ours, and where it fails we say something."""
    python = zigzag_python(arguments.zigzag_python)
    counts: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    bad = 0
    with TemporaryDirectory() as folder:
        cases = write_cases(arguments.random, arguments.seed, Path(folder))
        jobs = [{**case.files, "options": case.options} for case in cases]
        for case, theirs in zip(cases, run_many(python, jobs), strict=True):
            ours, message = our_layers(case)
            if "error" in theirs:
                failures[theirs["error"]] += 1
                counts["ZigZag fails; we " + ("say why" if message else "answer")] += 1
                continue
            lines = compare_layers(ours, theirs["layers"])
            if not lines:
                counts["agree"] += 1
                counts["layers that agree"] += len(theirs["layers"])
                continue
            counts["DIFFER"] += 1
            bad += 1
            print(f"case {case.name} {case.options}: {message}", *lines, sep="\n  ")
    for title, counter in (("", counts), ("how ZigZag fails:", failures)):
        print(title)
        for what, number in counter.most_common():
            print(f"{number:6}  {what}")
    return 1 if bad else 0


def our_layers(case: Case) -> tuple[list[Layer], str]:
    """Tilewright's layers, or none and its message; any other exception is a bug and ends it."""
    with TemporaryDirectory() as folder:
        try:
            answer = get_hardware_performance_zigzag(
                **case.files, dump_folder=folder, **case.options
            )
        except TilewrightError as error:
            return [], str(error)
    return [_layer_of_cost(cost) for cost, _ in answer[-1][0][1]], ""


def _layer_of_cost(cost: Any) -> Layer:
    return {
        "name": cost.layer.name,
        "energy": cost.energy_total,
        "compute": cost.ideal_temporal_cycle,
        "stall": cost.stall_slack_comb,
        "onload": cost.data_onloading_cycle,
        "offload": cost.data_offloading_cycle,
        "drain": cost.systolic_drain_cycle,
        "latency": cost.latency_total2,
    }


def _layer_of_json(op: dict[str, Any]) -> Layer:
    parts = ("compute", "stall", "onload", "offload", "drain")
    return {
        "name": op["name"],
        "energy": op["energy_pj"],
        "latency": op["cycles"],
        **{part: op[f"{part}_cycles"] for part in parts},
    }


def run_plot(file: Path) -> int:
    points = measured()
    for point in points:
        print(f"limit {point.limit}: {point.work:>10,} candidates x loops, {point.cpu_s:.3f} CPU s")
    fixed, rate = fitted(points)
    print(
        f"{fixed * 1e3:.1f} ms + {rate * 1e9:.0f} ns x candidates x loops; off by at most ", end=""
    )
    print(f"{max(abs((fixed + rate * p.work) / p.cpu_s - 1) for p in points):.0%}")
    write_svg(points, file)
    return 0


def _figures(title: str, theirs: float, ours: float, ratio: float | None) -> None:
    cells = [f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" for value in (theirs, ours)]
    _row(title, *cells, f"{ratio:,.0f}" if ratio is not None else "")


def _row(title: str, *cells: str) -> None:
    print(f"{title:32}" + "".join(f"{cell:>15}" for cell in cells))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--zigzag-python", metavar="PATH", help="a Python that has ZigZag")
    parser.add_argument("--network", metavar="FILE", help="ONNX or ZigZag workload")
    parser.add_argument(
        "--machine", metavar="FILE", help="in the dialect of ZigZag 3.8.2 and later"
    )
    parser.add_argument("--our-machine", metavar="FILE", help="the same in another dialect, for us")
    parser.add_argument("--mapping", metavar="FILE", help="ZigZag mapping file")
    parser.add_argument("--objective", choices=["latency", "energy", "EDP"], default="latency")
    parser.add_argument("--lpf-limit", type=int, default=6)
    parser.add_argument("--random", type=int, metavar="N", help="N random cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="CPU of growing searches")
    arguments = parser.parse_args()
    if arguments.plot is not None:
        return run_plot(arguments.plot)
    if arguments.random is not None:
        return run_random(arguments)
    if not (arguments.network and arguments.machine and arguments.mapping):
        parser.error("give --network, --machine and --mapping, or --random, or --plot")
    return run_network(arguments)


if __name__ == "__main__":
    sys.exit(main())
