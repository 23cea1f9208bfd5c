"""Computing again: ops that run a second time so that what they make need not wait.

A tensor waits for the last op that reads it, whatever else needs its room meanwhile. Where that is
too much, the ops that make it, from something smaller, run once more for those who read it late.
What comes out is an ordinary network with copies of these ops.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.network.counts import macs
from tilewright.network.graph import Network, Op, Operand
from tilewright.strategy.patches import OpStrip, Patches, TensorStrip
from tilewright.strategy.unpatched import original_name

MOST_OPS = 100
"""No more ops run again for one tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A tensor that is made again for some of its readers, and how."""

    tensor: str
    ops: tuple[str, ...]
    """What runs again, in order."""
    readers: tuple[str, ...]
    """Ops that read what is made the second time."""
    freed_bytes: int
    """How much less waits."""
    waiting_bytes: int
    """What waits in its stead."""
    macs: int
    """Multiplications that are done again."""


@dataclass(frozen=True, kw_only=True)
class Waits:
    """A network's ops in an order, and what waits between them."""

    network: Network
    order: tuple[Op, ...]

    def ways(self, place: int) -> list[Again]:
        """Ways to make again what waits behind a place in the order, with few products first.

        What nobody has read before that place could as well be made later.
        """
        names = [name for name in self._made if self._waits(name, place)]
        read = [name for name in names if self._readers[name][0] <= place]
        found = [way for name in read for way in self._ways_for(name, place)]
        return sorted(found, key=lambda way: (way.macs, -way.freed_bytes, way.tensor, way.ops))

    def _ways_for(self, name: str, place: int) -> list[Again]:
        """Ways to make a tensor again: the more ops, the less has to wait in its stead.

        Either what was made last is made again first, or what is largest: a small tensor may wait
        beside a long way that leads to the inputs.
        """
        latest_first = self._ways_by(name, place, lambda other: self._made[other])
        largest_first = self._ways_by(name, place, self._bytes)
        return list(dict.fromkeys((*latest_first, *largest_first)))

    def _ways_by(self, name: str, place: int, first: Callable[[str], int]) -> Iterator[Again]:
        """Ways to make a tensor again, if of all that is missing the one that comes first is made
        again, too."""
        chain = [self._made[name]]
        least = self._bytes(name)
        while len(chain) <= MOST_OPS:
            missing = self._missing(chain, place)
            left = sum(map(self._bytes, missing))
            if left < least:
                least = left
                yield self._again(name, sorted(chain), place, left)
            if not missing:
                return
            chain.append(
                self._made[max(missing, key=lambda other: (first(other), self._made[other]))]
            )

    def _missing(self, chain: Sequence[int], place: int) -> list[str]:
        """What ops read that they do not make, and that does not wait behind a place anyway."""
        made = {operand.tensor for at in chain for operand in self.order[at].outputs}
        read = dict.fromkeys(o.tensor for at in chain for o in self.order[at].inputs)
        return [
            name
            for name in read
            if name in self._made and name not in made and not self._waits(name, place)
        ]

    def _again(self, name: str, chain: Sequence[int], place: int, left: int) -> Again:
        ops = [self.order[at] for at in chain]
        return Again(
            tensor=name,
            ops=tuple(op.name for op in ops),
            readers=tuple(self.order[at].name for at in self._readers[name] if at > place),
            freed_bytes=self._bytes(name) - left,
            waiting_bytes=left,
            macs=sum(macs(op, self.network) for op in ops),
        )

    def _waits(self, name: str, place: int) -> bool:
        readers = self._readers.get(name, [])
        return self._made[name] <= place and bool(readers) and readers[-1] > place

    def _bytes(self, name: str) -> int:
        return self.network.by_name[name].size_bytes

    @cached_property
    def _made(self) -> dict[str, int]:
        """By tensor that is not handed out the place of the op that makes it."""
        return {
            operand.tensor: place
            for place, op in enumerate(self.order)
            for operand in op.outputs
            if self.network.by_name[operand.tensor].role == "activation"
        }

    @cached_property
    def _readers(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, op in enumerate(self.order):
            for name in dict.fromkeys(operand.tensor for operand in op.inputs):
                found.setdefault(name, []).append(place)
        return found


@dataclass(frozen=True)
class Copied:
    """A network with copies of ops, and why there are any."""

    patches: Patches
    again: tuple[Again, ...] = ()
    """Under the names of the network without copies."""

    def with_copies(self, way: Again) -> "Copied":
        """The network with copies of some ops more."""
        network = self.patches.network
        ops = {op.name: op for op in network.ops}
        made_by = [operand.tensor for name in way.ops for operand in ops[name].outputs]
        names = _new_names(made_by, network.by_name)
        copies = _new_names(way.ops, ops)
        made = [
            replace(
                ops[name],
                name=copies[name],
                inputs=_renamed(ops[name].inputs, names),
                outputs=_renamed(ops[name].outputs, names),
            )
            for name in way.ops
        ]
        late = [
            replace(op, inputs=_renamed(op.inputs, names)) if op.name in way.readers else op
            for op in network.ops
        ]
        first = next(at for at, op in enumerate(late) if op.name in way.readers)
        tensors = [replace(network.by_name[old], name=new) for old, new in names.items()]
        patches = Patches(
            original=self.patches.original,
            network=Network(
                name=network.name,
                tensors=(*network.tensors, *tensors),
                ops=(*late[:first], *made, *late[first:]),
                source=network.source,
            ),
            strips=(),
            tensors={
                **self.patches.tensors,
                **{new: _copy_of(self.patches, old) for old, new in names.items()},
            },
            ops=_numbered(self.patches, copies),
        )
        return Copied(patches, (*self.again, self._originally(way)))

    def _originally(self, way: Again) -> Again:
        return replace(
            way,
            tensor=_copy_of(self.patches, way.tensor).tensor,
            ops=tuple(original_name(name, self.patches) for name in way.ops),
            readers=tuple(original_name(name, self.patches) for name in way.readers),
        )


def _renamed(operands: Sequence[Operand], names: Mapping[str, str]) -> tuple[Operand, ...]:
    """Operands with some tensors under other names."""
    return tuple([replace(o, tensor=names.get(o.tensor, o.tensor)) for o in operands])


def _new_names(names: Sequence[str], taken: Mapping[str, object]) -> dict[str, str]:
    """For every name one that nothing has yet."""
    found: dict[str, str] = {}
    known = dict.fromkeys(taken)
    for name in names:
        new = name
        while new in known:
            new = f"{new} again"
        found[name] = new
        known[new] = None
    return found


def _copy_of(known: Patches, tensor: str) -> TensorStrip:
    """What a copy of a tensor is a copy of."""
    found = known.tensors.get(tensor)
    return found if found is not None else TensorStrip(tensor=tensor, axis=0, start=0)


def _numbered(known: Patches, copies: Mapping[str, str]) -> dict[str, OpStrip]:
    """What all ops are that run several times, each time under another number."""
    found = dict(known.ops)
    for old, new in copies.items():
        if old not in found:
            found[old] = OpStrip(op=old, loop="", start=0, strip=1)
        first = found[old]
        count = sum(1 for part in found.values() if part.op == first.op)
        found[new] = replace(first, strip=count + 1)
    return found


def unchanged(network: Network) -> Copied:
    """A network without copies."""
    return Copied(Patches(original=network, network=network, strips=(), tensors={}, ops={}))


def both(copies: Patches, strips: Patches) -> Patches:
    """A network with copies, of which some stretches run in strips, as one of the first one."""
    found: dict[str, OpStrip] = {}
    counts: dict[str, int] = {}
    for op in strips.network.ops:
        part = strips.ops.get(op.name)
        inner = op.name if part is None else part.op
        whole = copies.ops.get(inner)
        if part is None and whole is None:
            continue
        name = inner if whole is None else whole.op
        goes_on = part is not None and part.goes_on
        counts[name] = counts.get(name, 0) + (not goes_on)
        loop, start = ("", 0) if part is None else (part.loop, part.start)
        found[op.name] = OpStrip(op=name, loop=loop, start=start, strip=counts[name])
    tensors = dict(copies.tensors)
    for name, strip in strips.tensors.items():
        tensors[name] = replace(strip, tensor=_copy_of(copies, strip.tensor).tensor)
    return Patches(
        original=copies.original,
        network=strips.network,
        strips=strips.strips,
        tensors=tensors,
        ops=found,
    )
