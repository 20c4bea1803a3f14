from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.rubric.board import board
from dtef_pipeline.rubric.hybrid import compute_hybrid_at
from dtef_pipeline.rubric.site.blueprint_lists import build_alike_section, build_weight_section, find_place_changes
from dtef_pipeline.rubric.site.rubric_rows import RubricRows
from tests.made.rubric_pages import RubricTables, connected, made_tables
from tests.made.rubric_site import rolled_up


def one(name: str, intercept: float | None, slope: float | None, ranked: bool = True) -> dict[str, Any]:
    return {"model": name, "intercept": intercept, "slope": slope, "ranked": ranked}


A, B = one("A", 0.60, 0.35), one("B", 0.78, -0.18)


def order(models: list[dict[str, Any]], beta: float) -> list[str]:
    return [row["model"] for row in sorted(models, key=lambda row: -(row["intercept"] + beta * row["slope"]))]


def test_two_models_change_the_first_place_at_the_weight_by_hand() -> None:
    (change,) = find_place_changes([A, B])
    assert (change.rises, change.falls, change.place) == ("A", "B", 1)
    assert change.beta == pytest.approx(0.3396226, abs=1e-6)


def test_only_ranked_models_change_places() -> None:
    assert find_place_changes([A, {**B, "ranked": False}]) == []
    assert find_place_changes([A, one("mute", None, None)]) == []
    assert find_place_changes([]) == []


def test_at_the_ends_nobody_changes_places() -> None:
    assert find_place_changes([one("a", 0.5, 0.1), one("b", 0.5, -0.1)]) == []
    assert find_place_changes([one("a", 0.5, 0.1), one("b", 0.6, 0.0)]) == []
    assert find_place_changes([one("a", 0.5, 0.1), one("b", 0.5, 0.1)]) == []


lines = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda ends: (ends[0] / 40, (ends[1] - ends[0]) / 40))


@given(st.lists(lines, min_size=2, max_size=6, unique=True))
def test_between_two_changes_the_order_stays_and_at_each_it_turns(drawn: list[tuple[float, float]]) -> None:
    models = [one(f"m{at}", *line) for at, line in enumerate(drawn)]
    changes = find_place_changes(models)
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
                ahead = sum(row["intercept"] + change.beta * row["slope"] > _score(models, change) + 1e-9 for row in models)
                assert change.place == ahead + 1


def _score(models: list[dict[str, Any]], change: Any) -> float:
    row = next(row for row in models if row["model"] == change.rises)
    return float(row["intercept"] + change.beta * row["slope"])


def rows_of(made: RubricTables) -> RubricRows:
    return RubricRows(rolled_up(made))


@pytest.fixture(scope="module")
def eleven() -> RubricRows:
    """Of enough blueprints for ranks."""
    return rows_of(made_tables(11, 3, 1))


def test_the_slider_has_the_board_of_each_weight(eleven: RubricRows) -> None:
    rows = eleven
    (fold,) = build_weight_section(rows).blocks
    models = fold.blocks[0].values["models"]  # type: ignore[union-attr]
    for at, beta in enumerate((0.35, 0.0, 1.0)):
        rescored = rows.scores.assign(hybrid=compute_hybrid_at(rows.scores["intercept"], rows.scores["slope"], beta))
        expected = board(rescored, rows.order, {})
        shown = {row["model"]: row["scores"][at] for row in models}
        assert shown == pytest.approx(dict(zip(expected["model"], expected["score"], strict=True)))
    assert [row["model"] for row in models] == order(models, 0.35)
    assert all(row["ranked"] for row in models)


def test_without_ideal_answers_there_is_no_weight() -> None:
    made = made_tables(1, 2, 1)
    made.rows["rubric_similarities"].clear()
    for row in made.rows["rubric_prompts"]:
        row["ideal"] = None
    assert build_weight_section(rows_of(made)).is_empty


def test_models_of_fewer_than_ten_blueprints_are_shown_without_a_rank() -> None:
    section = build_weight_section(rows_of(made_tables(2, 3, 1)))
    models = section.blocks[0].blocks[0].values["models"]  # type: ignore[union-attr]
    assert [row["ranked"] for row in models] == [False] * 3
    assert section.answer == "", "it spoke of ranked models, and there are none"


def test_runs_that_differ_are_warned_of_and_another_beta_is_no_difference() -> None:
    made = made_tables(2, 2, 1)

    def rows_without_boards() -> RubricRows:
        return RubricRows(connected(dict(made.tables())))

    assert build_alike_section(rows_without_boards()).is_empty
    made.rows["rubric_runs"][0]["policy"] = "beta=0.2, or_paths=document"
    made.rows["rubric_runs"][1]["policy"] = "beta=0.35, or_paths=document"
    assert build_alike_section(rows_without_boards()).is_empty
    made.rows["rubric_runs"][0]["policy"] = "beta=0.2, or_paths=two_group"
    assert build_alike_section(rows_without_boards()).answer.startswith("Blueprints were scored by different policies")
    made.rows["rubric_blueprints"][0]["tags"] = ["test"]
    assert build_alike_section(rows_without_boards()).is_empty
