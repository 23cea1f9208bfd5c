"""Plans drawn networks on drawn machines and asks every judge of each plan.

    python benchmarks/drawn.py --seeds 0:200 [-o FOLDER]

A case is a network, a machine, an objective and a width of elements, all drawn from its seed. It is
planned with `--verify`, replayed from its file, compared with its bounds, and planned once more
under another hash seed. What is wrong is kept in the folder with the case; the exit code is then 1.
"""

import argparse
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

OBJECTIVES = ("latency", "latency", "energy", "traffic", "memory")
CPU_SECONDS = 60
HASH_SEEDS = ("1", "2")
OUTSIDE = ("dram", "from_I1", "from_I2", "out")
"""Memories, sources and sinks of drawn machines that are no scratchpads."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:100", help="first and end of the seeds")
    parser.add_argument("-o", dest="folder", type=Path, help="where what is wrong is kept")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        serve()
        return
    first, end = map(int, given.seeds.split(":"))
    with TemporaryDirectory() as scratch:
        tally, wrong = campaign(range(first, end), Path(scratch), given.folder)
    for verdict, count in tally.most_common():
        print(f"{count:6} {verdict}")
    for line in wrong:
        print(line)
    sys.exit(bool(wrong))


def campaign(
    seeds: Sequence[int], scratch: Path, folder: Path | None
) -> tuple[Counter[str], list[str]]:
    """How many cases came to what, and those in which something is wrong."""
    workers = [_worker(hash_seed) for hash_seed in HASH_SEEDS]
    tally: Counter[str] = Counter()
    wrong = []
    for seed in seeds:
        paths = [scratch / f"{seed}_{number}" for number in range(len(workers))]
        asked = zip(workers, paths, (True, False), strict=True)
        for worker, path, is_judged in asked:
            _tell(worker, {"seed": seed, "folder": str(path), "judged": is_judged})
        first, second = (_heard(worker) for worker in workers)
        verdict = first["verdict"]
        if first["digest"] != second["digest"]:
            verdict = "WRONG other bytes with another hash seed"
        tally[verdict] += 1
        if verdict.startswith("WRONG"):
            wrong.append(f"{seed}: {first['case']}: {verdict}: {first['told']}")
            print(wrong[-1][:600], file=sys.stderr, flush=True)
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", "-r", str(paths[0]), str(folder / str(seed))], check=True)
        for path in paths:
            subprocess.run(["rm", "-rf", str(path)], check=True)
    for worker in workers:
        worker.stdin.close()  # type: ignore[union-attr]  # it is a pipe
        worker.wait()
    return tally, wrong


def _worker(hash_seed: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, "--worker"],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _tell(worker: subprocess.Popen[str], asked: dict[str, Any]) -> None:
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(asked) + "\n")
    worker.stdin.flush()


def _heard(worker: subprocess.Popen[str]) -> dict[str, Any]:
    assert worker.stdout is not None
    answer: dict[str, Any] = json.loads(worker.stdout.readline())
    return answer


def serve() -> None:
    """Answer cases from standard input; each runs in a process of its own."""
    import tilewright.planner  # before the fork, so that each case need not import it
    import tilewright.replay.verify  # noqa: F401

    for line in sys.stdin:
        asked = json.loads(line)
        folder = Path(asked["folder"])
        folder.mkdir(parents=True)
        case = write_case(asked["seed"], folder)
        verdict, told = judged(folder, case) if asked["judged"] else planned(folder, case)
        plan = folder / "plan" / "plan.json"
        digest = _digest(plan, folder) if plan.exists() else verdict.split()[0]
        answer = {"verdict": verdict, "told": told, "digest": digest, "case": " ".join(case[3:])}
        print(json.dumps(answer), flush=True)


def _digest(plan: Path, folder: Path) -> str:
    """Of a plan's bytes, but for the folder that its sources lie in and whether it was replayed."""
    text = plan.read_text().replace(str(folder), "")
    return hashlib.sha256(re.sub(r'"verified": ?\w+', "", text).encode()).hexdigest()


def write_case(seed: int, folder: Path) -> list[str]:
    """Write network and machine of a seed; the arguments that plan the one on the other."""
    import onnx
    from drawn_machines import drawn_machine
    from drawn_networks import drawn_network

    chance = Random(seed)
    onnx.save(drawn_network(chance), folder / "n.onnx")
    # JSON is YAML.
    (folder / "m.yaml").write_text(json.dumps(drawn_machine(chance), indent=1))
    case = ["plan", str(folder / "n.onnx"), "--on", str(folder / "m.yaml")]
    case += ["--objective", chance.choice(OBJECTIVES)]
    bits = chance.choice(["", "4", "8", "8", "8", "12", "16"])
    case += ["--bits", bits] if bits else []
    return [case[0], case[1], *case[2:]]


def planned(folder: Path, case: list[str]) -> tuple[str, str]:
    """What planning comes to, in a word and in its own."""
    code, out, err = run([*case, "--json", "-o", str(folder / "plan")])
    if code in (2, 3):
        return ("refused" if code == 3 else "bad input"), out + err
    return ("planned", out) if code == 0 else (f"WRONG exit {code} of plan", out + err)


def judged(folder: Path, case: list[str]) -> tuple[str, str]:
    """What all judges say of a case."""
    verdict, told = planned(folder, [*case, "--verify"])
    if verdict != "planned":
        return verdict, told
    plan = json.loads(told)
    below = list(below_bounds(plan))
    if below:
        return "WRONG below a bound", "; ".join(below)
    code, out, err = run(["replay", str(folder / "plan"), "--json"])
    if code or not json.loads(out)["agrees"]:
        return f"WRONG exit {code} of replay", out + err
    return "planned", ""


def below_bounds(plan: dict[str, Any]) -> Iterator[str]:
    """Figures of a plan that lie below what is said that no plan can beat."""
    bounds, totals = plan["bounds"], plan["totals"]
    moved = [totals["traffic_bytes"].get(name, {}) for name in OUTSIDE]
    figures = {name: totals["cycles"] for name in bounds if name.endswith("cycles")}
    figures |= {"traffic_bytes": sum(sum(both.values()) for both in moved)}
    figures |= {f"peak of {name}": size for name, size in totals["peak_bytes"].items()}
    limits = {f"peak of {name}": size for name, size in bounds["peak_bytes"].items()} | bounds
    for name, figure in figures.items():
        limit = limits.get(name, 0)
        for least in limit.values() if isinstance(limit, dict) else [limit]:
            if figure < least - 1e-6 * least:
                yield f"{name}: {figure} below {least}"


def run(arguments: list[str]) -> tuple[int, str, str]:
    """Exit code and both outputs of a command, with the limit of CPU of a case."""
    return limited_run(arguments, CPU_SECONDS, resource.RLIM_INFINITY)


def limited_run(arguments: list[str], cpu_seconds: int, memory_bytes: int) -> tuple[int, str, str]:
    """Exit code and both outputs of a command, in a process with limits of CPU and memory."""
    with TemporaryDirectory() as place:
        out, err = Path(place) / "out", Path(place) / "err"
        child = os.fork()
        if child == 0:
            _limit(cpu_seconds, memory_bytes)
            _become(arguments, out, err)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        return code, out.read_text(), err.read_text()[-2000:]


def _limit(cpu_seconds: int, memory_bytes: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(used.ru_utime + used.ru_stime)
    resource.setrlimit(resource.RLIMIT_CPU, (spent + cpu_seconds, spent + cpu_seconds + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)


def _become(arguments: list[str], out: Path, err: Path) -> None:
    """Run a command in this process and end it."""
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), number)
    code = 1
    try:
        from tilewright.cli import main as command

        sys.argv = ["tilewright", *arguments]
        command()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:  # what a user would see as a traceback
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
