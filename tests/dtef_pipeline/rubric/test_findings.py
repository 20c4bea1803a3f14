"""Every kind of finding is made by some blueprint, with its level, its place and its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dtef_pipeline.rubric.blueprint.findings import BLUEPRINT_FINDINGS, FINDING_LEVELS, list_blocking_codes, shorten_value
from dtef_pipeline.rubric.blueprint.model import BlueprintFinding
from dtef_pipeline.rubric.blueprint.reading import read_blueprint

FAULTY: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("faulty_blueprints.yaml").read_text(encoding="utf-8")
)
COLLECTIONS: dict[str, tuple[str, ...]] = {"CORE": ("openai:gpt-4o",), "EMPTY": ()}


def known_collections(code: str) -> dict[str, tuple[str, ...]] | None:
    return None if code == "no-collections" else COLLECTIONS


def test_there_is_a_blueprint_for_each_kind() -> None:
    assert list(FAULTY) == list(BLUEPRINT_FINDINGS)


@pytest.mark.parametrize("code", FAULTY)
def test_finding_has_level_place_and_line(code: str) -> None:
    faulty = FAULTY[code]
    identifier = faulty.get("identifier", "folder__file")
    read = read_blueprint(faulty["text"], identifier, known_collections(code))
    (finding,) = (found for found in read.findings if found.code == code)
    assert 10 < len(finding.text) < 300
    assert "\n" not in finding.text
    assert (finding.level, finding.place, finding.line) == (BLUEPRINT_FINDINGS[code], faulty["place"], faulty["line"])
    assert {found.code for found in read.findings} - {code} == set(faulty.get("besides", []))


@pytest.mark.parametrize("code", [code for code, level in BLUEPRINT_FINDINGS.items() if level == "unscorable"])
def test_criterion_that_cannot_be_scored_stays_in_the_blueprint_with_its_reason(code: str) -> None:
    read = read_blueprint(FAULTY[code]["text"], "a", COLLECTIONS)
    assert read.blueprint is not None
    ((criterion,),) = (prompt.criteria for prompt in read.blueprint.prompts)
    assert criterion.kind == "function"
    assert criterion.fault
    assert read.n_omitted == 0


def test_levels_are_ordered_from_the_worst() -> None:
    levels = list(BLUEPRINT_FINDINGS.values())
    assert sorted(levels, key=FINDING_LEVELS.index) == levels


def test_only_errors_block_and_each_code_is_named_once() -> None:
    found = [
        BlueprintFinding(code, BLUEPRINT_FINDINGS[code], "", "")
        for code in ("bad-point", "no-models", "bad-regex", "bad-point", "yaml")
    ]
    assert list_blocking_codes(found) == ["bad-point", "yaml"]


def test_long_values_are_shown_by_their_beginning() -> None:
    assert shorten_value("word " * 100).endswith("...")
    assert shorten_value({"a": "b" * 10_000}).startswith('{"a": "bbb')
    assert [shorten_value(value) for value in (None, True, "yes", 1.5, float("nan"))] == ["null", "true", "yes", "1.5", "NaN"]
    assert len(shorten_value({"a": "b" * 10_000})) < 70
