"""Mixtures of modes that bound best, found by playing them against the chains they let through.

Each round finds the cheapest chain for the present mixture, then the mixture that is dearest for
the cheapest of all chains found so far. Any mixture gives a valid bound, so the play may stop any
time.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.mapping.batch import Bools, Floats, Ints
from tilewright.mapping.bounds import Ground, Modes, completions

_ROUNDS = 12
_KEEP = 0.2


@dataclass(frozen=True, eq=False)
class Mixtures:
    """The best mixture for each group of stages with its bound, and the chains met on the way."""

    groups: Ints
    shares: Floats
    """(modes, groups)."""
    bounds: Floats
    trails: tuple[Ints, ...]


def groups_of(ground: Ground) -> Ints:
    """Numbers of all groups of stages."""
    return np.unique(ground.groups)


def may_end(ground: Ground, groups: Ints) -> Bools:
    """Which stages belong to which group, (stages, groups)."""
    mine: Bools = ground.groups[:, None] == groups[None]
    return mine


def mixtures(ground: Ground, modes: Modes, enough: float) -> Mixtures:
    """Tune a mixture for each group until its bound reaches `enough` or stops rising."""
    groups = groups_of(ground)
    count = modes.constants.size
    shares = np.full((count, groups.size), 1.0 / count)
    best, best_shares = np.full(groups.size, -np.inf), shares.copy()
    met: list[list[Floats]] = [[] for _ in groups]
    trails: dict[bytes, Ints] = {}
    ending = may_end(ground, groups)
    for _ in range(_ROUNDS if count > 1 else 1):
        found = completions(ground, modes.mixed(shares), ending)
        better = found.roots > best
        best = np.where(better, found.roots, best)
        best_shares = np.where(better, shares, best_shares)
        rising = False
        for group in np.flatnonzero(np.isfinite(best) & (best < enough)):
            trail, stage = found.trace(int(group))
            trails.setdefault(trail.tobytes(), trail)
            row = account_of(ground, trail) @ modes.weights + modes.constants + modes.ends[stage]
            met[group].append(row)
            reply, value = balanced(np.array(met[group]))
            shares[:, group] = _KEEP * best_shares[:, group] + (1 - _KEEP) * reply
            rising |= bool(best[group] < value - 1e-6 * abs(value))
        if not rising:
            break
    return Mixtures(groups, best_shares, best, tuple(trails.values()))


def account_of(ground: Ground, trail: Ints) -> Floats:
    """The account of a complete chain, its loads at the whole nest left out."""
    relaxation = ground.relaxation
    account = relaxation.base.copy()
    tiles = iter(trail)
    for adds in relaxation.adds:
        for add in adds:
            account += add[next(tiles)]
    return account


def balanced(rows: Floats) -> tuple[Floats, float]:
    """Shares of the modes that make the cheapest row dearest, and its value; rows are (N, modes).

    The linear programme of a matrix game (Dantzig, 1951): with all figures positive, maximise the
    sum of y under y @ rows <= 1; the prices of these limits are the shares, up to a factor.
    """
    low, span = float(rows.min()), float(np.ptp(rows)) or 1.0
    game = (rows - low) / span + 1.0
    chains, modes = game.shape
    table = np.zeros((modes + 1, chains + modes + 1))
    table[:-1, :chains] = game.T
    table[:-1, chains:-1] = np.eye(modes)
    table[:-1, -1] = 1.0
    table[-1, :chains] = -1.0
    for _ in range(4 * (chains + modes)):
        entering = np.flatnonzero(table[-1, :-1] < -1e-10)
        if not entering.size:
            break
        column = int(entering[0])
        rising = np.flatnonzero(table[:-1, column] > 1e-12)
        leaving = int(rising[np.argmin(table[rising, -1] / table[rising, column])])
        table[leaving] /= table[leaving, column]
        rest = np.arange(modes + 1) != leaving
        table[rest] -= table[rest, column, None] * table[leaving]
    prices = np.maximum(table[-1, chains:-1], 0.0)
    return prices / prices.sum(), low + span * (1.0 / prices.sum() - 1.0)
