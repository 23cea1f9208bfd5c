"""Can data get where it must? Every operand is followed from where it enters to the array and back.

The ports of a memory, per operand: `fh` written from the higher level, `tl` read to the lower, `fl`
written from the lower, `th` read to the higher. Inputs come down (`fh`, `tl`), results go up
(`fl`, `th`), and partial sums also come back (`fh`, `tl`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.document import Document, Location, dotted
from tilewright.errors import Problem
from tilewright.machine.files import OLD_PORT_KEYS, OldMemoryFile
from tilewright.machine.model import (
    INPUT_OPERANDS,
    OUTPUT_OPERAND,
    Direction,
    Machine,
    Memory,
    bottom_up,
    inversions,
)
from tilewright.machine.ports import MEANING, ORDER, flow_entry, suggested_entry
from tilewright.machine.reader import MachineReading
from tilewright.units import format_bits

_ROLE_OF = {"I1": "inputs", "I2": "weights", "O": "outputs"}
_DEFAULT_END = {"I1": ("input", "sensor"), "I2": ("weights", "rom"), "O": ("result", "noc")}


@dataclass(frozen=True, slots=True)
class _Stop:
    """One memory on the way of one operand."""

    operand: str
    memory: Memory
    below: Memory | None
    above: Memory | None

    @property
    def has(self) -> tuple[Direction, ...]:
        return tuple(d for d in ORDER if self.memory.port(self.operand, d) is not None)


def data_path_problems(reading: MachineReading) -> Iterator[Problem]:
    """Everything that keeps an operand from its way; nothing yielded means that all can move."""
    machine, document = reading.machine, reading.document
    if machine is None:
        return
    for core in machine.cores:
        order = bottom_up(machine.levels(core))
        for operand in (*INPUT_OPERANDS, OUTPUT_OPERAND):
            chain = [m for m in order if operand in m.operands]
            if not chain:
                yield _no_memory(document, operand)
                continue
            for stop in _stops(operand, chain):
                if "ports" in _data(reading, stop.memory):
                    yield from _stop_problems(reading, stop)
        yield from _without_ports(reading, order)
        yield from _open_ends(reading, machine, order)
    yield from _order_warnings(reading, machine)


def _stops(operand: str, chain: Sequence[Memory]) -> Iterator[_Stop]:
    for i, memory in enumerate(chain):
        below = chain[i - 1] if i else None
        above = chain[i + 1] if i + 1 < len(chain) else None
        yield _Stop(operand, memory, below, above)


def _needs(stop: _Stop) -> dict[Direction, str]:
    """Directions without which the operand does not pass, each with what is lost."""
    top, name = stop.above is None, _ROLE_OF[stop.operand]
    external = top and stop.memory.role == "external"
    down = f"to {stop.below.name}" if stop.below else "to the array"
    if stop.operand != OUTPUT_OPERAND:
        needs: dict[Direction, str] = {"tl": f"no `tl` port: {name} cannot go down {down}"}
        if not external:
            origin = f"from {stop.above.name}" if stop.above else "from a source outside"
            needs["fh"] = f"no `fh` port: nothing can fill it with {name} {origin}"
            if all(port.kind == "read" for port in stop.memory.ports):
                needs["fh"] += ", and it has no write port at all"
        return needs
    origin = f"from {stop.below.name}" if stop.below else "from the array"
    needs = {"fl": f"no `fl` port: {name} cannot enter it {origin}"}
    if not external:
        target = f"to {stop.above.name}" if stop.above else "to a sink outside: nowhere to go"
        needs["th"] = f"no `th` port: {name} cannot leave it {target}"
    return needs


def _without_ports(reading: MachineReading, order: Sequence[Memory]) -> Iterator[Problem]:
    """Memories that say nothing about their ports: one problem each, with the whole list."""
    for memory in order:
        if "ports" in _data(reading, memory):
            continue
        chains = [[m for m in order if operand in m.operands] for operand in memory.operands]
        stops = [
            next(stop for stop in _stops(operand, chain) if stop.memory is memory)
            for operand, chain in zip(memory.operands, chains, strict=True)
        ]
        place = reading.places[memory.name]
        lines = dict.fromkeys(
            line for stop in stops for line in _remedy(reading, stop).splitlines()
        )
        yield reading.document.problem(
            place,
            f"{dotted(place)}.ports: is missing, so nothing can enter or leave it",
            hint="\n".join(lines),
        )


def _stop_problems(reading: MachineReading, stop: _Stop) -> Iterator[Problem]:
    needs = _needs(stop)
    lost = [why for direction, why in needs.items() if direction not in stop.has]
    mixed = _mixed_up(stop)
    if lost or (mixed and stop.operand != OUTPUT_OPERAND and "fh" not in stop.has):
        yield _broken(reading, stop, [*lost, *mixed])
        return
    at = _entry_place(reading, stop)
    yield from (
        reading.document.problem(at, f"{dotted(at)}: {text}", severity="warning") for text in mixed
    )
    if stop.operand == OUTPUT_OPERAND:
        yield from _partial_sums(reading, stop)


def _mixed_up(stop: _Stop) -> list[str]:
    """Directions that an input has and cannot use."""
    if stop.operand == OUTPUT_OPERAND:
        return []
    wrong = [d for d in stop.has if d in ("fl", "th")]
    return [
        f"`{d}` ({MEANING[d]}) is for outputs; {_ROLE_OF[stop.operand]} only come down"
        + (", so `fh` was meant" if d == "fl" and "fh" not in stop.has else "")
        for d in wrong
    ]


def _broken(reading: MachineReading, stop: _Stop, faults: list[str]) -> Problem:
    at = _entry_place(reading, stop)
    return reading.document.problem(
        at,
        f"{dotted(at)} ({stop.operand}): {'; '.join(faults)}",
        hint=_remedy(reading, stop),
    )


def _wanted(stop: _Stop) -> tuple[Direction, ...]:
    """The directions that make the stop whole, those it has and may keep included."""
    if stop.operand != OUTPUT_OPERAND:
        return ("fh", "tl")
    if stop.above is not None:
        return ORDER
    rest: tuple[Direction, ...] = () if stop.memory.role == "external" else ("th",)
    return ("tl", "fl", *rest)


def _remedy(reading: MachineReading, stop: _Stop) -> str:
    place, data = reading.places[stop.memory.name], _data(reading, stop.memory)
    if not OLD_PORT_KEYS & data.keys():
        return _new_dialect_remedy(stop, place)
    file = OldMemoryFile.model_validate(data, context={})
    position = file.operands.index(stop.operand)  # type: ignore[arg-type]  # checked by the reader
    entries = file.ports or []
    entry = entries[position] if position < len(entries) else {}
    fixed, counts = suggested_entry(file, entry, _wanted(stop))
    lines = [f"write {dotted((*place, key))}: {count}" for key, count in counts.items()]
    lines.append(f"write {dotted((*place, 'ports', position))}: {flow_entry(fixed)}")
    return "\n".join(lines)


def _new_dialect_remedy(stop: _Stop, place: Location) -> str:
    lines = []
    for direction in [d for d in _wanted(stop) if d not in stop.has]:
        kind = "write" if direction in ("fh", "fl") else "read"
        usable = [i for i, p in enumerate(stop.memory.ports) if p.kind in (kind, "read_write")]
        own = [i for i in usable if stop.operand in dict(stop.memory.ports[i].uses)]
        use = f"'{stop.operand}, {direction}'"
        if usable:
            at = (*place, "ports", (own or usable)[0], "allocation")
            lines.append(f"add to {dotted(at)}: {use}")
        else:
            width = max((p.bits_per_cycle for p in stop.memory.ports), default=64)
            lines.append(
                f"add to {dotted((*place, 'ports'))}: {{name: {kind[0]}_port_{direction}, "
                f"type: {kind}, bandwidth_max: {width} bit, allocation: [{use}]}}"
            )
    return "\n".join(lines)


def _partial_sums(reading: MachineReading, stop: _Stop) -> Iterator[Problem]:
    """Warn where partial sums that moved up could not come back."""
    at = _entry_place(reading, stop)
    if "tl" not in stop.has:
        text = "no `tl` port for O: partial sums cannot be read back, each output must end below"
        yield reading.document.problem(at, f"{dotted(at)}: {text}", severity="warning")
    if stop.above is not None and "fh" not in stop.has:
        text = (
            f"no `fh` port for O: partial sums that went up to {stop.above.name} cannot come back, "
            f"so each output must be finished in {stop.memory.name}"
        )
        hint = _remedy(reading, stop)
        yield reading.document.problem(at, f"{dotted(at)}: {text}", severity="warning", hint=hint)


def _open_ends(
    reading: MachineReading, machine: Machine, order: Sequence[Memory]
) -> Iterator[Problem]:
    """Operands whose top memory is on the chip and has neither source nor sink."""
    externals = [m for m in order if m.role == "external"]
    open_inputs: list[tuple[str, Memory]] = []
    open_outputs: list[tuple[str, Memory]] = []
    for operand in (*INPUT_OPERANDS, OUTPUT_OPERAND):
        chain = [m for m in order if operand in m.operands]
        if not chain or chain[-1].role == "external":
            continue
        ends = machine.sinks if operand == OUTPUT_OPERAND else machine.sources
        if any(e.memory in [m.name for m in chain] and operand in e.operands for e in ends):
            continue
        target = open_outputs if operand == OUTPUT_OPERAND else open_inputs
        target.append((operand, chain[-1]))
    for key, ends_missing in (("sources", open_inputs), ("sinks", open_outputs)):
        if ends_missing:
            yield _open_end(reading, key, ends_missing, externals)


def _open_end(
    reading: MachineReading,
    key: str,
    missing: Sequence[tuple[str, Memory]],
    externals: Sequence[Memory],
) -> Problem:
    names = " and ".join(f"{_ROLE_OF[o]} ({o}, top memory {m.name})" for o, m in missing)
    inward = key == "sources"
    have = getattr(reading.machine, key)
    what = (
        f"{names} come from nowhere: no memory above, no source"
        if inward
        else f"{names} have nowhere to go: no memory above, no sink"
    )
    if externals:
        what += f"; {externals[-1].name} does not hold {' and '.join(o for o, _ in missing)}"
    else:
        what += f"; the whole machine has no external memory and declares no {key}"
    ends = [(e.name, str(e.kind), e.memory, ", ".join(e.operands)) for e in have]
    ends += [(*_DEFAULT_END[operand], memory.name, operand) for operand, memory in missing]
    listed = (
        f"{{name: {name}, kind: {kind}, memory: {memory}, operands: [{operands}]}}"
        for name, kind, memory, operands in ends
    )
    hint = f"write {key}: [{', '.join(listed)}]"
    if externals:
        hint += f"\nor let {externals[-1].name} hold it: add it to its operands and ports"
    return reading.document.problem(
        reading.places[missing[0][1].name],
        what,
        hint=hint,
        severity="error" if externals else "warning",
    )


def _order_warnings(reading: MachineReading, machine: Machine) -> Iterator[Problem]:
    for core in machine.cores:
        levels = machine.levels(core)
        found = next(inversions(levels), None)
        if found is None:
            continue
        lower, upper, operand = found
        right = ", ".join(m.name for m in bottom_up(levels))
        yield reading.document.problem(
            reading.places[lower.name],
            f"memories are listed top-down: {lower.name} ({format_bits(lower.size_bits)}) stands "
            f"below {upper.name} ({format_bits(upper.size_bits)}) on the way of {operand}, and the "
            "first listed is taken as the one next to the array",
            severity="warning",
            hint=f"write memories in the order: {right}",
        )


def _no_memory(document: Document, operand: str) -> Problem:
    return document.problem(
        ("memories",),
        f"memories: none holds {operand} ({_ROLE_OF[operand]}), so no op can run",
        hint=f"add {operand} to the operands of a memory and give it ports",
    )


def _entry_place(reading: MachineReading, stop: _Stop) -> Location:
    """The `ports` entry of the operand, or what comes nearest to it."""
    place, data = reading.places[stop.memory.name], _data(reading, stop.memory)
    ports, position = data.get("ports") or (), data["operands"].index(stop.operand)
    if not OLD_PORT_KEYS & data.keys() or position >= len(ports):
        return (*place, "ports")
    return (*place, "ports", position)


def _data(reading: MachineReading, memory: Memory) -> dict[str, Any]:
    """A memory as its file has it; the reader has seen that it is well formed."""
    data = reading.document.data
    for step in reading.places[memory.name]:
        data = data[step]
    assert isinstance(data, dict)
    return data
