"""Experiments: each condition is compared with the first on the cells that both have."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from dtef_pipeline.asking.models import load_models
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.survey.boards.conditions import compare_paired_cells, load_condition_usage, load_paired_cells
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.experiments import ConditionModel, Experiment, resolve_asked_models
from dtef_pipeline.survey.tables import PREDICTIONS
from tests.made.scores import scores_table

MODELS = load_models("models: {m: {model: openai/m}, other: {model: openai/other}}")
COLD, WARM = "openai/m[max_tokens=256,temperature=0]", "openai/m[max_tokens=256,temperature=0.7]"
PLAIN, COT = "distribution/attribute-label", "distribution/attribute-label+cot"


def experiment(*conditions: dict[str, Any], **given: Any) -> Experiment:
    return Experiment.model_validate({"name": "e", "hypothesis": "h", "conditions": list(conditions), **given})


REASONING = experiment({"name": "standard"}, {"name": "reasoned", "reasoning": "cot"})
TEMPERATURE = experiment({"name": "cold"}, {"name": "warm", "settings": {"temperature": 0.7}})
CONTEXT = experiment({"name": "none"}, {"name": "five", "contexts": ["5"]})


def of(condition: str, *scores: float | None, variant: str = COLD, **given: Any) -> list[dict[str, Any]]:
    """Scores of m on q0, q1, ...; None: the call failed."""
    return [
        {
            "model": "m",
            "model_variant": variant,
            "condition": condition,
            "question_id": f"q{i}",
            "score": score,
            "status": "error" if score is None else "ok",
            **given,
        }
        for i, score in enumerate(scores)
    ]


def asked(chosen: Experiment, *models: str) -> tuple[ConditionModel, ...]:
    return resolve_asked_models(chosen, MODELS, models or ("m",))


def compared(chosen: Experiment, rows: list[dict[str, Any]], predictions: list[dict[str, Any]] = []) -> pd.DataFrame:  # noqa: B006
    options = SurveyBoardOptions(snapshot="base")
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(rows))
        connection.register("predictions", pa.Table.from_pylist(predictions, schema=PREDICTIONS))
        cells = load_paired_cells(connection, asked(chosen), options)
        return compare_paired_cells(cells, load_condition_usage(connection, asked(chosen), options, cells)).set_index(
            "condition"
        )


def test_each_condition_is_compared_with_the_first_on_the_cells_both_have() -> None:
    found = compared(REASONING, of(PLAIN, 0.4, 0.6, 0.9, None) + of(COT, 0.5, None, 0.8, 0.1))
    reasoned = found.loc["reasoned"]
    assert reasoned["n_pairs"] == 2
    assert reasoned["score"] == pytest.approx((0.5 + 0.8) / 2)
    assert reasoned["first_score"] == pytest.approx((0.4 + 0.9) / 2)
    assert reasoned["difference"] == pytest.approx(0.0)
    first = found.loc["standard"]
    assert (first["n_pairs"], first["score"]) == (3, pytest.approx((0.4 + 0.6 + 0.9) / 3))
    assert pd.isna(first["difference"])


def test_conditions_that_differ_in_settings_alone_are_distinguished_by_the_variant() -> None:
    found = compared(TEMPERATURE, of(PLAIN, 0.4) + of(PLAIN, 0.7, variant=WARM))
    assert found.loc["warm", "difference"] == pytest.approx(0.3)
    assert found["model"].tolist() == ["m", "m"]


def test_context_levels_are_never_mixed_and_each_compares_as_if_alone() -> None:
    """Two levels were pooled into one row of twice the pairs, and adjusted over the same test twice."""
    at_five = {"context_level": "5"}
    scores = (
        of(PLAIN, *[0.5] * 6) + of(COT, *[0.6, 0.7] * 3) + of(PLAIN, *[0.4] * 6, **at_five) + of(COT, *[0.3] * 6, **at_five)
    )
    more = of(PLAIN, 0.1, **at_five, segment="country:chile")  # asked in one condition alone
    calls = [call("a", PLAIN), call("b", COT), call("c", COT, **at_five, cost_usd=0.5)]
    both = experiment({"name": "standard"}, {"name": "reasoned", "reasoning": "cot"}, contexts=["0", "5"])
    found = compared(both, scores + more, calls).set_index("context_level", append=True)
    assert found.index.tolist() == [("standard", "0"), ("reasoned", "0"), ("standard", "5"), ("reasoned", "5")]
    assert found["n_pairs"].tolist() == [6, 6, 6, 6]
    assert found["cost_usd"].tolist() == pytest.approx([0.25, 0.25, np.nan, 0.5], nan_ok=True)
    for level in ("0", "5"):
        alone = experiment({"name": "standard"}, {"name": "reasoned", "reasoning": "cot"}, contexts=[level])
        expected = compared(alone, scores + more, calls).drop(columns="context_level")
        pd.testing.assert_frame_equal(found.xs(level, level="context_level"), expected, check_dtype=False)


def call(key: str, condition: str, variant: str = COLD, **given: Any) -> dict[str, Any]:
    at = {"round": "S1", "segment": "country:kenya", "snapshot": "base", "question_id": "q0", "context_level": "0"}
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "cost_usd": 0.25, "call_status": "answered"}
    return {**at, **usage, "request_key": key, "condition": condition, "model_variant": variant, "model": "m", **given}


def test_tokens_and_dollars_are_those_of_the_pairs_that_are_compared() -> None:
    """What another run asked in one condition alone made it look dearer than the others."""
    calls = [
        call("a", PLAIN),
        call("more", PLAIN, question_id="q1"),
        call("elsewhere", PLAIN, segment="country:chile"),
        call("b", COT, completion_tokens=300),
        call("batch", COT, question_id="q0"),
        call("batch", COT, question_id="q1", prompt_tokens=0, completion_tokens=0, cost_usd=0.0),
    ]
    scores = of(PLAIN, 0.4, 0.5) + of(PLAIN, 0.9, segment="country:chile") + of(COT, 0.5)
    found = compared(REASONING, scores, calls)
    assert found["n_pairs"].tolist() == [1, 1]
    assert found["prompt_tokens"].tolist() == [100, 200]
    assert found["completion_tokens"].tolist() == [7, 307]
    assert found["cost_usd"].tolist() == pytest.approx([0.25, 0.5])


def table(rows: list[dict[str, Any]], **given: Any) -> pd.DataFrame:
    """The comparison of the two conditions of REASONING, with other arguments."""
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(rows))
        connection.register("predictions", PREDICTIONS.empty_table())
        chosen, options = asked(REASONING), SurveyBoardOptions(snapshot="base")
        cells = load_paired_cells(connection, chosen, options)
        usage = load_condition_usage(connection, chosen, options, cells)
        return compare_paired_cells(cells, usage, **given).set_index("condition")


def changed(*by: float, **given: Any) -> pd.DataFrame:
    """q0, q1, ... in one segment, changed by so much in the second condition."""
    return table(of(PLAIN, *[0.5] * len(by)) + of(COT, *(0.5 + change for change in by)), **given)


class TestDecisions:
    def test_interval_test_and_decision_by_hand(self) -> None:
        found = changed(0.1, 0.2, 0.1, 0.2, 0.1, 0.2).loc["reasoned"]
        assert found["difference"] == pytest.approx(0.15)
        assert found["low"] < 0.15 < found["high"]
        p = stats.ttest_1samp([0.1, 0.2] * 3, 0).pvalue
        assert (found["p"], found["p_adjusted"], found["n_questions"]) == pytest.approx((p, p, 6))
        assert (found["decision"], found["margin"], found["note"]) == ("better", 0.01, "")
        assert changed(*[-0.1, -0.2] * 3).loc["reasoned", "decision"] == "worse"

    def test_what_lies_within_the_margin_is_equivalent_and_what_does_not_is_undecided(self) -> None:
        changes = [0.02, -0.02, 0.03, -0.03] * 4
        assert changed(*changes).loc["reasoned", "decision"] == "undecided"
        found = changed(*changes, margin=0.05).loc["reasoned"]
        assert (found["decision"], found["margin"]) == ("equivalent", 0.05)
        assert changed(*[0.0] * 6).loc["reasoned", ["decision", "p"]].tolist() == ["equivalent", pytest.approx(1)]

    def test_a_difference_that_is_found_but_does_not_matter_says_so(self) -> None:
        found = changed(*[0.002, 0.003] * 4).loc["reasoned"]
        assert found["decision"] == "better"
        assert "margin of 0.01" in found["note"]

    def test_a_condition_that_costs_readable_responses_and_no_knowledge_is_worse_by_the_policy_alone(self) -> None:
        unread = [{**row, "status": "unparseable", "score": 0.0} for row in of(COT, *[0.0] * 24)[::3]]
        read = [row for place, row in enumerate(of(COT, *[0.5, 0.502] * 12)) if place % 3]
        found = table([*of(PLAIN, *[0.501] * 24), *read, *unread]).loc["reasoned"]
        assert (found["decision"], found["parsed_decision"]) == ("worse", "equivalent")
        assert (found["n_pairs"], found["n_parsed_pairs"]) == (24, 16)
        assert found["parsed_low"] < found["parsed_difference"] < found["parsed_high"]
        assert found["parsed_note"].endswith(": equivalent")
        all_read = changed(0.1, 0.2, 0.1, 0.2, 0.1, 0.2).loc["reasoned"]
        assert (all_read["parsed_difference"], all_read["parsed_p"]) == pytest.approx(
            (0.15, stats.ttest_1samp([0.1, 0.2] * 3, 0).pvalue)
        )
        assert (all_read["parsed_decision"], all_read["parsed_note"]) == ("better", "")

    def test_p_is_adjusted_over_the_rows_of_the_table(self) -> None:
        other = {"model": "other", "model_variant": "openai/other[max_tokens=256,temperature=0]"}
        rows = of(PLAIN, *[0.5] * 8) + of(COT, *[0.6] * 8) + of(PLAIN, *[0.5] * 8, **other) + of(COT, *[0.5, 0.6] * 4, **other)
        with duckdb.connect() as connection:
            connection.register("scores", scores_table(rows))
            cells = load_paired_cells(connection, asked(REASONING, "m", "other"), SurveyBoardOptions(snapshot="base"))
        usage = pd.DataFrame(columns=["model", "condition", "context_place", "cost_usd"])
        found = compare_paired_cells(cells, usage).set_index(["model", "condition"])
        reasoned = found.xs("reasoned", level=1)
        assert reasoned["p_adjusted"].tolist() == pytest.approx(holm(reasoned["p"]).tolist())

    @pytest.mark.parametrize("margin", [0.0, -0.1, 1.0, float("nan")])
    def test_a_margin_that_is_none_is_refused(self, margin: float) -> None:
        with pytest.raises(ConfigError, match=r"margin .*: allowed: a difference of scores above 0 and below 1"):
            changed(0.1, margin=margin)
