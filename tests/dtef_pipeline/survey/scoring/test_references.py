"""Reference scores: ceilings by hand, by plain loops and by an exact sum, and what those who know nothing of the segment would score."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy.stats import binom

from dtef_pipeline.errors import DtefError
from dtef_pipeline.survey.scoring import metrics
from dtef_pipeline.survey.scoring.references import (
    MAX_STRENGTH,
    compute_reference_scores,
    draw_truths,
    estimate_ceilings,
    estimate_prior_strength,
)
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


Floats = npt.NDArray[np.float64]


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def of_truth(truth: Floats, n: int, draws: int) -> dict[str, Floats]:
    """Ceilings of segments whose truths (segments, k) are known."""
    spread = np.broadcast_to(truth, (draws, *truth.shape))
    return estimate_ceilings(spread, np.full(len(truth), n), generator(), ordinal=True, ranks=np.arange(truth.shape[1]))


def naive_strength(observed: Floats, n: Floats) -> float:
    """Intraclass correlation of the answers themselves, by an analysis of variance of one 0/1 variable per option."""
    between = within = 0.0
    everyone = sum(n)
    for option in range(observed.shape[1]):
        grand = sum(n[s] * observed[s, option] for s in range(len(n))) / everyone
        for s in range(len(n)):
            yes = n[s] * observed[s, option]
            between += n[s] * (observed[s, option] - grand) ** 2 / (len(n) - 1)
            within += (yes * (1 - observed[s, option]) ** 2 + (n[s] - yes) * observed[s, option] ** 2) / (everyone - len(n))
    size = (everyone - sum(v * v for v in n) / everyone) / (len(n) - 1)
    rho = (between - within) / (between + (size - 1) * within)
    return (1 - rho) / rho


class TestPriorStrength:
    def test_by_hand(self) -> None:
        # Two segments of 10, 8:2 and 2:8: B = 10 (.09 + .09) 2 = 3.6; W = 2 x 10 (1 - .68) / 18 = .3556; n0 = 10.
        found = estimate_prior_strength(np.array([[0.8, 0.2], [0.2, 0.8]]), np.array([10.0, 10.0]))
        assert found == pytest.approx(10 * 0.3555556 / (3.6 - 0.3555556), rel=1e-6)

    def test_is_what_plain_loops_say_on_lopsided_segments(self) -> None:
        rng = generator(3)
        observed, n = rng.dirichlet([4, 1, 0.3, 2], 7), rng.integers(10, 600, 7).astype(np.float64)
        assert estimate_prior_strength(observed, n) == pytest.approx(naive_strength(observed, n))


def test_truths_lie_between_observed_and_population_by_the_shrinkage() -> None:
    observed, population = np.array([[0.9, 0.1, 0.0]] * 3), np.array([[0.2, 0.3, 0.5]] * 3)
    n, strength = np.array([40.0, 40.0, 40.0]), np.array([0.0, 40.0, MAX_STRENGTH])
    drawn = draw_truths(observed, n, population, strength, generator(), 4000)
    weight = (strength / (n + strength))[:, None]
    assert drawn.sum(axis=-1) == pytest.approx(1)
    assert drawn.mean(axis=0) == pytest.approx((1 - weight) * observed + weight * population, abs=0.005)
    share = observed[1, 0] * 0.5 + population[1, 0] * 0.5
    assert drawn[:, 1, 0].var() == pytest.approx(share * (1 - share) / 81, rel=0.1)


class TestCeilings:
    def test_by_hand_with_one_respondent_of_two_options(self) -> None:
        """A sample of one from 50:50 is always 1:0: every metric is that of the uniform distribution against it."""
        found = of_truth(np.array([[0.5, 0.5]]), 1, 20)
        expected = metrics.measure([0.5, 0.5], [1, 0])
        similar = {name: 1 - value if name in DISTANCES else value for name, value in expected.items()}
        assert {name: float(value[0]) for name, value in found.items()} == pytest.approx(
            {n: float(v) for n, v in similar.items()}
        )

    def test_is_the_mean_over_all_samples_there_are(self) -> None:
        """Against the exact sum over the binomial distribution."""
        n, share = 12, 0.7
        yes = np.arange(n + 1)
        samples = np.column_stack([yes, n - yes]) / n
        exact = binom.pmf(yes, n, share) @ metrics.js(np.broadcast_to([share, 1 - share], samples.shape), samples)
        found = of_truth(np.array([[share, 1 - share]]), n, 20_000)["js"][0]
        assert found == pytest.approx(exact, abs=0.002)
