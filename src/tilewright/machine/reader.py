"""From a machine file to a machine: every fault of the file is found, none stops the reading.

`read_machine` returns the machine as far as it can be made out, with all problems, so that checks
of the whole (data paths, suspicious figures) can run on a file that still has faults in it.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from tilewright.document import (
    Document,
    Location,
    dotted,
    faulty_keys,
    in_file_order,
    validate,
)
from tilewright.document.file_model import filled
from tilewright.errors import Problem
from tilewright.machine.files import (
    ArrayFile,
    CoreFile,
    EndFile,
    LinkFile,
    MachineFile,
    Price,
)
from tilewright.machine.given import expect_given
from tilewright.machine.memory_reader import (
    Reader,
    expect,
    expect_once,
    raw_operands,
    read_memories,
)
from tilewright.machine.model import (
    OUTPUT_OPERAND,
    Array,
    Core,
    CoreModel,
    DmaEngine,
    End,
    InMemoryCompute,
    Link,
    Machine,
    Memory,
    Operand,
    VectorUnit,
)
from tilewright.machine.names import expect_own_names
from tilewright.machine.sharing import unshared

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


def read_machine(document: Document) -> MachineReading:
    """Read a machine file in either of ZigZag's dialects or in ours."""
    if not isinstance(document.data, dict):
        what = "a list (of layers, or of mappings?)" if isinstance(document.data, list) else "text"
        message = f"this is no machine file but {what}; a machine is a mapping of keys to values"
        hint = "it starts with `name:` and has `operational_array:` and `memories:`"
        problem = document.problem((), message, hint=hint)
        return MachineReading(document, None, (problem,), {})
    units = "tilewright" in document.data
    reader = Reader(document, units, list(document.warnings))
    file, faults = validate(document, MachineFile, context={"units": units})
    reader.problems += faults
    file = file or _sound_part(reader)
    machine = _machine(reader, file) if file is not None else None
    if file is None:
        _look_inside(reader)
    problems = tuple(in_file_order(reader.problems))
    unread = frozenset(reader.unread_operands)
    return MachineReading(document, machine, problems, reader.places, unread)


def _sound_part(reader: Reader) -> MachineFile | None:
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


def _look_inside(reader: Reader) -> None:
    """Report what is wrong inside array and memories although the file as a whole is refused."""
    data = reader.document.data
    if not isinstance(data, dict):
        return
    array = None
    if isinstance(data.get("operational_array"), dict):
        array = _array(reader, ("operational_array",))
    if isinstance(data.get("memories"), dict):
        dims = tuple(dim for dim, _ in array.dims) if array else ()
        list(read_memories(reader, ("memories",), data["memories"], dims))


def _machine(reader: Reader, file: MachineFile) -> Machine | None:
    if file.dataflows is not None:
        why = "is not used; a mapping file says how ops are unrolled"
        reader.unread.append((("dataflows",), why))
    shared: list[Memory] = []
    if file.cores:
        _no_second_core(reader)
        above = raw_operands(file.memories.values())
        cores = [
            _core(reader, ("cores", name), name, inner, above) for name, inner in file.cores.items()
        ]
        dims = tuple({d: 0 for core in cores if core for d, _ in core.array.dims})
        shared = list(read_memories(reader, ("memories",), file.memories, dims))
    else:
        if file.operational_array is None:
            reader.error(
                ("operational_array",),
                "is missing: a machine needs an array that multiplies",
                "write operational_array: {dimensions: [D1], sizes: [8], unit_energy: "
                f"{reader.pj('0.04')}}}",
            )
            list(read_memories(reader, ("memories",), file.memories, ()))
        single = {
            "operational_array": file.operational_array,
            "memories": file.memories,
            "vector_unit": file.vector_unit,
            "core_model": file.core_model,
            "count": file.core_count,
        }
        inner = filled(CoreFile, single)
        core = _core(reader, (), "core", inner) if file.operational_array is not None else None
        cores = [core]
    complete = [core for core in cores if core is not None]
    if len(complete) != len(cores) or not cores:
        return None
    if not file.cores:
        complete, shared = _split_shared(reader, complete[0], file.memories)
    return _assemble(reader, file, tuple(complete), tuple(shared))


def _assemble(
    reader: Reader, file: MachineFile, cores: tuple[Core, ...], shared: tuple[Memory, ...]
) -> Machine:
    memories = {m.name: m for m in (*(m for core in cores for m in core.memories), *shared)}
    names = [name for core in file.cores.values() for name in core.memories] + [*file.memories]
    known = [*names, *(core.name for core in cores)]
    for key, entries in (("dma", file.dma), ("links", file.links)):
        expect_once(reader, (key,), [entry.name for entry in entries], "name")
    expect_own_names(reader, file, list(dict.fromkeys(names)))
    for i, engine in enumerate(file.dma):
        for j, route in enumerate(engine.routes):
            for name in route:
                expect(reader, ("dma", i, "routes", j), name, names, "memory")
    for i, link in enumerate(file.links):
        for j, name in enumerate(link.connects):
            expect(reader, ("links", i, "connects", j), name, known, "memory or core")
    machine = Machine(
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
        unions=() if reader.units else unshared(memories.values()),
        clock_hz=file.clock,
        description=file.description,
        source=reader.document.file,
    )
    if file.given is not None:
        given = expect_given(reader, file.given, machine, names)
        machine = replace(machine, given=given)
    return replace(machine, unread=tuple(reader.unread))


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
    reader: Reader,
    key: str,
    ends: list[EndFile],
    names: list[str],
    memories: Mapping[str, Memory],
) -> Iterator[End]:
    expect_once(reader, (key,), [end.name for end in ends], "name")
    for i, end in enumerate(ends):
        expect(reader, (key, i, "memory"), end.memory, names, "memory")
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


def _no_second_core(reader: Reader) -> None:
    """With `cores`, what describes a single core has no meaning at the top."""
    for key in ("operational_array", "vector_unit", "core_model", "core_count"):
        if key in reader.document.data:
            reader.error((key,), "has no meaning beside `cores`", "move it into a core")


def _core(
    reader: Reader, at: Location, name: str, file: CoreFile, above: Set[Operand] = frozenset()
) -> Core | None:
    """A core, of which the operands in `above` have a memory higher up."""
    array = _array(reader, (*at, "operational_array"))
    dims = tuple(d for d, _ in array.dims) if array else ()
    memories = tuple(read_memories(reader, (*at, "memories"), file.memories, dims, above))
    for key in [key for key in file.memories if at and _is_shared(file.memories[key])]:
        where = (*at, "memories", key, "shared")
        reader.error(where, "a memory of one core is not shared", "move it out of the core")
    if not file.memories and not at:
        reader.error((*at, "memories"), "is missing: there is nowhere to keep data")
    if array is None or (not memories and not at):
        return None
    vector, model = file.vector_unit, file.core_model
    return Core(
        name=name,
        array=array,
        memories=memories,
        vector=VectorUnit(lanes=vector.lanes, op_pj=vector.energy) if vector else None,
        count=file.count,
        model=CoreModel(name=model.name, configuration=model.configuration) if model else None,
    )


def _is_shared(data: Any) -> bool:
    return isinstance(data, dict) and data.get("shared") is True


def _split_shared(
    reader: Reader, core: Core, memories: dict[str, Any]
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
        model=core.model,
    )
    return [own], list(core.memories[first:])


def _array(reader: Reader, at: Location) -> Array | None:
    file, faults = validate(reader.document, ArrayFile, {"units": reader.units}, at)
    reader.problems += faults
    if file is None:
        return None
    expect_once(reader, (*at, "dimensions"), file.dimensions)
    if len(file.dimensions) != len(file.sizes):
        counts = f"{len(file.dimensions)} dimensions and {len(file.sizes)} sizes"
        reader.error((*at, "sizes"), f"{counts} do not match", "write one size per dimension")
        return None
    for i, dim in enumerate(file.systolic_dimensions):
        expect(reader, (*at, "systolic_dimensions", i), dim, file.dimensions, "array dimension")
    reader.unread += _unread_keys(at, file)
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


def _unread_keys(at: Location, file: ArrayFile) -> Iterator[tuple[Location, str]]:
    """Keys of ZigZag's that say nothing about such an array."""
    if file.multiplier_type is not None:
        yield (*at, "multiplier_type"), "is not used: `unit_energy` is that of a multiplier"
    if file.is_imc and file.unit_energy:
        yield (*at, "unit_energy"), "is not used: the energy of cells follows from their model"
    if file.is_imc and file.imc_type != "analog" and file.adc_resolution:
        yield (*at, "adc_resolution"), "is not used: only an analog array has converters"
    if not file.is_imc and file.adc_resolution:
        yield (*at, "adc_resolution"), "belongs to an array with `is_imc: true`"


def _in_memory(reader: Reader, at: Location, file: ArrayFile) -> InMemoryCompute | None:
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
