"""The order in which ZigZag 3.9 meets names that it keeps in a set.

ZigZag takes "any" element of a set of loops or of array dims in four places: which loop it unrolls
first, which of several equally good unrollings it keeps, which loop it drops from an over-full
array dim and which factor it shrinks. The result is not random: names hash to the SHA-512 of
their pickled text, and CPython's set is an open hash table that is read from its first slot to
its last. Results agree with ZigZag's where it runs on CPython 3.8 to 3.13 (pickle protocol 4).
"""

import pickle
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import Any, Final, Literal

NameKind = Literal["loop", "array_dim"]

_CLASS_PICKLES: Final[dict[NameKind, bytes]] = {
    "loop": b"\x80\x04\x95!\0\0\0\0\0\0\0\x8c\x10zigzag.datatypes\x94\x8c\x08LayerDim\x94\x93\x94.",
    "array_dim": b"\x80\x04\x95$\0\0\0\0\0\0\0\x8c\x10zigzag.datatypes\x94"
    b"\x8c\x0bOADimension\x94\x93\x94.",
}
_HASH_MODULUS: Final = 2**61 - 1
"""CPython reduces integer hashes modulo this prime."""

_LINEAR_PROBES: Final = 9
_PERTURB_SHIFT: Final = 5
"""How CPython's set walks from a taken slot to the next one to try."""


def zigzag_order(names: Iterable[str], kind: NameKind) -> tuple[str, ...]:
    """The names, each once, as a set of ZigZag's into which they are put one by one yields them.

    >>> zigzag_order(["C", "FX", "FY"], "loop")
    ('FX', 'C', 'FY')
    >>> zigzag_order(["D1", "D2", "D3", "D4"], "array_dim")
    ('D1', 'D2', 'D4', 'D3')
    """
    return _ordered(tuple(names), kind)


@cache
def _ordered(names: tuple[str, ...], kind: NameKind) -> tuple[str, ...]:
    slots: list[str | None] = [None] * 8
    for count, name in enumerate(dict.fromkeys(names), 1):
        slots[_free_slot(slots, _hash(name, kind))] = name
        if 5 * count >= 3 * (len(slots) - 1):
            slots = _grown(slots, count, kind)
    return tuple(name for name in slots if name is not None)


def _grown(slots: list[str | None], count: int, kind: NameKind) -> list[str | None]:
    """The table with the next power of two above four times the count as its size."""
    grown: list[str | None] = [None] * (1 << (4 * count).bit_length())
    for name in slots:
        if name is not None:
            grown[_free_slot(grown, _hash(name, kind))] = name
    return grown


def _free_slot(slots: list[str | None], hashed: int) -> int:
    mask = len(slots) - 1
    slot = hashed & mask
    perturb = hashed
    while True:
        steps = _LINEAR_PROBES if slot + _LINEAR_PROBES <= mask else 0
        for candidate in range(slot, slot + steps + 1):
            if slots[candidate] is None:
                return candidate
        perturb >>= _PERTURB_SHIFT
        slot = (5 * slot + 1 + perturb) & mask


@cache
def _hash(name: str, kind: NameKind) -> int:
    pickles = (pickle.dumps(name, protocol=4), _CLASS_PICKLES[kind])
    of_name, of_class = (int.from_bytes(_sha512()(text).digest(), "big") for text in pickles)
    return (of_name ^ of_class) % _HASH_MODULUS


@cache
def _sha512() -> Callable[[bytes], Any]:
    """The interpreter's own SHA-512 where it has one: `hashlib` loads OpenSSL, which takes long."""
    for module in ("_sha512", "_sha2"):
        try:
            found: Callable[[bytes], Any] = import_module(module).sha512
        except ImportError:
            continue
        return found
    from hashlib import sha512

    return sha512
