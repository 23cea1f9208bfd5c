"""Going round only where something has changed, against going over everything every time."""

from hypothesis import given
from hypothesis import strategies as st

from tilewright.program.rounds import go_round


@st.composite
def graphs(draw: st.DrawFn) -> list[set[int]]:
    """By number those that it depends on."""
    count = draw(st.integers(1, 12))
    return [draw(st.sets(st.integers(0, count - 1), max_size=3)) for _ in range(count)]


@given(graphs(), st.sets(st.integers(0, 11), max_size=3))
def test_what_changes_does_so_in_the_same_order(graph: list[set[int]], first: set[int]) -> None:
    every: list[int] = []
    before = -1
    while before != len(every):
        before = len(every)
        for number, others in enumerate(graph):
            if number not in every and (number in first or others & {*every}):
                every.append(number)

    found: list[int] = []

    def look(number: int) -> list[int]:
        if number in found or not (number in first or graph[number] & {*found}):
            return []
        found.append(number)
        return [other for other, others in enumerate(graph) if number in others]

    go_round(len(graph), look)
    assert found == every
