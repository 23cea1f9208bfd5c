"""What was read from a file, with the place of everything in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.errors import Problem, Severity

Location = tuple[int | str, ...]


@dataclass(frozen=True)
class Document:
    """A file's data and the (line, column) of every key and list item in it."""

    file: str
    data: Any
    places: Mapping[Location, tuple[int, int]]
    warnings: tuple[Problem, ...] = ()

    def problem(
        self, at: Location, message: str, *, hint: str = "", severity: Severity = "error"
    ) -> Problem:
        """A problem at the deepest part of `at` that the file has."""
        known = at
        while known and known not in self.places:
            known = known[:-1]
        line, column = self.places.get(known, (1, 1))
        return Problem(
            file=self.file, line=line, column=column, message=message, hint=hint, severity=severity
        )


def in_file_order(problems: Iterator[Problem] | Sequence[Problem]) -> list[Problem]:
    """Sorted by place, without repetitions."""
    unique = dict.fromkeys(problems)
    return sorted(unique, key=lambda p: (p.line or 0, p.column or 0, p.message))


def dotted(at: Location) -> str:
    """A location as text: `memories.sram.ports[1]`."""
    return "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in at).lstrip(".")


def suggestion(word: str, known: Sequence[str]) -> str:
    """`did you mean 'x'?` if something known is near, else the list of what is known."""
    near = nearest(word, known)
    return f"did you mean {near!r}?" if near else f"known: {', '.join(known)}"


def nearest(word: str, known: Sequence[str], *, cutoff: float = 0.6) -> str:
    """The most similar of the known words, or nothing if none is similar enough."""
    import difflib  # only faults need it

    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=cutoff)), "")
