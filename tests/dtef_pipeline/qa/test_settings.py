"""The section `qa` of the panel file: what it takes, and what it says of faults."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import load_panel_settings, run_config
from dtef_pipeline.qa.settings import (
    ITEM_TEMPLATES,
    QA_ANCHOR_SETTINGS,
    QA_STAGE_SETTINGS,
    QaCondition,
    QaSettings,
    choose_parts,
    select_panel_parts,
)
from tests.conftest import ROOT
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)
KNOWN = ["mmlu/law", "mmlu/high_school_law", "mmlu/high_school_physics", "gsm8k/all", "own/law"]


def panel(tmp_path: Path, text: str) -> QaSettings | None:
    path = tmp_path / "panel.yaml"
    path.write_text(text, encoding="utf-8")
    return load_panel_settings(path, "qa", QaSettings)


@pytest.mark.parametrize(("suites", "parts", "found"), CASES["parts_are_chosen_by_suite_by_name_and_by_pattern"])
def test_parts_are_chosen_by_suite_by_name_and_by_pattern(suites: list[str], parts: list[str], found: list[str]) -> None:
    assert choose_parts(KNOWN, suites, parts) == found


def test_a_panel_that_names_no_part_asks_nothing(tmp_path: Path) -> None:
    assert panel(tmp_path, "models: [baselines]\n") is None
    found = panel(tmp_path, "qa: {models: [m]}\n")
    assert found is not None
    assert not found.names_parts
    assert select_panel_parts(found, KNOWN) == []


@pytest.mark.parametrize(("text", "said"), CASES["a_fault_is_reported_with_its_line"])
def test_a_fault_is_reported_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        panel(tmp_path, text)


def test_every_stage_gets_the_settings_that_it_takes() -> None:
    found = run_config(QaSettings(models=["m"], retriever="remote", k=5, judge="j", max_calls=7), QA_STAGE_SETTINGS)
    assert found["qa_prompts"] == {"retriever": "remote", "k": 5}
    assert found["qa_responses"] == {"snapshot": "base", "max_calls": 7, "retriever": "remote", "k": 5, "models": ["m"]}
    assert found["qa_judgements"] == {"snapshot": "base", "max_calls": 7, "judge": "j"}
    assert found["qa_scores"] == {"snapshot": "base"}


def test_a_file_is_counted_from_the_folder_of_the_panel(tmp_path: Path) -> None:
    found = panel(tmp_path, "qa: {judges: j.yaml, allow_unpriced: [j]}\n")
    assert found is not None
    config = run_config(found, {"qa_anchors": QA_ANCHOR_SETTINGS})["qa_anchors"]
    assert config == {"snapshot": "base", "judges": str(tmp_path / "j.yaml"), "allow_unpriced": ["j"]}


def test_the_example_in_the_shipped_panel_can_be_used(tmp_path: Path) -> None:
    shipped = (ROOT / "data" / "panel.yaml").read_text(encoding="utf-8").splitlines()
    begin = shipped.index("# qa:")
    section = [line.removeprefix("# ") for line in takewhile(str.strip, shipped[begin:])]
    found = panel(tmp_path, "\n".join(section))
    assert found is not None
    assert found.names_parts


@given(st.sampled_from(ITEM_TEMPLATES), st.integers(0, 100), st.booleans(), st.integers(0, 3))
def test_every_condition_is_read_back(template: str, shots: int, as_turns: bool, rotation: int) -> None:
    made = QaCondition(template, shots, as_turns and shots > 0, rotation if template != "plain" else 0)
    assert QaCondition.parse_text(str(made)) == made


@given(st.text() | st.from_regex(r"(letters|cot|plain|x)(,\d{1,3}-shots?(-turns)?)?(,rotated-\d)? ?", fullmatch=True))
def test_a_text_is_the_spelling_of_a_condition_or_an_error(text: str) -> None:
    try:
        made: QaCondition | None = QaCondition.parse_text(text)
    except ConfigError:
        made = None
    assert made is None or str(made) == text


@pytest.mark.parametrize("text", ["prose", "letters,101-shot", "letters,rotated-4", "plain,rotated-1"])
def test_a_condition_that_no_prompt_can_have_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="allowed: "):
        QaCondition.parse_text(text)
