from __future__ import annotations

import re

import pandas as pd
import pyarrow as pa

from dtef_pipeline.report.stored_rows import StoredRows
from dtef_pipeline.rubric.report.shared_tables import agreement_part, agreement_section, champions_section
from dtef_pipeline.rubric.rolled_up import champions
from tests.made.read_page import ReadPage
from tests.made.rubric_pages import connected


def rows_of(**tables: pd.DataFrame) -> StoredRows:
    return StoredRows(connected({name: pa.Table.from_pandas(rows) for name, rows in tables.items()}))


def grades(**by_model: list[float]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"blueprint": f"b{at}", "snapshot": "s", "analyst": "a", "model": model, "dimension": "clarity", "grade": grade}
            for model, own in by_model.items()
            for at, grade in enumerate(own)
        ]
    )


def cells(markup: str) -> list[str]:
    body = markup.split("<tbody>")[1].split("</tbody>")[0]
    return [ReadPage(cell).text for cell in re.findall(r"<t[dh][^>]*>.*?</t[dh]>", body)]


def test_the_champion_and_the_next_best_are_shown() -> None:
    found = champions(grades(x=[8.0, 8.0, 9.0, 9.0, 8.0], y=[7.0] * 5, z=[9.9] * 4), ["s"])
    assert cells(champions_section(rows_of(rubric_champions=found)))[:6] == ["clarity", "x", "8.4", "5", "y", "7.0"]


def test_a_dimension_without_a_champion_says_why() -> None:
    found = champions(grades(z=[9.0] * 4), ["s"])
    assert "z, the best, is graded in 4" in ReadPage(champions_section(rows_of(rubric_champions=found))).text


def agreement() -> pd.DataFrame:
    cuts = (("blueprint", "b1", 0.5), ("overall", "all", 0.7), ("blueprint", "b2", 0.9))
    return pd.DataFrame(
        [
            {"cut": cut, "value": value, "alpha": alpha, "low": alpha - 0.1, "high": alpha + 0.05, "reading": "r", "reason": ""}
            for cut, value, alpha in cuts
        ]
    )


def test_agreement_is_shown_overall_first_and_of_one_blueprint_on_its_page() -> None:
    rows = rows_of(rubric_agreement=agreement())
    assert cells(agreement_section(rows))[:2] == ["overall", "all"]
    own = agreement_part(rows, "b2")
    assert "0.900" in own
    assert "0.500" not in own
    assert "No agreement of judges on this blueprint" in agreement_part(rows, "b3")


def test_cuts_tell_their_scale_only_where_there_are_several() -> None:
    two = pd.concat([agreement().assign(scale=5), agreement().assign(scale=10)])
    assert cells(agreement_section(rows_of(rubric_agreement=two)))[:3] == ["overall", "all", "5"]
    assert "Classes" not in agreement_section(rows_of(rubric_agreement=agreement().assign(scale=10)))


def test_judges_on_models_of_their_own_maker_are_shown() -> None:
    """The table was looked for under the name of its asset, and so never shown."""
    favoured = pd.DataFrame([{"judge": "standard(j)", "model": "m", "gamma": 0.2, "low": 0.1, "high": 0.3, "maker": "OpenAI"}])
    text = ReadPage(agreement_section(rows_of(rubric_agreement=agreement(), rubric_self_preference=favoured))).text
    assert "Judges on models of their own maker" in text


def test_the_row_of_all_blueprints_says_so() -> None:
    corrected = pd.DataFrame(
        [{"blueprint": None, "model": "m", "judged": 0.5}, {"blueprint": "b", "model": "m", "judged": 0.6}]
    )
    assert "all blueprints" in ReadPage(agreement_section(rows_of(rubric_corrected=corrected))).text
