from __future__ import annotations

import pytest

from dtef_pipeline.rubric.board import board
from dtef_pipeline.rubric.scoring import compute_hybrid_at
from dtef_pipeline.rubric.site.family_site import build_unlike_section, build_weight_section
from dtef_pipeline.rubric.site.rubric_rows import RubricRows
from tests.made.rubric_pages import RubricTables, made_tables
from tests.made.rubric_warehouse import rolled_up, whole


def rows_of(made: RubricTables) -> RubricRows:
    return RubricRows(rolled_up(made))


@pytest.fixture(scope="module")
def eleven() -> RubricRows:
    """Of enough blueprints for ranks."""
    return rows_of(made_tables(11, 3, 1))


def test_the_slider_has_the_board_of_each_weight(eleven: RubricRows) -> None:
    rows = eleven
    section = build_weight_section(rows)
    (fold,) = section.blocks
    models = fold.blocks[0].values["models"]  # type: ignore[union-attr]
    for at, beta in enumerate((0.35, 0.0, 1.0)):
        rescored = rows.all_scores.assign(
            hybrid=compute_hybrid_at(rows.all_scores["intercept"], rows.all_scores["slope"], beta)
        )
        expected = board(rescored, rows.order, {})
        shown = {row["model"]: row["scores"][at] for row in models}
        assert shown == pytest.approx(dict(zip(expected["model"], expected["score"], strict=True)))
    assert [row["scores"][0] for row in models] == sorted((row["scores"][0] for row in models), reverse=True)
    assert all(row["ranked"] for row in models)
    first = [max(models, key=lambda row: row["scores"][at])["model"] for at in range(3)]
    assert section.answer == (
        f"{first[0]} is first at the default weight, {first[1]} if only coverage counts, {first[2]} if only similarity counts."
    )


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
        return RubricRows(whole(made.tables()))

    assert build_unlike_section(rows_without_boards()).is_empty
    made.rows["rubric_runs"][0]["policy"] = "beta=0.2, or_paths=document"
    made.rows["rubric_runs"][1]["policy"] = "beta=0.35, or_paths=document"
    assert build_unlike_section(rows_without_boards()).is_empty
    made.rows["rubric_runs"][0]["policy"] = "beta=0.2, or_paths=two_group"
    assert build_unlike_section(rows_without_boards()).answer.startswith("Blueprints were scored by different policies")
    made.rows["rubric_blueprints"][0]["tags"] = ["test"]
    assert build_unlike_section(rows_without_boards()).is_empty
