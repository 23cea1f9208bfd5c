"""Objects made by compiled code: as Python would make them, and with its errors."""

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import NamedTuple

import pytest

from tilewright import records
from tilewright.records import is_compiled, quickly_made

needs_compiled = pytest.mark.skipif(not is_compiled(), reason="the kernel is not compiled here")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainSlot:
    start: int
    end: int
    lane: int = 7


@dataclass(frozen=True)
class PlainList:
    name: str
    items: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("no name")


class PlainPair(NamedTuple):
    first: int
    second: tuple[int, ...] = ()


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class QuickSlot:
    start: int
    end: int
    lane: int = 7


@quickly_made
@dataclass(frozen=True)
class QuickList:
    name: str
    items: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("no name")


@quickly_made
class QuickPair(NamedTuple):
    first: int
    second: tuple[int, ...] = ()


CLASSES = ((PlainSlot, QuickSlot), (PlainList, QuickList), (PlainPair, QuickPair))
CALLS: list[tuple[tuple[object, ...], dict[str, object]]] = [
    ((), {}),
    ((1,), {}),
    ((1, 2), {}),
    ((1, 2, 3), {}),
    ((1, 2, 3, 4), {}),
    ((), {"start": 1, "end": 2}),
    ((), {"end": 2, "start": 1}),
    ((), {"lane": 3, "start": 1, "end": 2}),
    ((), {"start": 1}),
    ((), {"start": 1, "end": 2, "other": 3}),
    (("x",), {}),
    (("",), {}),
    (("x",), {"items": [4]}),
    (("x",), {"name": "y"}),
    ((), {"items": [4], "name": "x"}),
    ((), {"items": [4]}),
    ((), {"second": (2,), "first": 1}),
    ((1,), {"second": (2,)}),
    ((1,), {"first": 2}),
]


def outcome(make: Callable[..., object], call: tuple[tuple[object, ...], dict[str, object]]) -> str:
    """What a call leads to, without the name of the class."""
    unnamed, named = call
    try:
        return repr(make(*unnamed, **named)).replace("Quick", "Plain")
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}".replace("Quick", "Plain")


@needs_compiled
@pytest.mark.parametrize("call", CALLS)
def test_every_call_leads_to_what_python_makes_of_it(
    call: tuple[tuple[object, ...], dict[str, object]],
) -> None:
    for plain, quick in CLASSES:
        assert outcome(quick, call) == outcome(plain, call)


def test_every_object_has_a_default_of_its_own_that_is_made() -> None:
    one, other = QuickList("a"), QuickList("b")
    one.items.append(1)
    assert other.items == []


def test_the_objects_are_those_of_an_ordinary_frozen_class() -> None:
    slot = QuickSlot(start=1, end=2)
    assert slot == QuickSlot(start=1, end=2, lane=7)
    assert hash(slot) == hash(QuickSlot(start=1, end=2))
    assert replace(slot, end=5) == QuickSlot(start=1, end=5)
    assert pickle.loads(pickle.dumps(slot)) == slot
    with pytest.raises(FrozenInstanceError):
        slot.end = 3  # type: ignore[misc]  # that it fails is what is tested


def test_a_class_derived_from_another_is_made_as_it_says() -> None:
    class Longer(QuickPair):
        def __new__(cls, first: int) -> "Longer":
            return super().__new__(cls, first, (first, first))

    assert Longer(4) == (4, (4, 4))


@needs_compiled
def test_a_class_that_is_neither_dataclass_nor_named_tuple_is_refused() -> None:
    with pytest.raises(TypeError, match="int is neither"):
        quickly_made(int)


@needs_compiled
def test_a_field_that_no_argument_sets_is_refused() -> None:
    @dataclass(frozen=True)
    class Counted:
        number: int = field(init=False, default=3)

    with pytest.raises(TypeError, match="Counted has fields that no argument sets"):
        quickly_made(Counted)


def test_without_compiled_code_a_class_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_made", None)
    quickly_made(PlainPair)
    assert not is_compiled()
    assert PlainPair(1) == (1, ())
