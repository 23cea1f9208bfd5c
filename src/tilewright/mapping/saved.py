"""Mapping files of either kind: ZigZag's constraints in YAML, or mappings that we saved as text."""

from pathlib import Path

from tilewright.document import parse_document, read_text, write_text
from tilewright.errors import InputError
from tilewright.mapping.constraints import Constraint, read_constraints
from tilewright.mapping.network import MappedNetwork
from tilewright.mapping.text import HEADER, GivenMapping, read_mappings


def read_mapping_file(
    file: str | None,
) -> tuple[tuple[Constraint, ...], dict[str, GivenMapping]]:
    """Constraints and given mappings of a file; both empty without one.

    Raises:
        InputError: the file cannot be read or understood.
    """
    if file is None:
        return (), {}
    text = read_text(Path(file))
    if text.startswith(HEADER):
        return (), read_mappings(text, file)
    reading = read_constraints(parse_document(text, file))
    errors = [p for p in reading.problems if p.severity == "error"]
    if errors:
        raise InputError(*errors)
    return reading.constraints, {}


def save_mappings(result: MappedNetwork, file: str) -> None:
    """Write the mappings of all ops on the array as text that `read_mapping_file` reads.

    Raises:
        InputError: the file cannot be written.
    """
    blocks = [op.text() for op in result.ops if op.mapped]
    write_text(Path(file), "\n".join([HEADER, *blocks]))
