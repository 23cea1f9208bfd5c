"""A step: an operation, how often it is done, and what it needs beside its feature maps."""

from dataclasses import dataclass

from tilewright.mapping.ethos_u.operation import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An operation of the hardware, done `times` times."""

    operation: Operation
    times: int = 1
    second_is_constant: bool = False
    """Whether the second input is read from where constants lie."""
    table_bytes: int = 0
    """Of a look-up table that nothing hides the loading of."""
