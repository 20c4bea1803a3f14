"""The narrative format: every figure in the prose is that of its option."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.survey.blueprint.wording import format_percent, write_narrative

CASES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

OPTIONS = ["Agree", "Neutral", "Disagree", "Unsure"]
FIGURE = re.compile(r"\d+\.\d%")


def said(observed: list[float], population: list[float] | None = None) -> str:
    return write_narrative(OPTIONS[: len(observed)], observed, population)


@pytest.mark.parametrize(("observed", "expected"), CASES["the_group_is_reported_from_its_most_common_answer_down"])
def test_the_group_is_reported_from_its_most_common_answer_down(observed: list[float], expected: str) -> None:
    assert said(observed) == expected


@pytest.mark.parametrize(
    ("observed", "population", "expected"), CASES["differences_are_reported_by_their_size_with_both_figures"]
)
def test_differences_are_reported_by_their_size_with_both_figures(
    observed: list[float], population: list[float], expected: str
) -> None:
    assert said(observed, population).removeprefix(said(observed) + " ") == expected


def shares(count: int) -> st.SearchStrategy[list[float]]:
    """Fractions as surveys have them: counts of people, with zeros and ties."""
    counts = st.lists(st.integers(0, 60) | st.just(0), min_size=count, max_size=count).filter(any)
    return counts.map(lambda people: [number / sum(people) for number in people])


pairs = st.integers(2, 7).flatmap(lambda count: st.tuples(shares(count), shares(count)))


@given(pairs)
def test_every_figure_is_that_of_its_option(pair: tuple[list[float], list[float]]) -> None:
    observed, population = pair
    names = [f"option {letter}" for letter in "ABCDEFG"[: len(observed)]]
    text = write_narrative(names, observed, population)
    own, everyone = (dict(zip(names, map(format_percent, values), strict=True)) for values in pair)
    compared = re.findall(r"“([^”]+)” (?:(?:far |much |slightly )?(more|less) often|not at all) \((\S+) against (\S+)\)", text)
    for name, direction, group, all_of_them in compared:
        assert (group, all_of_them) == (own[name], everyone[name])
        assert direction == (
            "" if observed[names.index(name)] == 0 else "more" if float(group[:-1]) > float(all_of_them[:-1]) else "less"
        )
    levels = write_narrative(names, observed, None)
    assert set(FIGURE.findall(levels)) <= set(own.values())
    assert len(FIGURE.findall(text)) == len(FIGURE.findall(levels)) + 2 * len(compared)
    for name, share in zip(names, observed, strict=True):
        assert levels.count(f"“{name}”") == (1 if share or max(observed) < 1 else 0)


@given(pairs)
def test_exactly_the_differences_of_two_points_or_more_are_mentioned(pair: tuple[list[float], list[float]]) -> None:
    observed, population = pair
    names = [f"option {letter}" for letter in "ABCDEFG"[: len(observed)]]
    tail = write_narrative(names, observed, population).removeprefix(write_narrative(names, observed, None))
    gaps = {
        name: abs(round(10 * float(format_percent(a)[:-1])) - round(10 * float(format_percent(b)[:-1])))
        for name, a, b in zip(names, observed, population, strict=True)
    }
    told: list[str] = re.findall(r"“([^”]+)”", tail)
    assert sorted(told) == sorted(name for name, gap in gaps.items() if gap >= 20)
    assert [gaps[name] for name in told] == sorted((gaps[name] for name in told), reverse=True)
