"""ZigZag as a peer: a Python that has it, and runs of it in a process of its own."""

import json
import resource
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSION = "3.9.1"
FOLDER = Path(__file__).parent
ENVIRONMENT = FOLDER / ".venv-zigzag"


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a process printed, and the CPU seconds it took from start to end."""

    output: str
    cpu_s: float


def zigzag_python(given: str | None) -> str:
    """The given Python, or one in an environment that is made on first use."""
    if given is not None:
        return given
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        print(f"installing ZigZag {VERSION} into {ENVIRONMENT}", file=sys.stderr)
        venv.create(ENVIRONMENT, with_pip=True)
        # ZigZag's bundled CACTI interface imports six without declaring it.
        command = [python, "-m", "pip", "install", "--quiet", f"zigzag-dse=={VERSION}", "six"]
        subprocess.run(command, check=True)
    return str(python)


def run_process(command: Sequence[str], text: str = "") -> Run:
    """Run a command to its end; its errors are ours."""
    before = _children_cpu_s()
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return Run(output=done.stdout, cpu_s=_children_cpu_s() - before)


def run_one(python: str, job: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """One job in a fresh process: its result, and the CPU seconds of the process."""
    run = run_process([*_driver(python)], json.dumps([job]))
    return json.loads(run.output), run.cpu_s


def run_many(python: str, jobs: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Results of jobs as they come, all from one process."""
    with subprocess.Popen(
        _driver(python), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(jobs))
        process.stdin.close()
        for line in process.stdout:
            yield json.loads(line)


def _driver(python: str) -> list[str]:
    # -P keeps this folder, with a zigzag.py of its own, off ZigZag's path.
    return [python, "-P", str(FOLDER / "zigzag_driver.py")]


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
