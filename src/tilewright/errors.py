"""Every error a user can cause, and the one value that describes a fault.

TilewrightError           exit code
├── InputError            2   a file, flag or value is wrong; the user can fix it
├── InfeasibleError       3   the input is fine, no solution exists
└── LimitError            4   a limit or check that the user asked for failed

Anything else that escapes is a bug of ours: exit code 1 and a traceback.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from tilewright.printable import printable

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One fault: where it is, what is wrong and why it matters, and what to write instead."""

    message: str
    file: str = ""
    line: int | None = None
    column: int | None = None
    severity: Severity = "error"
    hint: str = ""

    @property
    def where(self) -> str:
        """The place as `file:line:column`, as far as it is known."""
        parts = [self.file, self.line, self.column]
        return ":".join(str(part) for part in parts if part not in ("", None))

    def __str__(self) -> str:
        place = f"{printable(self.where)}: " if self.where else ""
        label = "warning: " if self.severity == "warning" else ""
        hint = "".join(f"\n  hint: {printable(line)}" for line in self.hint.split("\n") if line)
        return f"{place}{label}{printable(self.message)}{hint}"


class TilewrightError(Exception):
    """Base of the errors that are reported without a traceback."""

    exit_code: ClassVar[int] = 1

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class InputError(TilewrightError):
    """A file, flag or value is wrong; the user can fix it."""

    exit_code = 2


class InfeasibleError(TilewrightError):
    """The input is well formed, but no solution exists."""

    exit_code = 3


class LimitError(TilewrightError):
    """A limit or check that the user asked for failed."""

    exit_code = 4


def refuse_unknown(what: str, name: str, names: Sequence[str]) -> None:
    """Raise InputError if a name is none of those that there are."""
    if name not in names:
        raise InputError(
            Problem(message=f"no {what} {name!r}", hint=f"there are {', '.join(names)}")
        )
