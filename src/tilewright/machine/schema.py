"""The JSON schema of machine files: the file models with their inner parts spelt out."""

from pydantic import Field

from tilewright.machine.files import ArrayFile, CoreFile, MachineFile, MemoryFile, OldMemoryFile


class _SchemaCore(CoreFile):
    operational_array: ArrayFile
    memories: dict[str, MemoryFile | OldMemoryFile] = Field(default_factory=dict)


class MachineSchema(MachineFile):
    """The same file, with its inner parts spelt out: what `tilewright schema machine` prints."""

    operational_array: ArrayFile | None = None
    memories: dict[str, MemoryFile | OldMemoryFile] = Field(default_factory=dict)
    cores: dict[str, _SchemaCore] = Field(default_factory=dict)  # type: ignore[assignment]  # narrower on purpose
