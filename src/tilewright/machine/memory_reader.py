"""Memories of a machine file, in either dialect: sizes, ports, energies, and the role of each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from tilewright.document import Document, Location, dotted, suggestion, validate
from tilewright.errors import Problem
from tilewright.machine.files import (
    OLD_PORT_KEYS,
    MemoryFile,
    OldMemoryFile,
    Price,
    memory_model,
)
from tilewright.machine.model import (
    EXTERNAL_BITS,
    INPUT_OPERANDS,
    OUTPUT_OPERAND,
    SCRATCHPAD_BITS,
    WEIGHTS,
    Memory,
    MemoryRole,
    Operand,
    bottom_up,
)
from tilewright.machine.ports import new_ports, old_ports, written_bits
from tilewright.machine.sharing import parse_sharing

_ROLES_OF: Mapping[str, tuple[MemoryRole, ...]] = {
    "sram": ("local", "scratchpad"),
    "rf": ("local",),
    "dram": ("external",),
}
"""Roles that agree with ZigZag's `mem_type`."""


@dataclass
class Reader:
    """What is gathered while a machine file is read: problems, and places of memories."""

    document: Document
    units: bool
    problems: list[Problem] = field(default_factory=list)
    places: dict[str, Location] = field(default_factory=dict)
    unread_operands: set[Operand] = field(default_factory=set)
    unread: list[tuple[Location, str]] = field(default_factory=list)
    """Keys that say nothing, each with the reason."""

    def error(self, at: Location, message: str, hint: str = "") -> None:
        """Note an error at a place."""
        self.problems.append(self.document.problem(at, f"{dotted(at)}: {message}", hint=hint))

    def pj(self, number: str) -> str:
        """An energy as this file must have it."""
        return f"{number} pJ" if self.units else number

    def warn(self, at: Location, message: str, hint: str = "") -> None:
        """Note a warning at a place."""
        self.problems.append(
            self.document.problem(at, f"{dotted(at)}: {message}", hint=hint, severity="warning")
        )


def expect(reader: Reader, at: Location, name: str, known: list[str], what: str) -> bool:
    """Whether a name is known; an error says which are if it is not."""
    if name in known:
        return True
    reader.error(at, f"there is no {what} {name!r}", suggestion(name, known))
    return False


def read_memories(
    reader: Reader,
    at: Location,
    memories: dict[str, Any],
    dims: tuple[str, ...],
    outside: Set[Operand] = frozenset(),
) -> Iterator[Memory]:
    """The memories that can be read; above them, the operands `outside` have another one."""
    files: dict[str, MemoryFile | OldMemoryFile] = {}
    types: dict[str, str] = {}
    for name, data in memories.items():
        file = _memory_file(reader, (*at, name), data)
        if name in reader.places:
            hint = "give it another name"
            reader.error((*at, name), "another memory has this name already", hint)
        if file is None or name in reader.places:
            reader.unread_operands |= raw_operands([data])
        else:
            files[name] = file
            if "mem_type" in data:
                types[name] = file.mem_type
            reader.places[name] = (*at, name)
    made = [_memory(reader, (*at, name), file, dims) for name, file in files.items()]
    order = bottom_up(made)
    for memory in made:
        file = files[memory.name]
        above = {o for later in order[order.index(memory) + 1 :] for o in later.operands}
        is_top = any(operand not in above | outside for operand in memory.operands)
        whole = replace(memory, role=file.role or _role(memory, dims, is_top=is_top))
        kind = types.get(memory.name)
        if kind is not None and whole.role not in _ROLES_OF[kind]:
            why = f"{kind} says nothing: the role is {whole.role}"
            reader.unread.append((("memories", memory.name, "mem_type"), why))
        yield whole


def _memory_file(reader: Reader, at: Location, data: Any) -> MemoryFile | OldMemoryFile | None:
    model, document = memory_model(data), reader.document
    counted = [key for key in data if key in OLD_PORT_KEYS] if isinstance(data, dict) else []
    mixed = counted if model is MemoryFile else []
    if mixed:
        text = f"{', '.join(mixed)} count ports, but `ports` names each with its bandwidth"
        hint = "remove the counts: these are ZigZag's two dialects"
        place = (*at, mixed[0])
        reader.problems.append(document.problem(place, f"{dotted(at)}: {text}", hint=hint))
        part: Any = {key: value for key, value in data.items() if key not in mixed}
        for step in reversed(at):
            part = {step: part}
        document = replace(document, data=part)
    file, faults = validate(document, model, {"units": reader.units}, at)
    reader.problems += faults
    return None if mixed else file


def raw_operands(memories: Iterable[Any]) -> set[Operand]:
    """Operands that memories hold as far as the file says so, and all where it does not."""
    every: set[Operand] = {*INPUT_OPERANDS, OUTPUT_OPERAND}
    result: set[Operand] = set()
    for data in memories:
        listed = data.get("operands") if isinstance(data, dict) else None
        known = isinstance(listed, list) and all(isinstance(o, str) and o in every for o in listed)
        result |= set(listed) if known and listed is not None else every
    return result


def expect_once(reader: Reader, at: Location, words: Sequence[str], *inside: str) -> None:
    """Report words of a list, or of the entries of a list, that stand there again."""
    for i, word in enumerate(words):
        if word in words[:i]:
            reader.error((*at, i, *inside), f"{word} stands here a second time")


def _memory(
    reader: Reader, at: Location, file: MemoryFile | OldMemoryFile, dims: tuple[str, ...]
) -> Memory:
    """The memory, its role still open where the file leaves it so."""
    served = tuple(file.served_dimensions)
    expect_once(reader, (*at, "operands"), file.operands)
    expect_once(reader, (*at, "served_dimensions"), served)
    for key, bits in (("alignment", file.alignment), ("burst", file.burst)):
        if bits is not None and bits % 8:
            whole = written_bits(reader.document, -(-bits // 8) * 8)
            hint = f"write {dotted((*at, key))}: {whole}"
            reader.error((*at, key), f"{bits} bit are no whole bytes", hint)
    for i, dim in enumerate(served):
        if dims:
            expect(reader, (*at, "served_dimensions", i), dim, list(dims), "array dimension")
    convert = old_ports if isinstance(file, OldMemoryFile) else new_ports
    ports, faults = convert(reader.document, at, file)
    reader.problems += faults
    read_width = max((p.bits_per_cycle for p in ports if p.kind != "write"), default=1)
    write_width = max((p.bits_per_cycle for p in ports if p.kind != "read"), default=1)
    sharing, faults = parse_sharing(reader.document, (*at, "sharing"), file, dims)
    reader.problems += faults
    reader.unread += _unread_keys(("memories", str(at[-1])), file)
    return Memory(
        name=str(at[-1]),
        size_bits=file.size,
        operands=tuple(dict.fromkeys(file.operands)),
        ports=ports,
        served_dims=served,
        read_pj=_access_pj(reader, (*at, "r_cost"), file, file.r_cost, read_width),
        write_pj=_access_pj(reader, (*at, "w_cost"), file, file.w_cost, write_width),
        role=file.role or "local",
        latency_cycles=1 if file.latency is None else file.latency,
        burst_bytes=(file.burst or 8) // 8 or 1,
        read_latency_cycles=file.read_latency,
        write_latency_cycles=file.write_latency,
        area_mm2=file.area or 0.0,
        leakage_pw_per_bit=file.leakage_pw_per_bit,
        alignment_bytes=(file.alignment or 8) // 8 or 1,
        banks=file.banks,
        forces_double_buffering=file.force_double_buffering,
        sharing=sharing,
        bypass=_bypass(reader, (*at, "bypass"), file),
    )


def _unread_keys(at: Location, file: MemoryFile | OldMemoryFile) -> Iterator[tuple[Location, str]]:
    """Keys of ZigZag's that ask for what is not done."""
    if file.double_buffering_support:
        why = "is not used; `force_double_buffering` is"
        yield (*at, "double_buffering_support"), why
    if file.auto_cost_extraction and file.r_cost is not None and file.w_cost is not None:
        yield (*at, "auto_cost_extraction"), "is not used: the costs are given"
    if isinstance(file, OldMemoryFile) and file.rw_port and not file.w_port:
        why = "is not used: without a write port, that of a port that does both counts"
        if file.w_bw != file.r_bw:
            yield (*at, "w_bw"), why
        if file.min_w_granularity not in (None, file.min_r_granularity):
            yield (*at, "min_w_granularity"), why


def _bypass(reader: Reader, at: Location, file: MemoryFile | OldMemoryFile) -> tuple[Operand, ...]:
    """Operands that may go past a memory: weights, if it holds them."""
    expect_once(reader, at, file.bypass)
    for i, operand in enumerate(file.bypass):
        if operand != WEIGHTS:
            text = f"only weights ({WEIGHTS}) can be read past a memory"
            reader.error((*at, i), text, "remove it")
        elif operand not in file.operands:
            hint = "remove it: what a memory does not hold goes past it anyway"
            reader.error((*at, i), f"the memory does not hold {operand}", hint)
    return tuple(dict.fromkeys(file.bypass))


def _access_pj(
    reader: Reader, at: Location, file: MemoryFile | OldMemoryFile, price: Price | None, width: int
) -> float:
    if price is not None:
        return price.pj * width if price.per_bit else price.pj
    if file.auto_cost_extraction:
        reader.error(
            at,
            "is missing, and `auto_cost_extraction` asks for a tool that is not part of this one",
            "give the energy of one access, from CACTI or a data sheet",
        )
    else:
        hint = f"write {dotted(at)}: {reader.pj('1.0')}"
        reader.error(at, "is missing: every access would cost nothing", hint)
    return 0.0


def _role(memory: Memory, dims: tuple[str, ...], *, is_top: bool) -> MemoryRole:
    """The rule for a file that does not say: see `SCRATCHPAD_BITS` and `EXTERNAL_BITS`."""
    if is_top and memory.size_bits >= EXTERNAL_BITS:
        return "external"
    if memory.size_bits < SCRATCHPAD_BITS:
        # Registers, also where a source fills them: the array reads what streams through them.
        return "local"
    return "scratchpad" if is_top or set(dims) <= set(memory.served_dims) else "local"
