"""Can data get where it must? Every operand is followed from where it enters to the array and back.

The ports of a memory, per operand: `fh` written from the higher level, `tl` read to the lower, `fl`
written from the lower, `th` read to the higher. Inputs come down (`fh`, `tl`), results go up
(`fl`, `th`), and partial sums also come back (`fh`, `tl`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.document import Document, Location, dotted
from tilewright.document.file_model import read_model
from tilewright.errors import Problem, Severity
from tilewright.machine.files import OLD_PORT_KEYS, OldMemoryFile
from tilewright.machine.model import (
    INPUT_OPERANDS,
    OUTPUT_OPERAND,
    Direction,
    Machine,
    Memory,
    Operand,
    bottom_up,
)
from tilewright.machine.order import listed_top_down
from tilewright.machine.ports import (
    MEANING,
    ORDER,
    READS,
    WRITES,
    flow_entry,
    suggested_entry,
    written_bits,
)
from tilewright.machine.reader import MachineReading

_ROLE_OF = {"I1": "inputs", "I2": "weights", "O": "outputs"}
_MIXED: Mapping[Direction, Direction] = {"fh": "fl", "tl": "th"}
"""What an input needs, and what is written for it by mistake."""

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
        for operand in _followed(reading):
            chain = [m for m in order if operand in m.operands]
            if not chain:
                yield _no_memory(document, operand)
            for stop in _stops(operand, chain):
                if _data(reading, stop.memory).get("ports"):
                    yield from _stop_problems(reading, stop)
        yield from _without_ports(reading, order)
    yield from _open_ends(reading, machine)
    yield from _order_warnings(reading, machine)


def _followed(reading: MachineReading) -> list[str]:
    """Operands of which every memory could be read; of others nothing certain can be said."""
    return [o for o in (*INPUT_OPERANDS, OUTPUT_OPERAND) if o not in reading.unread_operands]


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
        target = f"to {stop.above.name}" if stop.above else "to a sink outside"
        needs["th"] = f"no `th` port: {name} cannot leave it {target}"
    return needs


def _without_ports(reading: MachineReading, order: Sequence[Memory]) -> Iterator[Problem]:
    """Memories that say nothing about their ports: one problem each, with the whole list."""
    for memory in order:
        data = _data(reading, memory)
        if data.get("ports"):
            continue
        chains = [[m for m in order if operand in m.operands] for operand in memory.operands]
        stops = [
            next(stop for stop in _stops(operand, chain) if stop.memory is memory)
            for operand, chain in zip(memory.operands, chains, strict=True)
        ]
        place = reading.places[memory.name]
        at = (*place, "ports")
        what = "is empty" if "ports" in data else "is missing"
        yield reading.document.problem(
            at,
            f"{dotted(at)}: {what}, so nothing can enter or leave {memory.name}",
            hint=_list_remedy(reading, stops),
        )


def _list_remedy(reading: MachineReading, stops: Sequence[_Stop]) -> str:
    """The whole `ports` list of a memory that has none."""
    memory = stops[0].memory
    if OLD_PORT_KEYS & _data(reading, memory).keys():
        lines = [line for stop in stops for line in _remedy(reading, stop).splitlines()]
        return "\n".join(dict.fromkeys(lines))
    uses = [(stop.operand, direction) for stop in stops for direction in _wanted(stop)]
    ports = ", ".join(
        _port_text(reading, memory, name, kind, [use for use in uses if use[1] in directions])
        for name, kind, directions in (("in", "write", WRITES), ("out", "read", READS))
    )
    return f"write {dotted((*reading.places[memory.name], 'ports'))}: [{ports}]"


def _port_text(
    reading: MachineReading, memory: Memory, name: str, kind: str, uses: Sequence[tuple[str, str]]
) -> str:
    """A port as one line of YAML, as wide as the memory's widest."""
    width = max((p.bits_per_cycle for p in memory.ports), default=min(64, memory.size_bits))
    allocation = ", ".join(f"'{operand}, {direction}'" for operand, direction in uses)
    return (
        f"{{name: {name}, type: {kind}, bandwidth_max: {written_bits(reading.document, width)}, "
        f"allocation: [{allocation}]}}"
    )


def _stop_problems(reading: MachineReading, stop: _Stop) -> Iterator[Problem]:
    needs = _needs(stop)
    lost = [why for direction, why in needs.items() if direction not in stop.has]
    mixed = _mixed_up(stop)
    if lost or (mixed and stop.operand != OUTPUT_OPERAND and "fh" not in stop.has):
        yield _broken(reading, stop, [*lost, *mixed], _severity(reading, stop, mixed))
        return
    if mixed:
        at, hint = _entry_place(reading, stop), _remedy(reading, stop) or "remove it"
        text = f"{dotted(at)} ({stop.operand}): {'; '.join(mixed)}"
        yield reading.document.problem(at, text, severity="warning", hint=hint)
    if stop.operand == OUTPUT_OPERAND:
        yield from _partial_sums(reading, stop)


def _mixed_up(stop: _Stop) -> list[str]:
    """Directions that an input has and cannot use."""
    if stop.operand == OUTPUT_OPERAND:
        return []
    return [
        f"`{wrong}` ({MEANING[wrong]}) is for outputs; {_ROLE_OF[stop.operand]} only come down"
        + (f", so `{right}` was meant" if right not in stop.has else "")
        for right, wrong in _MIXED.items()
        if wrong in stop.has
    ]


def _severity(reading: MachineReading, stop: _Stop, mixed: list[str]) -> Severity:
    """A warning if all that is missing is a way out of a chip that declares no outside.

    ZigZag's files leave it out, and ops can be mapped one at a time without it.
    """
    assert reading.machine is not None
    is_input = stop.operand != OUTPUT_OPERAND
    ends = reading.machine.sources if is_input else reading.machine.sinks
    has_outside = any(stop.operand in end.operands for end in ends) or any(
        memory.role == "external" for memory in reading.machine.memories
    )
    is_inside_sound = ("tl" if is_input else "fl") in stop.has and not mixed
    is_writable = any(port.kind != "read" for port in stop.memory.ports)
    is_open = stop.above is None and is_inside_sound and is_writable and not has_outside
    return "warning" if is_open else "error"


def _broken(reading: MachineReading, stop: _Stop, faults: list[str], severity: Severity) -> Problem:
    at = _entry_place(reading, stop)
    if isinstance(at[-1], int) and at[-1] >= len(_data(reading, stop.memory)["ports"]):
        role = _ROLE_OF[stop.operand]
        faults = [f"this entry is missing, so {role} can neither enter nor leave it"]
    return reading.document.problem(
        at,
        f"{dotted(at)} ({stop.operand}): {'; '.join(faults)}",
        hint=_remedy(reading, stop),
        severity=severity,
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
        return _new_dialect_remedy(reading, stop)
    file, _ = read_model(OldMemoryFile, data)
    assert file is not None  # the reader has seen that it is well formed
    position = file.operands.index(stop.operand)  # type: ignore[arg-type]  # checked by the reader
    fixed, counts = suggested_entry(file, position, _wanted(stop))
    lines = [f"write {dotted((*place, key))}: {count}" for key, count in counts.items()]
    lines.append(f"write {dotted((*place, 'ports', position))}: {flow_entry(fixed)}")
    return "\n".join(lines)


def _new_dialect_remedy(reading: MachineReading, stop: _Stop) -> str:
    place, ports = reading.places[stop.memory.name], stop.memory.ports
    lines = []
    portless: dict[str, list[tuple[str, str]]] = {"write": [], "read": []}
    for direction in [d for d in _wanted(stop) if d not in stop.has]:
        kind = "write" if direction in WRITES else "read"
        usable = [i for i, p in enumerate(ports) if p.kind in (kind, "read_write")]
        own = [i for i in usable if stop.operand in dict(ports[i].uses)]
        mixed_up = _mixed_up_place(reading, stop, direction)
        if mixed_up:
            lines.append(f"write {dotted(mixed_up)}: '{stop.operand}, {direction}'")
        elif usable:
            at = (*place, "ports", (own or usable)[0], "allocation")
            lines.append(f"add to {dotted(at)}: '{stop.operand}, {direction}'")
        else:
            portless[kind].append((stop.operand, direction))
    for kind, uses in portless.items():
        if uses:
            text = _port_text(reading, stop.memory, f"{kind}_{stop.operand}", kind, uses)
            lines.append(f"add to {dotted((*place, 'ports'))}: {text}")
    return "\n".join(lines)


def _mixed_up_place(reading: MachineReading, stop: _Stop, direction: Direction) -> Location:
    """Where an input's `fl` stands for the `fh` that was meant, or its `th` for `tl`."""
    if stop.operand == OUTPUT_OPERAND:
        return ()
    for i, port in enumerate(_data(reading, stop.memory)["ports"]):
        for j, text in enumerate(port.get("allocation", ())):
            if text.replace(" ", "") == f"{stop.operand},{_MIXED[direction]}":
                return (*reading.places[stop.memory.name], "ports", i, "allocation", j)
    return ()


def _partial_sums(reading: MachineReading, stop: _Stop) -> Iterator[Problem]:
    """Warn where partial sums that moved up could not come back."""
    faults = []
    if "tl" not in stop.has:
        faults.append(
            "no `tl` port for O: partial sums cannot be read back, so each output must be finished "
            f"before it enters {stop.memory.name}"
        )
    if stop.above is not None and "fh" not in stop.has:
        faults.append(
            f"no `fh` port for O: partial sums that went up to {stop.above.name} cannot come back, "
            f"so each output must be finished in {stop.memory.name}"
        )
    if faults:
        at, hint = _entry_place(reading, stop), _remedy(reading, stop)
        text = f"{dotted(at)}: {'; '.join(faults)}"
        yield reading.document.problem(at, text, severity="warning", hint=hint)


def _open_ends(reading: MachineReading, machine: Machine) -> Iterator[Problem]:
    """Operands whose top memory is on the chip and has neither source nor sink."""
    missing: dict[str, dict[tuple[str, str], Memory]] = {"sources": {}, "sinks": {}}
    for core in machine.cores:
        order = bottom_up(machine.levels(core))
        for operand in _followed(reading):
            chain = [m for m in order if operand in m.operands]
            if not chain or chain[-1].role == "external":
                continue
            key = "sinks" if operand == OUTPUT_OPERAND else "sources"
            ends = machine.sinks if operand == OUTPUT_OPERAND else machine.sources
            known = [end.memory for end in ends if operand in end.operands]
            known += [m for o, m in _inside(machine) if o == operand]
            names = [m.name for m in chain]
            if any(name in names or name not in reading.places for name in known):
                continue
            missing[key][operand, chain[-1].name] = chain[-1]
    for key, found in missing.items():
        if found:
            yield _open_end(reading, machine, key, list(found))


def _inside(machine: Machine) -> Iterator[tuple[Operand, str]]:
    """Operands that lie in a scratchpad from the start, or stay in one to the end."""
    if machine.given.inputs is not None:
        yield INPUT_OPERANDS[0], machine.given.inputs
    if machine.given.outputs is not None:
        yield OUTPUT_OPERAND, machine.given.outputs


def _open_end(
    reading: MachineReading, machine: Machine, key: str, missing: Sequence[tuple[str, str]]
) -> Problem:
    names = _listed([f"{_ROLE_OF[o]} ({o}, top memory {memory})" for o, memory in missing])
    what = (
        f"{names} come from nowhere: no memory above, no source"
        if key == "sources"
        else f"{names} have nowhere to go: no memory above, no sink"
    )
    externals = [m for m in machine.memories if m.role == "external"]
    operands = _listed(list(dict.fromkeys(o for o, _ in missing)))
    if externals:
        what += f"; {externals[-1].name} does not hold {operands}"
    else:
        what += "; the machine has no external memory"
    declared = machine.sources if key == "sources" else machine.sinks
    hint = _end_remedy(key, missing, [end.name for end in declared])
    if externals:
        hint += f"\nor let {externals[-1].name} hold {operands}: add to its operands and ports"
    return reading.document.problem(
        reading.places[missing[0][1]],
        what,
        hint=hint,
        severity="error" if externals else "warning",
    )


def _listed(words: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _end_remedy(key: str, missing: Sequence[tuple[str, str]], declared: Sequence[str]) -> str:
    """The sources or sinks to write, or to add to those that the file declares."""
    operands = [operand for operand, _ in missing]
    ends = []
    for operand, memory in missing:
        name, kind = _DEFAULT_END[operand]
        is_free = operands.count(operand) == 1 and name not in declared
        own = name if is_free else f"{name}_{memory}"
        ends.append(f"{{name: {own}, kind: {kind}, memory: {memory}, operands: [{operand}]}}")
    if declared:
        return "\n".join(f"add to {key}: {end}" for end in ends)
    return f"write {key}: [{', '.join(ends)}]"


def _order_warnings(reading: MachineReading, machine: Machine) -> Iterator[Problem]:
    if reading.unread_operands:
        return  # the order would lack a memory
    for core in machine.cores:
        levels = machine.levels(core)
        found = listed_top_down(machine, core)
        if found is None:
            continue
        lower, upper, text = found
        at, other = reading.places[lower.name], reading.places[upper.name]
        listed = [m for m in levels if reading.places[m.name][:-1] == at[:-1]]
        right = ", ".join(m.name for m in bottom_up(listed))
        yield reading.document.problem(
            at,
            text,
            severity="warning",
            hint=f"write {dotted(at[:-1])} in the order: {right}"
            if at[:-1] == other[:-1]
            else f"check both sizes: {upper.name} is shared, and so stands above",
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
    if not OLD_PORT_KEYS & data.keys():
        return (*place, "ports")
    return (*place, "ports", data["operands"].index(stop.operand))


def _data(reading: MachineReading, memory: Memory) -> dict[str, Any]:
    """A memory as its file has it; the reader has seen that it is well formed."""
    data = reading.document.data
    for step in reading.places[memory.name]:
        data = data[step]
    assert isinstance(data, dict)
    return data
