"""What keeps a network from every plan on a machine, as far as widths and sums alone tell."""

from collections.abc import Iterator

from tilewright.errors import InfeasibleError, Problem
from tilewright.machine.model import WEIGHTS, Machine, Memory
from tilewright.mapping.constraints import DEFAULT_LINKS
from tilewright.network.graph import Network, Op
from tilewright.network.kinds import is_mac
from tilewright.units import format_bits, format_bytes

USUAL_BITS = 8
"""Width of the elements of quantised networks."""

ETHOS_U_BITS = 16
"""The widest elements that an Ethos-U multiplies: it has no floats."""


def refuse_impossible(network: Network, machine: Machine) -> None:
    """Raise InfeasibleError if no plan can be, before anything is searched for."""
    problems = [*width_problems(network, machine), *constant_problems(network, machine)]
    if problems:
        raise InfeasibleError(*problems)


def refuse_too_wide(network: Network, machine: Machine) -> None:
    """Raise InfeasibleError if the multipliers do not take what is to be multiplied."""
    problems = [*multiplier_problems(network, machine)]
    if problems:
        raise InfeasibleError(*problems)


def narrower_hint(bits: int) -> str:
    """What helps where elements are too wide: most networks are exported with floats of 32 bit."""
    return f"--bits {bits}: as if the network were quantised to {bits} bit"


def width_problems(network: Network, machine: Machine) -> Iterator[Problem]:
    """Multipliers or, if they are wide enough, registers that are narrower than what an op
    multiplies."""
    problem = next(multiplier_problems(network, machine), None)
    if problem is None and machine.cores[0].model is None:
        problem = next(_narrow_registers(network, machine), None)
    if problem is not None:
        yield problem


def multiplier_problems(network: Network, machine: Machine) -> Iterator[Problem]:
    """Multipliers that are narrower than the elements of what is multiplied."""
    core, ops = machine.cores[0], [op for op in network.ops if is_mac(op.kind)]
    limits = core.array.input_bits
    if core.model is not None:
        # An op that an Ethos-U cannot run is left to its vector unit, if others are its own.
        wide = [op for op in ops if is_too_wide(op, network)]
        if wide and len(wide) == len(ops):
            bits = max(max(_bits(op, network)) for op in wide)
            what = f"an Ethos-U multiplies no elements of more than {ETHOS_U_BITS} bit"
            yield _too_wide(what, wide, f"{bits} bit", USUAL_BITS)
    elif limits is not None:
        wide = [op for op in ops if _exceeds(_bits(op, network), limits)]
        if wide:
            needed = " x ".join(str(bits) for bits in _bits(wide[0], network))
            what = f"the multipliers take {limits[0]} x {limits[1]} bit"
            yield _too_wide(what, wide, f"{needed} bit", min(limits))


def is_too_wide(op: Op, network: Network) -> bool:
    """Whether an op multiplies elements that no Ethos-U does."""
    return is_mac(op.kind) and max(_bits(op, network)) > ETHOS_U_BITS


def _exceeds(bits: tuple[int, int], limits: tuple[int, int]) -> bool:
    return bits[0] > limits[0] or bits[1] > limits[1]


def constant_problems(network: Network, machine: Machine) -> Iterator[Problem]:
    """An external memory that cannot hold all the constants that have to lie in it."""
    if any(WEIGHTS in source.operands for source in machine.sources):
        return
    chain = machine.chain(machine.cores[0], WEIGHTS)
    external = [m for m in chain if m.role == "external"]
    largest = max(external, key=lambda memory: memory.size_bits, default=None)
    constants = {
        operand.tensor: operand.name
        for op in network.ops
        for operand in op.inputs
        if network.by_name[operand.tensor].role == "constant"
    }
    total = sum(network.by_name[name].size_bytes for name in constants)
    if largest is None or total <= largest.size_bytes:
        return
    wide = [network.by_name[name] for name, letter in constants.items() if letter != "B"]
    saved = sum(t.size_bytes - t.size_bytes * USUAL_BITS // max(t.bits, USUAL_BITS) for t in wide)
    hint = f"{largest.name} would have to hold at least {total:,} B"
    if total - saved <= largest.size_bytes:
        hint = f"{narrower_hint(USUAL_BITS)}\nor {hint}"
    yield Problem(
        message=f"the constants of {network.name!r} take {format_bytes(total)}, and "
        f"{largest.name} has {format_bytes(largest.size_bytes)}: "
        f"{total - largest.size_bytes:,} B short",
        hint=hint,
    )


def _too_wide(what: str, ops: list[Op], needed: str, enough: int) -> Problem:
    more = f" and {len(ops) - 1} more" if len(ops) > 1 else ""
    verb = "need" if more else "needs"
    return Problem(
        message=f"{what}, and op {ops[0].name!r}{more} {verb} {needed}", hint=narrower_hint(enough)
    )


def _bits(op: Op, network: Network) -> tuple[int, int]:
    """Bits of what an op multiplies: of its data and of its weights."""
    by_letter = {operand.name: network.by_name[operand.tensor].bits for operand in op.inputs}
    return by_letter.get("I", 0), by_letter.get("W", 0)


def _narrow_registers(network: Network, machine: Machine) -> Iterator[Problem]:
    """Memories below the scratchpads that cannot hold an element of each operand of an op."""
    small = [memory for memory in machine.cores[0].memories if memory.role == "local"]
    for op in network.ops:
        for memory in small if is_mac(op.kind) else ():
            needs = _element_bits(op, network, memory)
            short = sum(needs.values()) - memory.size_bits
            if short > 0:
                yield _narrow(op, memory, needs, short)


def _element_bits(op: Op, network: Network, memory: Memory) -> dict[str, int]:
    """Bits of one element of each operand of an op that a memory holds, by letter.

    A result counts as no wider than what is multiplied: what is wider may be made narrower before
    it is written.
    """
    data, weights = _bits(op, network)
    result = min(network.by_name[op.outputs[0].tensor].bits, max(data, weights))
    bits = {"I": data, "W": weights, "O": result}
    held = {letter for letter, carrier in DEFAULT_LINKS if carrier in memory.operands}
    return {letter: size for letter, size in bits.items() if letter in held}


def _narrow(op: Op, memory: Memory, needs: dict[str, int], short: int) -> Problem:
    parts = ", ".join(f"{letter} {format_bits(bits)}" for letter, bits in needs.items())
    hint = f"{format_bits(sum(needs.values()))} of {memory.name} would do"
    room = memory.size_bits // len(needs)
    if room:
        hint = f"{narrower_hint(min(USUAL_BITS, room))}\nor {hint}"
    return Problem(
        message=f"op {op.name!r} cannot be mapped: memory {memory.name} has "
        f"{format_bits(memory.size_bits)} and needs at least {format_bits(sum(needs.values()))} "
        f"({parts}): {short:,} bits short",
        hint=hint,
    )
