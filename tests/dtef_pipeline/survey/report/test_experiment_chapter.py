"""Experiments in the report: what `dtef board --experiment` compares, of those whose conditions were asked."""

from __future__ import annotations

from typing import Any

import duckdb

from dtef_pipeline.survey.experiments import Condition, Experiment
from dtef_pipeline.survey.report.chapters import experiments
from tests.made.scores import scores_table
from tests.made.sections import cells

ORDER = Experiment(
    name="order",
    hypothesis="The <order> does not matter.",
    conditions=[Condition(name="given"), Condition(name="reversed", option_order="reversed")],
)
WARMTH = Experiment(
    name="warmth",
    hypothesis="Warm is as good.",
    conditions=[Condition(name="cold", settings={"temperature": 0}), Condition(name="warm", settings={"temperature": 0.7})],
)


def asked(model: str, variant: str, score: float, **given: Any) -> list[dict[str, Any]]:
    known = {"model": model, "model_variant": variant, "score": score, **given}
    return [{**known, "question_id": f"q{at}"} for at in range(6)]


def section_of(rows: list[dict[str, Any]]) -> str:
    with duckdb.connect() as connection:
        connection.register("scores", scores_table(rows))
        return experiments(connection, [ORDER, WARMTH])


def test_an_experiment_stands_with_its_comparison_where_its_conditions_were_asked() -> None:
    variant = "openai/gpt[max_tokens=256,temperature=0]"
    turned = {"condition": "distribution/attribute-label+reversed"}
    rows = asked("gpt", variant, 0.5) + asked("gpt", variant, 0.6, **turned) + asked("other", "openai/o[temperature=0]", 0.5)
    markup = section_of(rows)
    assert "The &lt;order&gt; does not matter." in markup
    assert "Each condition against given; snapshot base" in markup
    first, second = cells(markup)
    assert first[:5] == ["gpt", "given", "–", "6", "0.500"]
    assert [second[at] for at in (0, 1, 3, 4)] == ["gpt", "reversed", "6", "0.600"]
    assert second[5].startswith("+0.100")
    assert "warmth" not in markup


def test_conditions_that_differ_in_settings_are_found_by_their_variants_and_a_later_snapshot_where_base_has_none() -> None:
    night = {"snapshot": "2026-01-02"}
    rows = asked("gpt", "openai/gpt[max_tokens=256,temperature=0]", 0.5, **night)
    rows += asked("gpt@temperature=0.7", "openai/gpt[max_tokens=256,temperature=0.7]", 0.5, **night)
    markup = section_of(rows)
    assert "Each condition against cold; snapshot 2026-01-02" in markup
    assert [row[:2] for row in cells(markup)] == [["gpt", "cold"], ["gpt", "warm"]]
