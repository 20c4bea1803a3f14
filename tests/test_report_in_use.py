"""What a reader does with the report: opens a pair, reads the charts on a phone, saves a table. In a real browser."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.dtef_pipeline.report.browser import Browser
from tests.made.predictions import blueprints_of, predictions_of
from tests.made.report_page import QUESTIONS, SEGMENTS, written
from tests.made.scores import scores_table, survey_rows

FORMULA = "=HYPERLINK(1)"
HOSTILE = "</script></pre><img src=x onerror='window.harm = 1'><script>window.harm = 1</script>\u202e\u2028 & \x07"
BASELINES = {"baseline/population-marginal": 0.871, "baseline/leave-one-out-marginal": 0.838, "baseline/uniform": 0.838}


def scored(model: str, question: str, segment: str, **given: Any) -> dict[str, Any]:
    known = {"model": model, "model_variant": model, "question_id": question, "segment": segment}
    return {**known, "predicted": [0.2, 0.3, 0.5], **given}


def partly_asked() -> dict[str, pa.Table]:
    """Baselines on every pair of two rounds; a language model on one pair alone, which is the last."""
    rounds, last = ("S1", "S2"), {"round": "S2", "context_level": "5", "score": 0.123456789012345}
    pairs = [(name, question, segment) for name in rounds for question in QUESTIONS for segment in SEGMENTS]
    rows = [
        scored(model, question, segment, round=name, context_level=level, score=score)
        for name, question, segment in pairs
        for model, score in BASELINES.items()
        for level in ("0", "5")
    ]
    rows.append(scored(FORMULA, "q2", "country:kenya", **last))
    survey = [
        {
            "round": name,
            "question_id": question,
            "question_text": QUESTIONS[question][0],
            "segment": segment,
            "question_order": at,
        }
        | ({"observed": [0.1, 0.2, 0.7], "n": 80} if segment == "country:chile" else {})
        for name, question, segment in pairs
        for at in [list(QUESTIONS).index(question)]
    ]
    rows.append(scored("mute", "q0", "country:chile", status="unparseable", score=0.0, predicted=None, reason="no <array>"))
    scores, asked = scores_table(rows), scores_table(rows[-2:])
    texts = {"predictions": predictions_of(asked, [HOSTILE, HOSTILE]), "blueprints": blueprints_of(asked)}
    return {"scores": scores, "survey_responses": survey_rows(*survey), **texts}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("report"), partly_asked())


def saved(browser: Browser, press: str) -> tuple[str, list[dict[str, str]]]:
    """The name and the rows of the file that a press on a button makes."""
    browser.does(
        """window.Blob = class { constructor(parts) { window.file = parts.join(""); } };
        URL.createObjectURL = () => "#"; URL.revokeObjectURL = () => {};
        HTMLAnchorElement.prototype.click = function () { window.fileName = this.download; };"""
    )
    browser.does(f"document.querySelector({press!r}).click()")
    text = browser.does("window.file")
    assert text.startswith("\ufeff")
    return browser.does("window.fileName"), list(csv.DictReader(text[1:].splitlines()))


def test_the_pairs_open_on_one_that_was_asked_and_say_what_was(browser: Browser, page: Path) -> None:
    """They opened on the first segment of the first question, "not asked", and nothing told which pairs were."""
    browser.opens(page)
    values = ["round", "question", "segment", "asked"]
    shown = [browser.does(f"document.getElementById('pair-{name}').selectedOptions[0].textContent") for name in values]
    assert shown == ["S2", "Do you trust people?", "country:kenya", "context 5"]
    assert "Score of =HYPERLINK(1): 0.123" in browser.texts("#pair-chart p")[0]
    said = "1 of 12 pairs were asked of =HYPERLINK(1) (context 5); over all 2 ways of asking, each in the rounds that it was used in, 1 of 24."
    assert browser.texts("#pair-share") == [said]
    assert browser.texts("#pair-question option") == [
        "Do you trust people?",
        "Do you trust AI? (not asked)",
        "Is the climate changing? (not asked)",
    ]
    assert browser.texts("#pair-asked option") == ["context 5", "context 0 (not asked)"]


def test_prompt_and_response_of_a_pair_are_shown_as_text_whatever_they_say(browser: Browser, page: Path) -> None:
    browser.opens(page)
    assert browser.texts("#pair-texts .raw") == [HOSTILE, "Be exact.", "Group: country:kenya\n\nq2?"]
    assert "WHERE round = 'S2' AND segment = 'country:kenya' AND question_id = 'q2'" in browser.texts("#pair-texts code")[0]
    examples = browser.texts("#data-quality .raw")
    assert examples == [HOSTILE.replace("\x07", "\ufffd")]
    assert browser.does("typeof window.harm") == "undefined"
    assert browser.does("document.images.length") == 0
    assert browser.said == []


def test_a_table_is_saved_with_all_digits_and_no_formula(browser: Browser, page: Path) -> None:
    browser.opens(page)
    buttons = "[...document.querySelectorAll('section .scroll')].every(box => box.parentNode.querySelector('button.download'))"
    assert browser.does(buttons)
    name, rows = saved(browser, "#leaderboard button.download")
    assert name == "dtef-s1-s2_leaderboard_leaderboard_with-5-context-questions.csv"
    row = next(row for row in rows if row["model"].endswith(FORMULA))
    assert row["model"] == "'" + FORMULA
    assert float(row["score"]) == 0.123456789012345
    assert row["score_low"] == ""
    below = next(row for row in rows if row["model"] == "baseline/uniform")
    assert float(below["score"]) < 1
    assert browser.requested == [page.as_uri()]
    assert browser.said == []
    browser.does("names = []; HTMLAnchorElement.prototype.click = function () { names.push(this.download) }")
    browser.does("document.querySelectorAll('button.download').forEach(button => button.click())")
    assert browser.said == []
    assert browser.does("names.length === new Set(names).size && names.length > 10"), "two tables were saved under one name"


CROSSED = """(() => [...document.querySelectorAll('#leaderboard svg, #gaps svg')].flatMap(drawing => {
  const box = node => node.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const texts = [...drawing.querySelectorAll('text')], lines = [...drawing.querySelectorAll('line, circle')];
  const named = text => text.textContent;
  return texts.flatMap((text, at) => [
    ...texts.slice(at + 1).filter(other => meet(box(text), box(other))).map(other => named(text) + ' | ' + named(other)),
    ...lines.filter(one => meet(box(text), box(one))).map(one => named(text) + ' | ' + one.getAttribute('class')),
    ...(box(text).right > box(drawing).right + 1 ? [named(text) + ' is cut'] : []),
  ]);
}))()"""


@pytest.mark.thorough
@pytest.mark.parametrize("width", [1400, 400])
def test_no_label_of_a_chart_lies_on_another_or_on_a_line(browser: Browser, page: Path, width: int) -> None:
    """Two lines at nearly one score had their names over each other's line, and names of models ran over lines on a phone."""
    browser.opens(page, width=width)
    browser.does("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    assert browser.does("document.querySelectorAll('#leaderboard svg text').length") > 10
    assert browser.does(CROSSED) == []
