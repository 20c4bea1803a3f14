"""The curation file: what it does to a survey, and what is said of one with a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.batteries import batteries
from dtef_pipeline.survey.curation import Curation, load_curation
from dtef_pipeline.survey.model import Question, Survey
from tests.conftest import ROOT

TRUST = ("Distrust", "Trust")
QUESTIONS = tuple(
    Question(name, f"How much do you trust {name}?", TRUST) for name in ("judges", "nurses", "priests", "lawyers", "soldiers")
)
SURVEY = Survey("GD4", "Four", "test", "x", QUESTIONS, (), ())


def row(question_id: str, battery: str = "B", reason: str = "asked apart", round_id: str = "GD4") -> str:
    return f"  - {{round: {round_id}, question_id: {question_id}, battery: {battery}, reason: {reason}}}\n"


def curation(tmp_path: Path, *rows: str) -> Curation:
    file = tmp_path / "batteries.yaml"
    file.write_text("batteries:\n" + "".join(rows), encoding="utf-8")
    return load_curation(file)


def test_the_file_that_the_docs_show_corrects_the_sample_round(tmp_path: Path) -> None:
    """Its rows named questions that no reader had."""
    shown = (ROOT / "docs" / "batteries.md").read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    file = tmp_path / "batteries.yaml"
    file.write_text(shown, encoding="utf-8")
    survey = read_survey(ROOT / "data" / "rounds" / "S1", "S1")
    corrected = load_curation(file).applied(survey)
    named = dict(zip([q.id for q in survey.questions], batteries(corrected.questions), strict=True))
    assert {name for name in named.values() if name.startswith("curated:")} == {"curated:school", "curated:newspapers"}
    assert named["s1-14"] == named["s1-16"] != named["s1-09"]


def test_what_the_file_says_of_a_round_holds_and_the_rule_says_the_rest(tmp_path: Path) -> None:
    found = curation(tmp_path, row("judges"), row("priests"), row("nurses", "N", round_id="gd4"), row("x", round_id="GD5"))
    survey = found.applied(SURVEY)
    assert batteries(survey.questions) == ["curated:B", "curated:N", "curated:B", "rule:lawyers", "rule:lawyers"]
    (finding,) = survey.findings
    assert finding.items[0] == "How much do you trust judges?: B (asked apart)"
    assert found.applied(Survey("GD6", *list(vars(SURVEY).values())[1:])).findings == ()
    assert Curation().applied(SURVEY) == SURVEY


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [row("judges"), row("nuns")],
            r"batteries.yaml:3: row 2: question_id: got 'nuns', which round GD4 does not ask; "
            r'allowed: nurses \("How much do you trust nurses\?"\), .* and 1 more$',
        ),
        (
            [row("judges"), row("judges", "C")],
            r"batteries.yaml:3: row 2: .* stands in row 1 already \(battery B\); allowed: one row per question",
        ),
        (["  - {round: GD4, question_id: judges, battery: B}\n"], r"batteries.yaml:2: row 1: reason: is missing"),
        ([row("judges", reason="' '")], r"batteries.yaml:2: row 1: reason: is blank; allowed: text"),
        (
            [row("judges", round_id="'-'")],
            r"batteries.yaml:2: row 1: round: '-' makes no round id; allowed: a name such as GD4",
        ),
        ([row("7")], r"batteries.yaml:2: row 1: question_id: got 7; allowed: text"),
        (["  - {why: no}\n"], r"row 1: why: unknown key; known: round, question_id, battery, reason"),
        (["  judges: B\n"], r"batteries: got .*; allowed: a list of mappings with round, question_id, battery, reason"),
    ],
)
def test_a_fault_is_told_with_file_line_row_and_what_is_allowed(tmp_path: Path, rows: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        curation(tmp_path, *rows).applied(SURVEY)
