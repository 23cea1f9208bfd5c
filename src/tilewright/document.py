"""YAML files with positions: every fault of a file at once, each as `file:line:column`.

A document keeps the plain data beside the place of every key, so that whoever finds a fault later
can still say where it stands. File models (pydantic) are validated here and nowhere else.
"""

import difflib
import re
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tilewright.errors import InputError, Problem, Severity

ModelT = TypeVar("ModelT", bound=BaseModel)
Location = tuple[int | str, ...]

_MAX_BYTES = 2**20
_MAX_NODES = 200_000
_MAX_DEPTH = 60
_MAX_DIGITS = 400
_WORDS = {
    "Field required": "is missing",
    "Input should be a valid integer": "expected a whole number",
    "Input should be a valid number": "expected a number",
    "Input should be a finite number": "expected a finite number",
    "Input should be a valid string": "expected a text",
    "Input should be a valid list": "expected a list",
    "Input should be a valid boolean": "expected true or false",
    "Input should be a valid dictionary": "expected a mapping (`key: value` lines)",
    "List should have at least 1 item": "must not be empty",
    "String should have at least 1 character": "must not be empty",
    r"String should match pattern '\^D": "expected an array dimension such as D1",
    r"Input should be greater than or equal to (\S+)": r"must be \1 or more",
    r"Input should be greater than (\S+)": r"must be more than \1",
    r"Input should be less than or equal to (\S+)": r"must be \1 or less",
    r"(?:List|String) should have at (least|most) (\d+) (\w+)": r"must have at \1 \2 \3",
    "Input should be (.*)": r"expected \1",
}


@dataclass(frozen=True)
class Document:
    """A file's data and the (line, column) of every key and list item in it."""

    file: str
    data: Any
    places: Mapping[Location, tuple[int, int]]
    warnings: tuple[Problem, ...] = ()

    def problem(
        self, at: Location, message: str, *, hint: str = "", severity: Severity = "error"
    ) -> Problem:
        """A problem at the deepest part of `at` that the file has."""
        known = at
        while known and known not in self.places:
            known = known[:-1]
        line, column = self.places.get(known, (1, 1))
        return Problem(
            file=self.file, line=line, column=column, message=message, hint=hint, severity=severity
        )


def read_document(path: Path, *, last_key_wins: bool = False) -> Document:
    """Parse a YAML file into plain data.

    A key that stands twice is an error, or with `last_key_wins` a warning, for files that other
    tools accept.

    Raises:
        InputError: the file cannot be read, is no YAML, or is built to exhaust its reader.
    """
    return parse_document(read_text(path), str(path), last_key_wins=last_key_wins)


def parse_document(text: str, file: str, *, last_key_wins: bool = False) -> Document:
    """Like `read_document`, for a text that was read already."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an anchor may be defined anew: YAML 1.2, 7.1
            root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        what = str(error.problem or error.context or "is no YAML").splitlines()[0]
        raise _refused(file, f"is no YAML: {what}", place) from None
    except YAMLError as error:
        what = str(error).splitlines()[0]
        raise _refused(file, f"is no YAML: {what}", (1, 1)) from None
    except RecursionError:
        raise _refused(file, "is nested too deeply to be read", (1, 1)) from None
    except (ValueError, AttributeError, IndexError, TypeError) as error:
        # ruamel.yaml lets these out on malformed tags, escapes and directives (seen with 0.19).
        raise _refused(file, f"is no YAML: {error}", (1, 1)) from None
    if root is None:
        raise _refused(file, "the file is empty", (1, 1))
    walk = _Walk(file, last_key_wins)
    data = walk.value(root, (), 0)
    if walk.errors:
        raise InputError(*walk.errors)
    return Document(file, data, walk.places, tuple(walk.warnings))


def validate(
    document: Document, model: type[ModelT], context: Any = None, at: Location = ()
) -> tuple[ModelT | None, list[Problem]]:
    """The part of a document at `at` as a file model, or None and its faults in file order."""
    data = document.data
    for step in at:
        data = data[step]
    try:
        return model.model_validate(data, context=context), []
    except ValidationError as error:
        return None, in_file_order(_problems(document, model, error, at))


def faulty_keys(document: Document, model: type[BaseModel], context: Any = None) -> set[str]:
    """The top-level keys with a fault in them."""
    try:
        model.model_validate(document.data, context=context)
    except ValidationError as error:
        return {str(fault["loc"][0]) for fault in error.errors() if fault["loc"]}
    return set()


def in_file_order(problems: Iterator[Problem] | Sequence[Problem]) -> list[Problem]:
    """Sorted by place, without repetitions."""
    unique = dict.fromkeys(problems)
    return sorted(unique, key=lambda p: (p.line or 0, p.column or 0, p.message))


def dotted(at: Location) -> str:
    """A location as text: `memories.sram.ports[1]`."""
    return "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in at).lstrip(".")


def suggestion(word: str, known: Sequence[str]) -> str:
    """`did you mean 'x'?` if something known is near, else the list of what is known."""
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"


def read_text(path: Path) -> str:
    """The text of a file of a size that a person could have written.

    Raises:
        InputError: it cannot be read, is larger, or is no text.
    """
    try:
        with path.open("rb") as stream:
            raw = stream.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            message = f"is larger than {_MAX_BYTES:,} bytes, which no description should be"
            raise _refused(str(path), message, None)
        return raw.decode("utf-8")
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise _refused(str(path), message, None) from None
    except ValueError:
        raise _refused(str(path), "is no text file (UTF-8 is needed)", None) from None


def _refused(file: str, message: str, place: tuple[int, int] | None) -> InputError:
    line, column = place or (None, None)
    return InputError(Problem(file=file, line=line, column=column, message=message))


@dataclass
class _Walk:
    """Turns nodes into data once, and remembers the place of each."""

    file: str
    last_key_wins: bool
    places: dict[Location, tuple[int, int]] = field(default_factory=dict)
    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    nodes: int = 0

    def value(self, node: Node, at: Location, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > _MAX_NODES or depth > _MAX_DEPTH:
            what = "holds more entries" if depth <= _MAX_DEPTH else "is nested deeper"
            message = f"{what} than any description should (aliases included)"
            raise _refused(self.file, message, _place(node))
        self.places.setdefault(at, _place(node))
        if isinstance(node, SequenceNode):
            return [self.value(item, (*at, i), depth + 1) for i, item in enumerate(node.value)]
        if isinstance(node, MappingNode):
            return self._mapping(node, at, depth)
        return self._scalar(node, at)

    def _mapping(self, node: MappingNode, at: Location, depth: int) -> dict[str, Any]:
        used: dict[str, tuple[Node, Node]] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._note("error", key_node, "a key must be a plain word")
                continue
            key = self._text(key_node)
            if not key.isprintable():
                self._note("error", key_node, f"a key must be one line of plain text, not {key!r}")
                continue
            if key in used:
                self._note(
                    "warning" if self.last_key_wins else "error",
                    key_node,
                    f"{dotted((*at, key))}: the key stands here a second time"
                    + ("; this later one is used" if self.last_key_wins else ""),
                    "delete one of the two",
                )
            used[key] = (key_node, value_node)
        result: dict[str, Any] = {}
        for key, (key_node, value_node) in used.items():
            self.places[(*at, key)] = _place(key_node)
            result[key] = self.value(value_node, (*at, key), depth + 1)
        return result

    def _note(self, severity: Severity, node: Node, message: str, hint: str = "") -> None:
        line, column = _place(node)
        target = self.errors if severity == "error" else self.warnings
        target.append(
            Problem(
                file=self.file,
                line=line,
                column=column,
                message=message,
                hint=hint,
                severity=severity,
            )
        )

    def _scalar(self, node: Node, at: Location) -> Any:
        text, kind = self._text(node), str(node.tag).rpartition(":")[2]
        number = text.replace("_", "").lower()
        try:
            match kind:
                case "int":
                    return _integer(number)
                case "float":
                    return float(number.replace(".inf", "inf").replace(".nan", "nan"))
                case "bool":
                    return number in ("true", "yes", "on")
                case "null":
                    return None
                case _:
                    return text
        except ValueError:
            self._note("error", node, f"{dotted(at)}: {text[:40]!r} is no number that can be used")
            return None

    def _text(self, node: Node) -> str:
        text = str(node.value)
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._note("error", node, "the text holds half a character (a lone surrogate)")
        return text


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError
    try:
        return int(text, 0)
    except ValueError:
        return int(text)  # a leading zero, as in 007


def _place(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _problems(
    document: Document, model: type[BaseModel], error: ValidationError, base: Location
) -> Iterator[Problem]:
    faults = [(tuple(f["loc"]), f) for f in error.errors(include_url=False, include_context=False)]
    missing = [at for at, fault in faults if fault["type"] == "missing"]
    unknown = [at for at, fault in faults if fault["type"] == "extra_forbidden"]
    meant = {at: _meant(model, at, missing) for at in unknown}
    hinted = {(*at[:-1], key) for at, key in meant.items()}
    for inner, fault in faults:
        if inner in missing and inner in hinted:
            continue  # it is said where the misspelt key stands
        at = (*base, *inner)
        message, hint = _worded(str(fault["msg"]))
        if inner in meant:
            known = f"known: {', '.join(_keys(model, inner[:-1]))}"
            message = "unknown key"
            hint = f"did you mean {meant[inner]!r}?" if meant[inner] else known
        name = dotted(at)
        yield document.problem(at, f"{name}: {message}" if name else message, hint=hint)


def _meant(model: type[BaseModel], at: Location, missing: Sequence[Location]) -> str:
    """The key that an unknown one is a misspelling of, if any; a missing key may be less near."""
    word = str(at[-1])
    lost = [str(other[-1]) for other in missing if other[:-1] == at[:-1]]
    near = difflib.get_close_matches(word, _keys(model, at[:-1]), n=1)
    return next(iter(near or difflib.get_close_matches(word, lost, n=1, cutoff=0.5)), "")


def _worded(message: str) -> tuple[str, str]:
    """A validator's message in our words, and the hint that a validator of ours put behind it."""
    message, _, hint = message.removeprefix("Value error, ").partition(" -- ")
    for pattern, ours in _WORDS.items():
        match = re.match(pattern, message)
        if match:
            return match.expand(ours), hint
    return message, hint


def _keys(model: Any, at: Location) -> list[str]:
    """Keys that a file model allows at a location."""
    for step in at:
        model = _inside(model, step)
    model = _first_model(model)
    return list(model.model_fields) if model is not None else []


def _inside(kind: Any, step: int | str) -> Any:
    model = _first_model(kind)
    if model is not None and isinstance(step, str) and step in model.model_fields:
        return model.model_fields[step].annotation
    for option in _options(kind):
        if get_origin(option) in (list, dict, tuple):
            return get_args(option)[-1]
    return None


def _first_model(kind: Any) -> type[BaseModel] | None:
    for option in _options(kind):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return option
    return None


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
