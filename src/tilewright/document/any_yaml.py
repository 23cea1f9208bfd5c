"""YAML of any kind, read with ruamel.yaml: aliases, tags, texts over many lines, and all faults."""

import warnings
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tilewright.document.content import Document, Location, dotted
from tilewright.errors import InputError, Problem, Severity

_MAX_NODES = 200_000
_MAX_DEPTH = 60
_MAX_DIGITS = 400


def parse_any_yaml(text: str, file: str, *, last_key_wins: bool) -> Document:
    """Data and places of a text.

    Raises:
        InputError: it is no YAML, or is built to exhaust its reader.
    """
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


def _refused(file: str, message: str, place: tuple[int, int]) -> InputError:
    line, column = place
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
