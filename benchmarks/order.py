"""How low the peak of branchy networks gets, beside the order given and the depth-first one.

    python benchmarks/order.py FOLDER [--steps N]

FOLDER holds one `NAME.json` per network (`tensors`: bytes by name, `inputs`, `outputs`, `ops` with
`type`, `inputs` and `outputs`) and `best.csv` with the best known peaks, without and with ops that
write in place. Prints a line per network and rule; peaks are in bytes, time is processor time.
"""

import argparse
import csv
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright.program.order import OrderOp, OrderProblem, depth_first, faults, peak_bytes
from tilewright.program.order_search import OrderOptions, least_peak

ELEMENT_WISE = ("Relu", "Add", "Mul", "Sigmoid")


def problem_of_file(path: Path, *, in_place: bool) -> OrderProblem:
    graph: dict[str, Any] = json.loads(path.read_text("utf-8"))
    number = {name: position for position, name in enumerate(graph["tensors"])}
    return OrderProblem(
        ops=tuple(
            OrderOp(
                name=f"{op['type']} {position}",
                reads=tuple(dict.fromkeys(number[name] for name in op["inputs"])),
                writes=tuple(number[name] for name in op["outputs"]),
                in_place=in_place and op["type"] in ELEMENT_WISE,
            )
            for position, op in enumerate(graph["ops"])
        ),
        sizes_bytes=tuple(graph["tensors"].values()),
        inputs=tuple(number[name] for name in graph["inputs"]),
        outputs=tuple(number[name] for name in graph["outputs"]),
    )


def line(name: str, problem: OrderProblem, best_known: int, options: OrderOptions) -> str:
    begin = time.process_time()
    found = least_peak(problem, options)
    seconds = time.process_time() - begin
    if list(faults(problem, found.order)) or peak_bytes(problem, found.order) != found.peak_bytes:
        raise SystemExit(f"{name}: the order is wrong")
    given = peak_bytes(problem, range(len(problem.ops)))
    depth = peak_bytes(problem, depth_first(problem))
    return (
        f"{name:32} {len(problem.ops):5} {given:11,} {depth:11,} {found.peak_bytes:11,} "
        f"{best_known:11,} {'yes' if found.proven else 'no':>6} {seconds:7.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=OrderOptions().steps)
    arguments = parser.parse_args()
    options = replace(OrderOptions(), steps=arguments.steps)
    print(
        f"{'network':32} {'ops':>5} {'given':>11} {'depth-first':>11} {'ours':>11} "
        f"{'best known':>11} {'proven':>6} {'seconds':>7}"
    )
    begin = time.process_time()
    with (arguments.folder / "best.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for in_place, column in (
                (False, "best_peak_bytes"),
                (True, "best_peak_bytes_in_place"),
            ):
                path = arguments.folder / f"{row['graph']}.json"
                name = f"{row['graph']}{', in place' if in_place else ''}"
                problem = problem_of_file(path, in_place=in_place)
                print(line(name, problem, int(row[column]), options), flush=True)
    print(f"{time.process_time() - begin:.1f} s in all")


if __name__ == "__main__":
    main()
