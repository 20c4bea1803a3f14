"""The published rounds GD1-GD5, read both ways (skipped where they are not at hand)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow.compute as pc
import pytest

from dtef_pipeline.survey.completeness import require_whole_survey
from dtef_pipeline.survey.model import Survey
from dtef_pipeline.survey.observations import ObservedRound, observe
from dtef_pipeline.survey.scoring.metrics import js
from dtef_pipeline.survey.scoring.references import compute_reference_scores

#                segments, questions, pairs in the JSON, pairs of the folder with fewer than 10 respondents
EXPECTED = {
    "GD1": (47, 4, 188, 5),
    "GD2": (47, 3, 141, 2),
    "GD3": (47, 43, 2021, 111),
    "GD4": (49, 116, 5684, 0),
    "GD5": (49, 46, 2254, 44),
}
CIRCULAR = {"GD1": 3, "GD2": 3, "GD3": 3, "GD4": 3, "GD5": 6}  # GD5 asks for AI concern twice

CEILINGS = {"gender": 0.966, "environment": 0.95, "ageGroup": 0.93, "aiConcern": 0.95, "religion": 0.895, "country": 0.825}

Both = dict[str, tuple[ObservedRound, ObservedRound]]


@pytest.fixture(scope="module")
def published(published_surveys: dict[str, tuple[Survey, Survey]]) -> Both:
    """Round -> (from JSON, from the folder)."""
    return {
        name: (observe(require_whole_survey(of_json)), observe(require_whole_survey(of_folder)))
        for name, (of_json, of_folder) in published_surveys.items()
    }


def test_the_published_rounds_are_whole(published: Both) -> None:
    for both in published.values():
        for observed in both:
            assert set(observed.findings["level"].to_pylist()) <= {"info"}


@pytest.mark.parametrize("round_id", EXPECTED)
def test_json_gives_the_published_segments_questions_and_pairs(published: Both, round_id: str) -> None:
    table = published[round_id][0].responses
    segments, questions, pairs, _ = EXPECTED[round_id]
    assert (len(table["segment"].unique()), len(table["question_id"].unique()), table.num_rows) == (segments, questions, pairs)
    assert published[round_id][0].quarantine.num_rows == 0
    assert set(table["round"].to_pylist()) == {round_id}


@pytest.mark.parametrize("round_id", EXPECTED)
def test_the_folder_gives_the_same_distributions_without_the_thin_pairs(published: Both, round_id: str) -> None:
    json_rows, folder_rows = (
        {(r["segment"], r["question_id"]): r for r in observed.responses.to_pylist()} for observed in published[round_id]
    )
    thin = EXPECTED[round_id][3]
    assert set(folder_rows) < set(json_rows) if thin else set(folder_rows) == set(json_rows)
    assert len(json_rows) - len(folder_rows) == thin
    for key, row in folder_rows.items():
        published_row = json_rows[key]
        for column in ("value", "question_text", "question_order", "options", "segment_n", "circular", "duplicate_of"):
            assert row[column] == published_row[column], (key, column)
        assert row["observed"] == pytest.approx(published_row["observed"], abs=6e-4)
    other_n = np.mean([row["n"] != json_rows[key]["n"] for key, row in folder_rows.items()])
    assert 0.59 < other_n < 0.68


@pytest.mark.parametrize("round_id", EXPECTED)
def test_folder_quarantine_holds_thin_pairs_small_segments_and_blank_languages(published: Both, round_id: str) -> None:
    quarantine = published[round_id][1].quarantine.to_pylist()
    pairs = Counter(q["reason"] for q in quarantine if q["question_id"])
    whole = {q["segment"].split(":")[0] for q in quarantine if q["question_id"] is None and q["reason"] == "no-data"}
    assert pairs == ({"n-below-minimum": EXPECTED[round_id][3]} if EXPECTED[round_id][3] else {})
    assert whole == {"language"}


@pytest.mark.parametrize("round_id", EXPECTED)
def test_ai_concern_is_the_one_circular_question(published: Both, round_id: str) -> None:
    for observed in published[round_id]:
        circular = [r for r in observed.responses.to_pylist() if r["circular"]]
        assert len(circular) == CIRCULAR[round_id]
        assert {r["attribute"] for r in circular} == {"aiConcern"}


def test_reference_scores_over_all_pairs_are_the_known_ones(published: Both) -> None:
    rows = [r for from_json, _ in published.values() for r in from_json.responses.to_pylist()]
    assert len(rows) == 10_288
    total = np.zeros(3)
    for k in {len(r["options"]) for r in rows}:
        group = [r for r in rows if len(r["options"]) == k]
        observed, population, others = (
            np.array([r[name] for r in group]) for name in ("observed", "population", "leave_one_out_marginal")
        )
        total += [js(reference, observed).sum() for reference in (np.ones_like(observed), population, others)]
    assert total / len(rows) == pytest.approx([0.65232, 0.83145, 0.81850], abs=5e-6)


@pytest.mark.thorough
def test_ceilings_by_attribute_are_the_known_ones(published: Both) -> None:
    """Those of issue 4, within .01."""
    tables = [from_json.responses for from_json, _ in published.values()]
    attribute = np.concatenate([table["attribute"].to_pylist() for table in tables])
    ceiling = np.concatenate([pc.struct_field(compute_reference_scores(table)["ceiling"], "js").to_numpy() for table in tables])
    found = {name: float(ceiling[attribute == name].mean()) for name in np.unique(attribute).tolist()}
    assert found == pytest.approx(CEILINGS, abs=0.01)
    assert float(ceiling.mean()) == pytest.approx(0.87, abs=0.01)


def test_every_list_of_options_has_the_scale_a_reader_gives_it(published: Both) -> None:
    scales = {tuple(r["options"]): r["scale"] for from_json, _ in published.values() for r in from_json.responses.to_pylist()}
    nominal = {o for o, kind in scales.items() if kind == "nominal"}
    yes_no = {o for o in nominal if {o[0].casefold(), o[1].casefold()} == {"yes", "no"}}
    assert len(scales) - len(nominal) > 40
    beginnings = "Animals|Both are|Communi|Future A|Humans a|Priorit|Single,|Strengt|Yes, my|Yes, the|the huma"
    listed = sorted(options[0] for options in nominal - yes_no)
    assert all(text.startswith(start) for text, start in zip(listed, beginnings.split("|"), strict=True))
