"""Does a network fit a machine's scratchpads: on which rung, and what would make it fit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilewright.machine.model import INPUT_OPERANDS, NOTHING_GIVEN, OUTPUT_OPERAND, Machine
from tilewright.network.graph import Network
from tilewright.program.places import Places, places_of
from tilewright.strategy.ladder.rungs import RUNGS, Ladder, Rung, ladder, with_rung

LIES_INSIDE = "not tried: inputs or outputs lie whole in a scratchpad (`given`)"
"""Rungs take them piece by piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A scratchpad of a core, and what a resident network keeps in it."""

    memory: str
    size_bytes: int
    copies: int
    """How many there are: one for each core, or one that all share."""
    holds_weights: bool
    holds_activations: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether some weights and activations fit: as memories are, or at least all of them together.

    `obstacle` says what is in the way; `short_bytes` are missing in `memory`.
    """

    fits: bool
    fits_together: bool
    memory: str = ""
    short_bytes: int = 0
    obstacle: str = ""


@dataclass(frozen=True, kw_only=True)
class Rooms:
    """The scratchpads that hold operands, and ways that are missing between them."""

    rooms: tuple[Room, ...]
    missing_ways: tuple[str, ...]
    lies_inside: bool
    """Whether inputs or outputs lie whole in one of them."""
    cores: int
    weight_origin: str
    """Where weights come from, and can come from again; empty if nowhere."""

    @property
    def together_bytes(self) -> int:
        """Bytes of all scratchpads of all cores."""
        return sum(room.size_bytes * room.copies for room in self.rooms)

    @property
    def text(self) -> str:
        """The scratchpads with their sizes."""
        parts = [
            f"{r.memory} {f'{r.copies} x ' if r.copies > 1 else ''}{r.size_bytes:,} B"
            for r in self.rooms
        ]
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The ladder of a network, and how each rung does on a machine, if one is given."""

    network: Network
    machine: Machine | None
    ladder: Ladder
    rooms: Rooms | None
    verdicts: Mapping[str, Verdict]
    """By rung; empty without a machine."""

    @property
    def first(self) -> Rung | None:
        """The first rung that fits, and so the one that is simplest to run."""
        found = [r for r in self.ladder.rungs if r.name != "weights" and self._fits(r)]
        return found[0] if found else None

    def _fits(self, rung: Rung) -> bool:
        return rung.name in self.verdicts and self.verdicts[rung.name].fits

    @property
    def smallest(self) -> Rung:
        """The rung that needs least with all weights resident, and without more multiplications
        than the network has."""
        usual = [r for r in self.ladder.rungs if r.name in RUNGS and r.name != "weights"]
        return min([r for r in usual if r.macs_factor <= 1], key=lambda rung: rung.total_bytes)

    @property
    def line_buffered(self) -> Rung:
        """That rung, or the last one before it that needs no more."""
        names = RUNGS[: RUNGS.index("line_buffered") + 1]
        return [rung for rung in self.ladder.rungs if rung.name in names][-1]


def fit(network: Network, machine: Machine | None = None) -> Fit:
    """The capacity ladder of a network, judged by a machine's scratchpads."""
    found = ladder(network, machine=machine)
    rooms = None if machine is None else rooms_of(machine)
    verdicts: dict[str, Verdict] = {}
    if rooms is not None:
        verdicts = {
            rung.name: verdict(rooms, found.weight_bytes, rung.activation_bytes)
            for rung in found.rungs
        }
    return Fit(network=network, machine=machine, ladder=found, rooms=rooms, verdicts=verdicts)


def with_least(found: Fit, least: Rung) -> Fit:
    """A fit with the rung of a plan that was made for the machine, and so fits it."""
    rungs = with_rung(found.ladder.rungs, least)
    verdicts = {**found.verdicts, least.name: Verdict(fits=True, fits_together=True)}
    return replace(found, ladder=replace(found.ladder, rungs=rungs), verdicts=verdicts)


def rooms_of(machine: Machine) -> Rooms:
    """The scratchpads in which a machine's operands lie."""
    places = places_of(machine)
    homes = {c: places.home(c) for c in (*INPUT_OPERANDS, OUTPUT_OPERAND)}
    names = dict.fromkeys(home.name for home in homes.values() if home is not None)
    rooms = []
    for name in names:
        spaces = [s for s in places.spaces if s.memory == name]
        uses = [c for c, home in homes.items() if home is not None and home.name == name]
        rooms.append(
            Room(
                memory=name,
                size_bytes=spaces[0].size_bytes,
                copies=len(spaces),
                holds_weights="I2" in uses,
                holds_activations="I1" in uses or OUTPUT_OPERAND in uses,
            )
        )
    return Rooms(
        rooms=tuple(rooms),
        missing_ways=tuple(_missing_ways(places)),
        lies_inside=machine.given != NOTHING_GIVEN,
        cores=places.cores,
        weight_origin=_weight_origin(places),
    )


def _weight_origin(places: Places) -> str:
    origin = places.origin("I2")
    return origin.name if origin is not None and origin.rereadable else ""


def _missing_ways(places: Places) -> list[str]:
    """Ways that data has to go and that no port, engine, source or sink serves."""
    first, second, last = (places.home(c) for c in (*INPUT_OPERANDS, OUTPUT_OPERAND))
    found = []
    if first is None or second is None or last is None:
        return ["an operand of the array lies in no scratchpad"]
    names = {home.name: places.named(home.name, 0).name for home in (first, second, last)}
    routes = places.routes
    if first != last and (names[last.name], names[first.name]) not in routes:
        found.append(f"results cannot get from {last.name} to {first.name}, to be read again")
    ends = (
        (places.origin("I1"), names[first.name], f"inputs cannot get into {first.name}"),
        (places.origin("I2"), names[second.name], f"weights cannot get into {second.name}"),
    )
    for space, target, message in ends:
        if space is None or (space.name, target) not in routes:
            found.append(message)
    sink = places.destination()
    if sink is None or (names[last.name], sink.name) not in routes:
        found.append(f"results cannot leave {last.name}")
    return found


def verdict(rooms: Rooms, weight_bytes: int, activation_bytes: int) -> Verdict:
    """Whether weights and activations fit.

    Where inputs and results of the array lie in two memories, each is asked to hold all of the
    activations: then any way to share them fits.
    """
    if rooms.lies_inside:
        return Verdict(fits=False, fits_together=False, obstacle=LIES_INSIDE)
    together = weight_bytes + activation_bytes <= rooms.together_bytes
    worst = Verdict(fits=bool(rooms.rooms), fits_together=together)
    for room in rooms.rooms:
        parts = [
            (weight_bytes if room.holds_weights else 0, "weights"),
            (activation_bytes if room.holds_activations else 0, "activations"),
        ]
        short = sum(size for size, _ in parts) - room.size_bytes
        if short > worst.short_bytes:
            what = " and ".join(f"{size:,} B of {name}" for size, name in parts if size)
            worst = Verdict(
                fits=False,
                fits_together=together,
                memory=room.memory,
                short_bytes=short,
                obstacle=f"{room.memory} would have to hold {what}, {short:,} B more than it has",
            )
    if worst.fits and rooms.missing_ways:
        return replace(worst, fits=False, obstacle="; ".join(rooms.missing_ways))
    return worst
