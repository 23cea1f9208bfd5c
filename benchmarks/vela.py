"""Tilewright beside Arm's Vela 5.2.0 (its Python core, and Regor) on TFLite networks.

    python benchmarks/vela.py [--models FOLDER] [--live [PYTHON]] [--part NAME ...] [--results FILE]

`memory`   peak SRAM of plans with the objective `memory`, against `--optimise Size`
`traffic`  feature-map bytes from and to DRAM with the objective `traffic` in a given SRAM
`limits`   whether there is a plan in a given SRAM where Vela fails or takes more than it was given
`cycles`   cycles of plans with the objective `latency`, against Vela without a limit

Every plan and every run of Vela has a process of its own. With `--live` Vela runs beside us, in the
given Python or in an environment that is made on first use; otherwise its recorded runs serve,
whose CPU seconds were taken elsewhere. Networks and recorded runs lie outside the repository. A row
is appended to the results file, from which the next call resumes. Ratios are ours over those of
Vela's Python core. Off-chip bytes are all that passes flash, DRAM and host; of Vela's schedules
with the network's inputs and outputs, once, where they lie in the SRAM.
"""

import argparse
import compileall
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path
from typing import Any, Literal, assert_never, get_args

from vela_peer import Core, Key, VelaRun, live_run, recorded_runs, run_process, vela_python

import tilewright

Part = Literal["memory", "traffic", "limits", "cycles"]
BESIDE = Path(__file__).resolve().parents[2] / "shared"
SRAM_SIZES = (384 * 1024, 128 * 1024, 64 * 1024)
U55 = ("ethos_u55_128", "ethos_u55_256")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A network on a machine, and what is asked of both tools."""

    part: Part
    machine: str
    network: str
    objective: str
    setting: str
    sram_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """What both tools say to a case; `ours` is as `vela_plan.py` tells it."""

    case: Case
    ours: dict[str, Any]
    process_cpu_s: float
    vela: VelaRun
    regor: VelaRun | None
    """Vela with its other core; None: not recorded."""


def cases(part: Part, networks: Sequence[str]) -> Iterator[Case]:
    asked: list[tuple[str, str, str, int | None]]
    match part:
        case "memory":
            asked = [(machine, "memory", "size", None) for machine in U55]
        case "traffic":
            asked = [("ethos_u65_256", "traffic", f"speed {n}", n) for n in SRAM_SIZES]
        case "limits":
            asked = [(m, "latency", f"speed {n}", n) for m in U55 for n in SRAM_SIZES]
        case "cycles":
            asked = [(machine, "latency", "speed", None) for machine in (*U55, "ethos_u65_256")]
        case _:
            assert_never(part)
    for machine, objective, setting, sram_bytes in asked:
        for network in networks:
            yield Case(
                part=part,
                machine=machine,
                network=network,
                objective=objective,
                setting=setting,
                sram_bytes=sram_bytes,
            )


def planned(case: Case, models: Path) -> tuple[dict[str, Any], float]:
    """Figures of our plan, and the CPU seconds of the whole process."""
    script = Path(__file__).with_name("vela_plan.py")
    path = models / f"{case.network}.tflite"
    command = [sys.executable, str(script), str(path), case.machine, case.objective]
    command += [str(case.sram_bytes)] if case.sram_bytes is not None else []
    process = run_process(command)
    if process.code != 0:
        raise SystemExit(f"{' '.join(command)}\n{process.errors[-2000:]}")
    return json.loads(process.output), process.cpu_s


def is_worth_a_plan(case: Case, vela: VelaRun) -> bool:
    """Whether a case tells anything: limits that Vela keeps do not."""
    if case.part != "limits":
        return not vela.failure or case.part == "traffic"
    assert case.sram_bytes is not None
    return bool(vela.failure) or vela.sram_bytes > case.sram_bytes


def geomean(ratios: Sequence[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios))


FIGURES = {"traffic": "feature_map_bytes", "cycles": "cycles"}
"""What a part is about, where that is not the SRAM."""


def our_figure(row: Row) -> int:
    return int(row.ours[FIGURES.get(row.case.part, "sram_bytes")])


def velas_figure(row: Row) -> float:
    return float(getattr(row.vela, FIGURES.get(row.case.part, "sram_bytes")))


HEAD = {
    "memory": ("ratio", "whole, ratio"),
    "traffic": ("feature maps, B", "Vela's", "Regor's", "ratio"),
    "limits": (),
    "cycles": ("ratio", "on CPU"),
}
COMMON_HEAD = (
    *("SRAM, B", "input, output whole", "Vela's", "Regor's", "cycles", "Vela's", "Regor's"),
    *("off chip, B", "Vela's", "Regor's", "tasks", "commands, B"),
)
COMMAND_BYTES = 55
"""Of a command stream for each operation or transfer, roughly."""
CPU_HEAD = ("plan, CPU s", "its check", "Vela schedules", "process, CPU s", "Vela's")


def figures(row: Row) -> list[str]:
    """The cells of a part before those of CPU time."""
    if "error" in row.ours:
        return ["no plan"] + [""] * (len(HEAD[row.case.part]) + len(COMMON_HEAD) - 1)
    runs = (row.vela, row.regor)
    ends = row.ours["input_output_bytes"] if row.case.machine in U55 else 0
    cells = [f"{row.ours['sram_bytes']:,}", f"{row.ours['whole_sram_bytes']:,}"]
    cells += [_told(run, "sram_bytes") for run in runs]
    cells += [f"{row.ours['cycles']:,}", *(_told(run, "cycles") for run in runs)]
    cells += [f"{row.ours['off_chip_bytes']:,}"]
    cells += [_told(run, "off_chip_bytes", ends) for run in runs]
    cells += [f"{row.ours['tasks']:,}", f"{COMMAND_BYTES * row.ours['tasks']:,}"]
    if row.case.part == "limits":
        return cells
    ours, peers = our_figure(row), velas_figure(row)
    ratio = f"{ours / peers:.3f}" if peers else ""
    if row.case.part == "traffic":
        cells += [f"{ours:,}", *(_told(run, "feature_map_bytes") for run in runs)]
    cells.append(ratio)
    if row.case.part == "memory":
        cells.append(f"{row.ours['whole_sram_bytes'] / peers:.3f}")
    if row.case.part == "cycles":
        cells.append(str(row.vela.cpu_ops))
    return cells


def _told(run: VelaRun | None, figure: str, more: int = 0) -> str:
    if run is None:
        return ""
    return "fails" if run.failure else f"{getattr(run, figure) + more:,.0f}"


def cells_of(row: Row) -> list[str]:
    where = row.case.machine
    if row.case.sram_bytes is not None:
        where += f", {row.case.sram_bytes // 1024} KiB"
    schedule = row.vela.schedule_cpu_s
    return [
        where,
        row.case.network,
        *figures(row),
        f"{row.ours['plan_cpu_s']:.2f}",
        f"{row.ours['check_cpu_s']:.2f}",
        "" if schedule is None else f"{schedule:.2f}",
        f"{row.process_cpu_s:.2f}",
        f"{row.vela.process_cpu_s:.2f}",
    ]


def table(part: Part, rows: Sequence[Row]) -> str:
    """A Markdown table, and the geometric means below it."""
    head = ["machine", "network", *COMMON_HEAD, *HEAD[part], *CPU_HEAD]
    lines = [head, *(cells_of(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rules = ["-" * w if i < 2 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    lines.insert(1, rules)
    padded = (
        [
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    )
    below = "".join(f"* {sentence}\n" for sentence in means(part, rows))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in padded) + "\n" + below


def write_block(page: Path, part: str, text: str) -> None:
    """Put a table between the marks of its part in a page."""
    block = re.compile(rf"(<!-- measured: {part} -->\n).*?(<!-- end -->)", re.DOTALL)
    page.write_text(block.sub(lambda m: f"{m[1]}{text}{m[2]}", page.read_text("utf-8")), "utf-8")


def means(part: Part, rows: Sequence[Row]) -> Iterator[str]:
    both = [row for row in rows if "error" not in row.ours and not row.vela.failure]
    missing = sum("error" in row.ours for row in rows)
    if missing:
        yield f"without a plan: {missing}"
    if part != "limits" and both:
        counted = [row for row in both if velas_figure(row) and not _left_to_cpu(row)]
        ratios = [our_figure(row) / velas_figure(row) for row in counted]
        if ratios:
            more = sum(ratio > 1 for ratio in ratios)
            yield f"geomean of {len(ratios)} ratios {geomean(ratios):.3f}, above 1: {more}"
        yield from regor_means(part, counted)
    if part == "memory" and both:
        whole = [row.ours["whole_sram_bytes"] / row.vela.sram_bytes for row in both]
        more = sum(ratio > 1 for ratio in whole)
        yield f"with whole input and output {geomean(whole):.3f}, above 1: {more}"
    yield from cpu_means(rows)


def regor_means(part: Part, rows: Sequence[Row]) -> Iterator[str]:
    """The same over what Regor says of its schedules."""
    figure = FIGURES.get(part, "sram_bytes")
    told = [(our_figure(row), row.regor) for row in rows if row.regor and not row.regor.failure]
    pairs = [(ours, float(getattr(run, figure))) for ours, run in told]
    ratios = [ours / theirs for ours, theirs in pairs if theirs]
    if ratios:
        more = sum(ratio > 1 for ratio in ratios)
        yield f"over Regor: geomean of {len(ratios)} ratios {geomean(ratios):.3f}, above 1: {more}"


def cpu_means(rows: Sequence[Row]) -> Iterator[str]:
    """CPU time of planning and of whole processes over Vela's."""
    timed = [(row.ours, row.vela.schedule_cpu_s) for row in rows if row.vela.schedule_cpu_s]
    if timed:
        planning = geomean([(ours["plan_cpu_s"] - ours["check_cpu_s"]) / v for ours, v in timed])
        checked = geomean([ours["plan_cpu_s"] / vela for ours, vela in timed])
        yield (
            f"CPU, planning over Vela's scheduling: geomean {planning:.2f}, "
            f"with the check of the plan {checked:.2f}"
        )
    processes = [row.process_cpu_s / row.vela.process_cpu_s for row in rows]
    yield f"CPU, processes: geomean {geomean(processes):.2f}"


def _left_to_cpu(row: Row) -> bool:
    """Whether cycles cannot be compared: Vela counts none for what it leaves to the CPU."""
    return row.case.part == "cycles" and row.vela.cpu_ops > 0


def known_rows(path: Path | None) -> dict[Case, Row]:
    if path is None or not path.is_file():
        return {}
    found = {}
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        case = Case(**row["case"])
        row["case"], row["vela"] = case, VelaRun(**row["vela"])
        row["regor"] = None if row["regor"] is None else VelaRun(**row["regor"])
        found[case] = Row(**row)
    return found


def arguments() -> argparse.Namespace:
    reference = Path(os.environ.get("TILEWRIGHT_SHARED", BESIDE))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=Path, default=reference / "models")
    parser.add_argument(
        "--recorded", type=Path, default=reference / "oracle" / "vela" / "summary.csv"
    )
    parser.add_argument("--live", nargs="?", const="", metavar="PYTHON")
    parser.add_argument("--part", action="append", choices=get_args(Part))
    parser.add_argument("--network", action="append", help="name of a file without .tflite")
    parser.add_argument("--results", type=Path, help="a file to resume from and to append to")
    parser.add_argument("--page", type=Path, help="a page of the docs whose tables are renewed")
    return parser.parse_args()


def rows_of(part: Part, networks: Sequence[str], given: argparse.Namespace) -> Iterator[Row]:
    known = known_rows(given.results)
    cores: tuple[Core, ...] = get_args(Core)
    runs = {core: recorded_runs(given.recorded, core) for core in cores}
    python = None if given.live is None else vela_python(given.live)
    for case in cases(part, networks):
        if case in known:
            yield known[case]
            continue
        key: Key = case.network, case.machine, case.setting
        path = given.models / f"{case.network}.tflite"
        told = {
            core: runs[core].get(key)
            if python is None
            else live_run(python, core, path, case.machine, case.setting)
            for core in cores
        }
        vela = told["legacy"]
        if vela is None:
            print(f"{case.machine} {case.network} {case.setting}: not recorded", file=sys.stderr)
            continue
        if not is_worth_a_plan(case, vela):
            continue
        ours, cpu_s = planned(case, given.models)
        row = Row(case=case, ours=ours, process_cpu_s=cpu_s, vela=vela, regor=told["regor"])
        if given.results is not None:
            with given.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
        yield row


def main() -> None:
    given = arguments()
    # An installed package has its bytecode, as Vela has.
    compileall.compile_dir(Path(tilewright.__file__).parent, quiet=1)
    networks = sorted(path.stem for path in given.models.glob("*.tflite"))
    networks = [name for name in networks if not given.network or name in given.network]
    if not networks:
        sys.exit("no such network, or the folder of networks is not here (give --models)")
    everything: list[Row] = []
    blocks: dict[str, str] = {}
    for part in given.part or get_args(Part):
        rows = list(rows_of(part, networks, given))
        if rows:
            blocks[part] = table(part, rows)
            print(blocks[part])
        everything += rows
    if everything and not given.part:
        blocks["cpu"] = "".join(f"* {sentence}\n" for sentence in cpu_means(everything))
        print(blocks["cpu"])
    for part, text in blocks.items():
        if given.page is not None:
            write_block(given.page, part, text)


if __name__ == "__main__":
    main()
