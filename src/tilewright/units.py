"""Units: the only module that reads, converts and writes bits, bytes, seconds and joules."""

import math
import re
from collections.abc import Iterable
from fractions import Fraction

_SIZE_BITS = {"bit": 1, "B": 8, "KiB": 8 * 2**10, "MiB": 8 * 2**20, "GiB": 8 * 2**30}
_ENERGY_PJ = {"fJ": Fraction(1, 1000), "pJ": Fraction(1), "nJ": Fraction(1000)}
_FREQUENCY_HZ = {"kHz": 10**3, "MHz": 10**6, "GHz": 10**9}
_NUMBER = r"([0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?)"


def packed_bytes(elements: int, elem_bits: int) -> int:
    """Bytes taken by densely packed elements, rounded up to a whole byte.

    >>> packed_bytes(3, 4)
    2
    """
    return -(-elements * elem_bits // 8)


def parse_bits(text: str) -> int:
    """Read a size such as `512 KiB` or `24 bit`; a bare number has no meaning.

    >>> parse_bits("2 KiB")
    16384
    """
    value = _parse(text, _SIZE_BITS, "a size such as '512 KiB' or '24 bit'")
    if value.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of bits")
    return value.numerator


def parse_energy_pj(text: str, *, wanted: str = "an energy such as '0.04 pJ'") -> float:
    """Read an energy such as `0.04 pJ`; `wanted` is what the message says was expected.

    >>> parse_energy_pj("180 fJ")
    0.18
    """
    return float(_parse(text, _ENERGY_PJ, wanted))


def parse_frequency_hz(text: str) -> int:
    """Read a clock such as `975 MHz`.

    >>> parse_frequency_hz("1.3 GHz")
    1300000000
    """
    return int(_parse(text, _FREQUENCY_HZ, "a frequency such as '975 MHz'"))


def format_bytes(size_bytes: int) -> str:
    """Write a size in the largest unit that keeps it readable; exact below 10 KiB.

    >>> [format_bytes(n) for n in (900, 9216, 262144, 1250000000)]
    ['900 B', '9,216 B', '256 KiB', '1.16 GiB']
    """
    if size_bytes < 10 * 2**10:
        return f"{size_bytes:,} B"
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20)):
        if size_bytes >= scale:
            return f"{_short(size_bytes / scale)} {unit}"
    return f"{_short(size_bytes / 2**10)} KiB"


def format_bits(size_bits: int) -> str:
    """Write a size in bits below 8 bits or when no whole byte, in bytes otherwise.

    >>> [format_bits(n) for n in (4, 12, 16, 131072)]
    ['4 bit', '12 bit', '2 B', '16 KiB']
    """
    return format_bytes(size_bits // 8) if size_bits % 8 == 0 and size_bits else f"{size_bits} bit"


def format_count(count: int) -> str:
    """Write a large count with a decimal prefix.

    >>> [format_count(n) for n in (950, 129600, 4089184256)]
    ['950', '129.6 k', '4.089 G']
    """
    for prefix, scale in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= scale:
            return f"{count / scale:.4g} {prefix}"
    return str(count)


def format_number(value: float) -> str:
    """Write a number with four digits that count, never with an exponent.

    >>> [format_number(n) for n in (10937.5, 1.25, 0.044726)]
    ['10,940', '1.25', '0.04473']
    """
    text = f"{value:.4g}"
    return f"{float(text):,.0f}" if "e+" in text or abs(value) >= 1000 else text


def format_energy(energy: float) -> str:
    """Write an energy given in pJ with a fitting prefix.

    >>> [format_energy(e) for e in (12.5, 4.2e5, 3.6e9)]
    ['12.5 pJ', '420 nJ', '3.6 mJ']
    """
    for unit, scale in (("J", 1e12), ("mJ", 1e9), ("µJ", 1e6), ("nJ", 1e3)):
        if energy >= scale:
            return f"{energy / scale:.4g} {unit}"
    return f"{energy:.4g} pJ"


def energy_pj(events: Iterable[tuple[int, float]]) -> float:
    """Price integer event counts in pJ; `fsum` makes the total independent of order."""
    return math.fsum(count * pj_each for count, pj_each in events)


def _parse(text: str, units: dict[str, int] | dict[str, Fraction], wanted: str) -> Fraction:
    match = re.fullmatch(rf"{_NUMBER} ?({'|'.join(units)})", text.strip())
    if match is None:
        raise ValueError(f"expected {wanted}, got {text!r}; units: {', '.join(units)}")
    return Fraction(match[1]) * Fraction(units[match[2]])


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
