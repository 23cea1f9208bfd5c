"""Core models in machine files, and what memories tell them."""

from typing import get_args

from tests.machine_builder import changed, machine_of, messages, sound_machine

from tilewright.machine.load import load_machine
from tilewright.machine.model import CoreModel, EthosUName
from tilewright.mapping.ethos_u.configuration import CONFIGURATIONS

MODEL = {"name": "ethos-u", "configuration": "u55-128"}


def test_a_core_may_name_its_model() -> None:
    core = machine_of(sound_machine() | {"core_model": MODEL}).cores[0]
    assert core.model == CoreModel(name="ethos-u", configuration="u55-128")


def test_a_core_names_none_by_default() -> None:
    assert machine_of(sound_machine()).cores[0].model is None


def test_every_configuration_of_a_file_is_known_to_the_model() -> None:
    assert get_args(EthosUName) == tuple(CONFIGURATIONS)


def test_an_unknown_model_is_refused() -> None:
    (problem,) = messages(sound_machine() | {"core_model": MODEL | {"name": "ethos-x"}})
    assert problem.startswith("core_model.name: expected 'ethos-u'")


def test_beside_several_kinds_of_core_the_model_belongs_into_one() -> None:
    data = sound_machine()
    core = {key: data.pop(key) for key in ("operational_array", "memories")}
    told = messages(data | {"cores": {"one": core}, "core_model": MODEL})
    assert "core_model: has no meaning beside `cores`" in told
    inside = machine_of(data | {"cores": {"one": core | {"core_model": MODEL}}})
    assert inside.cores[0].model is not None


def test_memories_tell_bursts_and_latencies() -> None:
    data = sound_machine()
    data["memories"]["bank"] |= {"burst": 256, "read_latency": 32, "write_latency": 16}
    bank = next(m for m in machine_of(data).memories if m.name == "bank")
    assert (bank.burst_bytes, bank.read_latency_cycles, bank.write_latency_cycles) == (32, 32, 16)


def test_a_burst_is_whole_bytes() -> None:
    data = changed(sound_machine(), "memories/bank/burst", 12)
    assert messages(data) == ["memories.bank.burst: 12 bit are no whole bytes"]


def test_the_machines_of_the_library_are_of_the_family() -> None:
    names = {"ethos_u55_128": "u55-128", "ethos_u55_256": "u55-256", "ethos_u65_256": "u65-256"}
    for name, configuration in names.items():
        model = load_machine(name).cores[0].model
        assert model is not None
        assert model.configuration == configuration
