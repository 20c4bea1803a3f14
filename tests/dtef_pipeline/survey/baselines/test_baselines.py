"""Baselines: each one's distribution, and that having nothing to say is never a zero."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.survey.baselines.baselines import (
    NEIGHBOUR_BASELINES,
    explain_missing_prediction,
    format_as_response,
    load_previous_answers,
    predict_distribution,
)
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.identity import make_question_key
from dtef_pipeline.survey.reading.parsing import parse_response
from tests.made.scores import AGREE, survey_rows

MARGINAL, LEAVE_ONE_OUT = "baseline/population-marginal", "baseline/leave-one-out-marginal"
SHUFFLED, DIRICHLET, PREVIOUS = "baseline/shuffled-segment", "baseline/dirichlet", "baseline/previous-round"


def baseline(name: str, **settings: Any) -> ModelSpec:
    return ModelSpec(name=name, model=name, **settings)


def row(**given: Any) -> dict[str, Any]:
    found: dict[str, Any] = survey_rows(given).to_pylist()[0]
    return found


def predicted(name: str, given: dict[str, Any], draw: int = 0, previous: Any = None, **settings: Any) -> Any:
    return predict_distribution(baseline(name, **settings), given, draw, previous or {})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("baseline/uniform", [1 / 3] * 3),
        (MARGINAL, [0.4, 0.4, 0.2]),
        (LEAVE_ONE_OUT, [0.3, 0.3, 0.4]),
        (SHUFFLED, [0.1, 0.1, 0.8]),
    ],
)
def test_a_baseline_answers_what_its_name_says(name: str, expected: list[float]) -> None:
    assert predicted(name, row()) == pytest.approx(expected, abs=0)


@pytest.mark.parametrize(
    ("name", "column"),
    [(MARGINAL, "population"), (LEAVE_ONE_OUT, "leave_one_out_marginal"), (SHUFFLED, "shuffled"), (PREVIOUS, None)],
)
def test_nothing_to_say_is_none_with_a_reason_and_never_zeros(name: str, column: str | None) -> None:
    given = row(**({column: None} if column else {}))
    assert predicted(name, given) is None
    assert "no " in explain_missing_prediction(baseline(name))


def test_every_baseline_is_known_and_another_lists_them() -> None:
    previous = {make_question_key("Question number 0?", AGREE): [0.2, 0.2, 0.6]}
    for name in BASELINES:
        if name not in NEIGHBOUR_BASELINES:  # these answer prompts: test_neighbours.py
            assert sum(predicted(name, row(), previous=previous)) == pytest.approx(1)
    assert set(NEIGHBOUR_BASELINES) < set(BASELINES)
    stranger = ModelSpec.model_construct(name="baseline/oracle", model="baseline/oracle")
    with pytest.raises(ConfigError, match=r"unknown baseline 'baseline/oracle'; known: baseline/uniform, .*empirical-bayes"):
        predict_distribution(stranger, row(), 0, {})


def test_dirichlet_repeats_with_its_seed_and_changes_with_seed_draw_question_segment_and_round() -> None:
    plain = predicted(DIRICHLET, row())
    assert predicted(DIRICHLET, row()) == plain
    others = [
        predicted(DIRICHLET, row(), seed=1),
        predicted(DIRICHLET, row(), draw=1),
        predicted(DIRICHLET, row(question_id="q7")),
        predicted(DIRICHLET, row(segment="country:chile")),
        predicted(DIRICHLET, row(round="S2")),
    ]
    assert len({tuple(d) for d in [plain, *others]}) == 6


class TestPreviousRound:
    def of(self, round_id: str, *rows: dict[str, Any]) -> dict[tuple[str, ...], list[float]]:
        return load_previous_answers(survey_rows(*rows), round_id)

    def test_takes_the_latest_earlier_round_of_the_same_series(self) -> None:
        rounds = {"GD2": 0.2, "GD9": 0.9, "GD10": 0.5, "GD11": 0.7, "UK1": 0.1}
        rows = [{"round": r, "question_text": "Yes?", "observed": [p, 1 - p, 0.0]} for r, p in rounds.items()]
        for order in (rows, rows[::-1]):
            assert self.of("GD10", *order) == {make_question_key("Yes?", AGREE): [0.9, pytest.approx(0.1), 0.0]}
            assert next(iter(self.of("GD3", *order).values()))[0] == 0.2
            assert self.of("GD2", *order) == {}
            assert self.of("UK1", *order) == {}

    def test_an_older_round_answers_what_the_newer_one_did_not_ask(self) -> None:
        rows = [{"round": "GD1", "question_text": "Old?"}, {"round": "GD2", "question_text": "New?"}]
        assert set(self.of("GD3", *rows)) == {make_question_key("Old?", AGREE), make_question_key("New?", AGREE)}


class TestResponse:
    @pytest.mark.parametrize("distribution", [[0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0], [1e-9, 0.5, 0.5 - 1e-9]])
    def test_is_read_back_by_the_parser_at_full_precision(self, distribution: list[float]) -> None:
        text = format_as_response(distribution)
        assert json.loads(text) == pytest.approx([100 * p for p in distribution])
        parsed = parse_response(text, 3, None)
        assert parsed.status == "ok"
        assert parsed.distribution == pytest.approx(distribution, abs=1e-15)

    @pytest.mark.parametrize("distribution", [[0.0, 0.0], [float("nan"), 1.0], []])
    def test_what_is_no_distribution_is_refused(self, distribution: list[float]) -> None:
        with pytest.raises(DtefError, match="not a distribution"):
            format_as_response(distribution)
