"""Vela as a peer: what its runs tell, recorded ones or those of a process that is started."""

import csv
import json
import re
import resource
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

VERSION = "5.2.0"
FOLDER = Path(__file__).parent
ENVIRONMENT = FOLDER / ".venv-vela"

ACCELERATORS = {
    "ethos_u55_128": "ethos-u55-128",
    "ethos_u55_256": "ethos-u55-256",
    "ethos_u65_256": "ethos-u65-256",
}
"""What Vela calls our machines."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """What a process printed, how it ended, and the CPU seconds it took from start to end."""

    code: int
    output: str
    errors: str
    cpu_s: float


@dataclass(frozen=True, kw_only=True)
class VelaRun:
    """What Vela says of its own schedule; the figures are 0 where it failed."""

    failure: str
    sram_bytes: int
    feature_map_bytes: int
    off_chip_bytes: int
    """Of feature maps, weights and scales, from and to DRAM and flash."""
    cycles: float
    cpu_ops: int
    """Operators that it leaves to the CPU."""
    process_cpu_s: float
    schedule_cpu_s: float | None
    """Not known of recorded runs."""


Core = Literal["legacy", "regor"]
"""The Python core, or the one in C++ that runs where nobody asks for the other."""

Key = tuple[str, str, str]
"""Network, machine, and `size`, `speed`, or `speed` in so many bytes of SRAM: `speed 65536`."""


def run_process(command: Sequence[str]) -> Process:
    before = _children_cpu_s()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    cpu_s = _children_cpu_s() - before
    return Process(code=done.returncode, output=done.stdout, errors=done.stderr, cpu_s=cpu_s)


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def recorded_runs(summary: Path, core: Core) -> dict[Key, VelaRun]:
    """Runs of one of Vela's cores, with weights in another memory than feature maps or in DRAM."""
    if not summary.is_file():
        return {}
    machines = {name: machine for machine, name in ACCELERATORS.items()}
    found = {}
    with summary.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["core"] == core and row["accelerator"] in machines:
                if row["memory_mode"] == "Sram_Only":
                    continue
                key = row["model"].removesuffix(".tflite"), machines[row["accelerator"]]
                failure = "" if row["rc"] == "0" else "failed"
                run = _told(row, failure, int(row["cpu_ops"] or 0), float(row["cpu_s"]), None)
                for setting in _settings(row["setting"], row["memory_mode"]):
                    found[(*key, setting)] = run
    return found


def _settings(name: str, mode: str) -> list[str]:
    """Our names of a recorded setting; the SRAM of the U65 is 384 KiB unless it is said."""
    if name == "size":
        return ["size"]
    if name == "perf-default":
        return ["speed", f"speed {384 * 1024}"] if mode.startswith("Dedicated") else ["speed"]
    return [f"speed {int(name.removeprefix('perf-').removesuffix('k')) * 1024}"]


def _told(
    row: Mapping[str, str],
    failure: str,
    cpu_ops: int,
    process_cpu_s: float,
    schedule_cpu_s: float | None,
) -> VelaRun:
    moved = ("dram_feature_map_read_bytes", "dram_feature_map_write_bytes")
    off_chip = ("dram_total_bytes", "off_chip_flash_total_bytes")
    return VelaRun(
        failure=failure,
        sram_bytes=int(1024 * float(row.get("sram_memory_used") or 0)),
        feature_map_bytes=sum(int(float(row.get(column) or 0)) for column in moved),
        off_chip_bytes=sum(int(float(row.get(column) or 0)) for column in off_chip),
        cycles=float(row.get("cycles_total") or 0),
        cpu_ops=cpu_ops,
        process_cpu_s=process_cpu_s,
        schedule_cpu_s=schedule_cpu_s,
    )


def vela_python(given: str) -> str:
    """The given Python, or one in an environment that is made on first use."""
    if given:
        return given
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        print(f"installing Vela {VERSION} into {ENVIRONMENT}", file=sys.stderr)
        venv.create(ENVIRONMENT, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", f"ethos-u-vela=={VERSION}"]
        subprocess.run(command, check=True)
    return str(python)


def live_run(python: str, core: Core, network: Path, machine: str, setting: str) -> VelaRun:
    """A run of now of one of Vela's cores."""
    with TemporaryDirectory() as folder:
        command = [python, "-P", str(FOLDER / "vela_driver.py"), str(network)]
        command += ["--debug-force-legacy-core"] if core == "legacy" else []
        command += ["--output-dir", folder]
        command += ["--accelerator-config", ACCELERATORS[machine]]
        word, _, size = setting.partition(" ")
        command += ["--optimise", "Size" if word == "size" else "Performance"]
        command += ["--arena-cache-size", size] if size else []
        process = run_process(command)
        summaries = sorted(Path(folder).glob("*_summary_*.csv"))
        row = next(csv.DictReader(summaries[0].open(encoding="utf-8"))) if summaries else {}
    failure = ""
    if process.code != 0 or not row:
        failure = (process.errors.strip().splitlines() or ["no reason"])[-1]
    left = re.search(r"CPU operators = (\d+)", process.output)
    spent = [line for line in process.output.splitlines() if line.startswith('{"schedule_cpu_s"')]
    return _told(
        row,
        failure,
        int(left[1]) if left else 0,
        process.cpu_s,
        json.loads(spent[-1])["schedule_cpu_s"] if spent else None,
    )
