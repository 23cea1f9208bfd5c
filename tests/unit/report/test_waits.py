from tests.report_timetables import by_hand

from tilewright.report.lives import Hold, bytes_in_use, port_holds, purposes
from tilewright.report.waits import Idle, Wait, idle_cycles, waits
from tilewright.schedule.packed import buffer_lives


def test_a_task_waited_for_whatever_ended_last() -> None:
    assert waits(by_hand()) == [
        Wait(-1, "choice", 0),
        Wait(0, "data", 10),
        Wait(1, "room", 15),
        Wait(2, "data", 30),
        Wait(3, "data", 40),
        Wait(4, "data", 50),
    ]


def test_every_idle_cycle_before_a_task_has_a_cause() -> None:
    found = list(idle_cycles(by_hand()))
    # Before `first`: the load of x, 6 cycles of bytes and 4 of set-up. Before `second`, idle since
    # 15: the load of y ran from 20 to 30, and could have started at 15. Before `third`, idle since
    # 0: `second` until 30, then what `second` waited for, and 15 cycles for an address in use.
    over = "transfers of dma over dram.port"
    assert found == [
        Idle(1, over, 6),
        Idle(1, "set-up of dma", 4),
        Idle(3, over, 6),
        Idle(3, "set-up of dma", 4),
        Idle(3, "started later than it could", 5),
        Idle(4, "waiting for core[0]", 10),
        Idle(4, over, 6),
        Idle(4, "set-up of dma", 4),
        Idle(4, "started later than it could", 5),
        Idle(4, "no room in cmx", 15),
    ]
    assert sum(idle.cycles for idle in found) == 10 + 15 + 40


def test_lives_reach_from_the_first_writer_to_the_last_user() -> None:
    # 0 and 2 are given: they stay to the end, at 56.
    assert buffer_lives(by_hand()) == {
        0: (0, 56),
        1: (0, 15),
        2: (0, 56),
        3: (20, 40),
        4: (10, 40),
        5: (30, 50),
        6: (40, 56),
        7: (50, 56),
    }


def test_bytes_in_use_change_where_buffers_begin_and_end() -> None:
    assert bytes_in_use(by_hand()) == {
        "cmx[0]": [(0, 8), (10, 16), (15, 8), (20, 16), (30, 24), (40, 16), (50, 8), (56, 0)]
    }


def test_a_port_is_held_while_bytes_flow() -> None:
    assert list(port_holds(by_hand())) == [
        Hold("dram.port", 0, 0, 4, 10),
        Hold("dram.port", 0, 2, 24, 30),
        Hold("dram.port", 0, 5, 54, 56),
    ]


def test_loads_that_engines_wait_for_are_told_apart() -> None:
    assert purposes(by_hand()) == ["waited", "array", "waited", "array", "array", "store"]
