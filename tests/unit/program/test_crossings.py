"""What has to cross the edge of the chip, how fast it can, and who does it without a transfer."""

from dataclasses import replace
from fractions import Fraction
from math import inf

import pytest
from tests.machine_builder import changed, machine_of, marked, sound_machine
from tests.small_machines import Kind, Small, small_machine

from tilewright.machine.model import Machine
from tilewright.mapping.search import SearchOptions
from tilewright.network.graph import Network
from tilewright.network.zoo import layers
from tilewright.program.bounds import NetworkBounds
from tilewright.program.crossings import Crossing, least_cycles, rate_of
from tilewright.program.lower import prepare
from tilewright.program.model import Engine, Route
from tilewright.program.places import Places, places_of

QUICK = SearchOptions(lpf_limit=3, unrollings=2)
BITS_OF_AN_INDEX = 32


def bounds_of(network: Network, machine: Machine) -> NetworkBounds:
    return prepare(network, machine, network.ops, QUICK).bounds


class TestRate:
    """Bytes a cycle that can come from outside at once."""

    def test_of_routes_that_share_an_engine_and_ports_the_fastest_counts(self) -> None:
        assert _rate(("a", ("p",), 2), ("a", ("p",), 8)) == 8
        assert _rate(("a", ("p",), 8), ("a", ("p",), 2)) == 8

    def test_of_others_all_count(self) -> None:
        assert _rate(("a", ("p",), 2), ("c", ("q",), 8)) == 10

    def test_an_engine_does_one_thing_at_a_time_and_so_does_a_port(self) -> None:
        assert _rate(("a", ("p",), 2), ("a", ("q",), 8)) == 8
        assert _rate(("a", ("p",), 2), ("b", ("p",), 8)) == 8

    def test_as_many_transfers_flow_as_the_engine_and_every_port_have_lanes(self) -> None:
        assert _rate(("b", (), 2)) == 3 * 2
        assert _rate(("b", ("q",), 2)) == 2 * 2
        assert _rate(("b", ("q", "p"), 2)) == 1 * 2

    def test_what_goes_out_counts_where_it_goes_through_the_same_port(self) -> None:
        places = _with_routes(("a", ("p",), 2))
        inside = next(space.name for space in places.spaces if space.kind == "scratchpad")
        (inwards,) = places.routes.values()
        out = replace(inwards, source=inside, target="ddr", engine="c")
        coming, going = (
            Crossing(space="ddr", leaves=leaves, straight=False, size_bytes=100)
            for leaves in (False, True)
        )
        for port, cycles in (("p", 100), ("q", 50)):
            routes = {**places.routes, (inside, "ddr"): replace(out, ports=(port,))}
            both = replace(places, routes=routes)
            assert least_cycles([coming, going], both) == cycles
            assert least_cycles([coming], both) == 50

    def test_where_nothing_leads_nothing_is_known(self) -> None:
        crossing = Crossing(space="ddr", leaves=False, straight=False, size_bytes=100)
        places = replace(_with_routes(), routes={})
        assert rate_of([crossing], places) == inf
        assert least_cycles([crossing], places) == 0


def _rate(*ways: tuple[str, tuple[str, ...], int]) -> float:
    crossing = Crossing(space="ddr", leaves=False, straight=False, size_bytes=1)
    return rate_of([crossing], _with_routes(*ways))


def _with_routes(*ways: tuple[str, tuple[str, ...], int]) -> Places:
    """Engine, ports and bytes a cycle of ways from the DRAM; `b` has three lanes, `q` two."""
    places = places_of(small_machine(Small()))
    engines = [("a", 1), ("b", 3), ("c", 1), ("p", 1), ("q", 2)]
    routes = {
        ("ddr", f"bank{number}"): Route(
            source="ddr",
            target=f"bank{number}",
            engine=engine,
            setup_cycles=0,
            bytes_per_cycle=Fraction(rate),
            ports=ports,
        )
        for number, (engine, ports, rate) in enumerate(ways)
    }
    named = tuple(Engine(name=name, count=count) for name, count in engines)
    return replace(places, engines=named, routes=routes)


class TestPorts:
    def test_what_comes_and_what_goes_through_one_port_add_up(self) -> None:
        """16 x 16 pixels of 8 channels, 32 weights, 4 biases; then 4 channels: 4 bytes a cycle."""
        found = bounds_of(_conv(), small_machine(Small(cores=4)))
        assert found.cycles == (2048 + 32 + 16 + 1024) // 4

    def test_through_two_ports_they_do_not(self) -> None:
        data = sound_machine()
        (both,) = data["memories"]["ddr"]["ports"]
        sides = (("r", "read", ("tl", "th")), ("w", "write", ("fh", "fl")))
        data["memories"]["ddr"]["ports"] = [
            both
            | {"name": name, "type": kind}
            | {"allocation": [use for use in both["allocation"] if use.endswith(directions)]}
            for name, kind, directions in sides
        ]
        data = marked(data) | {"core_count": 4}
        data["memories"]["bank"]["role"] = "scratchpad"
        data["memories"]["ddr"] |= {"role": "external", "shared": True}
        engines = [{"name": n, "width": "32 bit", "ports": 1, "queues": 1} for n in ("in", "out")]
        found = bounds_of(_conv(), machine_of(data | {"dma": engines}))
        assert found.shared_cycles == found.transfer_cycles == (2048 + 32 + 16) // 4


def _conv() -> Network:
    net = layers.draft("conv", 8)
    data = layers.given(net, "x", (1, 8, 16, 16))
    return net.finish(layers.conv(net, "conv", data, 4, layers.square(1)))


class TestStraight:
    """What tasks read and write outside themselves waits for no engine, but for the port."""

    @pytest.mark.parametrize(("kind", "width"), [("one", 8), ("none", 32), ("streamed", 8)])
    def test_the_engine_counts_where_transfers_are_needed(self, kind: Kind, width: int) -> None:
        """2048 bytes come and 1024 go; an engine of 8 bit serves what lies in a scratchpad."""
        net = layers.draft("pool", 8)
        data = layers.given(net, "x", (1, 8, 16, 16))
        made = layers.max_pool(net, "pool", data, layers.Filter(kernel=(2, 1), strides=(2, 1)))
        machine = small_machine(Small(kind=kind))
        (engine,) = small_machine(Small(dma=True)).dma
        slow = replace(engine, bits_per_cycle=8, ports=1, setup_cycles=0)
        found = bounds_of(net.finish(made), replace(machine, dma=(slow,)))
        moved = 2048 if width == 8 else 0
        assert found.transfer_cycles >= moved
        assert (found.shared_cycles >= 2048 + 1024) == (width == 8)

    @pytest.mark.parametrize("bypasses", [False, True])
    def test_weights_that_may_go_past_a_scratchpad_need_no_engine(self, bypasses: bool) -> None:
        data = changed(marked(sound_machine()), "memories/bank/role", "scratchpad")
        data["memories"]["ddr"] |= {"role": "external"}
        if bypasses:
            data["memories"]["bank"]["bypass"] = ["I2"]
        data["dma"] = [{"name": "slow", "width": "8 bit", "ports": 1, "queues": 1}]
        net = layers.draft("product", 8)
        made = layers.gemm(net, "product", layers.given(net, "x", (1, 64)), 128)
        found = bounds_of(net.finish(made), machine_of(data))
        weights, others = 64 * 128, 64 + 128 * 4
        # Over the engine comes a byte a cycle, through the port of the DRAM four.
        alone = others if bypasses else others + weights
        assert found.transfer_cycles == max(alone, (others + weights) // 4)


class TestLookUps:
    def test_what_a_view_shows_of_an_input_and_nobody_takes_does_not_come(self) -> None:
        """3 of 50 rows of 8 are found in another shape of an input, of which a pool reads 16."""
        net = layers.draft("views", 8)
        data = layers.given(net, "x", (1, 2, 20, 10))
        table = layers.reshape(net, "table", data, (50, 8))
        rows = layers.look_up(net, "found", table, layers.given_indices(net, "ids", (3,)))
        part = layers.max_pool(net, "pool", data, layers.square(1, 5))
        found = bounds_of(net.finish(rows, part), small_machine(Small()))
        assert found.traffic_bytes == 3 * BITS_OF_AN_INDEX // 8 + 24 + 24 + 16

    @pytest.mark.parametrize("role", ["input", "constant"])
    def test_of_a_table_come_no_more_bytes_than_are_found(self, role: str) -> None:
        net = layers.draft("words", 8)
        make = layers.given if role == "input" else layers.constant
        table = make(net, "table", (500, 8))
        made = layers.look_up(net, "found", table, layers.given_indices(net, "ids", (3,)))
        found = bounds_of(net.finish(made), small_machine(Small()))
        assert found.traffic_bytes == 3 * BITS_OF_AN_INDEX // 8 + 2 * 3 * 8
