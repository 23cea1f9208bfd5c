"""Holding a document against a file model: faults become problems with a place and a hint."""

import types
from collections.abc import Iterator, Sequence
from typing import Any, Union, get_args, get_origin

from tilewright.document.content import Document, Location, dotted, in_file_order, nearest
from tilewright.document.file_model import (
    Context,
    Fault,
    FileModel,
    ModelT,
    keys_of,
    read_model,
)
from tilewright.errors import Problem

_MERGE = "<<"
"""The key with which YAML 1.1 copies the keys of another mapping."""


def validate(
    document: Document, model: type[ModelT], context: Context | None = None, at: Location = ()
) -> tuple[ModelT | None, list[Problem]]:
    """The part of a document at `at` as a file model, or None and its faults in file order."""
    data = document.data
    for step in at:
        data = data[step]
    made, faults = read_model(model, data, context)
    return made, in_file_order(_problems(document, model, faults, at)) if faults else []


def faulty_keys(
    document: Document, model: type[FileModel], context: Context | None = None
) -> set[str]:
    """The top-level keys with a fault in them."""
    _, faults = read_model(model, document.data, context)
    return {str(fault.at[0]) for fault in faults if fault.at}


def _problems(
    document: Document, model: type[FileModel], faults: Sequence[Fault], base: Location
) -> Iterator[Problem]:
    missing = [fault.at for fault in faults if fault.what == "missing"]
    unknown = [fault.at for fault in faults if fault.what == "unknown"]
    meant = {at: _meant(model, at, missing) for at in unknown}
    hinted = {(*at[:-1], key) for at, key in meant.items()}
    for fault in faults:
        if fault.what == "missing" and fault.at in hinted:
            continue  # it is said where the misspelt key stands
        message, _, hint = fault.message.partition(" -- ")
        if fault.what == "unknown" and fault.at[-1] == _MERGE:
            hint = "merge keys are not read: write the keys out; `*name` stands for a whole value"
        elif fault.what == "unknown":
            known = f"known: {', '.join(_keys(model, fault.at[:-1]))}"
            hint = f"did you mean {meant[fault.at]!r}?" if meant[fault.at] else known
        at = (*base, *fault.at)
        name = dotted(at)
        yield document.problem(at, f"{name}: {message}" if name else message, hint=hint)


def _meant(model: type[FileModel], at: Location, missing: Sequence[Location]) -> str:
    """The key that an unknown one is a misspelling of, if any; a missing key may be less near."""
    word = str(at[-1])
    lost = [str(other[-1]) for other in missing if other[:-1] == at[:-1]]
    return nearest(word, _keys(model, at[:-1])) or nearest(word, lost, cutoff=0.5)


def _keys(kind: Any, at: Location) -> list[str]:
    """Keys that a file model allows at a location."""
    for step in at:
        kind = _inside(kind, step)
    model = _first_model(kind)
    return list(keys_of(model)) if model is not None else []


def _inside(kind: Any, step: int | str) -> Any:
    model = _first_model(kind)
    if model is not None and isinstance(step, str) and step in keys_of(model):
        return keys_of(model)[step].kind
    for option in _options(kind):
        if get_origin(option) in (list, dict):
            return get_args(option)[-1]
    return None


def _first_model(kind: Any) -> type[FileModel] | None:
    for option in _options(kind):
        if isinstance(option, type) and issubclass(option, FileModel):
            return option
    return None


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
