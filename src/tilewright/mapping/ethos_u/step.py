"""A step: an operation, how often it is done, and what it needs beside its feature maps."""

from typing import NamedTuple

from tilewright.mapping.ethos_u.operation import Operation
from tilewright.records import quickly_made


@quickly_made
class Step(NamedTuple):
    """An operation of the hardware, done `times` times."""

    operation: Operation
    times: int = 1
    second_is_constant: bool = False
    """Whether the second input is read from where constants lie."""
    table_bytes: int = 0
    """Of a look-up table that nothing hides the loading of."""
