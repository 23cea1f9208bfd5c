"""The least traffic that a fused mapper proved for a small network, with the same buffers."""

from pathlib import Path

import pytest

from tilewright.machine.load import load_machine
from tilewright.network.load import load_network
from tilewright.planner import PlanOptions, plan
from tilewright.replay.verify import verify

MACHINE = Path(__file__).parents[1] / "one_core.yaml"
WORD_BYTES = 2


# AccelForge 1.0.467 finds these for the same five layers, in 77 and 84 s of CPU: every weight, the
# input and the output once in a buffer of 11,050 bytes, and 34,736 words in one of 8 KiB.
@pytest.mark.parametrize(("buffer_bytes", "words"), [(11_050, 25_232), (8_192, 34_736)])
def test_no_more_words_are_moved_than_the_best_known(buffer_bytes: int, words: int) -> None:
    options = PlanOptions(objective="traffic", memory_limits=(("buffer", buffer_bytes),))
    found = plan(load_network("notes_cnn"), load_machine(MACHINE), options)
    assert found.outside_bytes <= words * WORD_BYTES
    assert found.peak_bytes["buffer"] <= buffer_bytes
    assert verify(found.timetable, found.network).agrees
