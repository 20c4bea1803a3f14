"""`dtef anchors`: what it refuses before anything runs. What it asks is tested with the stages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dtef_pipeline.cli.anchors import NOTHING_TO_JUDGE_AGAIN
from dtef_pipeline.qa.tables import QA_JUDGEMENTS
from dtef_pipeline.rubric.tables import RUBRIC_SCORES
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import refused
from tests.made.rubric_warehouse import keep_blueprint
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)
LETTER = """
title: Letter
models: ["openai:cand-a"]
---
- id: hello
  prompt: Say hello.
  should: [It greets.]
"""


@pytest.fixture
def house(state: Path) -> Warehouse:
    """A blueprint with scores and a criterion in words, which names no judge, as no models file does; and a part with judgements."""
    made = Warehouse(state / "warehouse")
    (state / "letter.yml").write_text(LETTER, encoding="utf-8")
    keep_blueprint(made, state / "letter.yml")
    made.write("rubric_scores", RUBRIC_SCORES.empty_table(), blueprint="letter", snapshot="base")
    made.write("qa_judgements", QA_JUDGEMENTS.empty_table(), suite="gsm8k", part="all", snapshot="base")
    return made


@pytest.mark.parametrize(("command", "told"), CASES["wrong_options_are_reported_before_anything_runs"])
def test_wrong_options_are_reported_before_anything_runs(command: str, told: str, house: Warehouse, state: Path) -> None:
    assert told in refused(*command.split())
    assert not (state / "responses.sqlite").exists()


def test_budgets_name_the_judges_of_the_blueprints_and_no_other_model(
    house: Warehouse, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A budget of a model that judges nothing limited nothing, and one of a judge outside the models file was refused."""
    models = state / "models.yaml"
    models.write_text("models:\n  idle:\n    model: openai/idle\n", encoding="utf-8")
    monkeypatch.setenv("DTEF_MODELS", str(models))
    own = "\nevaluationConfig:\n  llm-coverage:\n    judges:\n    - {model: 'openai:own', approach: standard}\n---"
    (state / "letter.yml").write_text(LETTER.replace("\n---", own), encoding="utf-8")
    keep_blueprint(house, state / "letter.yml")
    command = ("anchors", "--family", "rubric", "--max-cost-usd")
    told = refused(*command, "idle=1")
    assert "the budget of 'idle' limits nothing in this run" in told
    assert "openai/own" in told
    assert NOTHING_TO_JUDGE_AGAIN.format("rubric") in refused(*command, "openai/own=1")


def test_without_anything_judged_there_is_nothing_to_judge_again(house: Warehouse) -> None:
    for table in ("rubric_scores", "qa_judgements"):
        shutil.rmtree(Path(house.root) / table)
    for family in ("rubric", "qa"):
        assert NOTHING_TO_JUDGE_AGAIN.format(family) in refused("anchors", "--family", family)
    assert "no anchors of qa" in refused("anchors", "--family", "qa", "--results")
