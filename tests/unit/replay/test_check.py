"""The checker of plans: what is accepted, and one fault of each sort with its whole message.

What tasks read, and what the network asks of them, is in `test_check_data.py`.
"""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.draft_changes import change_task, messages, move_to, number, start_at, task
from tests.timetable_builder import CMX, DRAM, Draft, rows, views_draft, views_network

from tilewright.errors import LimitError
from tilewright.program.model import Access, Engine, Slot, Space, View
from tilewright.replay.check import MOST_SHOWN, check, problems

CMX_1 = replace(CMX, name="cmx[1]", core=1)
SENSOR = Space(name="sensor", memory="sensor", kind="source", size_bytes=0)


@pytest.fixture
def draft() -> Draft:
    return views_draft()


def test_a_correct_plan_has_no_problems(draft: Draft) -> None:
    assert problems(draft.timetable()) == []
    assert problems(draft.timetable(), views_network()) == []
    check(draft.timetable(), views_network())


def test_a_plan_of_nothing_has_no_problems() -> None:
    assert problems(Draft().timetable()) == []


class TestStructure:
    def test_too_few_slots(self, draft: Draft) -> None:
        draft.slots.pop()
        assert messages(draft) == ["draft: 8 slots, and 9 are needed"]

    def test_an_unknown_space(self, draft: Draft) -> None:
        draft.spaces = (DRAM,)
        assert messages(draft)[0] == ("buffer x@cmx[0] lies in cmx[0], a space that does not exist")

    def test_an_unknown_engine_and_port(self, draft: Draft) -> None:
        draft.engines = draft.engines[:3]
        assert messages(draft)[0] == "task load x needs port, an engine that does not exist"

    def test_an_unknown_buffer(self, draft: Draft) -> None:
        load = task(draft, "load x")
        change_task(draft, "load x", replace(load, writes=(Access(99, rows(0, 4)),)))
        draft.results.append(11)
        assert messages(draft) == [
            "`results` names buffer 11, which does not exist",
            "task load x writes buffer 99, which does not exist",
        ]

    def test_an_unknown_task_to_wait_for(self, draft: Draft) -> None:
        change_task(draft, "load x", replace(task(draft, "load x"), after=(50,)))
        assert messages(draft) == ["task load x waits for task 50, which does not exist"]

    @pytest.mark.parametrize("edge", [(0, 9), (9, 0), (-1, 2), (2, -1)])
    def test_an_edge_to_an_unknown_task(self, draft: Draft, edge: tuple[int, int]) -> None:
        found = problems(replace(draft.timetable(), edges=(edge,)))
        assert [p.message for p in found] == [f"edge {edge} names a task that does not exist"]

    def test_an_access_outside_its_buffer(self, draft: Draft) -> None:
        load = task(draft, "load x")
        change_task(draft, "load x", replace(load, writes=(Access(3, rows(0, 5)),)))
        assert messages(draft) == [
            "task load x writes [0:5, 0:4] of buffer x@cmx[0], which holds [0:4, 0:4] only"
        ]

    def test_a_number_of_more_than_64_bits(self, draft: Draft) -> None:
        load = task(draft, "load x")
        change_task(draft, "load x", replace(load, writes=(Access(3, rows(0, 1 << 63)),)))
        wanted = ["there is a number of more than 64 bits, which no machine counts"]
        assert messages(draft) == wanted
        change_task(draft, "load x", load)
        draft.slots[0] = Slot(start_cycle=1 << 63, end_cycle=(1 << 63) + load.cycles)
        assert messages(draft) == wanted

    def test_an_access_with_an_axis_too_few(self, draft: Draft) -> None:
        load = task(draft, "load x")
        change_task(draft, "load x", replace(load, writes=(Access(3, ((0, 4),)),)))
        assert messages(draft) == [
            "task load x writes [0:4] of buffer x@cmx[0], which holds [0:4, 0:4] only"
        ]

    def test_a_view_that_sticks_out_of_its_root(self, draft: Draft) -> None:
        at = number(draft, "d@cmx[0]")
        draft.buffers[at] = replace(draft.buffers[at], view=View(5, (5, 0)))
        assert messages(draft) == [
            "buffer d@cmx[0], a view of c@cmx[0]: lies at [5:9, 0:4], outside the root's [0:8, 0:4]"
        ]

    def test_a_view_of_a_view(self, draft: Draft) -> None:
        at = number(draft, "d@cmx[0]")
        draft.buffers[at] = replace(draft.buffers[at], view=View(6, (0, 0)))
        assert messages(draft) == [
            "buffer d@cmx[0], a view of a@cmx[0]: a@cmx[0] is itself a view, so it has no bytes"
        ]

    @pytest.mark.parametrize("root", [-1, 8, 11])
    def test_a_view_of_itself_or_of_nothing(self, draft: Draft, root: int) -> None:
        at = number(draft, "d@cmx[0]")
        assert (at, len(draft.buffers)) == (8, 11)
        draft.buffers[at] = replace(draft.buffers[at], view=View(root, (0, 0)))
        assert messages(draft) == [
            f"buffer d@cmx[0] is a view of buffer {root}, which does not exist or is itself"
        ]

    def test_a_view_in_another_space(self, draft: Draft) -> None:
        at = number(draft, "d@cmx[0]")
        draft.buffers[at] = replace(draft.buffers[at], space="dram")
        assert messages(draft) == [
            "buffer d@cmx[0], a view of c@cmx[0]: lies in dram and its root in cmx[0]"
        ]

    def test_a_box_that_ends_before_it_begins(self, draft: Draft) -> None:
        draft.buffer("z@dram", ((4, 2),), 900)
        assert messages(draft) == ["buffer z@dram: 0 bytes, box [4:2]"]

    def test_a_negative_size(self, draft: Draft) -> None:
        at = draft.buffer("z@dram", ((0, 2),), 900)
        draft.buffers[at] = replace(draft.buffers[at], size_bytes=-1)
        assert messages(draft) == ["buffer z@dram: -1 bytes, box [0:2]"]

    def test_the_same_bytes_of_another_size(self, draft: Draft) -> None:
        at = number(draft, "r@cmx[0]")
        draft.buffers[at] = replace(draft.buffers[at], size_bytes=33)
        assert messages(draft) == [
            "buffer r@cmx[0], a view of c@cmx[0] under another shape: 33 bytes, the root 32; "
            "they must be equal"
        ]


class TestTime:
    def test_a_slot_of_another_length(self, draft: Draft) -> None:
        draft.slots[-1] = Slot(start_cycle=26, end_cycle=33)
        assert messages(draft) == [
            "store e (cycles 26 to 33) has a slot of another length: it takes 8"
        ]

    def test_a_start_before_the_beginning(self, draft: Draft) -> None:
        start_at(draft, "load x", -1)
        assert messages(draft) == ["load x (cycles -1 to 5) starts before cycle 0"]

    def test_an_instance_that_is_not_there(self, draft: Draft) -> None:
        draft.slots[0] = replace(draft.slots[0], instance=2)
        assert messages(draft) == [
            "load x (cycles 0 to 6) runs on instance 2 of dma, of which there are 2"
        ]

    def test_two_tasks_on_one_engine(self, draft: Draft) -> None:
        change_task(draft, "neg[0]", replace(task(draft, "neg[0]"), engine="core[0]"))
        assert messages(draft) == [
            "relu[0] (cycles 6 to 9) and neg[0] (cycles 6 to 10) are both on core[0] instance 0 "
            "at cycles 6 to 9",
            "neg[0] (cycles 6 to 10) and relu[1] (cycles 9 to 12) are both on core[0] instance 0 "
            "at cycles 9 to 10",
        ]

    def test_more_transfers_than_lanes(self, draft: Draft) -> None:
        start_at(draft, "load w", 3)
        assert messages(draft) == [
            "port port has 1 lanes, and 2 transfers need one at cycle 5: "
            "load x (cycles 0 to 6), load w (cycles 3 to 9)"
        ]

    def test_a_port_is_free_while_a_transfer_sets_up(self, draft: Draft) -> None:
        # load x holds it at cycles 2 to 6, load w from 4 + 2 on.
        assert draft.slots[1].start_cycle < draft.slots[0].end_cycle
        assert messages(draft) == []

    def test_a_task_that_does_not_wait(self, draft: Draft) -> None:
        change_task(draft, "load w", replace(task(draft, "load w"), after=(0,)))
        assert messages(draft) == [
            "load w (cycles 4 to 10) starts too early: `after` makes it wait for "
            "load x (cycles 0 to 6)"
        ]

    def test_a_control_edge_to_a_task_that_still_runs(self, draft: Draft) -> None:
        found = problems(replace(draft.timetable(), edges=((0, 1),)))
        assert [p.message for p in found] == [
            "load w (cycles 4 to 10) starts too early: a control edge makes it wait for "
            "load x (cycles 0 to 6)"
        ]

    def test_a_control_edge_that_is_not_kept(self, draft: Draft) -> None:
        found = problems(replace(draft.timetable(), edges=((8, 7), (0, 2))))
        assert [p.message for p in found] == [
            "exp[0] (cycles 18 to 26) starts too early: a control edge makes it wait for "
            "store e (cycles 26 to 34)"
        ]


class TestMemory:
    def test_a_buffer_outside_its_space(self, draft: Draft) -> None:
        move_to(draft, "e@dram", 1000)
        assert messages(draft) == [
            "buffer e@dram at bytes 1000 to 1032 of dram lies 8 bytes outside its 1024 bytes"
        ]

    def test_a_misaligned_buffer(self, draft: Draft) -> None:
        move_to(draft, "x@cmx[0]", 68)
        assert messages(draft) == [
            "buffer x@cmx[0] at bytes 68 to 84 of cmx[0] is not aligned to 8 bytes"
        ]

    def test_a_buffer_in_a_reserved_range(self, draft: Draft) -> None:
        move_to(draft, "x@cmx[0]", 80)
        assert messages(draft) == [
            "buffer x@cmx[0] at bytes 80 to 96 of cmx[0] touches the reserved bytes 88 to 96"
        ]

    def test_two_buffers_in_one_place(self, draft: Draft) -> None:
        move_to(draft, "w@cmx[0]", 8)
        assert messages(draft) == [
            "buffers x@cmx[0] and w@cmx[0] lie on the same bytes of cmx[0]: 8 to 16, "
            "at cycles 4 to 12"
        ]

    def test_a_buffer_lives_from_its_first_writer_on(self, draft: Draft) -> None:
        # c is first written at 6, by relu[0] and neg[0], and last at 15, when x is gone.
        move_to(draft, "x@cmx[0]", 32)
        assert messages(draft) == [
            "buffers x@cmx[0] and c@cmx[0] lie on the same bytes of cmx[0]: 32 to 48, "
            "at cycles 6 to 12"
        ]

    def test_a_view_keeps_its_root_alive(self, draft: Draft) -> None:
        # Only views of c are read after neg has written its part of it.
        move_to(draft, "e@cmx[0]", 24)
        assert messages(draft)[-1] == (
            "buffers c@cmx[0] and e@cmx[0] lie on the same bytes of cmx[0]: 32 to 56, "
            "at cycles 18 to 26"
        )

    def test_what_is_given_is_there_from_the_start_even_if_it_is_written_later(
        self, draft: Draft
    ) -> None:
        # The store writes e at 26 to 34; as it is given, x lies on its bytes from the start.
        draft.given.append(number(draft, "e@dram"))
        assert messages(draft) == []
        move_to(draft, "e@dram", 8)
        assert (
            "buffers x@dram and e@dram lie on the same bytes of dram: 8 to 16, at cycles 0 to 6"
            in messages(draft)
        )

    def test_what_is_given_is_there_from_the_start_and_a_result_to_the_end(
        self, draft: Draft
    ) -> None:
        move_to(draft, "e@dram", 16)
        assert messages(draft) == []
        draft.results.append(number(draft, "w@dram"))
        assert messages(draft) == [
            "buffers w@dram and e@dram lie on the same bytes of dram: 16 to 32, at cycles 26 to 34"
        ]

    def test_a_view_with_the_address_of_something_else(self, draft: Draft) -> None:
        move_to(draft, "d@cmx[0]", 40)
        assert messages(draft) == [
            "buffer d@cmx[0], a view of c@cmx[0], has address 40, and its first element lies at "
            "48 of cmx[0]"
        ]


class TestTransfers:
    def test_unequal_amounts(self, draft: Draft) -> None:
        load = task(draft, "load x")
        change_task(draft, "load x", replace(load, reads=(Access(0, rows(0, 3)),)))
        assert messages(draft) == [
            "task load x, a load, reads [0:3, 0:4] of x from buffer x@dram and writes [0:4, 0:4] "
            "of x to buffer x@cmx[0]: 12 elements against 16",
        ]

    def test_another_part_of_the_tensor(self, draft: Draft) -> None:
        load = task(draft, "load x")
        reads, writes = (Access(0, rows(0, 2)),), (Access(3, rows(2, 4)),)
        change_task(draft, "load x", replace(load, reads=reads, writes=writes))
        assert messages(draft)[0] == (
            "task load x, a load, reads [0:2, 0:4] of x from buffer x@dram and writes [2:4, 0:4] "
            "of x to buffer x@cmx[0]: another part of the tensor"
        )

    def test_two_sources_for_one_target(self, draft: Draft) -> None:
        load = task(draft, "load x")
        reads = (Access(0, rows(0, 2)), Access(0, rows(2, 4)))
        change_task(draft, "load x", replace(load, reads=reads))
        assert messages(draft)[0] == (
            "task load x, a load, reads 2 boxes and writes 1: which goes where?"
        )

    def test_a_load_that_is_called_a_store(self, draft: Draft) -> None:
        change_task(draft, "load x", replace(task(draft, "load x"), kind="store"))
        assert messages(draft) == [
            "task load x reads buffer x@dram in dram (external), and a store reads only scratchpad",
            "task load x writes buffer x@cmx[0] in cmx[0] (scratchpad), and a store writes only "
            "external or sink",
        ]

    def test_a_source_is_never_written(self, draft: Draft) -> None:
        draft.spaces = (*draft.spaces, SENSOR)
        at = number(draft, "e@dram")
        draft.buffers[at] = replace(draft.buffers[at], space="sensor")
        assert messages(draft) == [
            "task store e writes buffer e@dram in sensor (source), and a store writes only "
            "external or sink"
        ]

    def test_computing_reads_only_its_own_core(self, draft: Draft) -> None:
        draft.engines = (*draft.engines, Engine(name="core[1].vector"))
        draft.spaces = (*draft.spaces, CMX_1)
        change_task(draft, "neg[0]", replace(task(draft, "neg[0]"), engine="core[1].vector"))
        assert messages(draft) == [
            "task neg[0] on core[1].vector reads 16 bytes of buffer x@cmx[0] in cmx[0], "
            "which belongs to core 0"
        ]


def test_the_first_problems_of_many_are_raised(draft: Draft) -> None:
    empty = [replace(task(draft, "load x"), writes=())] * (MOST_SHOWN + 3)
    draft.tasks += empty
    draft.slots += [
        Slot(start_cycle=100 + 10 * i, end_cycle=106 + 10 * i) for i in range(len(empty))
    ]
    with pytest.raises(LimitError) as raised:
        check(draft.timetable())
    assert raised.value.exit_code == 4
    assert len(raised.value.problems) == MOST_SHOWN + 1
    assert str(raised.value).endswith("and 3 more problems of this plan")


def test_every_message_in_the_reference_is_one_that_is_tested() -> None:
    tested = [
        node.value
        for tests in sorted(Path(__file__).parent.glob("test_check*.py"))
        for node in ast.walk(ast.parse(tests.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    page = Path(__file__).parents[3] / "docs" / "reference" / "plan-checks.md"
    rows_of_tables = re.findall(r"^\| .+ \| (`+)(.+)\1 \|$", page.read_text("utf-8"), re.MULTILINE)
    examples = [example for _, example in rows_of_tables]
    assert len(examples) > 35
    assert [example for example in examples if example not in tested] == []
