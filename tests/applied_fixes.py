"""Applies the fixes that `check` prints to the file that they are printed for, as a user would.

Only the printed text is used. A hint line is a fix if it has one of these forms; others are advice:

    write memories.bank.w_port: 1                  set a key or a list item, appended if it is new
    add to memories.bank.ports[0].allocation: x    append to a list, made if there is none
    write memories in the order: a, b, c           the keys of a mapping, anew
"""

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ruamel.yaml import YAML

Step = str | int

_PATH = r"(?P<path>[^\s:]+)"
_FORMS: dict[Literal["order", "add", "write"], re.Pattern[str]] = {
    "order": re.compile(rf"write {_PATH} in the order: (?P<value>.+)"),
    "add": re.compile(rf"add to {_PATH}: (?P<value>.+)"),
    "write": re.compile(rf"write {_PATH}: (?P<value>.+)"),
}


@dataclass(frozen=True, slots=True)
class Fix:
    """One applicable hint."""

    form: Literal["order", "add", "write"]
    path: str
    value: str
    severity: Literal["error", "warning"]


def printed_fixes(text: str) -> list[Fix]:
    """The fixes in the printed problems, in the order of the text."""
    fixes: list[Fix] = []
    severity: Literal["error", "warning"] = "error"
    for line in text.splitlines():
        if not line.startswith("  hint: "):
            severity = "warning" if re.match(r"\S*: warning: ", line) else "error"
            continue
        hint = line.removeprefix("  hint: ")
        for form, pattern in _FORMS.items():
            match = pattern.fullmatch(hint)
            if match:
                fixes.append(Fix(form, match["path"], match["value"], severity))
                break
    return fixes


def apply_fixes(fixes: Iterable[Fix], source: Path, target: Path) -> None:
    """Write `source` with the fixes applied as `target`."""
    yaml = YAML()
    data = yaml.load(source.read_text(encoding="utf-8"))
    for fix in fixes:
        _apply(fix, data)
    stream = io.StringIO()
    yaml.dump(data, stream)
    target.write_text(stream.getvalue(), encoding="utf-8")


def _apply(fix: Fix, data: Any) -> None:
    *parents, last = _steps(fix.path, data)
    for i, step in enumerate(parents):
        if isinstance(data, dict) and data.get(step) is None:
            data[step] = [] if isinstance([*parents, last][i + 1], int) else {}
        data = data[step]
    match fix.form:
        case "order":
            names = [name.strip() for name in fix.value.split(",")]
            assert sorted(names) == sorted(data[last]), f"{fix.path} holds other keys than {names}"
            data[last] = {name: data[last][name] for name in names}
        case "add":
            if data.get(last) is None:
                data[last] = []
            data[last].append(_value(fix.value))
        case "write":
            _set(data, last, _value(fix.value))


def _set(data: Any, key: Step, value: Any) -> None:
    if isinstance(key, int) and key == len(data):
        data.append(value)
    else:
        data[key] = value


def _value(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def _steps(path: str, data: Any) -> list[Step]:
    """`a.b[1]` as steps; a key that holds dots itself is recognised by the data."""
    steps: list[Step] = []
    words = path.split(".")
    while words:
        taken = _key_length(words, data)
        key, *indices = re.split(r"\[(\d+)\]", ".".join(words[:taken]))
        words = words[taken:]
        for step in (key, *(int(index) for index in indices if index)):
            steps.append(step)
            data = _inside(data, step)
    return steps


def _key_length(words: Sequence[str], data: Any) -> int:
    """How many of the words, joined by dots, are the longest key that the mapping has."""
    keys = set(data) if isinstance(data, dict) else set()
    for length in range(len(words), 0, -1):
        if re.sub(r"(\[\d+\])+$", "", ".".join(words[:length])) in keys:
            return length
    return 1


def _inside(data: Any, step: Step) -> Any:
    if isinstance(data, list):
        return data[step] if isinstance(step, int) and step < len(data) else None
    return data.get(step) if isinstance(data, dict) else None
