"""Ports of a memory, from either dialect; and the entry that a memory should have had."""

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.document import Document, Location, dotted
from tilewright.errors import Problem
from tilewright.machine.files import MemoryFile, OldMemoryFile
from tilewright.machine.model import Direction, Port, PortKind

WRITES: tuple[Direction, ...] = ("fh", "fl")
READS: tuple[Direction, ...] = ("tl", "th")
ORDER: tuple[Direction, ...] = ("fh", "tl", "fl", "th")

MEANING: Mapping[Direction, str] = {
    "fh": "written from the level above",
    "tl": "read to the level below",
    "fl": "written from the level below",
    "th": "read to the level above",
}
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
    ports, problems = [], []
    for i, port in enumerate(file.ports or ()):
        here = (*at, "ports", i)
        uses: list[tuple[str, Direction]] = []
        for j, text in enumerate(port.allocation):
            where = (*here, "allocation", j)
            operand, _, direction = (part.strip() for part in text.partition(","))
            if operand not in file.operands or direction not in ORDER:
                message = f"{dotted(where)}: {text!r} is no operand of this memory and a direction"
                hint = f"such as '{file.operands[0]}, tl'; directions: {', '.join(ORDER)}"
                problems.append(document.problem(where, message, hint=hint))
            elif not _fits(port.type, direction):
                message = (
                    f"{dotted(where)}: {direction} ({MEANING[direction]}) on a {port.type} port"
                )
                hint = f"move it to a {_needed(direction)} port, or write type: read_write"
                problems.append(document.problem(where, message, hint=hint))
            else:
                uses.append((operand, direction))
        narrow = port.bandwidth_min or port.bandwidth_max
        if narrow > port.bandwidth_max:
            message = f"{dotted(here)}: bandwidth_min {narrow} is above bandwidth_max"
            hint = f"write {dotted((*here, 'bandwidth_min'))}: {port.bandwidth_max}"
            problems.append(document.problem((*here, "bandwidth_min"), message, hint=hint))
        ports.append(
            Port(
                name=port.name,
                kind=port.type,
                bits_per_cycle=port.bandwidth_max,
                granularity_bits=narrow,
                uses=tuple(uses),
            )
        )
    return tuple(ports), problems


def declared_ports(file: OldMemoryFile) -> list[str]:
    """Names of the ports that the counts of an old-dialect memory declare."""
    counts = (("r", file.r_port), ("w", file.w_port), ("rw", file.rw_port or 0))
    return [f"{kind}_port_{i + 1}" for kind, count in counts for i in range(count)]


def suggested_entry(
    file: OldMemoryFile, entry: Mapping[str, str], wanted: Sequence[Direction]
) -> tuple[dict[str, str], dict[str, int]]:
    """The `ports` entry an operand should have, and the port counts that must grow for it.

    Ports that the entry names already are kept: a mixed-up direction keeps its port.
    """
    declared = declared_ports(file)
    fixed: dict[str, str] = {}
    counts: dict[str, int] = {}
    for direction in [d for d in ORDER if d in wanted]:
        letter = "w" if direction in WRITES else "r"
        named = [n for d, n in entry.items() if n in declared and _fits(_kind(n), direction)]
        same = [n for n in (entry.get(direction, ""),) if n in declared]
        free = [n for n in declared if _fits(_kind(n), direction)]
        choice = [*same, *named, *free]
        if not choice:
            counts[f"{letter}_port"] = 1
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
        letter, _, number = name.partition("_port_")
        where = f"{dotted(at[:-3])}.{letter}_port"
        has = ", ".join(declared) or "none"
        return (
            f"{dotted(at)}: port {name!r} is not declared (declared: {has}), so {_LOSS[known]}",
            f"write {where}: {int(number)}"
            if letter in ("r", "w", "rw") and number.isdigit() and int(number) < 100
            else f"use one of: {has}",
        )
    if not _fits(_kind(name), known):
        free = [n for n in declared if _fits(_kind(n), known)]
        advice = f"write {dotted(at)}: {free[0]}" if free else f"declare a {_needed(known)} port"
        return f"{dotted(at)}: {known} is {MEANING[known]}, and {name!r} cannot do that", advice
    return None


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
