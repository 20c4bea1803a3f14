from __future__ import annotations

from typing import Any

import pandas as pd

from dtef_pipeline.rubric.rubric_roll_ups import rank_champions
from dtef_pipeline.rubric.site.family_site import build_findings_section
from dtef_pipeline.rubric.site.judges import build_judges_section, judge_sections
from dtef_pipeline.rubric.site.rubric_rows import RubricRows, judge_words
from dtef_pipeline.rubric.tables import RUBRIC_TABLES
from dtef_pipeline.site.content import Estimate, Section, list_shown_columns
from dtef_pipeline.tables import convert_to_schema_or_null
from tests.made.rubric_pages import made_tables
from tests.made.rubric_warehouse import whole


def rows_with(**tables: pd.DataFrame) -> RubricRows:
    return RubricRows(
        whole({name: convert_to_schema_or_null(rows, RUBRIC_TABLES[name].schema) for name, rows in tables.items()})
    )


def sections(**tables: pd.DataFrame) -> dict[str, Section]:
    return {one.id: one for one in judge_sections(rows_with(**tables))}


def rows_of(section: Section) -> list[dict[str, Any]]:
    return list(section.blocks[0].rows)  # type: ignore[union-attr]


def grades(**by_model: list[float]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"blueprint": f"b{at}", "snapshot": "s", "analyst": "a", "model": model, "dimension": "clarity", "grade": grade}
            for model, own in by_model.items()
            for at, grade in enumerate(own)
        ]
    )


def test_the_champion_is_shown() -> None:
    found = rank_champions(grades(x=[8.0, 8.0, 9.0, 9.0, 8.0], y=[7.0] * 5, z=[9.9] * 4), ["s"])
    section = sections(rubric_champions=found)["champions"]
    (row,) = rows_of(section)
    assert row == {"dimension": "clarity", "model": "x", "mean": 8.4, "n_blueprints": 5, "reason": None}
    assert section.answer == "x is champion of 1 of 1 dimension."


def test_a_dimension_without_a_champion_says_why() -> None:
    (row,) = rows_of(sections(rubric_champions=rank_champions(grades(z=[9.0] * 4), ["s"]))["champions"])
    assert row["model"] is None
    assert row["reason"].startswith("z, the best, is graded in 4")


def agreement(scale: int = 5) -> pd.DataFrame:
    cuts = (("blueprint", "b1", 0.5), ("overall", "all", 0.7), ("criterion", "should_not", 0.9))
    rows = [
        {"cut": cut, "value": value, "alpha": alpha, "low": alpha - 0.1, "high": alpha + 0.05, "reading": "tentative"}
        for cut, value, alpha in cuts
    ]
    return pd.DataFrame(rows).assign(scale=scale)


def test_agreement_is_shown_overall_first_in_words() -> None:
    section = sections(rubric_agreement=agreement())["agreement"]
    assert [row["value"] for row in rows_of(section)] == ["all", "should not", "b1"]
    assert section.answer == "Judges agree with alpha 0.700 (0.600 to 0.750): tentative."
    (alpha,) = (one for one in section.blocks[0].columns if one.name == "alpha")  # type: ignore[union-attr]
    assert alpha.value_in(rows_of(section)[0]) == Estimate(0.7, 0.7 - 0.1, 0.75)
    assert "scale" not in [one.name for one in list_shown_columns(section.blocks[0])]  # type: ignore[arg-type]


def test_cuts_tell_their_scale_where_there_are_several() -> None:
    section = sections(rubric_agreement=pd.concat([agreement(5), agreement(10)]))["agreement"]
    assert "on 5 classes" in section.answer
    assert "on 10 classes" in section.answer
    assert "scale" in [one.name for one in list_shown_columns(section.blocks[0])]  # type: ignore[arg-type]


def test_judges_that_favour_their_maker_are_named() -> None:
    usual = {"low": 0.1, "high": 0.3, "p_adjusted": 0.01, "n": 9, "n_prompts": 5}
    found = pd.DataFrame(
        [
            {**usual, "judge": "all", "model": "all", "maker": None, "gamma": 0.15, "flagged": False},
            {**usual, "judge": "standard(j)", "model": "m", "maker": "OpenAI", "gamma": 0.2, "flagged": True},
        ]
    )
    section = sections(rubric_self_preference=found)["self-preference"]
    assert section.answer == "All judges together: +0.150 (+0.100 to +0.300). j (standard) favours OpenAI."
    none = found.assign(flagged=False)
    assert sections(rubric_self_preference=none)["self-preference"].answer.endswith(
        "No judge is found to favour models of its maker."
    )
    assert sections(rubric_self_preference=found.assign(gamma=float("nan")))["self-preference"].is_empty


def test_without_rows_nothing_is_shown() -> None:
    assert all(section.is_empty for section in [*sections().values(), build_judges_section(rows_with())])


def test_judges_are_named_for_people() -> None:
    assert judge_words("prompt-aware(gpt-4.1)") == "gpt-4.1 (prompt-aware)"
    assert judge_words("holistic(a/b(c))[scale:10]") == "a/b(c) (holistic, 10 classes)"
    assert judge_words("standard(a) x standard(b)") == "a (standard) and b (standard)"
    assert judge_words("people") == "people"


def test_what_was_read_and_the_judges_used_are_counted() -> None:
    judges = [
        {"judge": "standard(a)", "n": 10, "n_scored": 9, "unreadable": 0.1, "n_failed": 0},
        {"judge": "standard(b)", "n": 10, "n_scored": 10, "unreadable": 0.0, "n_failed": 0},
    ]
    used = build_judges_section(rows_with(rubric_judges=pd.DataFrame(judges)))
    assert used.answer == "2 judges with 20 requested judgements; 19 of them are readable."
    made = made_tables(2, 2, 3)
    made.rows["rubric_findings"][0]["level"] = "error"
    made.rows["rubric_blueprints"][0]["n_errors"] = 1
    for name in ("rubric_responses", "rubric_runs"):
        made.rows[name][:] = [row for row in made.rows[name] if row["blueprint"] == "health__topic-0"]
    findings = build_findings_section(RubricRows(whole(made.tables())))
    assert findings.answer == "2 blueprints read with 6 prompts; 1 had errors, whose parts were left out; 1 not run."
    assert [row["level"] for row in rows_of(findings)] == ["error", "warning", "info", "info"]
