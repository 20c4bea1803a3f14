from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.rubric.report.index_page import PlaceChange, changes_part, place_changes
from tests.made.read_page import ReadPage


def one(name: str, at_0: float | None, slope: float | None, n: int = 10) -> dict[str, Any]:
    return {"model": name, "at_0": at_0, "slope": slope, "n": n}


A, B = one("A", 0.60, 0.35), one("B", 0.78, -0.18)


def order(models: list[dict[str, Any]], beta: float) -> list[str]:
    return [row["model"] for row in sorted(models, key=lambda row: -(row["at_0"] + beta * row["slope"]))]


def test_two_models_change_the_first_place_at_the_weight_by_hand() -> None:
    (change,) = place_changes([A, B], 10)
    assert (change.rises, change.falls, change.place) == ("A", "B", 1)
    assert change.beta == pytest.approx(0.3396226, abs=1e-6)


def test_only_ranked_models_change_places() -> None:
    assert place_changes([A, {**B, "n": 9}], 10) == []
    assert place_changes([A, one("mute", None, None)], 10) == []
    assert place_changes([], 10) == []


def test_at_the_ends_nobody_changes_places() -> None:
    assert place_changes([one("a", 0.5, 0.1), one("b", 0.5, -0.1)], 10) == []
    assert place_changes([one("a", 0.5, 0.1), one("b", 0.6, 0.0)], 10) == []
    assert place_changes([one("a", 0.5, 0.1), one("b", 0.5, 0.1)], 10) == []


lines = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda ends: (ends[0] / 40, (ends[1] - ends[0]) / 40))


@given(st.lists(lines, min_size=2, max_size=6, unique=True))
def test_between_two_changes_the_order_stays_and_at_each_it_turns(drawn: list[tuple[float, float]]) -> None:
    models = [one(f"m{at}", *line) for at, line in enumerate(drawn)]
    changes = place_changes(models, 10)
    ends = [0.0, *sorted({change.beta for change in changes}), 1.0]
    middles = [(low + high) / 2 for low, high in itertools.pairwise(ends) if high - low > 1e-6]
    for low, high in itertools.pairwise(middles):
        turned = {(change.rises, change.falls) for change in changes if low < change.beta < high}
        before, after = order(models, low), order(models, high)
        found = {
            (rises, falls)
            for rises in before
            for falls in before
            if before.index(rises) > before.index(falls) and after.index(rises) < after.index(falls)
        }
        assert found == turned
        for change in changes:
            if low < change.beta < high:
                ahead = sum(row["at_0"] + change.beta * row["slope"] > _score(models, change) + 1e-9 for row in models)
                assert change.place == ahead + 1


def _score(models: list[dict[str, Any]], change: PlaceChange) -> float:
    row = next(row for row in models if row["model"] == change.rises)
    return float(row["at_0"] + change.beta * row["slope"])


def test_changes_are_told_in_words() -> None:
    text = ReadPage(changes_part(place_changes([A, B], 10))).text
    assert "two models change places once, and the first place changes: from 0.340 on A is before B." in text
    third = one("c", 0.1, 0.0), one("d", 0.05, 0.1)
    text = ReadPage(changes_part(place_changes([one("a", 0.9, 0.0), *third], 10))).text
    assert "once, and the first place never." in text
    assert "change places at any weight" in changes_part([])


def test_of_many_changes_those_of_the_best_places_are_listed() -> None:
    many = [PlaceChange(at / 200, f"<i>{at}", "b", at) for at in range(1, 150)]
    shown = changes_part(many)
    assert len(re.findall(r'class="to-beta"', shown)) == 60
    assert "Listed are the 60 at the best places." in shown
    assert "<i>" not in shown
