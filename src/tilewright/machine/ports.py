"""Ports of a memory, from either dialect; and the entry that a memory should have had."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.document import Document, Location, dotted
from tilewright.errors import Problem
from tilewright.machine.files import MemoryFile, OldMemoryFile, PortFile
from tilewright.machine.model import OUTPUT_OPERAND, Direction, Port, PortKind

WRITES: tuple[Direction, ...] = ("fh", "fl")
READS: tuple[Direction, ...] = ("tl", "th")
ORDER: tuple[Direction, ...] = ("fh", "tl", "fl", "th")

MEANING: Mapping[Direction, str] = {
    "fh": "written from the level above",
    "tl": "read to the level below",
    "fl": "written from the level below",
    "th": "read to the level above",
}
_COUNTED = re.compile(r"(rw|r|w)_port_([1-9][0-9]?)")
_LOSS: Mapping[Direction, str] = {
    "fh": "nothing can enter it from above",
    "tl": "nothing can go down to the array",
    "fl": "results cannot enter it",
    "th": "results cannot leave it, nor enter the memory above",
}


def old_ports(
    document: Document, at: Location, file: Any
) -> tuple[tuple[Port, ...], list[Problem]]:
    """Ports counted by `r_port`, `w_port`, `rw_port`, with one `ports` entry per operand.

    A port that an entry names and no count declares is reported, and kept in the result so that
    later checks do not report its absence a second time.
    """
    assert isinstance(file, OldMemoryFile)
    uses: dict[str, list[tuple[str, Direction]]] = {name: [] for name in declared_ports(file)}
    problems: list[Problem] = []
    for i, entry in enumerate(file.ports or ()):
        here = (*at, "ports", i)
        if i >= len(file.operands):
            message = f"{dotted(here)}: there are only {len(file.operands)} operands"
            hint = "write one entry per operand, in their order"
            problems.append(document.problem(here, message, hint=hint))
            continue
        for direction, name in entry.items():
            fault = _use_fault((*here, direction), file, direction, name)
            if fault:
                problems.append(document.problem((*here, direction), fault[0], hint=fault[1]))
            if direction in ORDER:
                uses.setdefault(name, []).append((file.operands[i], direction))
    if file.rw_port is None:
        where = (*at, "rw_port")
        message = f"{dotted(where)}: is missing; ZigZag wants it, here it counts as 0"
        hint = f"write {dotted(where)}: 0"
        problems.append(document.problem(where, message, hint=hint, severity="warning"))
    return tuple(_old_port(file, name, used) for name, used in uses.items()), problems


def new_ports(
    document: Document, at: Location, file: Any
) -> tuple[tuple[Port, ...], list[Problem]]:
    """Ports that each carry their bandwidth and an `allocation` of `operand, direction`."""
    assert isinstance(file, MemoryFile)
    ports: list[Port] = []
    problems: list[Problem] = []
    for i, port in enumerate(file.ports or ()):
        here = (*at, "ports", i)
        if port.name in [earlier.name for earlier in ports]:
            message = f"{dotted((*here, 'name'))}: another port of this memory has this name"
            problems.append(document.problem((*here, "name"), message))
        uses, faults = _allocated(document, here, file, port)
        problems += faults
        narrow, wide = port.bandwidth_min or port.bandwidth_max, port.bandwidth_max
        if narrow > wide:
            where = (*here, "bandwidth_min")
            message = f"{dotted(where)}: {narrow} bit is above bandwidth_max, {wide} bit"
            hint = f"write {dotted(where)}: {written_bits(document, wide)}"
            problems.append(document.problem(where, message, hint=hint))
        ports.append(
            Port(
                name=port.name,
                kind=port.type,
                bits_per_cycle=wide,
                granularity_bits=narrow,
                uses=uses,
            )
        )
    return tuple(ports), problems


def written_bits(document: Document, size_bits: int) -> str:
    """A size as this file must have it: with its unit if the file is marked as ours."""
    return f"{size_bits} bit" if "tilewright" in document.data else str(size_bits)


def _allocated(
    document: Document, at: Location, file: MemoryFile, port: PortFile
) -> tuple[tuple[tuple[str, Direction], ...], list[Problem]]:
    """The uses of a port. A wrong direction is reported, and kept as the one that was meant."""
    uses: list[tuple[str, Direction]] = []
    problems: list[Problem] = []
    for j, text in enumerate(port.allocation):
        where = (*at, "allocation", j)
        operand, _, word = (part.strip() for part in text.partition(","))
        direction = next((d for d in ORDER if d == word), None)
        if operand not in file.operands:
            message = f"this memory holds {', '.join(file.operands)} and no {operand!r}"
            hint = "correct the operand, or add it to the operands of the memory"
        elif direction is None:
            message = f"no such direction: {word!r}" if word else "the direction is missing"
            hint = f"directions: {', '.join(ORDER)}"
            direction = _direction_left(file, port, operand, uses)
            if direction is not None:
                hint = f"write {dotted(where)}: '{operand}, {direction}'"
        elif not _fits(port.type, direction):
            message = f"{direction} ({MEANING[direction]}) on a {port.type} port"
            hint = f"write {dotted((*at, 'type'))}: read_write"
            hint += f"\nor move it to a {_needed(direction)} port"
        else:
            message = hint = ""
        if message:
            problems.append(document.problem(where, f"{dotted(where)}: {message}", hint=hint))
        if operand in file.operands and direction is not None:
            uses.append((operand, direction))
    return tuple(uses), problems


def _direction_left(
    file: MemoryFile, port: PortFile, operand: str, uses: Sequence[tuple[str, Direction]]
) -> Direction | None:
    """A direction that this port could serve, and that no port serves yet for the operand."""
    wanted = ORDER if operand == OUTPUT_OPERAND else ("fh", "tl")
    taken = {text.replace(" ", "") for other in file.ports or () for text in other.allocation}
    taken |= {f"{operand},{d}" for o, d in uses if o == operand}
    left = (d for d in wanted if _fits(port.type, d) and f"{operand},{d}" not in taken)
    return next(left, None)


def declared_ports(file: OldMemoryFile) -> list[str]:
    """Names of the ports that the counts of an old-dialect memory declare."""
    counts = (("r", file.r_port), ("w", file.w_port), ("rw", file.rw_port or 0))
    return [f"{kind}_port_{i + 1}" for kind, count in counts for i in range(count)]


def suggested_entry(
    file: OldMemoryFile, position: int, wanted: Sequence[Direction]
) -> tuple[dict[str, str], dict[str, int]]:
    """The `ports` entry that the operand at a position should have, and port counts to raise.

    Ports that the entry names already are kept: a mixed-up direction keeps its port. Operands take
    turns on ports that are free.
    """
    entries = file.ports or []
    entry = entries[position] if position < len(entries) else {}
    declared = declared_ports(file)
    fixed: dict[str, str] = {}
    counts: dict[str, int] = {}
    for direction in [d for d in ORDER if d in wanted]:
        letter = _needed(direction)[0]
        fitting = [n for n in declared if _fits(_kind(n), direction)]
        same = [n for n in (entry.get(direction, ""),) if n in fitting]
        named = [n for n in entry.values() if n in fitting]
        choice = [*same, *named, *fitting[position % max(1, len(fitting)) :]]
        if not choice:
            counts[f"{letter}_port"] = _highest_named(file, letter)
        fixed[direction] = choice[0] if choice else f"{letter}_port_1"
    return fixed, counts


def flow_entry(entry: Mapping[str, str]) -> str:
    """An entry as one line of YAML."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in entry.items()) + "}"


def _use_fault(
    at: Location, file: OldMemoryFile, direction: str, name: str
) -> tuple[str, str] | None:
    """What is wrong with one `direction: port` line, and what to write."""
    if direction not in ORDER:
        return f"{dotted(at)}: no such direction", f"directions: {', '.join(ORDER)}"
    known = next(d for d in ORDER if d == direction)
    declared = declared_ports(file)
    if name not in declared:
        has = ", ".join(declared) or "none"
        text = f"port {name!r} is not declared (declared: {has}), so {_LOSS[known]}"
    elif not _fits(_kind(name), known):
        text = f"{known} is {MEANING[known]}, and {name!r} cannot do that"
    else:
        return None
    return f"{dotted(at)}: {text}", _port_remedy(at, file, known, name)


def _port_remedy(at: Location, file: OldMemoryFile, direction: Direction, name: str) -> str:
    """What to write so that a `direction: name` line names a port that is there and can do it."""
    memory, declared = dotted(at[:-3]), declared_ports(file)
    match = _COUNTED.fullmatch(name)
    if match and name not in declared and _fits(_kind(name), direction):
        return f"write {memory}.{match[1]}_port: {_highest_named(file, match[1])}"
    fitting = [n for n in declared if _fits(_kind(n), direction)]
    if fitting:
        return f"write {dotted(at)}: {fitting[0]}"
    letter = _needed(direction)[0]
    count = _highest_named(file, letter)
    return f"write {memory}.{letter}_port: {count}\nwrite {dotted(at)}: {letter}_port_1"


def _highest_named(file: OldMemoryFile, letter: str) -> int:
    """How many ports of a kind (r, w, rw) the entries of a memory speak of; 1 at least."""
    names = [name for entry in file.ports or () for name in entry.values()]
    matches = [match for match in map(_COUNTED.fullmatch, names) if match]
    return max([1, *(int(match[2]) for match in matches if match[1] == letter)])


def _old_port(file: OldMemoryFile, name: str, uses: list[tuple[str, Direction]]) -> Port:
    kind = _kind(name)
    if kind == "write":
        width, granule = file.w_bw, file.min_w_granularity
    else:
        width, granule = file.r_bw, file.min_r_granularity
    return Port(
        name=name,
        kind=kind,
        bits_per_cycle=width,
        granularity_bits=min(granule or width, width),
        uses=tuple(uses),
    )


def _kind(name: str) -> PortKind:
    letter = name.partition("_")[0]
    return "read_write" if letter == "rw" else "write" if letter == "w" else "read"


def _fits(kind: PortKind, direction: str) -> bool:
    return kind == "read_write" or (kind == "write") == (direction in WRITES)


def _needed(direction: str) -> str:
    return "write" if direction in WRITES else "read"
