"""Parts of a machine that a plan does not use although its file declares them.

Each is told twice, so that nothing declared is ignored without a word: `check` warns about it where
it stands in the file, and every plan lists it under `assumed`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.document import Location, dotted
from tilewright.machine.model import (
    INPUT_OPERANDS,
    OUTPUT_OPERAND,
    WEIGHTS,
    Core,
    Direction,
    DmaEngine,
    End,
    Machine,
    Memory,
    Operand,
)

LINKED_CORES = 16
"""With more cores, nothing is moved from one core's scratchpads to another's: there would be as
many routes as pairs of cores."""

_READ: tuple[Direction, ...] = ("tl", "th")
_WRITE: tuple[Direction, ...] = ("fh", "fl")
_CARRIED = {"I1": "inputs", "I2": "weights", "O": "results"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """One part, why it does not count, and what would. A memory's place begins with `memories` and
    its name, wherever it stands in the file."""

    at: Location
    why: str
    hint: str = ""


def ignored_keys(machine: Machine) -> Iterator[Ignored]:
    """Keys that say nothing, whatever else the file says."""
    for at, why in machine.unread:
        yield Ignored(at=at, why=why, hint="remove it")
    core = machine.cores[0]
    for memory in machine.levels(core):
        yield from _keys(machine, core, memory)


def idle_parts(machine: Machine) -> Iterator[Ignored]:
    """Parts that have no work beside the others."""
    core = machine.cores[0]
    for other in machine.cores[1:]:
        why = f"is not used: only cores of the kind {core.name!r}, the first listed, compute"
        yield Ignored(
            at=("cores", other.name), why=why, hint="list first the kind that is to be used"
        )
    if core.count > LINKED_CORES:
        why = (
            f"with more than {LINKED_CORES} cores, nothing is moved from one core's scratchpads "
            "to another's"
        )
        yield Ignored(at=_count_place(machine, core), why=why)
    for i, link in enumerate(machine.links):
        why = f"nothing goes over the link {link.name}: DMA engines move everything"
        hint = "what it takes can be said by the width and set-up of a `dma` entry"
        yield Ignored(at=("links", i), why=why, hint=hint)
    yield from _engines(machine)
    yield from _ends(machine)
    for memory in machine.levels(core):
        yield from _roles(machine, core, memory)
        yield from _copies(core, memory)


def ignored_lines(machine: Machine) -> Iterator[str]:
    """The same in sentences; parts that are ignored for the same reason share one."""
    places: dict[str, list[str]] = {}
    for part in (*ignored_keys(machine), *idle_parts(machine)):
        places.setdefault(part.why, []).append(dotted(part.at))
    for why, at in places.items():
        yield f"{', '.join(at)}: {why}"


def home_of(machine: Machine, core: Core, operand: Operand) -> Memory | None:
    """The scratchpad in which plans keep an operand: the topmost one that holds it."""
    chain = machine.chain(core, operand)
    return next((m for m in reversed(chain) if m.role == "scratchpad"), None)


def outside_of(machine: Machine, core: Core, operand: Operand) -> Memory | None:
    """The external memory that inputs come from, or results go to: the topmost one that can."""
    wanted = _WRITE if operand == OUTPUT_OPERAND else _READ
    chain = machine.chain(core, operand)
    external = [m for m in chain if m.role == "external" and _can(m, wanted)]
    return external[-1] if external else None


def _can(memory: Memory, directions: Sequence[Direction]) -> bool:
    return any(use in directions for port in memory.ports for _, use in port.uses)


def _count_place(machine: Machine, core: Core) -> Location:
    return ("cores", core.name, "count") if len(machine.cores) > 1 else ("core_count",)


def _ends(machine: Machine) -> Iterator[Ignored]:
    """Sources and sinks beside an external memory, or beside others listed before them."""
    core = machine.cores[0]
    ends: tuple[tuple[str, tuple[End, ...], str], ...] = (
        ("sources", machine.sources, "come from"),
        ("sinks", machine.sinks, "go to"),
    )
    given = machine.given
    for key, listed, move in ends:
        served: dict[Operand, str] = {}
        inside = given.inputs if key == "sources" else given.outputs
        if inside is not None:
            served[INPUT_OPERANDS[0] if key == "sources" else OUTPUT_OPERAND] = inside
        for i, end in enumerate(listed):
            for operand in end.operands:
                external = outside_of(machine, core, operand)
                used = served.setdefault(operand, external.name if external else end.name)
                if used != end.name:
                    why = f"is not used for {operand}: {_CARRIED[operand]} {move} {used}"
                    yield Ignored(at=(key, i), why=why)


def _engines(machine: Machine) -> Iterator[Ignored]:
    """DMA engines, or queues of theirs, that never move anything."""
    used = _moving(machine)
    for i, engine in enumerate(machine.dma):
        if engine.name not in used:
            why = "is never used: wider engines serve its routes, or none joins two with buffers"
            yield Ignored(at=("dma", i), why=why)
        elif engine.queues > len(("in", "out")):
            why = "of the queues two are used: one for what comes in, one for all else"
            yield Ignored(at=("dma", i, "queues"), why=why, hint="write 2")


def _moving(machine: Machine) -> set[str]:
    """Names of the engines that move something between memories in which buffers lie."""
    core = machine.cores[0]
    every = (*INPUT_OPERANDS, OUTPUT_OPERAND)
    homes = {m.name: m for o in every if (m := home_of(machine, core, o)) is not None}
    outside = {m.name: m for o in every if (m := outside_of(machine, core, o)) is not None}
    placed = {**homes, **outside}
    used = set()
    for source in placed.values():
        for target in placed.values():
            if source.name not in homes and target.name not in homes:
                continue
            if _can(source, _READ) and _can(target, _WRITE):
                used.add(
                    _mover(machine.dma, source.name, target.name, comes_in=source.name not in homes)
                )
    used |= {_fills_registers(machine, o, placed, homes) for o in INPUT_OPERANDS}
    return {name for name in used if name is not None}


def _fills_registers(
    machine: Machine, operand: Operand, placed: Mapping[str, Memory], homes: Mapping[str, Memory]
) -> str | None:
    """The engine that brings an operand without a scratchpad from where no port does."""
    core = machine.cores[0]
    inside = [m for m in machine.chain(core, operand) if m.role == "local"]
    if not inside or home_of(machine, core, operand) is not None:
        return None
    for source in placed.values():
        if source.port(operand, "tl") is None and _can(source, _READ):
            at = source.name, inside[-1].name
            return _mover(machine.dma, *at, comes_in=source.name not in homes)
    return None


def _mover(engines: Sequence[DmaEngine], source: str, target: str, *, comes_in: bool) -> str | None:
    """The widest engine between two memories; of several alike the last takes what goes out."""
    serving = [e for e in engines if not e.routes or (source, target) in e.routes]
    if not serving:
        return None
    best = max((e.bits_per_cycle, -e.setup_cycles) for e in serving)
    alike = [e for e in serving if (e.bits_per_cycle, -e.setup_cycles) == best]
    return alike[0 if comes_in else -1].name


def _roles(machine: Machine, core: Core, memory: Memory) -> Iterator[Ignored]:
    """Operands that a memory is declared to keep, and another one keeps."""
    at: Location = ("memories", memory.name)
    kept: dict[str, list[Operand]] = {}
    for operand in memory.operands:
        keeper = _keeper(machine, core, memory, operand)
        if keeper is not None and keeper.name != memory.name:
            kept.setdefault(keeper.name, []).append(operand)
    for keeper_name, operands in kept.items():
        letters = ", ".join(operands)
        if memory.role == "scratchpad":
            why = (
                f"is a second level of scratchpads for {letters}: buffers lie in {keeper_name}; "
                "here, data come and go as mappings say, without transfers, addresses and engines"
            )
        else:
            why = f"is not used for {letters}: all of it lies in {keeper_name} above"
        yield Ignored(at=at, why=why)


def _keeper(machine: Machine, core: Core, memory: Memory, operand: Operand) -> Memory | None:
    """The memory of the same role that plans keep an operand in."""
    if memory.role == "local":
        return None
    if memory.role == "scratchpad":
        return home_of(machine, core, operand)
    waits = outside_of(machine, core, OUTPUT_OPERAND)
    if operand != WEIGHTS and waits is not None and waits.name == memory.name:
        return memory  # activations that find no room wait there
    return outside_of(machine, core, operand)


def _keys(machine: Machine, core: Core, memory: Memory) -> Iterator[Ignored]:
    """Keys of one memory that say nothing here."""
    at: Location = ("memories", memory.name)
    idle = [port.name for port in memory.ports if not port.uses]
    if idle and len(idle) < len(memory.ports):
        hint = "give it an operand, or remove it"
        yield Ignored(
            at=(*at, "ports"), why=f"{', '.join(idle)}: declared and never used", hint=hint
        )
    if memory.latency_cycles > 1:
        why = "is never used: accesses count as one cycle"
        hint = "a machine's `dma` entry has a `setup` time that is used"
        yield Ignored(
            at=(*at, "latency"), why=f"latency of {memory.latency_cycles} cycles {why}", hint=hint
        )
    if memory.leakage_pw_per_bit and machine.clock_hz is None:
        why = "is not counted: without a clock, a cycle has no length"
        yield Ignored(at=(*at, "leakage_pw_per_bit"), why=why, hint="write clock: 500 MHz")
    if memory.banks > 1:
        yield Ignored(at=(*at, "banks"), why="banks are not told apart: they never conflict")
    if memory.bypass and WEIGHTS in memory.operands and not _is_passed(machine, core, memory):
        why = "nothing can be read past it: weights come from no external memory above"
        yield Ignored(at=(*at, "bypass"), why=why, hint="remove it")
    yield from _timing(machine, core, memory)
    yield from _ways_above(machine, core, memory)
    if memory.role == "local":
        if memory.alignment_bytes > 1:
            why = "is not used: only buffers in scratchpads and external memories have addresses"
            yield Ignored(at=(*at, "alignment"), why=why)
        return
    if memory.forces_double_buffering:
        why = "plans buffer twice where that pays, and use all of it; `map` uses half"
        yield Ignored(at=(*at, "force_double_buffering"), why=why)


def _ways_above(machine: Machine, core: Core, memory: Memory) -> Iterator[Ignored]:
    """Sharing among units that a memory further down serves already."""
    for sharing in memory.sharing:
        chain = machine.chain(core, sharing.operand)
        below = chain[: chain.index(memory)] if memory in chain else ()
        dims = [dim for dim, _ in sharing.terms or core.array.dims]
        serving = [m for m in below if set(dims) & set(m.served_dims)]
        if serving and set(dims) <= {dim for m in serving for dim in m.served_dims}:
            names = ", ".join(m.name for m in serving)
            why = f"is not used for {sharing.operand}: units along {', '.join(dims)} take it from "
            hint = f"write it at {serving[0].name}"
            yield Ignored(
                at=("memories", memory.name, "sharing", sharing.operand),
                why=why + names,
                hint=hint,
            )


def _copies(core: Core, memory: Memory) -> Iterator[Ignored]:
    """Memories in which buffers lie, and of which the array has several."""
    missing = [dim for dim, _ in core.array.dims if dim not in memory.served_dims]
    if missing and memory.role != "local":
        copies = prod(core.array.sizes[dim] for dim in missing)
        yield Ignored(
            at=("memories", memory.name, "served_dimensions"),
            why=f"does not serve {', '.join(missing)}: there are {copies} of this memory, "
            "and plans use one",
            hint="list every array dimension",
        )


def _timing(machine: Machine, core: Core, memory: Memory) -> Iterator[Ignored]:
    """Bursts and latencies that no model of the core asks for."""
    asked: set[str] = set()
    if core.model is not None:
        near = home_of(machine, core, OUTPUT_OPERAND) or home_of(machine, core, INPUT_OPERANDS[0])
        far = outside_of(machine, core, WEIGHTS)
        asked = {m.name for m in (near, far) if m is not None}
    if memory.name in asked:
        return
    given = {
        "burst": memory.burst_bytes > 1,
        "read_latency": memory.read_latency_cycles > 0,
        "write_latency": memory.write_latency_cycles > 0,
    }
    for key in (key for key, is_given in given.items() if is_given):
        why = "is not used: only a `core_model` asks for it, of the memories beside the core"
        yield Ignored(at=("memories", memory.name, key), why=why)


def _is_passed(machine: Machine, core: Core, memory: Memory) -> bool:
    """Whether weights lie in an external memory above a scratchpad that they may go past."""
    home, outside = home_of(machine, core, WEIGHTS), outside_of(machine, core, WEIGHTS)
    if home is None or home.name != memory.name or outside is None:
        return False
    return outside.port(WEIGHTS, "tl") is not None
