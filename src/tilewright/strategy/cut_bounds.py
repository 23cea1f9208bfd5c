"""What cutting a stage into tiles takes at least, before it is known how it is cut."""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.program.work import Tenant, Work


@dataclass(frozen=True, slots=True)
class LeastMoved:
    """Transfers of a stage's tiles, however it is cut."""

    size_bytes: int
    cycles: float
    setup_cycles: int
    """Of those, what the first tile waits for in any case."""

    def cycles_with(self, computing: float) -> float:
        """Cycles of computing and moving together, side by side or one after the other."""
        longer, shorter = max(computing, self.cycles), min(computing, self.cycles)
        return longer + min(shorter, shorter / 8 + self.setup_cycles / 2)


def least_moved(work: Work) -> LeastMoved:
    """Every tile of every operand comes or goes once, and none has more than it needs.

    All constants may have come before, if there is time.
    """
    total, cycles, setup = 0, 0.0, 0
    for tenant in work.tenants:
        if tenant.bytes_per_cycle:
            size = _least_bytes(tenant, work.lengths)
            total += size
            setup += tenant.setup_cycles
            cycles += size / tenant.bytes_per_cycle + tenant.setup_cycles
    lead = work.lead_cycles
    return LeastMoved(total, max(0.0, cycles - lead), max(0, setup - lead))


def _least_bytes(tenant: Tenant, lengths: Mapping[str, int]) -> int:
    """Bytes of an operand that loops of some lengths touch in any case.

    Along an axis that is as many positions as the longest of its loops takes steps: tiles of such
    a loop that are next to each other may leave a gap between them, and never have one in common.
    """
    elements = 1
    seen: list[str] = []
    if tenant.operand.index is None:
        for size in tenant.shape:
            elements *= size
    for axis, size in zip(tenant.operand.index or (), tenant.shape, strict=False):
        steps = [lengths[dim] for dim, factor in axis.terms if factor and dim not in seen]
        seen += [dim for dim, _ in axis.terms]
        elements *= min(size, -(-max(steps, default=1) // axis.divisor))
    return elements * tenant.bits // 8
