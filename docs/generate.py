"""Writes the generated blocks of README.md and of the pages under docs/, in place.

    python docs/generate.py            write them anew
    python docs/generate.py --check    write nothing; exit 1 and show what would change
    python docs/generate.py PAGE ...   the same for some pages only

A block stands between `<!-- generated: WHAT -->` and `<!-- end -->`, where WHAT is one of

    tilewright ...            a command that exits with 0, and what it prints
    exit 2: tilewright ...    a command that is meant to fail, and what it prints
    file PATH                 the text of a file
    run PATH                  a Python script and what it prints
    run PATH with DIFF        the same, the package changed as a diff says, which is shown first
    table NAME                a table of `tables.py`

A command may end in `| head -N`, or in `2>&1 | tail -N`. All of them run in the root of the
repository.
"""

import argparse
import contextlib
import difflib
import io
import os
import re
import runpy
import shlex
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import patched
import tables
from click.testing import CliRunner

from tilewright.cli import tilewright

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"(<!-- generated: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_COMMAND = re.compile(
    r"(?:exit (?P<code>\d): )?tilewright (?P<rest>.+?)"
    r"(?: \| head -(?P<head>\d+)| 2>&1 \| tail -(?P<tail>\d+))?"
)
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".diff": "diff"}


def pages() -> list[Path]:
    """Every page that may hold generated blocks."""
    built = ROOT / "docs" / "_build"
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(p for p in found if built not in p.parents)]


def rewritten(text: str) -> str:
    """The page with every block made anew."""
    return _BLOCK.sub(lambda match: f"{match[1]}{block(match[2])}{match[4]}", text)


@cache
def block(what: str) -> str:
    """The text of one block; many stand on several pages."""
    word, _, rest = what.partition(" ")
    match word:
        case "file":
            return _fenced(_LANGUAGES[Path(rest).suffix], (ROOT / rest).read_text("utf-8"))
        case "run":
            return _script_block(*rest.split(" with "))
        case "table":
            return tables.TABLES[rest]()
        case _:
            return _command_block(what)


def _command_block(what: str) -> str:
    match = _COMMAND.fullmatch(what)
    if match is None:
        raise SystemExit(f"no such block: {what!r}")
    expected = int(match["code"] or 0)
    result = CliRunner().invoke(tilewright, shlex.split(match["rest"]), prog_name="tilewright")
    if result.exit_code != expected:
        raise SystemExit(f"{what}: exit code {result.exit_code}\n{result.output}")
    # `result.output` has them in the order in which buffers happened to be flushed.
    output = result.stdout + result.stderr
    if str(ROOT) in output:
        raise SystemExit(f"{what}: prints a path of this computer")
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    if match["head"]:
        lines = lines[: int(match["head"])]
    if match["tail"]:
        lines = lines[-int(match["tail"]) :]
    shell = what.removeprefix(f"exit {expected}: ")
    language = "console" if expected == 0 else "text"
    return _fenced(language, "\n".join([f"$ {shell}", *lines]))


def _script_block(script: str, change: str = "") -> str:
    shown = block(f"file {script}")
    if change:
        shown = block(f"file {change}") + "\n" + shown
        printed = patched.output_with(ROOT / change, Path(script), ROOT)
    else:
        printed = _script_output(script)
    return f"{shown}\nIt prints:\n\n{_fenced('text', printed)}"


def _script_output(path: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        runpy.run_path(path, run_name="__main__")
    return output.getvalue()


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def main(arguments: Sequence[str]) -> int:
    """Rewrite or compare every page; the exit code."""
    parser = argparse.ArgumentParser(description="Write the generated blocks of the documentation.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if stale")
    parser.add_argument("pages", nargs="*", type=Path, help="all if none are named")
    parsed = parser.parse_args(arguments)
    check, chosen = parsed.check, [page.resolve() for page in parsed.pages]
    os.chdir(ROOT)
    os.environ.pop("FORCE_COLOR", None)
    os.environ["NO_COLOR"] = "1"
    stale = 0
    for page in chosen or pages():
        old = page.read_text("utf-8")
        new = rewritten(old)
        if new == old:
            continue
        stale += 1
        if check:
            name = str(page.relative_to(ROOT))
            changes = difflib.unified_diff(old.splitlines(), new.splitlines(), name, "new", "", "")
            print("\n".join(changes))
        else:
            page.write_text(new, "utf-8")
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
