"""The documentation: what it shows is what the tool prints, and what it lists is what there is."""

import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML
from tests.applied_fixes import apply_fixes, printed_fixes
from tests.report_browser import ABSENT, PROGRAM
from tests.unit.network.tflite_models import chain
from tests.zoo_export import to_onnx

import tilewright
from tilewright import cli
from tilewright.document.file_model import FileModel, keys_of
from tilewright.machine.files import (
    ArrayFile,
    CoreFile,
    CoreModelFile,
    DmaFile,
    EndFile,
    LinkFile,
    MachineFile,
    MemoryFile,
    OldMemoryFile,
    PortFile,
    VectorFile,
)

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
PAGES = sorted([*ROOT.glob("*.md"), *(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)])
READ_FIRST = [
    p for p in PAGES if p.parent == DOCS / "reference" or p.stem in ("README", "quick-start")
]
READ_LATER = [p for p in PAGES if p not in READ_FIRST]
GENERATED = re.compile(r"<!-- generated: .+? -->\n.*?<!-- end -->", re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def generate(root: Path, *pages: Path) -> subprocess.CompletedProcess[str]:
    """Compare generated blocks, of all pages if none are named, with what they should be."""
    return subprocess.run(
        [sys.executable, root / "docs" / "generate.py", "--check", *pages],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "pages",
    [
        pytest.param(READ_FIRST, id="read first"),
        pytest.param(READ_LATER, id="read later", marks=pytest.mark.slow),
    ],
)
def test_generated_blocks_are_up_to_date(pages: list[Path]) -> None:
    finished = generate(ROOT, *pages)
    advice = "run `python docs/generate.py` and look at the difference"
    assert finished.returncode == 0, f"{finished.stderr}{finished.stdout}\n{advice}"


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("<!-- generated: tilewright check npe8 -->\nold\n<!-- end -->", "-old"),
        ("<!-- generated: tilewright check gone -->\n<!-- end -->", "exit code 2"),
        ("<!-- generated: exit 2: tilewright check npe8 -->\n<!-- end -->", "exit code 0"),
        ("<!-- generated: cowsay hello -->\n<!-- end -->", "no such block"),
    ],
)
def test_a_stale_block_is_found(block: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("generate.py", "patched.py", "tables.py"):
        shutil.copy(DOCS / name, tmp_path / "docs")
    (tmp_path / "README.md").write_text(f"{block}\n", encoding="utf-8")
    finished = generate(tmp_path)
    assert finished.returncode == 1
    assert told in finished.stdout + finished.stderr


def handwritten_commands() -> Iterator[Any]:
    for page in PAGES:
        for block in CONSOLE.findall(GENERATED.sub("", page.read_text("utf-8"))):
            for line in block.splitlines():
                if line.startswith("$ "):
                    yield pytest.param(line[2:], id=f"{relative(page)}: {line[2:]}")


@pytest.mark.parametrize("command", list(handwritten_commands()))
def test_a_command_of_a_console_block_works(command: str) -> None:
    assert command.startswith("tilewright "), "only our own commands stand in console blocks"
    result = CliRunner().invoke(cli.tilewright, command.split()[1:])
    assert (result.exit_code, result.stderr) == (0, "")


SHELL = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)


def shell_commands() -> Iterator[Any]:
    """Commands of ours in blocks that show no output, each of them once."""
    blocks = [block for page in PAGES for block in SHELL.findall(page.read_text("utf-8"))]
    for line in dict.fromkeys(line for block in blocks for line in block.splitlines()):
        if line.startswith("tilewright "):
            # Every search maps a smaller network in `test_map.py`.
            marks = [pytest.mark.slow] if "--search complete" in line else []
            yield pytest.param(line, id=line, marks=marks)


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with files under the names that pages use for the reader's own."""
    monkeypatch.chdir(tmp_path)
    for name in ("machine.yaml", "mapping.yaml"):
        shutil.copy(EXAMPLES / "zigzag" / "fixed" / name, tmp_path)
    shutil.copy(EXAMPLES / "residual_block.csv", tmp_path / "lives.csv")
    onnx.save(to_onnx(tilewright.load_network("lenet5")), tmp_path / "network.onnx")
    chain("RELU", "TANH", names=("a", "b", "c")).save(tmp_path)


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize("command", list(shell_commands()))
def test_a_command_of_a_shell_block_works(command: str) -> None:
    result = CliRunner().invoke(cli.tilewright, shlex.split(command)[1:])
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_to_files(page: Path) -> None:
    text = FENCED.sub("", page.read_text("utf-8"))
    targets = [t for t in LINK.findall(text) if not t.startswith(("https://", "http://", "#"))]
    paths = [(page.parent / target.partition("#")[0]).resolve() for target in targets]
    assert [str(path) for path in paths if not path.is_file()] == []


FILE_NAME = re.compile(r"`((?:\w+/)*\w+\.py)`")


def python_file(name: str) -> Path | None:
    """A file that a page names from the root of the repository or of the package."""
    found = [root / name for root in (ROOT, ROOT / "src" / "tilewright") if (root / name).is_file()]
    return found[0] if found else None


@pytest.mark.parametrize("page", sorted((DOCS / "how-to").glob("add-*.md")), ids=relative)
def test_a_how_to_names_files_and_functions_that_exist(page: Path) -> None:
    text = FENCED.sub("", page.read_text("utf-8"))
    files = [name for name in FILE_NAME.findall(text) if "/" in name]
    assert len(files) > 5
    assert [name for name in files if python_file(name) is None] == []
    for _, name, function in re.findall(
        r"^\| (.+?) \| `(\S+\.py)` \| `(\w+)` \|", text, re.MULTILINE
    ):
        path = python_file(name)
        assert path is not None
        defined = rf"^(?:(?:def|class) {function}\b|{function}\b.*=)"
        assert re.search(defined, path.read_text("utf-8"), re.MULTILINE), (name, function)


def test_the_machine_of_the_first_plan_is_the_librarys_with_another_port() -> None:
    ours = YAML(typ="safe").load(EXAMPLES / "first_plan" / "my_edge.yaml")
    theirs = YAML(typ="safe").load(ROOT / "src/tilewright/machine/library/edge_tpu_like.yaml")
    dram = theirs["memories"]["dram"]
    dram |= {"r_cost": "1400 pJ", "w_cost": "1500 pJ"}
    dram["ports"][0]["bandwidth_max"] = "128 bit"
    assert ours == theirs | {"name": "my_edge", "description": ours["description"]}


def printed_cycles() -> int:
    """The cycles of the plan that the first page prints."""
    printed = re.search(r"^cycles +([\d,]+)", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert printed is not None
    return int(printed[1].replace(",", ""))


def test_pictures_show_the_plan_that_the_readme_prints() -> None:
    cycles_of = runpy.run_path(str(DOCS / "pictures.py"))["cycles_of"]
    shown = {path.name: cycles_of(path.read_bytes()) for path in (DOCS / "pictures").iterdir()}
    assert len(shown) > 1
    assert set(shown.values()) == {printed_cycles()}, "run `python docs/pictures.py`"


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason=f"{ABSENT}: the pictures cannot be made anew")
def test_pictures_can_be_made_anew(tmp_path: Path) -> None:
    pictures = runpy.run_path(str(DOCS / "pictures.py"))
    pictures["draw"](tmp_path)
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == sorted(path.name for path in (DOCS / "pictures").iterdir())
    for name in drawn:
        old, new = (DOCS / "pictures" / name).read_bytes(), (tmp_path / name).read_bytes()
        assert old[:33] == new[:33], "the size of the picture"
        assert pictures["cycles_of"](new) == printed_cycles()


def tables(page: Path) -> dict[str, list[list[str]]]:
    """The rows of the tables of a page, by the heading above them."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in FENCED.sub("", page.read_text("utf-8")).splitlines():
        if line.startswith("#"):
            heading = line.lstrip("#").strip()
        elif line.startswith("| ") and not line.startswith("| ---"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found.setdefault(heading, []).append(cells)
    return found


def default_text(model: type[FileModel], key: str) -> str:
    """A default as the page writes it."""
    found = keys_of(model)[key]
    if found.is_required:
        return "required"
    value = found.default
    if value is None:
        return "none"
    return str(value).lower() if value not in ("", [], {}) else "empty"


def test_the_page_of_machine_files_has_every_key_with_its_default() -> None:
    own = keys_of(MemoryFile).keys() - {"ports"}
    sections: dict[str, tuple[type[FileModel], set[str]]] = {
        "The machine": (MachineFile, set(keys_of(MachineFile))),
        "`operational_array`": (ArrayFile, set(keys_of(ArrayFile))),
        "A memory": (MemoryFile, set(keys_of(MemoryFile))),
        "Ports with names": (PortFile, set(keys_of(PortFile))),
        "Ports that are counted": (OldMemoryFile, set(keys_of(OldMemoryFile)) - own),
        "`vector_unit`": (VectorFile, set(keys_of(VectorFile))),
        "`core_model`": (CoreModelFile, set(keys_of(CoreModelFile))),
        "`cores`": (CoreFile, set(keys_of(CoreFile))),
        "`dma`": (DmaFile, set(keys_of(DmaFile))),
        "`links`": (LinkFile, set(keys_of(LinkFile))),
        "`sources` and `sinks`": (EndFile, set(keys_of(EndFile))),
    }
    page = tables(DOCS / "reference" / "machine-files.md")
    for heading, (model, keys) in sections.items():
        rows = {cells[0].strip("`"): cells for cells in page[heading] if cells[1] != "type"}
        assert rows.keys() == keys, heading
        wrong = {k: default_text(model, k) for k in keys if rows[k][2] != default_text(model, k)}
        assert wrong == {}, heading


def shown(*arguments: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(CliRunner().invoke(cli.tilewright, arguments).stdout)
    return result


def documented(rows: list[list[str]]) -> set[str]:
    return {key for cells in rows for key in re.findall(r"`(\w+)`", cells[0])}


def test_the_page_of_the_command_line_has_every_json_key() -> None:
    page = tables(DOCS / "reference" / "command-line.md")
    shared = {"schema", "tilewright_version"}
    network, machine = shown("show", "lenet5", "--json"), shown("show", "npu_40xx", "--json")
    of_network = network.keys() - shared | network["ops"][0].keys()
    assert documented(page["`show NETWORK --json`"]) == of_network
    memory = machine["cores"][0]["memories"][0]
    of_machine = machine.keys() - shared | memory.keys()
    assert documented(page["`show MACHINE --json`"]) == of_machine
    text = (DOCS / "reference" / "command-line.md").read_text("utf-8")
    nested = [network["tensors"][0], network["totals"], machine["cores"][0], memory["ports"][0]]
    nested += [shown("check", "eyeriss_like", "--json")["problems"][0]]
    nested += [shown("list", what, "--json")[what][0] for what in ("networks", "machines", "ops")]
    assert {key for part in nested for key in part if f"`{key}`" not in text} == set()


def test_the_page_of_python_has_every_public_name() -> None:
    rows = tables(DOCS / "reference" / "python.md")["Python"]
    names = {name for cells in rows for name in re.findall(r"`(\w+)", cells[0])}
    assert names == set(tilewright.__all__)


def test_the_hints_of_the_how_to_give_its_fixed_machine(tmp_path: Path) -> None:
    faulty, fixed = EXAMPLES / "zigzag" / "machine.yaml", EXAMPLES / "zigzag/fixed/machine.yaml"
    result = CliRunner().invoke(cli.tilewright, ["check", str(faulty)])
    assert result.exit_code == 2
    target = tmp_path / "machine.yaml"
    apply_fixes(printed_fixes(result.stdout), faulty, target)
    mended, committed = (YAML(typ="safe").load(path) for path in (target, fixed))
    assert mended == committed
    assert list(mended["memories"]) == list(committed["memories"])


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.yaml")), ids=relative)
def test_an_example_is_shown_in_the_documentation(path: Path) -> None:
    assert any(relative(path) in page.read_text("utf-8") for page in PAGES)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=relative)
def test_an_example_script_runs_on_its_own(path: Path, tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-W", "error", path],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout
