"""Sizes, energies and clocks: read and written by hand-computed figures."""

import math

import pytest

from tilewright.units import (
    energy_pj,
    format_bits,
    format_bytes,
    format_count,
    packed_bytes,
    parse_bits,
    parse_energy_pj,
    parse_frequency_hz,
)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("1 bit", 1),
        ("24 bit", 24),
        ("1 B", 8),
        ("3B", 24),
        ("1 KiB", 8_192),  # 1024 x 8
        ("0.5 KiB", 4_096),
        ("512 KiB", 4_194_304),  # 2^19 x 8
        ("2 MiB", 16_777_216),  # 2^21 x 8
        ("1.5 GiB", 12_884_901_888),  # 1.5 x 2^30 x 8
        ("1e3 B", 8_000),
        ("  16 KiB  ", 131_072),
    ],
)
def test_a_size_is_read_in_bits(text: str, bits: int) -> None:
    assert parse_bits(text) == bits


@pytest.mark.parametrize(
    "text",
    [
        "512",
        "",
        "KiB",
        "1 kB",
        "1 KB",
        "1 MB",
        "1 kib",
        "-1 B",
        "+1 B",
        "1 2 B",
        "1,5 B",
        "1 B B",
        "1 bits",
        "nan B",
        "inf B",
        "1e999 B",
        ".5 B",
        "0x10 B",
        "١ B",  # an Arabic-Indic digit: \d matches it, a file should not hold it
    ],
)
def test_a_size_without_a_known_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a size such as"):
        parse_bits(text)


def test_a_size_that_is_no_whole_number_of_bits_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'0\.3 B' is not a whole number of bits"):
        parse_bits("0.3 B")  # 2.4 bits


def test_the_message_names_what_was_written_and_the_units() -> None:
    with pytest.raises(ValueError, match="got '64 kB'; units: bit, B, KiB, MiB, GiB"):
        parse_bits("64 kB")


@pytest.mark.parametrize(
    ("text", "pj"),
    [("0.04 pJ", 0.04), ("180 fJ", 0.18), ("2 nJ", 2000.0), ("0 pJ", 0.0), ("1e-3 pJ", 0.001)],
)
def test_an_energy_is_read_in_pj(text: str, pj: float) -> None:
    assert parse_energy_pj(text) == pj


@pytest.mark.parametrize("text", ["1", "1 J", "1 mJ", "1 pj", "-1 pJ", "1 pJ/bit", "nan pJ"])
def test_an_energy_without_a_known_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected an energy .*units: fJ, pJ, nJ"):
        parse_energy_pj(text)


@pytest.mark.parametrize(
    ("text", "hz"),
    [("975 MHz", 975_000_000), ("1.3 GHz", 1_300_000_000), ("32.768 kHz", 32_768)],
)
def test_a_clock_is_read_in_hz(text: str, hz: int) -> None:
    assert parse_frequency_hz(text) == hz


@pytest.mark.parametrize("text", ["975", "1 Hz", "1 mhz", "1 THz"])
def test_a_clock_without_a_known_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a frequency such as '975 MHz'"):
        parse_frequency_hz(text)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1_023, "1,023 B"),
        (10_239, "10,239 B"),  # exact below 10 KiB
        (10_240, "10 KiB"),
        (917_504, "896 KiB"),
        (1_048_575, "1,024 KiB"),
        (1_048_576, "1 MiB"),
        (1_572_864, "1.5 MiB"),
        (1_073_741_824, "1 GiB"),
        (2_147_483_648_000, "2,000 GiB"),
    ],
)
def test_bytes_are_written_in_the_largest_readable_unit(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("size_bits", "text"),
    [(0, "0 bit"), (7, "7 bit"), (8, "1 B"), (9, "9 bit"), (131_072, "16 KiB")],
)
def test_bits_are_written_as_bytes_only_when_whole(size_bits: int, text: str) -> None:
    assert format_bits(size_bits) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (999, "999"),
        (1_000, "1 k"),
        (129_600, "129.6 k"),
        (1_814_073_344, "1.814 G"),
        (5 * 10**12, "5 T"),
    ],
)
def test_a_count_is_written_with_a_decimal_prefix(count: int, text: str) -> None:
    assert format_count(count) == text


@pytest.mark.parametrize(
    ("elements", "bits", "size_bytes"),
    [(0, 8, 0), (1, 1, 1), (3, 4, 2), (16, 1, 2), (5, 12, 8), (7, 16, 14)],
)
def test_packed_elements_round_up_to_a_whole_byte(
    elements: int, bits: int, size_bytes: int
) -> None:
    assert packed_bytes(elements, bits) == size_bytes


def test_the_energy_of_events_does_not_depend_on_their_order() -> None:
    events = [(1, 1e16), (3, 0.1), (1, -1e16)]
    assert energy_pj(events) == energy_pj(reversed(events)) == math.fsum([0.1 * 3])
