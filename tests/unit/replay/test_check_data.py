"""The checker of plans: what tasks read, partial sums, and what the network asks of a plan."""

from dataclasses import replace

import pytest
from tests.draft_changes import change_task, messages, move_to, number, start_at, task
from tests.timetable_builder import CMX, DRAM, Draft, rows, views_draft, views_network

from tilewright.network.build import NetworkBuilder
from tilewright.network.moves import transpose
from tilewright.network.nests import elementwise, matmul
from tilewright.program.model import Access, Slot, View
from tilewright.replay.check import problems


@pytest.fixture
def draft() -> Draft:
    return views_draft()


class TestData:
    def test_data_that_nobody_has_written(self, draft: Draft) -> None:
        change_task(draft, "relu[1]", replace(task(draft, "relu[1]"), writes=()))
        assert messages(draft) == [
            "add[1] (cycles 15 to 18) reads [2:4, 0:4] of buffer a@cmx[0], and nobody has written "
            "8 bytes of it, [2:4, 0:4] in c@cmx[0]"
        ]

    def test_data_that_is_not_given(self, draft: Draft) -> None:
        draft.given.remove(number(draft, "w@dram"))
        assert messages(draft)[0] == (
            "load w (cycles 4 to 10) reads [0:4, 0:4] of buffer w@dram, and nobody has written "
            "16 bytes of it, [0:4, 0:4]"
        )

    def test_a_reader_that_starts_before_the_writer_ends(self, draft: Draft) -> None:
        start_at(draft, "neg[0]", 5)
        assert messages(draft) == [
            "load x (cycles 0 to 6) writes and neg[0] (cycles 5 to 9) reads [0:4, 0:4] of buffer "
            "x@cmx[0] (16 bytes) at cycles 5 to 6"
        ]

    def test_two_writers_at_once(self, draft: Draft) -> None:
        neg = task(draft, "neg[0]")
        at = number(draft, "d@cmx[0]")
        draft.buffers[at] = replace(draft.buffers[at], view=View(5, (3, 0)))
        draft.addresses[at] = 44
        change_task(draft, "neg[0]", replace(neg, cycles=6))
        draft.slots[number(draft, "neg[0]")] = Slot(start_cycle=6, end_cycle=12)
        assert messages(draft)[0] == (
            "neg[0] (cycles 6 to 12) writes and relu[1] (cycles 9 to 12) writes [3:4, 0:4] of "
            "buffer c@cmx[0] (4 bytes) at cycles 9 to 12"
        )

    def test_writers_of_different_parts_do_not_disturb_each_other(self, draft: Draft) -> None:
        # neg writes rows 4 to 8 of c while relu writes rows 0 to 2.
        assert draft.slots[2].start_cycle == draft.slots[4].start_cycle
        assert messages(draft) == []

    def test_data_that_was_overwritten_in_place(self, draft: Draft) -> None:
        late = task(draft, "add[1]")
        box = rows(0, 2)
        change_task(draft, "add[1]", replace(late, reads=(Access(6, box), *late.reads)))
        assert messages(draft) == [
            "add[1] (cycles 15 to 18) reads [0:2, 0:4] of a in buffer a@cmx[0], and 8 bytes of it, "
            "[0:2, 0:4] of c@cmx[0], hold b, made by add[0] (cycles 12 to 15)"
        ]

    def test_another_part_of_the_same_tensor(self, draft: Draft) -> None:
        # A second view puts rows 2 to 4 of a where rows 0 to 2 are read from.
        rolling = draft.buffer("a@cmx[0]", rows(2, 4), 32, View(5, (0, 0)))
        late = task(draft, "relu[1]")
        change_task(draft, "relu[1]", replace(late, writes=(Access(rolling, rows(2, 4)),)))
        assert messages(draft)[0] == (
            "add[0] (cycles 12 to 15) reads [0:2, 0:4] of a in buffer a@cmx[0], and 8 bytes of it, "
            "[0:2, 0:4] of c@cmx[0], hold another part of a, made by relu[1] (cycles 9 to 12)"
        )

    def test_a_result_that_is_incomplete(self, draft: Draft) -> None:
        store, part = task(draft, "store e"), ((0, 30),)
        change_task(
            draft, "store e", replace(store, reads=(Access(10, part),), writes=(Access(2, part),))
        )
        assert messages(draft) == [
            "at the end, cycle 34, the result is read: [0:32] of buffer e@dram, and nobody has "
            "written 2 bytes of it, [30:32]"
        ]

    def test_an_eviction_keeps_what_each_part_holds(self, draft: Draft) -> None:
        """b is half written over a when c is saved, brought back elsewhere and completed there."""
        draft.spaces = (DRAM, replace(CMX, size_bytes=200))
        saved = draft.buffer("c@dram", rows(0, 8), 100)
        back = draft.buffer("c@cmx[0]", rows(0, 8), 96 + 8)
        new = {
            name: draft.buffer(name, draft.buffers[number(draft, name)].box, at, view)
            for name, at, view in (
                ("a@cmx[0]", 104, View(back, (0, 0))),
                ("b@cmx[0]", 104, View(back, (0, 0))),
                ("r@cmx[0]", 104, View(back)),
            )
        }
        save, fetch = (Access(5, rows(0, 8)), Access(saved, rows(0, 8))), Access(back, rows(0, 8))
        draft.task("save", ("dma", 15, 5), save[:1], save[1:], kind="store")
        draft.task("fetch", ("dma", 20, 5), save[1:], (fetch,), kind="load")
        late = task(draft, "add[1]")
        reads = (Access(new["a@cmx[0]"], rows(2, 4)), late.reads[1])
        writes = (Access(new["b@cmx[0]"], rows(2, 4)),)
        change_task(draft, "add[1]", replace(late, reads=reads, writes=writes))
        exp = task(draft, "exp[0]")
        change_task(draft, "exp[0]", replace(exp, reads=(Access(new["r@cmx[0]"], ((0, 32),)),)))
        for name, start in (("add[1]", 25), ("exp[0]", 28), ("store e", 36)):
            start_at(draft, name, start)
        assert problems(draft.timetable(), views_network()) == []
        # Read as a, the first half is b by now.
        change_task(
            draft, "add[1]", replace(late, reads=(Access(new["a@cmx[0]"], rows(0, 4)), *reads[1:]))
        )
        assert messages(draft)[0].endswith("hold b, made by add[0] (cycles 12 to 15)")


def sums_draft() -> Draft:
    """m = p @ q, its sum in two parts over C, then n = -m; only m lies in a scratchpad."""
    draft = Draft(spaces=(DRAM, replace(CMX, reserved=())))
    p = draft.buffer("p@dram", ((0, 2), (0, 4)), 100)
    q = draft.buffer("q@dram", ((0, 4), (0, 2)), 120)
    m = draft.buffer("m@cmx[0]", ((0, 2), (0, 2)), 16)
    n = draft.buffer("n@dram", ((0, 2), (0, 2)), 0)
    draft.given += [p, q]
    draft.results.append(n)
    whole = ((0, 2), (0, 2))
    for part in (0, 1):
        ends = (2 * part, 2 * part + 2)
        reads = [Access(p, ((0, 2), ends)), Access(q, (ends, (0, 2)))]
        reads += [Access(m, whole)] if part else []
        tile = (("D", 0, 2), ("K", 0, 2), ("C", *ends))
        at = ("core[0]", 5 * part, 5)
        draft.task(f"product[{part}]", at, tuple(reads), (Access(m, whole),), tile=tile)
    draft.task("neg", ("core[0].vector", 10, 5), (Access(m, whole),), (Access(n, whole),))
    return draft


class TestPartialSums:
    def test_a_sum_that_is_complete_when_read(self) -> None:
        assert messages(sums_draft()) == []

    def test_a_sum_that_is_read_before_its_last_part(self) -> None:
        draft = sums_draft()
        start_at(draft, "product[1]", 15)
        assert messages(draft) == [
            "neg (cycles 10 to 15) reads [0:2, 0:2] of buffer m@cmx[0] as product[0] (cycles 0 to "
            "5) left it, without what product[1] (cycles 15 to 20) adds"
        ]

    def test_a_sum_in_three_parts(self) -> None:
        draft = sums_draft()
        draft.tasks.append(replace(task(draft, "product[1]"), name="product[2]"))
        draft.slots.append(Slot(start_cycle=10, end_cycle=15))
        start_at(draft, "neg", 15)
        assert messages(draft) == []
        # The middle part comes last, so what the one before it found was not the sum so far.
        start_at(draft, "product[1]", 20)
        assert len(messages(draft)) == 1

    def test_a_copy_that_was_taken_before_the_last_part(self) -> None:
        draft = sums_draft()
        whole = ((0, 2), (0, 2))
        out = draft.buffer("m@dram", whole, 8)
        back = draft.buffer("m@cmx[0]", whole, 24)
        draft.task("out", ("dma", 5, 4), (Access(2, whole),), (Access(out, whole),), kind="store")
        start_at(draft, "product[1]", 9)
        draft.task("in", ("dma", 14, 4), (Access(out, whole),), (Access(back, whole),), kind="load")
        change_task(draft, "neg", replace(task(draft, "neg"), reads=(Access(back, whole),)))
        start_at(draft, "neg", 18)
        assert messages(draft) == [
            "neg (cycles 18 to 23) reads [0:2, 0:2] of buffer m@cmx[0] as product[0] (cycles 0 to "
            "5) left it, without what product[1] (cycles 9 to 14) adds"
        ]


class TestNetwork:
    def found(self, draft: Draft) -> list[str]:
        return [p.message for p in problems(draft.timetable(), views_network())]

    def test_an_op_that_is_left_out(self, draft: Draft) -> None:
        change_task(draft, "neg[0]", replace(task(draft, "neg[0]"), op=""))
        assert self.found(draft)[0] == "no task computes neg, a neg of 16 points"

    def test_a_part_of_an_op_that_is_left_out(self, draft: Draft) -> None:
        tile = (("D", 2, 3), ("K", 0, 4))
        change_task(draft, "relu[1]", replace(task(draft, "relu[1]"), tile=tile))
        assert self.found(draft) == [
            "no task computes D 3:4, K 0:4 of relu; 4 of its 16 points are missing",
            "task relu[1] (D 2:3, K 0:4) writes [2:4, 0:4] of a and does not make [3:4, 0:1]",
        ]

    def test_an_op_that_is_computed_twice(self, draft: Draft) -> None:
        tile = (("D", 1, 4), ("K", 0, 4))
        change_task(draft, "add[1]", replace(task(draft, "add[1]"), tile=tile))
        assert self.found(draft)[0] == (
            "tasks add[0] and add[1] both compute D 1:2, K 0:4 of add, 4 points"
        )

    def test_computing_again_what_was_dropped_is_allowed(self, draft: Draft) -> None:
        again = task(draft, "neg[0]")
        draft.tasks.append(replace(again, name="neg[0]#1"))
        draft.slots.append(Slot(start_cycle=10, end_cycle=14))
        assert self.found(draft) == []

    def test_a_tile_outside_its_op(self, draft: Draft) -> None:
        tile = (("D", 2, 5), ("K", 0, 4))
        change_task(draft, "relu[1]", replace(task(draft, "relu[1]"), tile=tile))
        assert self.found(draft) == [
            "task relu[1] computes D 2:5, K 0:4 of relu, D 0:4, K 0:4",
        ]

    def test_an_op_that_is_not_in_the_network(self, draft: Draft) -> None:
        change_task(draft, "exp[0]", replace(task(draft, "exp[0]"), fused=("gelu",)))
        assert self.found(draft) == ["task exp[0] computes gelu, an op that is not there"]

    def test_a_tile_without_all_of_its_input(self, draft: Draft) -> None:
        assert self.found(draft) == []
        late = task(draft, "add[1]")
        change_task(draft, "add[1]", replace(late, reads=late.reads[:1]))
        assert self.found(draft) == [
            "task add[1] (D 2:4, K 0:4) needs [2:4, 0:4] of w and reads nothing of [2:4, 0:4]"
        ]

    def test_a_buffer_that_is_too_small(self, draft: Draft) -> None:
        at = number(draft, "e@dram")
        draft.buffers[at] = replace(draft.buffers[at], size_bytes=31)
        assert self.found(draft) == [
            "buffer e@dram has 31 bytes, and 32 elements of 8 bits take 32"
        ]

    def test_an_output_that_stays_on_the_chip(self, draft: Draft) -> None:
        draft.results[:] = [number(draft, "e@cmx[0]")]
        assert self.found(draft) == [
            "no result in an external memory or a sink holds [0:32] of the output e"
        ]

    def test_only_ops_that_move_data_make_one_tensor_of_two(self, draft: Draft) -> None:
        # Without a network nobody knows what r is; with it, it is c, not the constant w.
        draft.buffers[number(draft, "r@cmx[0]")] = replace(
            draft.buffers[number(draft, "r@cmx[0]")], box=((0, 16),), view=View(4), size_bytes=16
        )
        move_to(draft, "r@cmx[0]", 16)
        move_to(draft, "e@cmx[0]", 32)
        change_task(draft, "exp[0]", replace(task(draft, "exp[0]"), reads=(Access(9, ((0, 16),)),)))
        without = messages(draft)
        assert [text for text in without if "hold" in text] == []
        assert [text for text in self.found(draft) if "hold" in text] == [
            "exp[0] (cycles 18 to 26) reads [0:16] of r in buffer r@cmx[0], and 16 bytes of it, "
            "[0:4, 0:4] of w@cmx[0], hold w, given from the start"
        ]

    def test_two_parts_of_a_concatenation_are_not_each_other(self, draft: Draft) -> None:
        wrong = draft.buffer("b@cmx[0]", rows(0, 4), 48, View(5, (4, 0)))
        exp = task(draft, "exp[0]")
        change_task(draft, "exp[0]", replace(exp, reads=(*exp.reads, Access(wrong, rows(0, 4)))))
        expected = (
            "exp[0] (cycles 18 to 26) reads [0:4, 0:4] of b in buffer b@cmx[0], and 16 bytes of "
            "it, [4:8, 0:4] of c@cmx[0], hold d, made by neg[0] (cycles 6 to 10)"
        )
        assert messages(draft) == [expected]
        assert self.found(draft) == [expected]

    def test_a_transposition_is_no_view(self) -> None:
        builder = NetworkBuilder("turned")
        builder.tensor("x", (2, 3), bits=8, role="input")
        builder.op("turn", "transpose", transpose((2, 3), (1, 0)), ["x"], {"y": (8, "")})
        builder.op("neg", "neg", elementwise((3, 2)), ["y"], {"z": (8, "")})
        found = problems(Draft().timetable(), builder.finish(["z"]))
        assert found[0].message == "no task computes turn, a transpose of 6 points"

    def test_a_fused_op_is_computed_where_its_host_is(self) -> None:
        builder = NetworkBuilder("fused")
        builder.tensor("p", (2, 4), bits=8, role="input")
        builder.tensor("q", (4, 2), bits=8, role="constant")
        builder.op("product", "matmul", matmul((2, 4), (4, 2)), ["p", "q"], {"m": (8, "")})
        builder.op("neg", "neg", elementwise((2, 2)), ["m"], {"n": (8, "")})
        network = builder.finish(["n"])
        draft = sums_draft()
        assert [p.message for p in problems(draft.timetable(), network)] == []
        last = replace(
            task(draft, "product[1]"), fused=("neg",), writes=(Access(3, ((0, 2),) * 2),)
        )
        change_task(draft, "product[1]", last)
        assert [p.message for p in problems(draft.timetable(), network)][-1] == (
            "tasks product[1] and neg both compute neg"
        )
        del draft.tasks[2], draft.slots[2]
        assert problems(draft.timetable(), network) == []
