"""What can be wrong with a TFLite network, in words, and what would help."""

from collections.abc import Mapping, Sequence

from tilewright.errors import Problem

MAX_PROBLEMS = 50
"""Further ones are only counted: one cause can have a thousand effects."""

_CONTROL_FLOW = ("IF", "WHILE", "CALL", "CALL_ONCE", "STABLEHLO_WHILE", "STABLEHLO_COMPOSITE")
_RECURRENT = (
    "LSTM",
    "RNN",
    "SVDF",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "BIDIRECTIONAL_SEQUENCE_RNN",
)
_STATE = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE")

DAMAGED = "the file may be damaged or edited by hand; convert the network again"
RESIZED = "the file may be made for the sizes it records; read it without giving dims"
STATE = "make the state an input and an output of the network"

_REASONS = {
    **dict.fromkeys(_CONTROL_FLOW, "it runs other subgraphs, how often is not known beforehand"),
    **dict.fromkeys(_RECURRENT, "it is a whole recurrent layer in one operator"),
    **dict.fromkeys(_STATE, "it keeps a state from one run to the next"),
}
_HINTS = {
    **dict.fromkeys(
        _CONTROL_FLOW, "convert the network with its loops unrolled and its branches decided"
    ),
    **dict.fromkeys(
        _RECURRENT,
        "convert the layer unrolled (in Keras `unroll=True`): it then consists of FULLY_CONNECTED "
        "and elementwise operators",
    ),
    **dict.fromkeys(_STATE, STATE),
}


def unsupported(file: str, name: str, positions: Sequence[int], reads: Sequence[str]) -> Problem:
    """One problem for all operators `name`; `reads` are tensors the network could end at."""
    is_custom = name.startswith("CUSTOM")
    reason = "only its name is in the file" if is_custom else "there is no loop nest for it"
    cut = "end the network before it"
    cut += f", at {listed([repr(tensor) for tensor in reads], 4)}" if reads else ""
    cut += ", or write it with built-in operators" if is_custom else ", or write it with others"
    return Problem(
        file=file,
        message=f"{_where(name, positions)}: cannot be read: {_REASONS.get(name, reason)}",
        hint=_HINTS.get(name, cut),
    )


def misfit(file: str, where: str, tensor: str, computed: object, recorded: object) -> Problem:
    """The shape that follows from the operator is not the one that stands in the file."""
    return Problem(
        file=file,
        message=f"{where}: makes {tensor!r} of shape {computed}, but the file records {recorded}",
        hint=DAMAGED,
    )


def listed(items: Sequence[str], limit: int) -> str:
    """The first items in a sentence.

    >>> listed(["3", "5", "8"], 2), listed(["3", "5"], 2)
    ('3, 5 and 1 more', '3 and 5')
    """
    if len(items) > limit:
        return f"{', '.join(items[:limit])} and {len(items) - limit} more"
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def first_problems(file: str, problems: Mapping[int, Sequence[Problem]]) -> list[Problem]:
    """Problems in the order of their positions; those beyond MAX_PROBLEMS become a number."""
    ordered = [problem for position in sorted(problems) for problem in problems[position]]
    rest = len(ordered) - MAX_PROBLEMS
    if rest <= 0:
        return ordered
    message = f"{rest:,} more problems are left out"
    return [*ordered[:MAX_PROBLEMS], Problem(file=file, message=message)]


def _where(name: str, positions: Sequence[int]) -> str:
    word = "operator" if len(positions) == 1 else "operators"
    return f"{word} {listed([str(position) for position in positions], 3)} ({name})"
