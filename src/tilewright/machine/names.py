"""Names in a machine file under which a plan could mean two things.

A plan charges memories, sources, sinks, `array` and `vector`. It calls the memory `m` of core 1
`m[1]`, that core `core[1]`, the port `p` of a memory `m.p`, and a queue of a DMA engine `d.1`.
"""

from collections.abc import Sequence

from tilewright.machine.files import MachineFile
from tilewright.machine.memory_reader import Reader

_UNITS = {"array": "the multipliers", "vector": "the vector unit"}
_HINT = "give it another name"


def expect_own_names(reader: Reader, file: MachineFile, memories: Sequence[str]) -> None:
    """Report memories, DMA engines and ends that are called like each other, or like a part."""
    cores = [*memories, "core"]
    for name in memories:
        what = _UNITS.get(name) or _part(name, "[", cores)
        if what:
            at = reader.places.get(name, ("memories",))
            reader.error(at, f"a plan calls {what} {name!r}, too", _HINT)
    engines: dict[str, str] = {}
    places = {**_UNITS, **dict.fromkeys(memories, "a memory")}
    parts = [*cores, *(engine.name for engine in file.dma)]
    for i, engine in enumerate(file.dma):
        what = _part(engine.name, "[", cores) or _part(engine.name, ".", parts)
        if what:
            reader.error(("dma", i, "name"), f"a plan calls {what} {engine.name!r}, too", _HINT)
        engines[engine.name] = "a DMA engine"
    for key, ends in (("sources", file.sources), ("sinks", file.sinks)):
        for i, end in enumerate(ends):
            what = places.get(end.name, "") or engines.get(end.name, "")
            what = what or _part(end.name, "[", cores) or _part(end.name, ".", parts)
            if what and what != f"one of the {key}":
                reader.error((key, i, "name"), f"a plan calls {what} {end.name!r}, too", _HINT)
            engines.setdefault(end.name, f"one of the {key}")


def _part(name: str, mark: str, owners: Sequence[str]) -> str:
    """What a name would be a part of, as `m[1]` and `m.p` are of `m`; empty if nothing."""
    owner, found, _ = name.partition(mark)
    return f"a part of {owner}" if found and owner in owners else ""
