"""How large kept tensors are, once it is chosen which cascades read them.

A core keeps what its share of a tensor's readers reads, and stages are shared out along other loops
in cascades than by themselves. When it is decided that a tensor is kept, its readers are still
undecided: it is believed to be as large as if they all ran by themselves.
"""

from collections.abc import Mapping, Sequence

from tilewright.strategy.cuts import State, Unit
from tilewright.strategy.scene import Scene


def larger_than_believed(scene: Scene, kept: State, loops: Mapping[int, str]) -> dict[str, int]:
    """Bytes of tensors of which cores keep more than is believed, if some stages go along loops."""
    if scene.prepared.places.cores == 1 or not loops:
        return {}
    sizes = {root: scene.kept_bytes(root, loops) for root in scene.roots(kept)}
    return {root: size for root, size in sizes.items() if size > scene.lives[root].size_bytes}


def shares(scene: Scene, units: Sequence[tuple[int, Unit]]) -> list[float]:
    """The parts of the scratchpads that units fill, each given with its first stage."""
    uses = [scene.use_of(unit.held) for _, unit in units]
    needs = [
        scene.smallest_tiles(first, unit.held) if unit.need is None else unit.need
        for first, unit in units
    ]
    return [scene.room.share(use + need) for use, need in zip(uses, needs, strict=True)]
