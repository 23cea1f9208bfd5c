"""A search that is ended early: the best draft by then is a plan all the same."""

from dataclasses import replace

from tilewright.machine.model import Machine
from tilewright.network.graph import Network
from tilewright.plan_drafts import Draft, Drafts, Value
from tilewright.plan_model import Plan, PlanOptions
from tilewright.program.places import places_of
from tilewright.replay.check import check


class BestSoFar:
    """The best draft of all that a search has made, in whatever order and for whatever sizes."""

    def __init__(self, options: PlanOptions) -> None:
        self._options = options
        self._best: tuple[Value, Drafts, Draft] | None = None

    def offer(self, drafts: Drafts, draft: Draft) -> None:
        """Keep a draft if it is the best one so far."""
        value = self._value(draft)
        if self._best is None or value < self._best[0]:
            self._best = value, drafts, draft

    def _value(self, draft: Draft) -> Value:
        match self._options.objective:
            case "memory":
                alive = draft.candidate.least.live_peak_bytes
                return (float(sum(alive.values())), float(draft.timetable.cycles))
            case goal:
                return draft.value(goal)

    def plan(self, network: Network, machine: Machine) -> Plan | None:
        """The plan of the best draft, checked; None if there is no draft that fits the machine.

        Raises:
            LimitError: the plan did not pass its check, which is a fault of Tilewright.
        """
        if self._best is None:
            return None
        _, drafts, draft = self._best
        prepared = replace(drafts.prepared, places=places_of(machine))
        options = replace(self._options, checked=False)
        plan = replace(drafts, prepared=prepared, options=options).finished(draft)
        sizes = {memory.name: memory.size_bytes for memory in machine.memories}
        if any(taken > sizes.get(name, taken) for name, taken in plan.peak_bytes.items()):
            return None
        if self._options.checked:
            check(plan.timetable, prepared.network, machine)
        return replace(plan, network=network, options=self._options, interrupted=True)
