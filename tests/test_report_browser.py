"""The report in a real browser: headless Chromium, driven over its DevTools protocol. Skipped where there is no Chromium and apt may not
install it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from dtef_pipeline.asking.models import load_models
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.observe import observe
from dtef_pipeline.survey.predictions import baseline_rows
from dtef_pipeline.survey.scoring.references import reference_scores
from dtef_pipeline.survey.scoring.score import score_predictions
from tests.dtef_pipeline.report.browser import Browser
from tests.made.report_page import tables, written


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("report"), tables())


def test_every_section_is_there_and_nothing_is_said_on_the_console_or_asked_of_the_network(
    browser: Browser, page: Path
) -> None:
    browser.opens(page)
    anchors = browser.does("[...document.querySelectorAll('nav a')].map(link => link.hash.slice(1))")
    assert len(anchors) > 10
    assert browser.does("[...document.querySelectorAll('main > section')].map(node => node.id)") == anchors
    assert browser.said == []
    assert browser.requested == [page.as_uri()]
    assert browser.does("performance.getEntriesByType('resource').length") == 0


def test_a_heading_sorts_by_its_column_and_back(browser: Browser, page: Path) -> None:
    browser.opens(page)
    browser.does("heads = [...document.querySelectorAll('#leaderboard details[open] th button')]")
    browser.does("press = name => heads.find(button => button.textContent === name).click()")
    names = "#leaderboard details[open] tbody th .name"
    board = browser.texts(names)
    assert board[0] == "baseline/population-marginal"
    browser.does("press('Model')")
    assert browser.texts(names) == sorted(board)
    browser.does("press('Model')")
    assert browser.texts(names) == sorted(board, reverse=True)
    browser.does("press('Score')")
    assert browser.texts(names) == board
    assert browser.does("[...document.querySelectorAll('[aria-sort]')].map(head => head.textContent + head.ariaSort)") == [
        "Scoredescending"
    ]
    browser.does("press('Score')")
    assert browser.texts(names)[0] == "llama"


def test_a_table_wider_than_its_box_says_so_and_no_other(browser: Browser, page: Path) -> None:
    hinted = """(() => {
        const boxes = [...document.querySelectorAll('details[open] .scroll, section > .scroll')];
        return boxes.map(box => [box.scrollWidth > box.clientWidth + 4, getComputedStyle(box, '::before').content.includes('scroll')]);
    })()"""
    browser.opens(page, width=360)
    narrow = browser.does(hinted)
    assert all(is_wide == has_hint for is_wide, has_hint in narrow)
    assert any(is_wide for is_wide, _ in narrow)
    browser.opens(page, width=1900)
    wide = browser.does(hinted)
    assert all(is_wide == has_hint for is_wide, has_hint in wide)
    assert not all(is_wide for is_wide, _ in wide)


def test_the_search_leaves_the_questions_with_all_its_words(browser: Browser, page: Path) -> None:
    browser.opens(page)
    browser.does("box = document.querySelector('#questions input')")
    browser.does("search = words => {box.value = words; box.dispatchEvent(new Event('input'))}")
    visible = "[...document.querySelectorAll('#questions tbody tr')].filter(row => row.offsetParent).map(row => row.cells[0].textContent)"
    assert len(browser.does(visible)) == 3
    browser.does("search('TRUST ai')")
    assert browser.does(visible) == ["Do you trust AI?"]
    assert browser.texts("#questions [role=status]") == ["1 of 3 questions"]
    browser.does("search('nothing like it')")
    assert browser.does(visible) == []


def chosen(browser: Browser, **fields: str) -> None:
    for name, text in fields.items():
        browser.does(
            f"""(() => {{const select = document.getElementById('pair-{name}');
            select.value = [...select.options].find(option => option.textContent === {json.dumps(text)}).value;
            select.dispatchEvent(new Event('change'))}})()"""
        )


def test_bars_of_any_pair_are_drawn_with_the_interval_of_the_observed(browser: Browser, page: Path) -> None:
    browser.opens(page)
    chosen(browser, question="Is the climate changing?", segment="country:chile", model="gpt", asked="context all")
    assert browser.texts("#pair-chart h3") == ["Is the climate changing?"]
    cells = [browser.texts(f"#pair-chart tbody tr:nth-child({row}) > *") for row in (1, 2, 3)]
    assert [[row[0], row[2], row[4]] for row in cells] == [
        ["Agree", "50.0 %", "45.0 %"],
        ["Neutral", "30.0 %", "35.0 %"],
        ["Disagree", "20.0 %", "20.0 %"],
    ]
    assert cells[0][3] == "35.2 % to 64.8 %"  # Wilson, 20 of 40
    assert "n = 40. Score of gpt: 0.500;" in browser.texts("#pair-chart p")[0]
    assert browser.does("document.querySelectorAll('#pair-chart .said')[1].style.width") == "45%"
    assert browser.does("document.querySelector('#pair-chart .range').getBoundingClientRect().width") > 10


def test_another_context_level_shows_another_prediction_and_a_refusal_shows_none(browser: Browser, page: Path) -> None:
    browser.opens(page)
    chosen(browser, question="Do you trust AI?", segment="country:kenya", model="gpt", asked="context 0")
    assert browser.texts("#pair-chart tbody tr > :last-child") == ["20.0 %", "30.0 %", "50.0 %"]
    chosen(browser, model="mute", asked="context 0")
    assert browser.texts("#pair-chart tbody tr > :last-child") == ["–", "–", "–"]
    assert "Score of mute: 0.000 (refused, by the published policy);" in browser.texts("#pair-chart p")[0]
    chosen(browser, asked="context all (not asked)")
    assert "none (not asked)" in browser.texts("#pair-chart p")[0]
    assert browser.texts("#pair-question option")[0] == "Do you trust AI? (not asked)"


def test_a_phone_scrolls_no_page_sideways(browser: Browser, page: Path) -> None:
    browser.opens(page, width=360)
    browser.does("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    assert browser.does("document.documentElement.scrollWidth") <= 360
    assert browser.does("[...document.querySelectorAll('.scroll')].some(box => box.scrollWidth > box.clientWidth)")


def test_every_drawing_and_field_has_a_name(browser: Browser, page: Path) -> None:
    browser.opens(page)
    assert browser.does("document.querySelectorAll('svg').length") > 5
    assert browser.does(
        "[...document.querySelectorAll('main svg:not([aria-hidden])')].every(drawing => drawing.getAttribute('aria-label'))"
    )
    assert browser.does("[...document.querySelectorAll('select, input')].every(field => field.labels.length)")
    assert browser.does(
        "[...document.querySelectorAll('table')].every(table => table.caption || table.closest('#pairs [aria-label]'))"
    )


def published_round(surveys: Path) -> dict[str, pa.Table]:
    """GD4 and the scores of three baselines."""
    survey = observe(read_survey(surveys / "gd4.json", "GD4")).responses
    names = ["baseline/uniform", "baseline/population-marginal", "baseline/leave-one-out-marginal"]
    models = load_models("{}", computed=BASELINES).resolve(names)
    scores = []
    for segment in survey["segment"].unique().to_pylist():
        rows = survey.filter(pa.compute.equal(survey["segment"], segment))
        prompts = build_blueprints(rows, BlueprintOptions())
        scores.append(
            score_predictions(pa.concat_tables([baseline_rows(prompts, rows, model, 1, "base", {}) for model in models]), rows)
        )
    return {"survey_responses": survey, "reference_scores": reference_scores(survey), "scores": pa.concat_tables(scores)}


@pytest.mark.thorough
def test_a_published_round_opens_with_all_its_pairs(browser: Browser, real_surveys: Path, tmp_path: Path) -> None:
    path = written(tmp_path, published_round(real_surveys / "surveys"))
    assert path.stat().st_size < 6_000_000
    browser.opens(path, width=1280)
    assert browser.said == []
    assert browser.does(
        "[...document.querySelectorAll('#leaderboard .scroll')].every(box => box.scrollWidth <= box.clientWidth)"
    )
    assert browser.texts("#leaderboard details[open] tbody th .name")[:2] == [
        "baseline/population-marginal",
        "baseline/leave-one-out-marginal",
    ]
    assert any(text.startswith("ceiling 0.8") for text in browser.texts("#leaderboard details[open] svg text"))
    assert len(browser.texts("#questions tbody tr")) == len(browser.texts("#pair-question option")) == 116
    assert len(browser.texts("#pair-segment option")) == 49
    assert len(browser.texts("#pair-chart tbody tr")) >= 2
