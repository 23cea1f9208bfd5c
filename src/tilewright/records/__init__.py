"""Classes of which a plan has thousands: compiled code makes their objects where it was built.

Python sets the fields of a frozen dataclass one by one through a function, which takes several
times as long as all else that there is to making the object. Nothing else about the classes
changes.
"""

from dataclasses import MISSING, Field, fields, is_dataclass
from typing import TypeVar

try:
    from tilewright.records import _made
except ImportError:
    _made = None  # type: ignore[assignment]  # not compiled here

_Class = TypeVar("_Class")


def is_compiled() -> bool:
    """Whether compiled code makes the objects."""
    return _made is not None


def quickly_made(cls: type[_Class]) -> type[_Class]:
    """Let compiled code make the objects of a dataclass or a named tuple.

    >>> from dataclasses import dataclass
    >>> @quickly_made
    ... @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(3), Point(y=1, x=2)
    (Point(x=3, y=0), Point(x=2, y=1))
    """
    if _made is not None:
        names, defaults, n_positional = _fields_of(cls)
        values = tuple(value for value, _ in defaults)
        _made.make_quickly(cls, names, values, tuple(made for _, made in defaults), n_positional)
    return cls


_Default = tuple[object, bool]
"""A value, or a function that makes it; and whether it is a function."""


def _fields_of(cls: type[object]) -> tuple[tuple[str, ...], tuple[_Default, ...], int]:
    """The fields of a class, the defaults of its last ones, and how many may go without names.

    Raises:
        TypeError: the class is of a kind that compiled code does not make.
    """
    names: tuple[str, ...] = getattr(cls, "_fields", ())
    if names and issubclass(cls, tuple):
        known: dict[str, object] = getattr(cls, "_field_defaults", {})
        return names, tuple((known[name], False) for name in names if name in known), len(names)
    if not is_dataclass(cls):
        raise TypeError(f"{cls.__name__} is neither a dataclass nor a named tuple")
    found = fields(cls)
    defaults = [_default(field) for field in found]
    given = [default for default in defaults if default is not None]
    if defaults[len(found) - len(given) :] != given or not all(field.init for field in found):
        raise TypeError(f"{cls.__name__} has fields that no argument sets, or in another order")
    names = tuple(field.name for field in found)
    return names, tuple(given), sum(not field.kw_only for field in found)


def _default(field: "Field[object]") -> _Default | None:
    if field.default_factory is not MISSING:
        return field.default_factory, True
    return None if field.default is MISSING else (field.default, False)
