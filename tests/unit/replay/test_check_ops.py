"""Tasks that compute: what they say they do, on which engine, and what they apply in passing."""

from dataclasses import replace

import pytest
from tests.draft_changes import change_task, start_at, task
from tests.timetable_builder import CMX, DRAM, Draft, views_draft, views_network

from tilewright.network.build import NetworkBuilder
from tilewright.network.graph import Network
from tilewright.network.nests import elementwise, matmul
from tilewright.program.model import Access
from tilewright.replay.check import problems

WHOLE = ((0, 2), (0, 2))


@pytest.fixture
def draft() -> Draft:
    return views_draft()


def found(draft: Draft, network: Network) -> list[str]:
    return [problem.message for problem in problems(draft.timetable(), network)]


def test_a_load_is_not_quicker_because_it_is_called_computing(draft: Draft) -> None:
    """Nobody would look for the way that it goes."""
    change_task(draft, "load x", replace(task(draft, "load x"), kind="compute"))
    assert found(draft, views_network()) == [
        "task load x computes, and does not say which op",
    ]


def test_a_transfer_does_not_compute(draft: Draft) -> None:
    change_task(draft, "neg[0]", replace(task(draft, "neg[0]"), kind="move"))
    assert found(draft, views_network()) == [
        "task neg[0], a move, does neg, a neg: transfers only move elements"
    ]


def test_a_dma_engine_does_not_compute(draft: Draft) -> None:
    change_task(draft, "neg[0]", replace(task(draft, "neg[0]"), engine="dma"))
    assert found(draft, views_network()) == [
        "task neg[0] on dma does neg, a neg, and only a core computes"
    ]


def fused_network() -> Network:
    """n = -(p @ q)."""
    builder = NetworkBuilder("fused")
    builder.tensor("p", (2, 4), bits=8, role="input")
    builder.tensor("q", (4, 2), bits=8, role="constant")
    builder.op("product", "matmul", matmul((2, 4), (4, 2)), ["p", "q"], {"m": (8, "")})
    builder.op("neg", "neg", elementwise((2, 2)), ["m"], {"n": (8, "")})
    return builder.finish(["n"])


def fused_draft() -> Draft:
    """Two halves of the sum, one after the other; the second one's result is turned at once."""
    draft = Draft(spaces=(DRAM, replace(CMX, reserved=())))
    p, q = draft.buffer("p@dram", ((0, 2), (0, 4)), 8), draft.buffer("q@dram", ((0, 4), (0, 2)), 16)
    m, n = draft.buffer("m@cmx[0]", WHOLE, 16), draft.buffer("n@dram", WHOLE, 0)
    draft.given += [p, q]
    draft.results.append(n)
    for part in (0, 1):
        ends = (2 * part, 2 * part + 2)
        reads = [Access(p, ((0, 2), ends)), Access(q, (ends, (0, 2)))]
        reads += [Access(m, WHOLE)] if part else []
        tile = (("D", 0, 2), ("K", 0, 2), ("C", *ends))
        writes = (Access(n if part else m, WHOLE),)
        draft.task(f"product[{part}]", ("core[0]", 5 * part, 5), tuple(reads), writes, tile=tile)
    change_task(draft, "product[1]", replace(task(draft, "product[1]"), fused=("neg",)))
    return draft


def test_an_op_may_be_applied_to_the_last_part_of_a_sum() -> None:
    assert found(fused_draft(), fused_network()) == []


def test_an_op_is_not_applied_to_a_part_of_a_sum() -> None:
    draft = fused_draft()
    change_task(draft, "product[0]", replace(task(draft, "product[0]"), fused=("neg",)))
    assert found(draft, fused_network()) == [
        "task product[0] applies neg to sums to which product[1] adds",
        "task product[0] (D 0:2, K 0:2, C 0:2) writes m, and makes n",
    ]


def test_which_part_is_the_last_is_a_matter_of_time() -> None:
    draft = fused_draft()
    start_at(draft, "product[0]", 20)
    assert "task product[1] applies neg to sums to which product[0] adds" in found(
        draft, fused_network()
    )


def test_an_op_is_not_applied_twice() -> None:
    draft = fused_draft()
    change_task(draft, "product[1]", replace(task(draft, "product[1]"), fused=("neg", "neg")))
    assert "task product[1] applies neg, neg: one op twice" in found(draft, fused_network())


def scaled() -> tuple[Draft, Network]:
    """n = x @ q * s: the scale of each column is read while the product is made."""
    builder = NetworkBuilder("scaled")
    builder.tensor("x", (2, 4), bits=8, role="input")
    builder.tensor("q", (4, 2), bits=8, role="constant")
    builder.tensor("s", (2,), bits=8, role="constant")
    builder.op("product", "matmul", matmul((2, 4), (4, 2)), ["x", "q"], {"m": (8, "")})
    builder.op("scale", "mul", elementwise((2, 2), (2,)), ["m", "s"], {"n": (8, "")})
    draft = Draft(spaces=(DRAM,))
    boxes = {"x": ((0, 2), (0, 4)), "q": ((0, 4), (0, 2)), "s": ((0, 2),), "n": WHOLE}
    at = {t: draft.buffer(f"{t}@dram", box, 16 * n) for n, (t, box) in enumerate(boxes.items())}
    draft.given += [at["x"], at["q"], at["s"]]
    draft.results.append(at["n"])
    reads = tuple(Access(at[t], boxes[t]) for t in "xqs")
    tile = (("D", 0, 2), ("K", 0, 2), ("C", 0, 4))
    draft.task("product", ("core[0]", 0, 5), reads, (Access(at["n"], WHOLE),), tile=tile)
    change_task(draft, "product", replace(task(draft, "product"), fused=("scale",)))
    return draft, builder.finish(["n"])


def test_what_a_fused_op_needs_is_read() -> None:
    draft, network = scaled()
    assert found(draft, network) == []
    whole = task(draft, "product")
    change_task(draft, "product", replace(whole, reads=whole.reads[:2]))
    expected = "task product (D 0:2, K 0:2, C 0:4) needs [0:2] of s and reads nothing of [0:2]"
    assert found(draft, network) == [expected]
    half = whole.reads[2]._replace(box=((0, 1),))
    change_task(draft, "product", replace(whole, reads=(*whole.reads[:2], half)))
    expected = "task product (D 0:2, K 0:2, C 0:4) needs [0:2] of s and reads nothing of [1:2]"
    assert found(draft, network) == [expected]


def test_a_buffer_has_the_axes_of_its_tensor() -> None:
    draft, network = scaled()
    draft.buffers[2] = replace(draft.buffers[2], tensor="q")
    assert found(draft, network) == ["buffer s@dram holds [0:2] of q, which has 2 axes"]
