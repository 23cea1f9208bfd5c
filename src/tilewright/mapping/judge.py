"""What a search for chains minimises, and what a partial chain can become at best."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tilewright.mapping.batch import Floats, Ints
from tilewright.mapping.bounds import (
    Completions,
    Ground,
    Modes,
    completions,
    energy_mode,
    time_modes,
)
from tilewright.mapping.mixtures import Mixtures, may_end, mixtures

_FAR = 1e150
"""Stands for what cannot be reached; its square is still finite."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What is minimised: time, energy or their product; of the first two the other may be limited.

    `slope` is how much energy is worth a cycle where both count.
    """

    kind: Literal["time", "energy", "product"]
    limit: float = np.inf
    slope: float = 1.0

    @property
    def counts_time(self) -> bool:
        """Whether time matters at all."""
        return self.kind != "energy" or self.limit < np.inf

    @property
    def tunes_time(self) -> bool:
        """Whether bounds on time help; limited energy decides more sharply than they do."""
        return self.counts_time and not (self.kind == "time" and self.limit < np.inf)

    @property
    def counts_energy(self) -> bool:
        """Whether energy matters at all."""
        return self.kind != "time" or self.limit < np.inf

    def value(self, time: Floats, energy: Floats) -> Floats:
        """The value of costs, infinite beyond the limit."""
        match self.kind:
            case "time":
                return np.where(energy <= self.limit, time, np.inf)
            case "energy":
                return np.where(time <= self.limit, energy, np.inf)
            case "product":
                return time * energy

    def least(self, time: Floats, energy: Floats, blend: Floats) -> Floats:
        """The least product if time, energy and energy + slope x time are at least these."""
        # Along the line the product is least at one of its ends.
        steep = time * np.maximum(energy, blend - self.slope * time)
        flat = energy * np.maximum(time, (blend - energy) / self.slope)
        return np.minimum(steep, flat)


@dataclass(frozen=True, eq=False)
class Judge:
    """Bounds on what a partial chain can become; columns are (groups, modes)."""

    goal: Goal
    found: Completions
    groups: int
    columns: tuple[int, ...]
    """Columns of energy, time and blends in each group."""
    trails: tuple[Ints, ...] = ()
    """Chains met while the bounds were tuned."""

    def least(self, values: Floats) -> Floats:
        """The least value behind rows of bounds, (N, columns)."""
        table = np.minimum(values.reshape(len(values), self.groups, sum(self.columns)), _FAR)
        energies, times = self.columns[0], sum(self.columns[1:2])
        reached = table[..., 0] < _FAR
        energy = table[..., :energies].max(axis=-1, initial=0.0)
        time = table[..., energies : energies + times].max(axis=-1, initial=0.0)
        if len(self.columns) > 2:
            value = self.goal.least(time, energy, table[..., energies + times :].max(axis=-1))
        else:
            value = self.goal.value(time, energy)
        least: Floats = np.where(reached, value, np.inf).min(axis=1)
        return least

    @property
    def bound(self) -> float:
        """The least value of any chain."""
        return float(self.least(self.found.roots[None])[0])


@dataclass(frozen=True, eq=False)
class Tuning:
    """The modes of time and their mixtures."""

    modes: Modes
    mixtures: Mixtures


def tuned_for_time(ground: Ground, enough: float) -> Tuning:
    """Bounds on time that try to show that it is at least `enough`."""
    modes = time_modes(ground)
    return Tuning(modes, mixtures(ground, modes, enough))


def judge_of(ground: Ground, goal: Goal, tuning: Tuning | None, below: float) -> Judge | None:
    """A judge for a goal; None if it is certain already that nothing is below a value.

    `tuning` is for goals in which time decides or is limited.
    """
    energy = energy_mode(ground)
    if tuning is None:
        everywhere = np.ones(energy.ends.shape, dtype=np.bool_)
        found = completions(ground, energy, everywhere)
        judge = Judge(goal, found, 1, (1,))
        if judge.bound >= below:
            return None
        return replace(judge, trails=(found.trace(0)[0],) if found.roots[0] < np.inf else ())
    groups, times = tuning.mixtures.groups, tuning.mixtures.bounds
    spread = energy.mixed(np.ones((1, groups.size)))
    energies = completions(ground, spread, may_end(ground, groups)).roots
    kinds = [[energy] * groups.size, _parts(tuning.modes, tuning.mixtures)]
    trails = tuning.mixtures.trails
    if goal.kind == "product":
        modes = _blended(tuning.modes, energy, goal.slope)
        mixed = mixtures(ground, modes, np.inf)
        kinds.append(_parts(modes, mixed))
        trails = (*trails, *mixed.trails)
        far = (np.minimum(bounds, _FAR) for bounds in (times, energies, mixed.bounds))
        values = goal.least(*far)
    else:
        values = goal.value(np.minimum(times, _FAR), np.minimum(energies, _FAR))
    chosen = np.flatnonzero((values < below) & (energies < np.inf))
    if not chosen.size:
        return None
    if not goal.counts_energy:
        kinds[0] = []
    columns = [kind[0].constants.size if kind else 0 for kind in kinds]
    modes = _side_by_side([kind[group] for group in chosen for kind in kinds if kind])
    ending = np.repeat(may_end(ground, groups[chosen]), sum(columns), axis=1)
    found = completions(ground, modes, ending)
    return Judge(goal, found, chosen.size, tuple(columns), trails)


def _blended(times: Modes, energy: Modes, slope: float) -> Modes:
    return Modes(
        slope * times.weights + energy.weights,
        slope * times.constants + energy.constants,
        slope * times.ends + energy.ends,
        times.families,
    )


def _parts(modes: Modes, tuned: Mixtures) -> list[Modes]:
    """Per group its mixture, the modes of its most important family, and two important others."""
    parts = []
    each = modes.constants.size // modes.families
    for group in range(tuned.groups.size):
        shares = tuned.shares[:, group]
        family = int(np.argmax(shares.reshape(modes.families, each).sum(axis=1)))
        mine = list(range(family * each, (family + 1) * each))
        others = [m for m in np.argsort(-shares, kind="stable") if m not in mine]
        chosen = np.eye(shares.size)[:, [*mine, *others[:2]]]
        parts.append(modes.mixed(np.column_stack([shares, chosen])))
    return parts


def _side_by_side(parts: list[Modes]) -> Modes:
    return Modes(
        np.concatenate([part.weights for part in parts], axis=1),
        np.concatenate([part.constants for part in parts]),
        np.concatenate([part.ends for part in parts], axis=1),
    )
