"""What a search for chains minimises, and what a partial chain can become at best."""

from dataclasses import dataclass
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
from tilewright.mapping.mixtures import Mixtures, groups_of, may_end, mixtures

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
        """The least value if time, energy and energy + slope x time are at least these."""
        match self.kind:
            case "time":
                return self.value(np.maximum(time, (blend - self.limit) / self.slope), energy)
            case "energy":
                return self.value(time, np.maximum(energy, blend - self.slope * self.limit))
            case "product":
                # Along the line the product is least at one of its ends.
                steep = time * np.maximum(energy, blend - self.slope * time)
                flat = energy * np.maximum(time, (blend - energy) / self.slope)
                return np.minimum(steep, flat)


@dataclass(frozen=True, eq=False)
class Judge:
    """Bounds on what a partial chain can become.

    Columns are (groups, energy | times | blends), the parts as the goal needs them.
    """

    goal: Goal
    found: Completions
    groups: int
    trails: tuple[Ints, ...]
    """Chains met while the bounds were tuned."""

    def least(self, values: Floats) -> Floats:
        """The least value behind rows of bounds, (N, columns)."""
        each = values.shape[1] // self.groups
        table = np.minimum(values.reshape(len(values), self.groups, each), _FAR)
        if not self.goal.counts_energy:
            return _reached(table.max(axis=-1)).min(axis=1)
        energy = table[..., 0]
        if not self.goal.counts_time:
            return _reached(energy).min(axis=1)
        count = (table.shape[-1] - 1) // 2
        time = table[..., 1 : 1 + count].max(axis=-1)
        blend = table[..., 1 + count :].max(axis=-1)
        value = np.where(energy < _FAR, self.goal.least(time, energy, blend), np.inf)
        least: Floats = value.min(axis=1)
        return least

    @property
    def bound(self) -> float:
        """The least value of any chain."""
        return float(self.least(self.found.roots[None])[0])


def _reached(values: Floats) -> Floats:
    return np.where(values < _FAR, values, np.inf)


def judge_of(ground: Ground, goal: Goal, below: float) -> Judge | None:
    """A judge tuned to prove that nothing is below a value; None if that is certain already."""
    energy = energy_mode(ground)
    if not goal.counts_time:
        everywhere = np.ones(energy.ends.shape, dtype=np.bool_)
        judge = Judge(goal, completions(ground, energy, everywhere), 1, ())
        return judge if judge.bound < below else None
    modes = time_modes(ground)
    times = mixtures(ground, modes, below if goal.kind == "time" else goal.limit)
    if not goal.counts_energy:
        groups = np.flatnonzero(times.bounds < below)
        parts = _parts(modes, times)
        return _judge(ground, goal, parts, groups, times.trails)
    blends = _blends(modes, energy, goal.slope)
    mixed = mixtures(ground, blends, np.inf)
    parts = [energy] * groups_of(ground).size
    parts = [
        _side_by_side([e, t, b])
        for e, t, b in zip(parts, _parts(modes, times), _parts(blends, mixed), strict=True)
    ]
    trails = (*times.trails, *mixed.trails)
    every = np.arange(len(parts))
    judge = _judge(ground, goal, parts, every, trails)
    if judge is None:
        return None
    table = judge.found.roots.reshape(every.size, -1)
    values = np.array([_alone(judge, row) for row in table])
    return _judge(ground, goal, parts, np.flatnonzero(values < below), trails)


def _alone(judge: Judge, row: Floats) -> float:
    return float(Judge(judge.goal, judge.found, 1, ()).least(row[None])[0])


def _blends(times: Modes, energy: Modes, slope: float) -> Modes:
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


def _judge(
    ground: Ground, goal: Goal, parts: list[Modes], groups: Ints, trails: tuple[Ints, ...]
) -> Judge | None:
    if not groups.size:
        return None
    modes = _side_by_side([parts[g] for g in groups])
    each = modes.constants.size // groups.size
    ending = np.repeat(may_end(ground, groups_of(ground)[groups]), each, axis=1)
    return Judge(goal, completions(ground, modes, ending), groups.size, trails)
