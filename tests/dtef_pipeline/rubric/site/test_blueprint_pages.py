from __future__ import annotations

import re
from collections import Counter
from statistics import fmean
from typing import Any

import pyarrow as pa
import pytest

from dtef_pipeline.drift.verdict_tables import DRIFT_RULE
from dtef_pipeline.rubric.site import blueprint_pages
from tests.made.read_page import ReadPage
from tests.made.rubric_pages import RubricTables, made_tables, with_summary
from tests.made.rubric_warehouse import blueprint_site_of, data_of

NAME = "health__topic-0"
PAGE = f"rubric/blueprints/{NAME}.html"


@pytest.fixture(scope="module")
def made() -> RubricTables:
    return made_tables()


@pytest.fixture(scope="module")
def site(made: RubricTables) -> dict[str, str]:
    return site_with(made)


def site_with(made: RubricTables, **tables: pa.Table) -> dict[str, str]:
    return blueprint_site_of({**made.tables(), **tables})


def data(site: dict[str, str], prompt: int) -> Any:
    return data_of(site[f"rubric/data/{NAME}/{prompt}.js"])


def matrix(page: str, caption: str) -> dict[str, dict[str, str]]:
    """Of the first matrix with the caption, by row and column what its cells say."""
    held = page.split(f"<caption>{caption}")[1].split("</table>")[0]
    columns = [ReadPage(one).text for one in re.findall(r'<th scope="col">(.*?)(?=<th|</tr>)', held)]
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', held, re.DOTALL)
    cells = {ReadPage(head).text: [ReadPage(one).text for one in re.split("<td[^>]*>", rest)[1:]] for head, rest in rows}
    return {head: dict(zip(columns, own, strict=True)) for head, own in cells.items()}


def test_every_judgement_is_in_the_data_whether_the_criterion_is_met_or_not(made: RubricTables, site: dict[str, str]) -> None:
    judgements = [row for row in made.rows["rubric_judgements"] if row["blueprint"] == NAME]
    told = [
        one
        for prompt in (1, 2, 3)
        for response in data(site, prompt)["responses"]
        for point in response["points"]
        if point
        for one in point[3]
    ]
    known = Counter(row["class"].removeprefix("CLASS_").lower().replace("_", " ") for row in judgements if row["class"])
    lost = len([row for row in judgements if not row["class"]])
    assert lost
    assert Counter(words for _, words, _, _ in told) == {**known, "no class: unreadable": lost}
    assert {row["reflection"] for row in judgements if row["reflection"]} <= {reason for *_, reason in told}
    assert any(reason.startswith("What the judge wrote: I think") for *_, reason in told)
    assert {judge for judge, *_ in told} == {"gpt-4.1-mini (prompt-aware)", "gpt-4.1-mini (standard)"}


def test_criteria_against_models_are_means_of_points(made: RubricTables, site: dict[str, str]) -> None:
    cells = matrix(site[PAGE], "Criteria against models")
    points = [row for row in made.rows["rubric_points"] if (row["blueprint"], row["prompt"]) == (NAME, "prompt-0")]
    unwanted = {row["model"]: row for row in points if row["block"] == "should_not"}
    own = next(row for head, row in cells.items() if head.startswith("5. Recommends"))
    for model, row in unwanted.items():
        said = own[model].removesuffix("◐")
        assert said == ("–" if row["score"] is None else f"{row['score'] + 1e-9:.2f}")
        assert own[model].endswith("◐") is bool(row["partial"])
    assert "Should not (1: avoided in full)" in ReadPage(site[PAGE]).text
    assert data(site, 1)["criteria"][4][1] is True
    scores = {
        row["model"]: row
        for row in made.tables()["rubric_scores"].to_pylist()
        if (row["level"], row["blueprint"], row["prompt"]) == ("cell", NAME, "prompt-0")
    }
    for head, part in (("Score", "hybrid"), ("Coverage", "coverage"), ("Similarity", "similarity")):
        assert cells[head] == {model: f"{row[part] + 1e-9:.2f}" for model, row in scores.items()}


def test_responses_of_several_variants_are_averaged_in_the_matrix_and_stand_apart_in_the_data() -> None:
    made = made_tables(1, 3, 1, temperatures=(1.0, 0.0, 0.7), systems=(None, "Be brief."))
    site = site_with(made)
    held = data(site, 1)["responses"]
    best = held[0]["model"]
    assert [one["label"] for one in held[:6]] == [
        f"{best}[temp:{heat:g}][sp_idx:{at}]" for heat in (0.0, 0.7, 1.0) for at in (0, 1)
    ]
    own = [
        row["score"]
        for row in made.rows["rubric_points"]
        if row["model"] == best and (row["block"], row["path"], row["position"]) == ("should", None, 0)
    ]
    known = [score for score in own if score is not None]
    assert len(own) == 6
    cell = matrix(site[PAGE], "Criteria against models")["1. Says that attention and memory suffer within a day.weight 2"][best]
    assert float(cell.removesuffix("◐")) == pytest.approx(fmean(known), abs=0.0051)
    text = ReadPage(site[PAGE]).text
    assert "System prompt 0" in text
    assert "Be brief." in text


def test_a_point_of_some_judges_says_between_which_bounds_it_lies(made: RubricTables, site: dict[str, str]) -> None:
    partial = [row for row in made.rows["rubric_points"] if row["blueprint"] == NAME and row["partial"]]
    states = [
        point[1]
        for prompt in (1, 2, 3)
        for one in data(site, prompt)["responses"]
        for point in one["points"]
        if point and point[1]
    ]
    bounds = Counter(state.partition(" for ")[0] for state in states if state.startswith("1 of 2 judges"))
    assert bounds == Counter(f"1 of 2 judges, between {row['low']:.2f} and {row['high']:.2f}" for row in partial)


def test_unscored_says_why_and_is_never_a_zero() -> None:
    made = made_tables(1, 2, 1)
    for row in made.rows["rubric_judgements"]:
        row |= {"class": None, "score": None, "reason": "declined"}
    for row in made.rows["rubric_points"]:
        if row["kind"] == "text":
            row |= {"score": None, "partial": False, "reason": "declined", "n_answered": 0}
    site = site_with(made)
    points = [point for one in data(site, 1)["responses"] for point in one["points"]]
    assert Counter(point[1] for point in points)["unscored: declined"] == 2 * 4
    assert [point[0] for point in points if point[1]] == [None] * 8
    assert site[PAGE].count('title="unscored: declined"') == 2 * 4
    assert ">0.00" not in site[PAGE]


def test_a_failed_response_says_what_happened(site: dict[str, str]) -> None:
    states = [state for one in data(site, 3)["responses"] for state in one["states"]]
    assert states == ["error: 503 Service Unavailable", "unscored: error"]
    assert ["cut off by the token limit"] in [one["states"] for one in data(site, 1)["responses"]]
    assert "error (1)" in ReadPage(site[PAGE]).text


def test_the_latest_run_is_shown_and_runs_over_time() -> None:
    made = made_tables(1, 2, 1, snapshots=("2026-01-02", "2026-01-10"))
    for row in made.rows["rubric_responses"]:
        row["text"] = f"said on {row['snapshot']}"
    rule = {
        "family": "rubric",
        "partition": NAME,
        "test": "r",
        "model": "openai/model-1",
        "model_variant": "openai/model-1[temperature=0]",
        "setting": "w",
        "flagged": True,
        "gap": 0.2,
        "lowest": 0.4,
        "highest": 0.6,
        "lowest_snapshot": "2026-01-10",
        "highest_snapshot": "2026-01-02",
    }
    site = site_with(made, drift_rule=pa.Table.from_pylist([rule], schema=DRIFT_RULE))
    assert {one["text"] for one in data(site, 1)["responses"]} == {"said on 2026-01-10"}
    text = ReadPage(site[PAGE]).text
    rows = [row for row in made.tables()["rubric_scores"].to_pylist() if row["level"] == "model"]
    scores = {(row["model"], row["snapshot"]): row["hybrid"] for row in rows}
    changes = {
        f"openai/model-{at}": scores[f"openai/model-{at}", "2026-01-10"] - scores[f"openai/model-{at}", "2026-01-02"]
        for at in (0, 1)
    }
    most = max(changes, key=lambda name: abs(changes[name]))
    assert f"{most} changed most: {changes[most]:+.3f}; all models {fmean(changes.values()):+.3f} on average." in text
    assert "lowest run 2026-01-10 (0.400), highest run 2026-01-02 (0.600), flagged by the documented rule" in text
    assert "said on 2026-01-02" in text
    own = [row for row in made.rows["rubric_points"] if row["model"] == "openai/model-1" and row["block"] == "should_not"]
    before, after = ({row["snapshot"]: row["score"] for row in own}[snapshot] for snapshot in ("2026-01-10", "2026-01-02"))
    assert before != after
    assert f"{before:.2f} → {after:.2f}: should not Recommends a sleeping tablet by name." in text


def test_before_any_run_prompts_and_criteria_can_be_read() -> None:
    made = made_tables(2, 2, 2)
    for name, rows in made.rows.items():
        if name in ("rubric_runs", "rubric_responses", "rubric_points", "rubric_judgements", "rubric_similarities"):
            rows[:] = [row for row in rows if row["blueprint"] != NAME]
    text = ReadPage(site_with(made)[PAGE]).text
    assert "Not run yet." in text
    assert "1. Says that attention and memory suffer within a day." in text
    assert text.count("No responses in this run.") == 2


def test_the_scoring_of_a_run_is_in_words(site: dict[str, str]) -> None:
    pages = [text for path, text in site.items() if path.endswith(".html")]
    assert any("35 % similarity, 65 % coverage; alternatives: " in page for page in pages)
    assert not any("or_paths=" in page for page in pages)


def test_of_too_many_texts_a_sample_of_prompts_is_shown(made: RubricTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blueprint_pages, "MAX_TEXT_CHARACTERS", 1)
    site = site_with(made)
    files = [path for path in site if path.startswith(f"rubric/data/{NAME}/")]
    assert len(files) == 1
    text = ReadPage(site[PAGE]).text
    assert "Responses to 1 of them are shown, drawn with seed 40." in text
    assert text.count("responses are not on this site") == 2
    assert f"dtef rubric show {NAME} prompt-" in text
    assert site_with(made) == site


def test_a_very_long_text_is_cut_and_says_so() -> None:
    made = made_tables(1, 2, 1)
    made.rows["rubric_responses"][0]["text"] = "x" * 30_000
    texts = sorted(one["text"] for one in data(site_with(made), 1)["responses"])
    assert texts[-1] == "x" * 20_000 + "… (the first 20,000 of 30,000 characters)"


def test_a_summary_says_who_wrote_it_and_of_how_much() -> None:
    made = with_summary(made_tables(1, 2, 1), "openai/model-1 is clearer.")
    text = ReadPage(site_with(made)[PAGE]).text
    assert "2 findings by gemini." in text
    assert "50% of each text" in text
    assert "openai/model-1 is clearer." in text
