"""The command as others see it: exit codes, streams, JSON keys, pipes and terminals."""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.onnx_models import Case, Given, integers, saved, single

from tilewright import __version__
from tilewright.cli import tilewright
from tilewright.cli_support import exit_with

SCRIPT = Path(sys.executable).with_name("tilewright")
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m")

FAULTY = """\
name: faulty
operational_array: {dimensions: [D1], sizes: [4], unit_energy: 0.1, unit_area: 0}
memories:
  bank:
    size: 8192
    r_cost: 1
    w_cost: 1
    operands: [I1, I2, O]
    served_dimensions: [D1]
    prots: []
"""

PROBLEM_KEYS = {"file", "line", "column", "severity", "message", "hint"}


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The only object on standard output."""
        assert self.out.count("\n") == 1
        found: dict[str, Any] = json.loads(self.out)
        assert found["schema"] == 1
        assert found["tilewright_version"] == __version__
        return found


def run(*arguments: str) -> Outcome:
    """Run a command in this process."""
    result = CliRunner().invoke(tilewright, arguments, prog_name="tilewright")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def run_script(
    *arguments: str, environment: Mapping[str, str] | None = None, stdout: int = subprocess.PIPE
) -> Outcome:
    """Run the installed script in a process of its own."""
    kept = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR")}
    finished = subprocess.run(
        [SCRIPT, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=False,
        env={**kept, **(environment or {})},
    )
    return Outcome(finished.returncode, finished.stdout or "", finished.stderr)


@pytest.fixture
def faulty(tmp_path: Path) -> str:
    path = tmp_path / "faulty.yaml"
    path.write_text(FAULTY, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("show", "lenet5"),
        ("show", "npe8"),
        ("show", "resnet18", "--dim", "size=64", "--bits", "4"),
        ("list", "networks"),
        ("list", "machines"),
        ("list", "ops"),
        ("schema", "machine"),
        ("check", "npe8"),
        ("check", "npe8", "notes_cnn"),
    ],
    ids=" ".join,
)
def test_what_is_right_exits_with_0_and_says_nothing_on_stderr(arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("show", "lenet"), "did you mean 'lenet5'?"),
        (("show", "edge_tpu"), "did you mean 'edge_tpu_like'?"),
        (("show", "zzz"), "known: lenet5, alexnet"),
        (("show", "gone.onnx"), "gone.onnx: cannot be read: no such file"),
        (("show", "gone.yaml"), "gone.yaml: cannot be read"),
        (("show", "lenet5", "--dim", "batch"), "such as --dim batch=1"),
        (("show", "lenet5", "--dim", "batsh=2"), "did you mean 'batch'?"),
        (("show", "lenet5", "--bits", "65"), "from 1 to 64"),
        (("show", "npe8", "--bits", "8"), "--dim and --bits belong to networks"),
        (("show", "lenet5", "--dim", "batch=1", "--dim", "batch=2"), "--dim gives 'batch' twice"),
        (
            ("plan", "lenet5", "--on", "npe8", "--memory-limit", "sram=7 bit"),
            "a memory has at least 1 B",
        ),
        (
            ("plan", "lenet5", "--on", "npe8", *(("--memory-limit", "sram=1 KiB") * 2)),
            "--memory-limit gives 'sram' twice",
        ),
        (("plan", "lenet5", "--on", "npe8", "-o", ""), "-o: expected a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_exits_with_2_and_says_why_on_stderr(
    arguments: tuple[str, ...], told: str
) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")
    assert told in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("plot",),
        ("list",),
        ("list", "cores"),
        ("show",),
        ("show", "lenet5", "--jsno"),
        ("replay", "plan.json", "--seed", "-1"),
        ("map", "lenet5", "--on", "npe8", "--seed", "-1"),
    ],
    ids=lambda arguments: " ".join(arguments) or "nothing",
)
def test_a_misused_command_exits_with_2_and_leaves_stdout_alone(arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Usage: tilewright" in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "lenet5", "--on", "edge_tpu_like"),
        ("fit", "lenet5", "--on", "edge_tpu_like"),
        # What is asked for is refused before it is known that there is no such plan.
        ("export", "gone", "--to", "csv"),
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_a_folder_that_cannot_be_made_is_told_before_the_work(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    outcome = run(*arguments, "-o", str(file / "out"))
    told = f"error: {file / 'out'}: cannot be written: {file} is no folder\n"
    assert (outcome.code, outcome.out, outcome.err) == (2, "", told)


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "NAME.onnx"),
        ("plan", "NAME.tflite", "--on", "edge_tpu_like"),
        ("plan", "far/NAME", "--on", "edge_tpu_like"),
        ("plan", "lenet5", "--on", "NAME.yaml"),
        ("plan", "lenet5", "--on", "edge_tpu_like", "-o", "NAME"),
        ("replay", "NAME"),
        ("compare", "NAME", "NAME"),
        ("export", "NAME", "--to", "csv", "-o", "out"),
    ],
    ids=" ".join,
)
def test_a_name_that_no_file_can_have_is_told(arguments: tuple[str, ...]) -> None:
    # The system refuses to look for it; so it does below a folder that may not be entered.
    long = "n" * 300
    outcome = run(*(argument.replace("NAME", long) for argument in arguments))
    assert (outcome.code, outcome.out) == (2, "")
    told = outcome.err.replace(long, "NAME")
    assert re.match(r"error: (far/)?NAME[a-z.]*: cannot be (read|written): (F|no such f)ile", told)


def test_a_pipe_in_the_place_of_a_network_is_told(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    outcome = run("plan", str(pipe), "--on", "edge_tpu_like")
    told = (
        f"error: {pipe}: cannot be read: it is a pipe or a device, whose name does not say what "
        "it holds\n  hint: write it to a file ending in .onnx, .tflite, .yaml, .yml\n"
    )
    assert (outcome.code, outcome.out, outcome.err) == (2, "", told)


def test_a_plan_that_cannot_be_replayed_can_still_be_had(tmp_path: Path) -> None:
    smoothed = Case(
        name="smoothed",
        op="Resize",
        operands=(Given(shape=(1, 1, 8, 8)), None, None, integers(1, 1, 4, 4)),
        attributes={"mode": "linear", "antialias": 1},
        opset=18,
    )
    path = saved(single(smoothed), tmp_path)
    arguments = ("plan", str(path), "--on", "ethos_u55_128")
    outcome = run(*arguments, "--verify")
    assert outcome.code == 2
    assert "resizing with antialias is not emulated" in outcome.err
    assert "leave --verify out" in outcome.err
    assert run(*arguments).code == 0


def test_an_interrupted_command_ends_as_a_signal_would(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        exit_with(interrupted, as_json=False)
    assert ended.value.code == 128 + signal.SIGINT
    assert capsys.readouterr().err == "interrupted: nothing more is written\n"


def demo_commands() -> Iterator[Any]:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text("utf-8")
    for command in re.findall(r"^\t\$\(BIN\)/tilewright (.+)$", makefile, re.MULTILINE):
        # A smaller plan is replayed before it is reported in `test_plan.py`.
        marks = [pytest.mark.slow] if "--verify" in command else []
        yield pytest.param(command, id=command, marks=marks)


@pytest.mark.parametrize("command", list(demo_commands()))
def test_a_command_of_make_demo_works(command: str) -> None:
    assert run(*command.split()).code == 0


def test_the_demo_has_commands() -> None:
    assert len(list(demo_commands())) >= 3


def test_a_clean_check_prints_nothing_at_all() -> None:
    assert run("check", "npe8") == Outcome(0, "", "")


def test_a_check_prints_problems_on_stdout_and_exits_with_2(faulty: str) -> None:
    outcome = run("check", faulty)
    assert (outcome.code, outcome.err) == (2, "")
    expected = f"{faulty}:10:5: memories.bank.prots: unknown key\n  hint: did you mean 'ports'?\n"
    assert outcome.out.startswith(expected)


def test_warnings_alone_leave_the_exit_code_0() -> None:
    outcome = run("check", "eyeriss_like")
    assert outcome.code == 0
    assert ": warning: " in outcome.out


def test_check_says_which_machines_there_are() -> None:
    outcome = run("check", "edge_tpu")
    assert outcome.code == 2
    assert "no machine 'edge_tpu'" in outcome.out
    assert "edge_tpu_like" in outcome.out


def test_check_says_that_a_network_is_one() -> None:
    assert run("check", "lenet5") == Outcome(
        2,
        "'lenet5' is a network, and what is checked is a machine\n"
        "  hint: tilewright check lenet5 --on MACHINE\n"
        "  hint: or tilewright show lenet5\n",
        "",
    )


@pytest.mark.parametrize(
    "arguments",
    [("npe8", "bert_base"), ("bert_base", "npe8"), ("bert_base", "--on", "npe8")],
)
def test_check_takes_a_network_and_a_machine_in_either_order(arguments: tuple[str, ...]) -> None:
    outcome = run("check", *arguments, "--bits", "32")
    assert outcome.code == 2
    assert "the multipliers take 16 x 16 bit" in outcome.out


def test_check_tells_files_apart_by_what_they_hold(faulty: str, tmp_path: Path) -> None:
    layers = tmp_path / "layers.yaml"
    layers.write_text("- {id: 0}\n", encoding="utf-8")
    assert run("check", str(layers), faulty).out == run("check", faulty, str(layers)).out
    assert "is a network" in run("check", str(layers)).out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("lenet5", "resnet18"), "is a network and so is"),
        (("npe8", "seneca"), "'seneca' is a machine, and so is 'npe8'"),
        (("lenet5", "npe8", "--on", "npe8"), "both 'lenet5' and 'npe8' stand beside it"),
        ((), "no machine is named"),
    ],
)
def test_check_wants_one_of_a_kind(arguments: tuple[str, ...], told: str) -> None:
    outcome = run("check", *arguments)
    assert outcome.code == 2
    assert told in outcome.out


@pytest.mark.parametrize("command", ["map", "plan", "fit"])
def test_a_network_and_a_machine_that_changed_places_are_told_apart(command: str) -> None:
    outcome = run(command, "npe8", "--on", "lenet5")
    assert outcome.code == 2
    assert outcome.err == (
        "error: 'npe8' is a machine and 'lenet5' is a network: the network comes first, and the "
        f"machine after --on\n  hint: tilewright {command} lenet5 --on npe8\n"
    )


def completed(*words: str) -> list[str]:
    """What a shell offers for the last word, as click tells it to bash."""
    environment = {
        "_TILEWRIGHT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("tilewright", *words)),
        "COMP_CWORD": str(len(words)),
    }
    return run_script(environment=environment).out.split()


def test_names_are_completed_by_a_shell() -> None:
    assert completed("plan", "len") == ["plain,lenet5"]
    assert completed("map", "lenet5", "--on", "npu_3") == ["plain,npu_30xx", "plain,npu_37xx"]
    assert completed("check", "tpu") == ["plain,tpu_like"]
    assert completed("show", "tiny_yolov3") == ["plain,tiny_yolov3"]
    assert completed("plan", "lenet5", "--objective", "la") == ["plain,latency"]
    # What is no name may be a file, and a plan is one.
    assert completed("plan", "models/") == ["file,models/"]
    assert completed("replay", "out") == ["file,out"]


def test_show_network_has_the_promised_keys() -> None:
    shown = run("show", "lenet5", "--json").json
    assert shown["totals"]["macs"] == sum(op["macs"] for op in shown["ops"]) == 416_520
    assert shown["totals"]["weight_bytes"] == 61_470
    assert {"name", "kind", "macs"} <= shown["ops"][0].keys()
    assert "problems" not in shown


def test_show_machine_has_its_cores_and_memories() -> None:
    shown = run("show", "npe8", "--json").json
    assert shown["macs_per_cycle"] == 8
    memories = [memory["name"] for core in shown["cores"] for memory in core["memories"]]
    assert memories == ["input_memory", "weight_output_memory"]


def test_check_json_lists_problems_with_all_their_keys(faulty: str) -> None:
    outcome = run("check", faulty, "--json")
    assert outcome.code == 2
    problems = outcome.json["problems"]
    assert all(problem.keys() == PROBLEM_KEYS for problem in problems)
    first = problems[0]
    assert (first["file"], first["line"], first["column"]) == (faulty, 10, 5)
    assert (first["severity"], first["hint"]) == ("error", "did you mean 'ports'?")


def test_check_json_of_a_clean_machine_has_an_empty_list() -> None:
    outcome = run("check", "npe8", "--json")
    assert (outcome.code, outcome.json["problems"], outcome.err) == (0, [], "")


@pytest.mark.parametrize(
    "arguments",
    [("show", "lenet"), ("show", "gone.onnx"), ("check", "gone.yaml"), ("check", "npe8", "lenet")],
    ids=" ".join,
)
def test_json_on_an_error_is_one_object_with_problems(arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments, "--json")
    assert (outcome.code, outcome.err) == (2, "")
    assert [problem["severity"] for problem in outcome.json["problems"]] == ["error"]


@pytest.mark.parametrize("what", ["networks", "machines", "ops"])
def test_list_json_has_the_list_that_was_asked_for(what: str) -> None:
    listed = run("list", what, "--json").json
    assert listed.keys() == {"schema", "tilewright_version", what}
    assert len(listed[what]) > 10


def test_the_schema_is_one_of_json_and_knows_both_port_dialects() -> None:
    schema = json.loads(run("schema", "machine").out)
    assert {"name", "memories", "operational_array"} <= schema["properties"].keys()
    assert {"MemoryFile", "OldMemoryFile"} <= schema["$defs"].keys()


@pytest.mark.parametrize("what", [("show", "lenet5"), ("show", "npe8"), ("list", "ops")])
def test_piped_output_is_plain_text(what: tuple[str, ...]) -> None:
    outcome = run_script(*what, environment={"TERM": "xterm-256color"})
    assert outcome.code == 0
    assert not ANSI.search(outcome.out)
    assert not any(line != line.rstrip() for line in outcome.out.splitlines())


def test_a_locale_without_our_letters_costs_no_result() -> None:
    outcome = run_script(
        "plan", "lenet5", "--on", "npu_37xx", environment={"PYTHONIOENCODING": "ascii"}
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert re.search(r"energy +[0-9.]+ uJ, ", outcome.out)


@pytest.mark.parametrize(
    "arguments", [("show", "bert_base", "--json"), ("list", "ops"), ("schema", "machine")]
)
def test_a_reader_that_goes_away_ends_the_command_quietly(arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        outcome = run_script(*arguments, stdout=writing)
    finally:
        os.close(writing)
    assert (outcome.code, outcome.err) == (128 + signal.SIGPIPE, "")


def on_terminal(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """What a command writes to a terminal."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    kept = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR")}
    process = subprocess.Popen(
        [SCRIPT, *arguments],
        stdout=theirs,
        stderr=theirs,
        env={**kept, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
    )
    os.close(theirs)
    chunks = []
    try:
        while chunk := os.read(ours, 65536):
            chunks.append(chunk)
    except OSError:  # Linux: the other side is closed
        pass
    finally:
        os.close(ours)
    assert process.wait() == 0
    return b"".join(chunks).decode("utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_gets_emphasis_but_no_colour_where_none_is_wanted() -> None:
    assert ANSI.search(on_terminal(["show", "lenet5"], {}))
    assert not COLOUR.search(on_terminal(["show", "lenet5"], {"NO_COLOR": "1"}))


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_usual_terminal_is_wide_enough_for_the_names_of_memories() -> None:
    shown = on_terminal(["plan", "lenet5", "--on", "npu_37xx"], {"COLUMNS": "80"})
    lines = ANSI.sub("", shown).splitlines()
    assert any(line.startswith(" weight_registers ") for line in lines)


def cpu_seconds(*arguments: str) -> float:
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run_script(*arguments).code == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used: float = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return used


def test_help_is_there_at_once() -> None:
    # 0.07 s on a machine of 2023; the bound leaves room for slow ones.
    assert statistics.median(cpu_seconds("--help") for _ in range(3)) < 0.15


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_under_standard_output_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            [SCRIPT, "show", "lenet5"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert found.returncode == 2
    assert found.stderr == "error: the result cannot be printed: No space left on device\n"
