"""The table of reference scores: what a perfect prediction and those who know nothing of the segment would score."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dtef_pipeline.errors import DtefError
from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.scoring.references import compute_reference_scores
from dtef_pipeline.survey.tables import DISTANCES
from tests.made.scores import survey_rows

COUNTRIES, GENDERS = ("chile", "india", "kenya", "peru"), ("female", "male")


def a_round(questions: int = 3) -> pa.Table:
    """Every segment of two attributes answers every question, each in its own way."""
    rng = np.random.default_rng(1)
    segments = [("country", value) for value in COUNTRIES] + [("gender", value) for value in GENDERS]
    rows = []
    for question in range(questions):
        for attribute, value in segments:
            asked = {"question_id": f"q{question}", "question_text": f"Question number {question}?"}
            of = {"segment": f"{attribute}:{value}", "attribute": attribute, "value": value}
            rows.append({**asked, **of, "observed": rng.dirichlet([4, 3, 2]).tolist(), "n": int(rng.integers(15, 300))})
    return survey_rows(*rows)


def by_pair(table: pa.Table) -> pd.DataFrame:
    """A column for each number, and the rows in the order of the pairs."""
    return table.flatten().to_pandas().set_index(["round", "segment", "question_id"]).sort_index()


def test_references_are_the_metrics_of_those_distributions() -> None:
    (row,) = compute_reference_scores(survey_rows({"observed": [0.2, 0.3, 0.5]})).to_pylist()
    for name, predicted in (
        ("uniform_score", [1, 1, 1]),
        ("leave_one_out_score", [0.3, 0.3, 0.4]),
        ("population_score", [0.4, 0.4, 0.2]),
    ):
        measured = {metric: float(value) for metric, value in metrics.measure(predicted, [0.2, 0.3, 0.5]).items()}
        assert row[name] == pytest.approx({m: 1 - v if m in DISTANCES else v for m, v in measured.items()})
    assert row["gini"] == pytest.approx(0.62 * 40 / 39)


def test_no_other_segment_of_the_attribute_is_null_not_zero() -> None:
    alone, both = compute_reference_scores(
        survey_rows({"leave_one_out_marginal": None, "leave_one_out_n": None}, {})
    ).to_pylist()
    assert alone["leave_one_out_score"] is None
    assert alone["population_score"] is not None
    assert both["leave_one_out_score"] is not None


def test_a_lowered_ceiling_is_below_the_ceiling_and_effective_respondents_lower_it_as_fewer_do() -> None:
    survey = a_round(30)
    effective = with_column(survey, "n_effective", [size / 1.5 for size in survey["n"].to_pylist()])
    stated, low = (by_pair(compute_reference_scores(rows, draws=60)) for rows in (survey, effective))
    names = [name for name in stated if name.startswith("ceiling.")]
    for name in names:
        lowered = stated[name.replace("ceiling", "ceiling_low")]
        assert (lowered <= stated[name]).all(), name
        assert (lowered.isna() == stated[name].isna()).all()
        assert low[name.replace("ceiling", "ceiling_low")].mean() < lowered.mean(), name
        assert low[name].mean() < stated[name].mean(), name
    fewer = survey.set_column(
        survey.column_names.index("n"),
        survey.schema.field("n"),
        pc.cast(pc.round(pc.divide(pc.cast(survey["n"], "float64"), 1.5)), "int32"),
    )
    of_fewer = by_pair(compute_reference_scores(fewer, draws=60))
    for name in ("ceiling.js", "ceiling_low.js"):
        assert low[name].mean() == pytest.approx(of_fewer[name].mean(), abs=1e-6)
    without_n = with_column(effective, "n", [None] * len(survey))
    assert not compute_reference_scores(without_n)["ceiling"].null_count


def test_a_distribution_that_does_not_fit_its_options_is_named() -> None:
    with pytest.raises(
        DtefError,
        match=r"S1/country:kenya/q0: observed got \[0\.5, 0\.5\]; allowed: a number for each of the options \['Agree'",
    ):
        compute_reference_scores(survey_rows({"observed": [0.5, 0.5]}))


def with_column(survey: pa.Table, name: str, values: list[float | None]) -> pa.Table:
    place = survey.schema.get_field_index(name)
    return survey.set_column(place, survey.schema.field(place), pa.array(values, survey.schema.field(place).type))


def test_what_needs_n_is_null_where_n_is_unknown() -> None:
    survey = a_round()
    unknown = survey["segment"].to_pylist()[0]
    n = [
        None if segment == unknown else size
        for segment, size in zip(*(survey[c].to_pylist() for c in ("segment", "n")), strict=True)
    ]
    found = compute_reference_scores(with_column(survey, "n", n)).to_pylist()
    whole = compute_reference_scores(survey).to_pylist()
    for row, of_known in zip(found, whole, strict=True):
        nothing = row["segment"] == unknown
        assert {row[name] is None for name in ("gini", "ceiling", "ceiling_low", "n")} == {nothing}
        assert row["uniform_score"] == pytest.approx(of_known["uniform_score"])
        assert row["population_score"] == pytest.approx(of_known["population_score"])
    nobody = compute_reference_scores(with_column(survey, "n", [None] * len(survey)))
    assert nobody["ceiling"].null_count == len(survey)
