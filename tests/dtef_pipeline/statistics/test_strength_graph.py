"""Who can be compared with whom, and when scores are finite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.statistics.bradley_terry import find_unbeaten, has_growing_direction, number_components, number_strong_groups

EDGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda edge: edge[0] != edge[1]), max_size=15)


def reached(edges: list[tuple[int, int]], start: int) -> set[int]:
    found, ahead = {start}, [start]
    while ahead:
        here = ahead.pop()
        new = {there for one, there in edges if one == here} - found
        found |= new
        ahead += new
    return found


def columns(edges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([one for one, _ in edges], dtype=np.int64), np.array([other for _, other in edges], dtype=np.int64)


@given(EDGES)
def test_components_are_who_can_reach_whom(edges: list[tuple[int, int]]) -> None:
    both_ways = [*edges, *((other, one) for one, other in edges)]
    weak, strong = number_components(6, *columns(edges)), number_strong_groups(6, *columns(edges))
    for one in range(6):
        for other in range(6):
            assert (weak[one] == weak[other]) == (other in reached(both_ways, one))
            assert (strong[one] == strong[other]) == (other in reached(edges, one) and one in reached(edges, other))


@given(EDGES)
def test_scores_grow_for_ever_exactly_where_a_component_is_not_strongly_connected(edges: list[tuple[int, int]]) -> None:
    wins = np.zeros((len(edges), 6))
    for row, (better, worse) in enumerate(edges):
        wins[row, better], wins[row, worse] = 1, -1
    weak, strong = number_components(6, *columns(edges)), number_strong_groups(6, *columns(edges))
    assert has_growing_direction(wins) == (len(set(weak.tolist())) < len(set(strong.tolist())))


@pytest.mark.parametrize(
    ("edges", "top"), [([(0, 1), (1, 2)], [True, False, False]), ([(0, 1), (1, 0), (2, 0)], [False, False, True])]
)
def test_those_whom_nobody_else_beat_are_named(edges: list[tuple[int, int]], top: list[bool]) -> None:
    better, worse = columns(edges)
    assert find_unbeaten(number_strong_groups(3, better, worse), better, worse).tolist() == top
