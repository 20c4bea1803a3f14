"""The section `qa` of the panel file: what it takes, and what it says of faults."""

from __future__ import annotations

from dataclasses import fields
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.cli.qa.qa_run import QaOptions
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.asked_parts import parts_that_fit
from dtef_pipeline.qa.night_panel import QaPanel, load_qa_panel
from dtef_pipeline.survey.panel import load_panel
from tests.conftest import ROOT

KNOWN = ["mmlu/law", "mmlu/high_school_law", "mmlu/high_school_physics", "gsm8k/all", "own/law"]


def panel(tmp_path: Path, text: str) -> QaPanel | None:
    path = tmp_path / "panel.yaml"
    path.write_text(text, encoding="utf-8")
    return load_qa_panel(path)


@pytest.mark.parametrize(
    ("suites", "parts", "found"),
    [
        ([], ["law"], ["mmlu/law", "own/law"]),
        (["mmlu"], ["law"], ["mmlu/law"]),
        ([], ["mmlu/high_school_*"], ["mmlu/high_school_law", "mmlu/high_school_physics"]),
        ([], ["*_law", "all"], ["mmlu/high_school_law", "gsm8k/all"]),
        (["gsm*", "own"], [], ["gsm8k/all", "own/law"]),
        ([], [], KNOWN),
    ],
)
def test_parts_are_chosen_by_suite_by_name_and_by_pattern(suites: list[str], parts: list[str], found: list[str]) -> None:
    assert parts_that_fit(KNOWN, suites, parts) == found


def test_a_panel_that_names_no_part_asks_nothing(tmp_path: Path) -> None:
    assert panel(tmp_path, "models: [baselines]\n") is None
    found = panel(tmp_path, "qa: {models: [m]}\n")
    assert found is not None
    assert not found.names_parts
    assert found.chosen(KNOWN) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "models: []\nqa:\n  parts: [law]\n  modles: [m]\n",
            r"panel.yaml:4: qa.modles: unknown key; known: suites, parts, models",
        ),
        ("qa:\n  draws: 0\n", r"panel.yaml:2: qa.draws: got 0; allowed: 1 to 1,000"),
        ("qa:\n  template: prose\n", r"panel.yaml:2: qa.template: got 'prose'"),
        ("qa:\n  sample_rate: 2\n", r"panel.yaml:2: qa.sample_rate: got 2"),
        ("qa:\n  role_budgets: {jury: {max_calls: 1}}\n", r"role_budgets"),
        ("qa:\n  role_budgets:\n    judge: {max_tokens: 1}\n", r"panel.yaml:3: qa.role_budgets.judge.max_tokens: unknown key"),
        ("qa:\n  filter: [YEAR]\n", r"panel.yaml:2: qa.filter: got 'YEAR'; allowed: KEY=VALUE"),
        ("qa:\n  sandbox: docker\n", r"panel.yaml:2: qa.sandbox: got 'docker'; allowed: auto, sandlock"),
        ("qa:\n  timeout_s: 0\n", r"panel.yaml:2: qa.timeout_s: got 0; allowed: 0.1 or more"),
        ("qa: [law]\n", r"panel.yaml:1: qa: got .*; allowed: a mapping"),
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        panel(tmp_path, text)


def test_the_settings_are_told_to_every_stage_that_takes_them() -> None:
    found = QaPanel(parts=["law"], models=["m"], retriever="remote", k=5, judge="j", sample_rate=0.5, max_calls=7).run_config(
        "n1"
    )
    assert found["qa_prompts"]["retriever"] == found["qa_responses"]["retriever"] == "remote"
    assert found["qa_prompts"]["k"] == found["qa_responses"]["k"] == 5
    assert "limit" not in found["qa_responses"]
    assert found["qa_responses"]["max_calls"] == found["qa_judgements"]["max_calls"] == 7
    assert {name: found["qa_judgements"][name] for name in ("judge", "sample_rate")} == {"judge": "j", "sample_rate": 0.5}


def test_every_setting_of_the_command_can_be_that_of_the_night(tmp_path: Path) -> None:
    """How programs were run, how strictly responses were scored and which documents were shown were the command's alone."""
    given = {"suites": "mmlu", "parts": "law", "models": "m", "filter": "PROJECT=US-002", "allow_unpriced": "j"}
    numbers = {
        "draws": 2,
        "limit": 3,
        "few_shot": 1,
        "k": 4,
        "sample_rate": 0.5,
        "daily_budget": 2,
        "timeout_s": 5,
        "penalty": 0.25,
    }
    words = {
        "template": "cot",
        "few_shot_as": "turns",
        "order": "rotated-1",
        "retriever": "remote",
        "judge": "j",
        "judges": "j.yaml",
    }
    flags = {"sandbox": "off", "trust_answers": "true", "strict": "true", "senses": "all"}
    lists = {name: f"[{value}]" for name, value in given.items()}
    text = "".join(f"  {name}: {value}\n" for name, value in {**lists, **numbers, **words, **flags}.items())
    found = panel(tmp_path, f"qa:\n{text}")
    assert found is not None
    named = {name: tuple(value.split()) for name, value in given.items()}
    options: dict[str, Any] = {
        **named,
        **numbers,
        **words,
        "sandbox": "off",
        "trust_answers": True,
        "strict": True,
        "senses": "all",
    }
    file = options.pop("judges")
    wanted = QaOptions(**options, judges_file=tmp_path / str(file), snapshot="n1").config()
    no_bounds: dict[str, Any] = {"budgets": {}, "role_budgets": {}}
    told = found.run_config("n1")
    assert {name: {**no_bounds, **one} for name, one in told.items()} == {
        name: {**no_bounds, **one} for name, one in wanted.items()
    }
    anchors = found.anchors_config("n1")["qa_anchors"]
    assert (anchors["judges_file"], anchors["allow_unpriced"]) == (str(tmp_path / "j.yaml"), ["j"])
    not_of_nights = {"snapshot", "rejudge", "first", "no_roll_ups", "judges_file", "max_cost_usd", "max_calls"}
    assert {one.name for one in fields(QaOptions)} - not_of_nights == {*options}


def test_a_judge_without_a_price_can_be_allowed_by_name_for_the_night_and_its_anchors() -> None:
    found = QaPanel(parts=["law"], judge="j", allow_unpriced=["j"])
    assert found.run_config("n1")["qa_judgements"]["allow_unpriced"] == ["j"]
    assert found.anchors_config("n1")["qa_anchors"]["allow_unpriced"] == ["j"]
    assert "allow_unpriced" not in QaPanel(parts=["law"]).run_config("n1")["qa_judgements"]


def test_the_example_in_the_shipped_panel_can_be_used(tmp_path: Path) -> None:
    shipped = (ROOT / "data" / "panel.yaml").read_text(encoding="utf-8").splitlines()
    begin = shipped.index("# qa:")
    section = [line.removeprefix("# ") for line in takewhile(str.strip, shipped[begin:])]
    found = panel(tmp_path, "\n".join(section))
    assert found is not None
    assert found.names_parts
    assert load_panel(tmp_path / "panel.yaml").qa
