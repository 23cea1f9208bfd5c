"""Why a program cannot be scheduled: which task, what lies where, what is missing, what helps."""

from tilewright.errors import InfeasibleError, Problem
from tilewright.schedule.beginning import is_beginning
from tilewright.schedule.claims import StuckError
from tilewright.schedule.tables import Tables

_GIVEN = "the inputs that lie there from the start need"
_FROM_OUTSIDE = "let them come from outside: leave `inputs` out of `given` in the machine file"

_NAMED = 8
"""So many buffers are named, the largest first."""


def too_large(tables: Tables) -> InfeasibleError | None:
    """The error if the operands of some single task exceed a scratchpad; all such tasks."""
    if all(a <= b for a, b in zip(tables.least_bytes, tables.room_bytes, strict=True)):
        return None
    problems: list[Problem] = []
    smallest = dict.fromkeys(tables.scratchpads, 0)
    for task, roots in enumerate(tables.touched):
        for pad, name in enumerate(tables.scratchpads):
            here = [root for root in roots if tables.scratchpad[root] == pad]
            if not here:
                continue
            needed = _stacked_bytes(tables, here)
            if needed > tables.room_bytes[pad]:
                smallest[name] = max(smallest[name], needed)
                problems.append(_own_operands(tables, task, pad, here))
    if not problems:
        return None
    shown = problems[:5]
    hints = [
        f"'{name}' would have to be {needed + _reserved_bytes(tables, name):,} B at least"
        for name, needed in smallest.items()
        if needed
    ]
    is_given = len(problems) == 1 and problems[0].message.startswith(_GIVEN)
    hints.append(f"or {_FROM_OUTSIDE if is_given else 'cut the op into smaller tiles'}")
    shown[-1] = Problem(message=shown[-1].message, hint="\n".join(hints))
    return InfeasibleError(*shown)


def full_scratchpad(tables: Tables, error: StuckError) -> int:
    """The scratchpad that lacks most for what a task needs; if none does, the fullest in use."""
    roots = _lacking(tables, error) or tables.touched[error.task]
    pads = sorted({tables.scratchpad[root] for root in roots}) or [0]
    return max(pads, key=lambda pad: (bool(error.lying[pad]), _short_bytes(tables, error, pad)))


def stuck(tables: Tables, error: StuckError, enough_bytes: int | None) -> InfeasibleError:
    """The error if a task gets no room although its own operands would fit."""
    pad = full_scratchpad(tables, error)
    name, here = tables.scratchpads[pad], error.lying[pad]
    lacking = [root for root in _lacking(tables, error) if tables.scratchpad[root] == pad]
    short = _short_bytes(tables, error, pad)
    free = tables.room_bytes[pad] - sum(tables.aligned_bytes[root] for root in here)
    lack = f"{short:,} B short" if short > 0 else f"{free:,} B are free, but in pieces"
    hint = [] if enough_bytes is None else [f"{enough_bytes:,} B of '{name}' are enough"]
    if tables.spill[pad] is None:
        hint.append(f"give '{name}' a way to an external memory and back, to spill to")
    hint.append("cut the ops into smaller tiles")
    return InfeasibleError(
        Problem(
            message=(
                f"{_task(tables, error.task)}: '{name}' of {tables.room_bytes[pad]:,} B has no "
                f"room for {_names(tables, lacking)}: {lack}; "
                f"alive in it: {_names(tables, here)}"
            ),
            hint="\nor ".join(hint),
        )
    )


def _lacking(tables: Tables, error: StuckError) -> list[int]:
    """What a task needs and does not lie in its scratchpad."""
    touched = tables.touched[error.task]
    return [root for root in touched if root not in error.lying[tables.scratchpad[root]]]


def _short_bytes(tables: Tables, error: StuckError, pad: int) -> int:
    """By how much all that lies in a scratchpad and is lacking there exceeds it."""
    lacking = [root for root in _lacking(tables, error) if tables.scratchpad[root] == pad]
    return _stacked_bytes(tables, [*error.lying[pad], *lacking]) - tables.room_bytes[pad]


def _own_operands(tables: Tables, task: int, pad: int, roots: list[int]) -> Problem:
    needed = _stacked_bytes(tables, roots)
    room = tables.room_bytes[pad]
    tasks = tables.program.tasks
    is_given = task < len(tasks) and is_beginning(tasks[task])
    who = _GIVEN if is_given else f"{_task(tables, task)}: its operands need"
    return Problem(
        message=(
            f"{who} {needed:,} B of "
            f"'{tables.scratchpads[pad]}' at once, {needed - room:,} B more than it has "
            f"({room:,} B): {_names(tables, roots)}"
        )
    )


def _stacked_bytes(tables: Tables, roots: list[int]) -> int:
    """Bytes of blocks on top of each other; the one on top needs no padding."""
    paddings = (tables.aligned_bytes[root] - tables.size_bytes[root] for root in roots)
    return sum(tables.aligned_bytes[root] for root in roots) - max(paddings, default=0)


def _reserved_bytes(tables: Tables, name: str) -> int:
    return sum(end - begin for begin, end in tables.program.space[name].reserved)


def _task(tables: Tables, task: int) -> str:
    if task >= len(tables.program.tasks):
        return "the results"
    described = tables.program.tasks[task]
    op = f" of op '{described.op}'" if described.op and described.op != described.name else ""
    return f"task '{described.name}'{op}"


def _names(tables: Tables, roots: list[int]) -> str:
    largest = sorted(roots, key=lambda root: (-tables.size_bytes[root], root))
    named = [
        f"{tables.program.buffers[root].name} {tables.size_bytes[root]:,} B"
        for root in largest[:_NAMED]
    ]
    if len(largest) > _NAMED:
        named.append(f"{len(largest) - _NAMED} more")
    return ", ".join(named) or "nothing"
