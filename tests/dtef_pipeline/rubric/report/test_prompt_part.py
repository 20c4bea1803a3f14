from __future__ import annotations

import re

import numpy as np
import pytest

from dtef_pipeline.report.stored_rows import StoredRows
from dtef_pipeline.rubric.report.blueprint_page import judges_section
from dtef_pipeline.rubric.report.prompt_part import MOST_ACROSS, prompt_body
from dtef_pipeline.rubric.report.score_grid import scores_section
from dtef_pipeline.rubric.results.blueprint_run import read_run
from tests.made.read_page import ReadPage
from tests.made.rubric_pages import RubricTables, connected, made_tables

NAME = "health__topic-0"


def body_of(made: RubricTables, prompt: int = 0) -> str:
    run = read_run(StoredRows(connected(made.tables())), NAME, "base")
    return prompt_body(run, run.prompts[prompt])


def heads(markup: str, caption: str) -> list[str]:
    return re.findall(r'data-model="([^"]*)"', markup.split(f"<caption>{caption}")[1].split("</thead>")[0])


def row_of(markup: str, begins: str) -> list[str]:
    """The cells of the row whose head begins so."""
    rows = re.findall(r"<tr><th[^>]*>(.*?)</th>(.*?)</tr>", markup)
    return next(
        re.findall(r"<td[^>]*>(?:<a[^>]*>)?([^<]*)", cells) for head, cells in rows if ReadPage(head).text.startswith(begins)
    )


def test_each_response_has_a_column_as_long_as_there_is_room() -> None:
    markup = body_of(made_tables(1, 3, 1, temperatures=(0.0, 0.7)))
    names = heads(markup, "Criteria against responses")
    assert sorted(names) == sorted(f"openai/model-{model}[temp:{heat:g}]" for model in range(3) for heat in (0.0, 0.7))
    assert row_of(markup, "2. $icontains") == ["1.00"] * 6


def test_of_more_responses_each_model_has_a_column_of_means() -> None:
    made = made_tables(1, 11, 1, temperatures=(0.0, 0.7), systems=(None, "Be brief."))
    assert MOST_ACROSS < 11 * 4
    markup = body_of(made)
    names = heads(markup, "Criteria against models")
    assert sorted(names) == sorted(f"openai/model-{model}" for model in range(11))
    own = [
        row["score"]
        for row in made.rows["rubric_points"]
        if row["model"] == names[0] and row["block"] == "should" and row["path"] is None and row["position"] == 0
    ]
    known = [score for score in own if score is not None]
    assert len(own) == 4
    assert float(row_of(markup, "1. Says")[0].split("&")[0]) == pytest.approx(np.mean(known), abs=0.005)
    assert markup.count('class="response"') == 44
    assert "[temp:0.7][sp_idx:1]" in markup


def test_the_similarity_map_is_the_matrix_and_the_ideal() -> None:
    made = made_tables(1, 3, 1)
    for row in made.rows["rubric_similarities"]:
        row["to_others"] = [1.0 if at == row["place"] else 0.1 * (at + row["place"]) for at in range(3)]
        row["to_ideal"] = 0.5 + 0.1 * row["place"]
    markup = body_of(made).split("How alike the responses are")[1]
    names = heads(markup, "Cosine similarity")
    place = {name: int(name[-1]) for name in names}
    for name in names:
        expected = ["" if other == name else f"{0.1 * (place[name] + place[other]):.2f}" for other in names]
        assert row_of(markup, name) == expected
    assert row_of(markup, "Ideal answer") == [f"{0.5 + 0.1 * place[name]:.2f}" for name in names]


def test_scores_beneath_the_criteria_are_those_of_the_cells() -> None:
    made = made_tables(1, 3, 1)
    run = read_run(StoredRows(connected(made.tables())), NAME, "base")
    markup = prompt_body(run, run.prompts[0])
    by_name = {row["model"]: row for row in run.cells["prompt-0"]}
    for part in ("hybrid", "coverage", "similarity"):
        expected = [f"{by_name[name][part]:.2f}" for name in heads(markup, "Criteria")]
        assert row_of(markup, part.capitalize()) == expected
    assert heads(markup, "Criteria") == sorted(
        by_name, key=lambda name: -next(row["hybrid"] for row in run.at("model") if row["model"] == name)
    )


def test_the_conversation_shows_who_writes_what() -> None:
    text = ReadPage(body_of(made_tables(1, 1, 2, systems=(None, "Be brief.")), 1)).text
    assert "2 system prompts, each asked apart" in text
    assert "system [sp_idx:0]No system prompt.system [sp_idx:1]Be brief." in text
    assert "assistantThe model writes this turn.userAnd if that does not help?" in text
    assert "Ideal answer" in text


def test_criteria_on_which_judges_differ_are_listed() -> None:
    # Once the distance of the highest from the lowest judge was told as their standard deviation, twice of what it is.
    made = made_tables(1, 2, 1)
    for row in made.rows["rubric_judgements"]:
        is_first = row["judge"] == made.rows["rubric_judgements"][0]["judge"]
        row["score"] = (0.25 if is_first else 1.0) if row["block"] == "should_not" else (0.5 if is_first else 1.0)
    rows = StoredRows(connected(made.tables()))
    text = ReadPage(judges_section(rows, read_run(rows, NAME, "base"))).text
    assert "1 criterion with a mean standard deviation above 0.3." in text
    assert text.endswith("0.3752")
    assert "Names a treatment" not in text


def test_variants_stand_by_temperature_and_not_by_the_spelling_of_it() -> None:
    # By the spelling `temperature=0.7]` stands before `temperature=0]`.
    names = heads(body_of(made_tables(1, 1, 1, temperatures=(1.0, 0.0, 0.7))), "Criteria against responses")
    assert names == [f"openai/model-0[temp:{heat:g}]" for heat in (0.0, 0.7, 1.0)]


def test_without_any_score_a_prompt_has_no_empty_table() -> None:
    made = made_tables(1, 2, 1)
    for name in ("rubric_criteria", "rubric_points", "rubric_judgements", "rubric_similarities"):
        made.rows[name].clear()
    for row in made.rows["rubric_prompts"]:
        row["ideal"] = None
    markup = body_of(made)
    assert "No criteria." in markup
    assert "<table" not in markup
    rows = StoredRows(connected(made.tables()))
    text = ReadPage(scores_section(read_run(rows, NAME, "base"), lambda at: f"#{at}")).text
    assert "No response of this run has a score; the table above says why." in text
    assert "neither criteria nor an ideal answer (1)" in text
