"""What no linter knows: lengths, banned constructs, and that the code speaks of itself alone."""

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FOLDERS = ("src", "tests", "docs", "examples", "benchmarks")
TEXTS = sorted(
    path
    for pattern in ("*.py", "*.md", "*.yaml", "*.toml", "*.txt")
    for path in (
        *ROOT.glob(pattern),
        *(found for folder in FOLDERS for found in (ROOT / folder).rglob(pattern)),
    )
    # Not what others have written: peers that benchmarks run live in hidden folders.
    if not any(part == "_build" or part[0] == "." for part in path.relative_to(ROOT).parts)
    and path != Path(__file__)
)
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
FORBIDDEN_WORDS = ("/work/", "/home/", "/root/", "pypi.org", "pythonhosted")
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
VAGUE_MODULES = ("utils", "helpers", "common", "base")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@lru_cache(maxsize=1)
def nodes(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text)))


def functions(text: str) -> Iterator[Function]:
    for node in nodes(text):
        if isinstance(node, Function):
            yield node


def length(function: Function) -> int:
    """Lines of a function, its docstring left out."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    if ast.get_docstring(function) is None:
        return lines
    text = function.body[0]
    return lines - ((text.end_lineno or 0) - text.lineno + 1)


def long_functions(text: str) -> list[str]:
    return [
        f"{f.name}: {length(f)} lines" for f in functions(text) if length(f) > MAX_FUNCTION_LINES
    ]


def option_swallowers(text: str) -> list[str]:
    """Functions with `**kwargs`: a misspelt option would be a default, not an error."""
    return [f.name for f in functions(text) if f.args.kwarg is not None]


def prints(text: str) -> list[int]:
    return [
        node.lineno
        for node in nodes(text)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]


def forbidden_words(text: str) -> list[str]:
    return [word for word in FORBIDDEN_WORDS if word in text]


def broad_handlers(text: str) -> list[int]:
    """Lines of `except:` and `except Exception`."""
    return [
        node.lineno
        for node in nodes(text)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception"))
    ]


def test_there_are_files_to_look_at() -> None:
    assert len(SOURCES) > 50
    names = {relative(path) for path in TEXTS}
    assert {"README.md", "pyproject.toml", "docs/index.md", "src/tilewright/cli.py"} <= names


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_source_file_keeps_the_house_rules(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= MAX_FILE_LINES
    assert long_functions(text) == []
    assert option_swallowers(text) == []
    assert prints(text) == []
    assert path.stem not in VAGUE_MODULES
    if path.name != "cli.py":
        assert broad_handlers(text) == []


@pytest.mark.parametrize("path", TEXTS, ids=relative)
def test_a_text_is_finished_and_names_nothing_outside_the_project(path: Path) -> None:
    text = path.read_text("utf-8")
    assert UNFINISHED.findall(text) == []
    assert forbidden_words(text) == []


def test_the_rules_find_what_they_look_for() -> None:
    body = "\n".join("    x = 1" for _ in range(MAX_FUNCTION_LINES))
    assert long_functions(f"def f():\n{body}") == ["f: 61 lines"]
    assert long_functions(f"def f():\n    'Says\\\nso.'\n{body}") == ["f: 61 lines"]
    assert option_swallowers("def f(a, *b): ...\nasync def g(**c): ...") == ["g"]
    assert prints("x.print(1)\nprint(2)") == [2]
    assert broad_handlers("try: ...\nexcept ValueError: ...\nexcept Exception: ...") == [3]
    assert forbidden_words(f"see {FORBIDDEN_WORDS[0]}main") == [FORBIDDEN_WORDS[0]]
