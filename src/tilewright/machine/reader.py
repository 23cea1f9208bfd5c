"""From a machine file to a machine: every fault of the file is found, none stops the reading.

`read_machine` returns the machine as far as it can be made out, with all problems, so that checks
of the whole (data paths, suspicious figures) can run on a file that still has faults in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from tilewright.document import (
    Document,
    Location,
    dotted,
    faulty_keys,
    in_file_order,
    suggestion,
    validate,
)
from tilewright.errors import Problem
from tilewright.machine.files import (
    OLD_PORT_KEYS,
    ArrayFile,
    CoreFile,
    EndFile,
    LinkFile,
    MachineFile,
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
    Array,
    Core,
    DmaEngine,
    End,
    InMemoryCompute,
    Link,
    Machine,
    Memory,
    MemoryRole,
    Operand,
    VectorUnit,
    bottom_up,
)
from tilewright.machine.ports import new_ports, old_ports, written_bits
from tilewright.machine.sharing import parse_sharing

_ARRAY_MISSING = "every multiplication would cost nothing"
_STRUCTURE = {"cores", "memories", "operational_array", "sinks", "sources"}


@dataclass(frozen=True)
class MachineReading:
    """A machine file as far as it could be read; `machine` is None if not even its array could."""

    document: Document
    machine: Machine | None
    problems: tuple[Problem, ...]
    places: dict[str, Location]
    """Where each memory stands in the file."""
    unread_operands: frozenset[Operand] = frozenset()
    """Operands that a memory which could not be read may hold: `machine` lacks it on their way."""


@dataclass
class _Reader:
    document: Document
    units: bool
    problems: list[Problem] = field(default_factory=list)
    places: dict[str, Location] = field(default_factory=dict)
    unread_operands: set[Operand] = field(default_factory=set)

    def error(self, at: Location, message: str, hint: str = "") -> None:
        self.problems.append(self.document.problem(at, f"{dotted(at)}: {message}", hint=hint))

    def pj(self, number: str) -> str:
        """An energy as this file must have it."""
        return f"{number} pJ" if self.units else number

    def warn(self, at: Location, message: str, hint: str = "") -> None:
        self.problems.append(
            self.document.problem(at, f"{dotted(at)}: {message}", hint=hint, severity="warning")
        )


def read_machine(document: Document) -> MachineReading:
    """Read a machine file in either of ZigZag's dialects or in ours."""
    if not isinstance(document.data, dict):
        what = "a list (of layers, or of mappings?)" if isinstance(document.data, list) else "text"
        message = f"this is no machine file but {what}; a machine is a mapping of keys to values"
        hint = "it starts with `name:` and has `operational_array:` and `memories:`"
        problem = document.problem((), message, hint=hint)
        return MachineReading(document, None, (problem,), {})
    units = "tilewright" in document.data
    reader = _Reader(document, units, list(document.warnings))
    file, faults = validate(document, MachineFile, context={"units": units})
    reader.problems += faults
    file = file or _sound_part(reader)
    machine = _machine(reader, file) if file is not None else None
    if file is None:
        _look_inside(reader)
    problems = tuple(in_file_order(reader.problems))
    unread = frozenset(reader.unread_operands)
    return MachineReading(document, machine, problems, reader.places, unread)


def _sound_part(reader: _Reader) -> MachineFile | None:
    """The file without the keys at fault, if what they say does not matter to the other checks."""
    document, context = reader.document, {"units": reader.units}
    if not isinstance(document.data, dict):
        return None
    bad = faulty_keys(document, MachineFile, context)
    if bad & _STRUCTURE:
        return None
    sound = {key: value for key, value in document.data.items() if key not in bad}
    without = replace(document, data={"name": "unnamed", **sound})
    return validate(without, MachineFile, context)[0]


def _look_inside(reader: _Reader) -> None:
    """Report what is wrong inside array and memories although the file as a whole is refused."""
    data = reader.document.data
    if not isinstance(data, dict):
        return
    array = None
    if isinstance(data.get("operational_array"), dict):
        array = _array(reader, ("operational_array",))
    if isinstance(data.get("memories"), dict):
        dims = tuple(dim for dim, _ in array.dims) if array else ()
        list(_memories(reader, ("memories",), data["memories"], dims))


def _machine(reader: _Reader, file: MachineFile) -> Machine | None:
    if file.dataflows is not None:
        reader.warn(("dataflows",), "is not used; a mapping file says how ops are unrolled")
    shared: list[Memory] = []
    if file.cores:
        _no_second_core(reader)
        above = _raw_operands(file.memories.values())
        cores = [
            _core(reader, ("cores", name), name, inner, above) for name, inner in file.cores.items()
        ]
        dims = tuple({d: 0 for core in cores if core for d, _ in core.array.dims})
        shared = list(_memories(reader, ("memories",), file.memories, dims))
    else:
        if file.operational_array is None:
            reader.error(
                ("operational_array",),
                "is missing: a machine needs an array that multiplies",
                "write operational_array: {dimensions: [D1], sizes: [8], unit_energy: "
                f"{reader.pj('0.04')}}}",
            )
            list(_memories(reader, ("memories",), file.memories, ()))
        inner = CoreFile(
            operational_array=file.operational_array,
            memories=file.memories,
            vector_unit=file.vector_unit,
            count=file.core_count,
        )
        core = _core(reader, (), "core", inner) if file.operational_array is not None else None
        cores = [core]
    complete = [core for core in cores if core is not None]
    if len(complete) != len(cores) or not cores:
        return None
    if not file.cores:
        complete, shared = _split_shared(reader, complete[0], file.memories)
    return _assemble(reader, file, tuple(complete), tuple(shared))


def _assemble(
    reader: _Reader, file: MachineFile, cores: tuple[Core, ...], shared: tuple[Memory, ...]
) -> Machine:
    memories = {m.name: m for m in (*(m for core in cores for m in core.memories), *shared)}
    names = [name for core in file.cores.values() for name in core.memories] + [*file.memories]
    known = [*names, *(core.name for core in cores)]
    for key, entries in (("dma", file.dma), ("links", file.links)):
        _once(reader, (key,), [entry.name for entry in entries], "name")
    for i, engine in enumerate(file.dma):
        for j, route in enumerate(engine.routes):
            for name in route:
                _expect(reader, ("dma", i, "routes", j), name, names, "memory")
    for i, link in enumerate(file.links):
        for j, name in enumerate(link.connects):
            _expect(reader, ("links", i, "connects", j), name, known, "memory or core")
    return Machine(
        name=file.name,
        cores=cores,
        shared=shared,
        dma=tuple(
            DmaEngine(
                name=d.name,
                ports=d.ports,
                queues=d.queues,
                bits_per_cycle=d.width,
                setup_cycles=d.setup,
                routes=tuple((a, b) for a, b in d.routes),
            )
            for d in file.dma
        ),
        links=tuple(_link(link) for link in file.links),
        sources=tuple(_ends(reader, "sources", file.sources, names, memories)),
        sinks=tuple(_ends(reader, "sinks", file.sinks, names, memories)),
        clock_hz=file.clock,
        description=file.description,
        source=reader.document.file,
    )


def _expect(reader: _Reader, at: Location, name: str, known: list[str], what: str) -> bool:
    if name in known:
        return True
    reader.error(at, f"there is no {what} {name!r}", suggestion(name, known))
    return False


def _link(link: LinkFile) -> Link:
    price = link.energy or Price(0.0, per_bit=True)
    return Link(
        name=link.name,
        kind=link.kind,
        connects=tuple(link.connects),
        bits_per_cycle=link.width,
        hop_cycles=link.hop_cycles,
        pj_per_bit_hop=price.pj if price.per_bit else price.pj / link.width,
        rows=link.rows,
        columns=link.columns,
        multicast=link.multicast,
    )


def _ends(
    reader: _Reader,
    key: str,
    ends: list[EndFile],
    names: list[str],
    memories: Mapping[str, Memory],
) -> Iterator[End]:
    _once(reader, (key,), [end.name for end in ends], "name")
    for i, end in enumerate(ends):
        _expect(reader, (key, i, "memory"), end.memory, names, "memory")
        for j, operand in enumerate(end.operands):
            at = (key, i, "operands", j)
            if end.memory in memories and operand not in memories[end.memory].operands:
                holders = ", ".join(m.name for m in memories.values() if operand in m.operands)
                hint = f"memories that do: {holders or 'none'}"
                reader.error(at, f"{end.memory} does not hold {operand}", hint)
            elif (operand == OUTPUT_OPERAND) != (key == "sinks"):
                hint = "sources bring I1 and I2, sinks take O"
                reader.error(at, f"{operand} does not belong into {key}", hint)
        price = end.energy or Price(0.0, per_bit=True)
        if not price.per_bit and end.width is None:
            reader.error((key, i, "energy"), "an energy per access needs a `width`")
        yield End(
            name=end.name,
            kind=end.kind,
            memory=end.memory,
            operands=tuple(end.operands),
            bits_per_cycle=end.width,
            pj_per_bit=price.pj if price.per_bit else price.pj / (end.width or 1),
        )


def _no_second_core(reader: _Reader) -> None:
    """With `cores`, what describes a single core has no meaning at the top."""
    for key in ("operational_array", "vector_unit", "core_count"):
        if key in reader.document.data:
            reader.error((key,), "has no meaning beside `cores`", "move it into a core")


def _core(
    reader: _Reader, at: Location, name: str, file: CoreFile, above: Set[Operand] = frozenset()
) -> Core | None:
    """A core, of which the operands in `above` have a memory higher up."""
    array = _array(reader, (*at, "operational_array"))
    dims = tuple(d for d, _ in array.dims) if array else ()
    memories = tuple(_memories(reader, (*at, "memories"), file.memories, dims, above))
    for key in [key for key in file.memories if at and _is_shared(file.memories[key])]:
        where = (*at, "memories", key, "shared")
        reader.error(where, "a memory of one core is not shared", "move it out of the core")
    if not file.memories and not at:
        reader.error((*at, "memories"), "is missing: there is nowhere to keep data")
    if array is None or (not memories and not at):
        return None
    vector = file.vector_unit
    return Core(
        name=name,
        array=array,
        memories=memories,
        vector=VectorUnit(lanes=vector.lanes, op_pj=vector.energy) if vector else None,
        count=file.count,
    )


def _is_shared(data: Any) -> bool:
    return isinstance(data, dict) and data.get("shared") is True


def _split_shared(
    reader: _Reader, core: Core, memories: dict[str, Any]
) -> tuple[list[Core], list[Memory]]:
    """Memories marked `shared` stand above the cores; no private one may stand above them."""
    marks = [_is_shared(memories[m.name]) for m in core.memories]
    first = marks.index(True) if True in marks else len(marks)
    for memory, mark in zip(core.memories[first:], marks[first:], strict=True):
        if not mark:
            at = ("memories", memory.name)
            hint = f"write {dotted((*at, 'shared'))}: true"
            reader.error(at, "a core's own memory cannot stand above a shared one", hint)
    own = Core(
        name=core.name,
        array=core.array,
        memories=core.memories[:first],
        vector=core.vector,
        count=core.count,
    )
    return [own], list(core.memories[first:])


def _array(reader: _Reader, at: Location) -> Array | None:
    file, faults = validate(reader.document, ArrayFile, {"units": reader.units}, at)
    reader.problems += faults
    if file is None:
        return None
    _once(reader, (*at, "dimensions"), file.dimensions)
    if len(file.dimensions) != len(file.sizes):
        counts = f"{len(file.dimensions)} dimensions and {len(file.sizes)} sizes"
        reader.error((*at, "sizes"), f"{counts} do not match", "write one size per dimension")
        return None
    for i, dim in enumerate(file.systolic_dimensions):
        _expect(reader, (*at, "systolic_dimensions", i), dim, file.dimensions, "array dimension")
    if file.unit_energy is None and not file.is_imc:
        hint = f"write {dotted((*at, 'unit_energy'))}: {reader.pj('0.04')}"
        reader.error((*at, "unit_energy"), f"is missing: {_ARRAY_MISSING}", hint)
    if file.unit_area is None and not reader.units and not file.is_imc:
        hint = f"write {dotted((*at, 'unit_area'))}: 1"
        reader.warn((*at, "unit_area"), "is missing; ZigZag wants it, here it counts as 0", hint)
    return Array(
        dims=tuple(zip(file.dimensions, file.sizes, strict=True)),
        mac_pj=file.unit_energy or 0.0,
        area_mm2_per_unit=file.unit_area or 0.0,
        input_bits=(file.input_precision[0], file.input_precision[1])
        if file.input_precision
        else None,
        accumulator_bits=file.accumulator,
        systolic_dims=tuple(file.systolic_dimensions),
        in_memory=_in_memory(reader, at, file),
    )


def _in_memory(reader: _Reader, at: Location, file: ArrayFile) -> InMemoryCompute | None:
    if not file.is_imc:
        if file.imc_type is not None or file.bit_serial_precision is not None:
            reader.error((*at, "imc_type"), "belongs to an array with `is_imc: true`")
        return None
    usual = {"imc_type": "digital", "bit_serial_precision": "1", "input_precision": "[8, 8]"}
    for key in [key for key in usual if getattr(file, key) is None]:
        hint = f"write {dotted((*at, key))}: {usual[key]}"
        reader.error((*at, key), "is missing; an array that computes in memory needs it", hint)
    for key in ("bit_serial_precision", "adc_resolution"):
        if not float(getattr(file, key) or 0).is_integer():
            reader.error((*at, key), "expected a whole number of bits")
            return None
    if file.imc_type is None or file.bit_serial_precision is None:
        return None
    return InMemoryCompute(
        kind=file.imc_type,
        bit_serial_bits=int(file.bit_serial_precision),
        adc_bits=int(file.adc_resolution),
    )


def _memories(
    reader: _Reader,
    at: Location,
    memories: dict[str, Any],
    dims: tuple[str, ...],
    outside: Set[Operand] = frozenset(),
) -> Iterator[Memory]:
    """The memories that can be read; above them, the operands `outside` have another one."""
    files: dict[str, MemoryFile | OldMemoryFile] = {}
    for name, data in memories.items():
        file = _memory_file(reader, (*at, name), data)
        if name in reader.places:
            hint = "give it another name"
            reader.error((*at, name), "another memory has this name already", hint)
        if file is None or name in reader.places:
            reader.unread_operands |= _raw_operands([data])
        else:
            files[name] = file
            reader.places[name] = (*at, name)
    made = [_memory(reader, (*at, name), file, dims) for name, file in files.items()]
    order = bottom_up(made)
    for memory in made:
        file = files[memory.name]
        above = {o for later in order[order.index(memory) + 1 :] for o in later.operands}
        is_top = any(operand not in above | outside for operand in memory.operands)
        yield replace(memory, role=file.role or _role(memory, dims, is_top=is_top))


def _memory_file(reader: _Reader, at: Location, data: Any) -> MemoryFile | OldMemoryFile | None:
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


def _raw_operands(memories: Iterable[Any]) -> set[Operand]:
    """Operands that memories hold as far as the file says so, and all where it does not."""
    every: set[Operand] = {*INPUT_OPERANDS, OUTPUT_OPERAND}
    result: set[Operand] = set()
    for data in memories:
        listed = data.get("operands") if isinstance(data, dict) else None
        known = isinstance(listed, list) and all(isinstance(o, str) and o in every for o in listed)
        result |= set(listed) if known and listed is not None else every
    return result


def _once(reader: _Reader, at: Location, words: Sequence[str], *inside: str) -> None:
    """Report words of a list, or of the entries of a list, that stand there again."""
    for i, word in enumerate(words):
        if word in words[:i]:
            reader.error((*at, i, *inside), f"{word} stands here a second time")


def _memory(
    reader: _Reader, at: Location, file: MemoryFile | OldMemoryFile, dims: tuple[str, ...]
) -> Memory:
    """The memory, its role still open."""
    served = tuple(file.served_dimensions)
    _once(reader, (*at, "operands"), file.operands)
    _once(reader, (*at, "served_dimensions"), served)
    if file.alignment is not None and file.alignment % 8:
        whole = written_bits(reader.document, -(-file.alignment // 8) * 8)
        hint = f"write {dotted((*at, 'alignment'))}: {whole}"
        reader.error((*at, "alignment"), f"{file.alignment} bit are no whole bytes", hint)
    for i, dim in enumerate(served):
        if dims:
            _expect(reader, (*at, "served_dimensions", i), dim, list(dims), "array dimension")
    convert = old_ports if isinstance(file, OldMemoryFile) else new_ports
    ports, faults = convert(reader.document, at, file)
    reader.problems += faults
    read_width = max((p.bits_per_cycle for p in ports if p.kind != "write"), default=1)
    write_width = max((p.bits_per_cycle for p in ports if p.kind != "read"), default=1)
    sharing, faults = parse_sharing(reader.document, (*at, "sharing"), file)
    reader.problems += faults
    return Memory(
        name=str(at[-1]),
        size_bits=file.size,
        operands=tuple(dict.fromkeys(file.operands)),
        ports=ports,
        served_dims=served,
        read_pj=_access_pj(reader, (*at, "r_cost"), file, file.r_cost, read_width),
        write_pj=_access_pj(reader, (*at, "w_cost"), file, file.w_cost, write_width),
        role="local",
        latency_cycles=1 if file.latency is None else file.latency,
        area_mm2=file.area or 0.0,
        leakage_pw_per_bit=file.leakage_pw_per_bit,
        alignment_bytes=(file.alignment or 8) // 8 or 1,
        banks=file.banks,
        forces_double_buffering=file.force_double_buffering,
        sharing=sharing,
    )


def _access_pj(
    reader: _Reader, at: Location, file: MemoryFile | OldMemoryFile, price: Price | None, width: int
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
    if set(dims) <= set(memory.served_dims) and memory.size_bits >= SCRATCHPAD_BITS:
        return "scratchpad"
    return "scratchpad" if is_top else "local"
