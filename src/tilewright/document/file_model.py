"""File models: the keys that a mapping in a file may have, and what each may hold.

A file model is a class whose annotations say everything: `size: Annotated[int, Range(above=0)]`.
Data is held against it strictly (no text becomes a number), and every fault is found. Errors are
told in our own words. Every command that reads a file waits for this module: a validation library
in its place took a quarter of the time of `tilewright map`, and dataclasses would take 3 ms.
"""

import re
import types
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from tilewright.document.content import Location

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound="FileModel")
Context = Mapping[str, Any]
_REQUIRED = object()


class FileModel:
    """A mapping of a file; objects are made by `read_model` and `filled`, and never change."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __repr__(self) -> str:
        values = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({values})"


class Range:
    """Bounds of a number; `finite` refuses infinity and what is no number."""

    def __init__(
        self,
        *,
        above: float | None = None,
        least: float | None = None,
        most: float | None = None,
        finite: bool = False,
    ) -> None:
        self.above, self.least, self.most, self.finite = above, least, most, finite

    def fault(self, value: float) -> str:
        """What is wrong with a number, or nothing."""
        if self.finite and not abs(value) < float("inf"):
            return "expected a finite number"
        # Each is asked so that what is no number fails it.
        if self.least is not None and not value >= self.least:
            return f"must be {_number(self.least)} or more"
        if self.above is not None and not value > self.above:
            return f"must be more than {_number(self.above)}"
        if self.most is not None and not value <= self.most:
            return f"must be {_number(self.most)} or less"
        return ""


class Length:
    """The number of characters of a text, or of items of a list."""

    def __init__(self, least: int = 0, most: int | None = None) -> None:
        self.least, self.most = least, most

    def is_over(self, value: str | list[Any]) -> bool:
        """Whether it is too long."""
        return self.most is not None and len(value) > self.most

    def fault(self, value: str | list[Any]) -> str:
        """What is wrong with a length, or nothing."""
        unit = "character" if isinstance(value, str) else "item"
        if len(value) < self.least:
            count = f"{self.least} {unit}{'s' if self.least > 1 else ''}"
            return f"must have at least {count}" if self.least > 1 else "must not be empty"
        if self.most is not None and self.is_over(value):
            return f"must have at most {self.most} {unit}{'s' if self.most > 1 else ''}"
        return ""


class Pattern:
    """The form of a text, and what such a text is called."""

    def __init__(self, pattern: str, meaning: str) -> None:
        self.pattern, self.meaning = pattern, meaning

    def fault(self, value: str) -> str:
        """What is wrong with a text, or nothing."""
        return "" if re.fullmatch(self.pattern, value) else f"expected {self.meaning}"


class OneLine:
    """A text without line ends and other characters that cannot be printed."""

    def fault(self, value: str) -> str:
        """What is wrong with a text, or nothing."""
        return "" if value.isprintable() else "must be one line of plain text"


Rule = Range | Length | Pattern | OneLine


class Converted:
    """A function of the value and the context, applied first.

    Its ValueError is the fault; a hint may stand in the text, behind ` -- `.
    """

    def __init__(self, function: Callable[[Any, Context], Any]) -> None:
        self.function = function


class Written:
    """How a converted value is written, as a JSON schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema


class Key:
    """A key of a file model: the annotation, and the default unless it is required."""

    def __init__(self, kind: Any, stated_default: Any) -> None:
        self.kind, self.stated_default = kind, stated_default

    @property
    def is_required(self) -> bool:
        """Whether a file must have it."""
        return self.stated_default is _REQUIRED

    @property
    def default(self) -> Any:
        """The value where a file does not have it."""
        default = self.stated_default
        return default.make() if isinstance(default, _NewEachTime) else default


class Fault:
    """What is wrong at a location: a key that is missing or unknown, or a value."""

    def __init__(
        self, at: Location, what: Literal["missing", "unknown", "value"], message: str
    ) -> None:
        self.at, self.what, self.message = at, what, message


class _NewEachTime:
    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def new(kind: Callable[[], T]) -> T:
    """The default of a key that is a new list or dict for every object."""
    return cast(T, _NewEachTime(kind))


def keys_of(model: type[FileModel]) -> Mapping[str, Key]:
    """The keys of a file model, those of its bases first."""
    kind: Any = model  # mypy doubts that a class with `__eq__` can be hashed
    return _keys_of(kind)


@cache
def _keys_of(model: Any) -> Mapping[str, Key]:
    result: dict[str, Key] = {}
    for owner in reversed(model.__mro__):
        for name, kind in vars(owner).get("__annotations__", {}).items():
            result[name] = Key(kind, vars(owner).get(name, _REQUIRED))
    return result


def filled(model: type[ModelT], values: Mapping[str, Any]) -> ModelT:
    """An object of a model with these values, which are not checked, and defaults."""
    assert values.keys() <= keys_of(model).keys()
    made = object.__new__(model)
    for name, key in keys_of(model).items():
        made.__dict__[name] = values.get(name, key.default)
    return made


def read_model(
    model: type[ModelT], data: Any, context: Context | None = None
) -> tuple[ModelT | None, list[Fault]]:
    """The data as an object of a model, or None and all of its faults."""
    run = _Run(context or {})
    kind: Any = model
    made = _reader(kind)(data, (), run)
    return (None if run.faults else made), run.faults


class _Run:
    """What one reading has in common."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.faults: list[Fault] = []

    def refuse(self, at: Location, message: str) -> None:
        self.faults.append(Fault(at, "value", message))


_Reader = Callable[[Any, Location, _Run], Any]


@cache
def _reader(kind: Any) -> _Reader:
    """The function that reads a value of an annotated kind; what it returns counts if no fault."""
    make = _MAKERS.get(get_origin(kind))
    if make is not None:
        return make(get_args(kind))
    if kind is Any:
        return lambda data, at, run: data
    return _model(kind) if issubclass(kind, FileModel) else _instance(kind)


def _annotated(parts: tuple[Any, ...]) -> _Reader:
    inner, *notes = parts
    read = _reader(inner)
    rules = [note for note in notes if isinstance(note, Rule)]
    lengths = [note for note in notes if isinstance(note, Length)]
    converted = next((note.function for note in notes if isinstance(note, Converted)), None)

    def checked(data: Any, at: Location, run: _Run) -> Any:
        before = len(run.faults)
        if converted is not None:
            try:
                data = converted(data, run.context)
            except ValueError as error:
                run.refuse(at, str(error))
                return None
        is_over = isinstance(data, list) and any(rule.is_over(data) for rule in lengths)
        value = data if is_over else read(data, at, run)  # of too many, none matters
        if len(run.faults) > before:
            return None
        for rule in rules:
            fault = rule.fault(value)
            if fault:
                run.refuse(at, fault)
                break
        return value

    return checked


def _union(kinds: tuple[Any, ...]) -> _Reader:
    readers = [(kind.__name__, _reader(kind)) for kind in kinds if kind is not type(None)]
    may_be_none = len(readers) < len(kinds)
    single = readers[0][1]

    def any_of(data: Any, at: Location, run: _Run) -> Any:
        if data is None and may_be_none:
            return None
        if len(readers) == 1:
            return single(data, at, run)
        faults: list[Fault] = []
        for name, read in readers:
            attempt = _Run(run.context)
            value = read(data, (*at, name), attempt)
            if not attempt.faults:
                return value
            faults += attempt.faults
        run.faults.extend(faults)
        return None

    return any_of


def _literal(values: tuple[Any, ...]) -> _Reader:
    *others, last = map(repr, values)
    text = f"expected {', '.join(others)} or {last}" if others else f"expected {last}"

    def one_of(data: Any, at: Location, run: _Run) -> Any:
        if data not in values:
            run.refuse(at, text)
        return data

    return one_of


def _list(parts: tuple[Any, ...]) -> _Reader:
    read = _reader(parts[0])

    def items(data: Any, at: Location, run: _Run) -> Any:
        if not isinstance(data, list):
            run.refuse(at, "expected a list")
            return None
        return [read(item, (*at, place), run) for place, item in enumerate(data)]

    return items


def _dict(parts: tuple[Any, ...]) -> _Reader:
    read_key, read_value = map(_reader, parts)

    def pairs(data: Any, at: Location, run: _Run) -> Any:
        if not isinstance(data, dict):
            run.refuse(at, "expected a mapping (`key: value` lines)")
            return None
        return {
            read_key(key, (*at, key, "[key]"), run): read_value(value, (*at, key), run)
            for key, value in data.items()
        }

    return pairs


def _model(model: type[FileModel]) -> _Reader:
    keys = keys_of(model)
    readers = {name: _reader(key.kind) for name, key in keys.items()}

    def mapping(data: Any, at: Location, run: _Run) -> Any:
        if not isinstance(data, dict):
            run.refuse(at, "expected a mapping (`key: value` lines)")
            return None
        made = object.__new__(model)
        values = made.__dict__
        for name, key in keys.items():
            if name in data:
                values[name] = readers[name](data[name], (*at, name), run)
            elif key.is_required:
                run.faults.append(Fault((*at, name), "missing", "is missing"))
            else:
                values[name] = key.default
        if not data.keys() <= keys.keys():
            run.faults.extend(_unknown(data, keys, at))
        return made

    return mapping


def _unknown(data: Mapping[str, Any], keys: Mapping[str, Key], at: Location) -> Iterator[Fault]:
    for name in data:
        if name not in keys:
            yield Fault((*at, name), "unknown", "unknown key")


def _instance(kind: type) -> _Reader:
    accepted: tuple[type, ...] = (int, float) if kind is float else (kind,)
    words = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    text = f"expected {words.get(kind, kind.__name__)}"

    def instance(data: Any, at: Location, run: _Run) -> Any:
        if not isinstance(data, accepted) or (isinstance(data, bool) and kind is not bool):
            run.refuse(at, text)
            return None
        if not isinstance(data, int) or kind is not float:
            return data
        try:
            return float(data)
        except OverflowError:
            run.refuse(at, text)
            return None

    return instance


def _number(bound: float) -> str:
    return str(int(bound)) if bound == int(bound) else str(bound)


_MAKERS: Mapping[Any, Callable[[tuple[Any, ...]], _Reader]] = {
    Annotated: _annotated,
    Union: _union,
    types.UnionType: _union,
    Literal: _literal,
    list: _list,
    dict: _dict,
}
