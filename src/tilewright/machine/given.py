"""What a machine file says under `given`: can the inputs lie there, and the outputs stay there?"""

from tilewright.machine.files import GivenFile
from tilewright.machine.ignored import home_of
from tilewright.machine.memory_reader import Reader, expect
from tilewright.machine.model import INPUT_OPERANDS, OUTPUT_OPERAND, Given, Machine

_SIDES = (
    ("inputs", INPUT_OPERANDS[0], "lie"),
    ("outputs", OUTPUT_OPERAND, "stay"),
)


def expect_given(reader: Reader, file: GivenFile, machine: Machine, names: list[str]) -> Given:
    """What a file says under `given`; what cannot be is told where it stands."""
    core = machine.cores[0]
    found: dict[str, str] = {}
    for key, operand, verb in _SIDES:
        name, at = getattr(file, key), ("given", key)
        if name is None or not expect(reader, at, name, names, "memory"):
            continue
        home = home_of(machine, core, operand)
        if home is None:
            text = f"{key} cannot {verb} in {name}: no scratchpad holds {operand}"
            reader.error(at, text, f"give a memory of {operand} the role scratchpad")
        elif home.name != name:
            text = f"{key} cannot {verb} in {name}: plans keep {operand} in {home.name}"
            reader.error(at, text, f"write {home.name}")
        elif core.count > 1 and home not in machine.shared:
            text = f"{key} cannot {verb} in {name}: each of the {core.count} cores has its own"
            reader.error(at, text, "name a scratchpad that all cores share")
        else:
            found[key] = name
    if file.inputs is None and file.outputs is None:
        reader.unread.append((("given",), "says nothing: neither inputs nor outputs"))
    return Given(inputs=found.get("inputs"), outputs=found.get("outputs"))
