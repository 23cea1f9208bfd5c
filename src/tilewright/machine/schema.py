"""The JSON schema of machine files: the file models with their inner parts spelt out."""

from tilewright.document.file_model import new
from tilewright.machine.files import ArrayFile, CoreFile, MachineFile, MemoryFile, OldMemoryFile


class _SchemaCore(CoreFile):
    operational_array: ArrayFile
    memories: dict[str, MemoryFile | OldMemoryFile] = new(dict)


class MachineSchema(MachineFile):
    """The same file, with its inner parts spelt out: what `tilewright schema machine` prints."""

    operational_array: ArrayFile | None = None
    memories: dict[str, MemoryFile | OldMemoryFile] = new(dict)
    cores: dict[str, _SchemaCore] = new(dict)  # type: ignore[assignment]  # narrower on purpose
