"""What reading a network file gives: the network, and what is to be said about the file."""

from dataclasses import dataclass

from tilewright.errors import Problem
from tilewright.network.graph import Network


@dataclass(frozen=True)
class NetworkReading:
    """A network, unless its file has errors, and all problems in the order of the file."""

    network: Network | None
    problems: tuple[Problem, ...] = ()
