"""What the files of a suite come to: items, their scorers, chunks of documents, and findings about all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.item_files.suite_files import read_added
from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.qa.suites import SuiteSpec

TALKS = SuiteSpec(
    name="own-talks",
    layout="socioscope",
    scorers_by_type={"Yes/No": ["yes_no"], "PickOne": ["pick_one"], "ListOne": ["list_one"]},
)
SUMS = SuiteSpec(name="own-sums", layout="gsm8k", scorers=["numeric"])


def asked(text: str, type: str, metric: str, **more: Any) -> dict[str, Any]:
    return {"question": {"text": text, "type": type, "metric": metric, **more}}


def talks(folder: Path, *pairs: dict[str, Any]) -> Path:
    path = folder / "talks.json"
    path.write_text(json.dumps({"qa_pairs": pairs}), encoding="utf-8")
    return path


def corpus(folder: Path, *documents: object) -> Path:
    path = folder / "corpus.json"
    path.write_text(json.dumps(documents), encoding="utf-8")
    return path


LIGHT = {"page_content": "Ada kept the light.", "metadata": {"FILE": "light.csv", "NAME": "Ada"}}


def test_who_scores_an_item_is_stated_by_its_type(tmp_path: Path) -> None:
    path = talks(tmp_path, asked("Was it Ada?", "Yes/No", "yes"), asked("Why?", "Essay", "x"))
    added = read_added(TALKS, path, None)
    assert [tuple(added.scorers_of(item)) for item in added.loaded_items.items] == [("yes_no",), ()]
    assert added.documents is None
    assert added.parts == ["talks"]


def test_with_documents_quotations_are_checked_of_all_that_is_scored(tmp_path: Path) -> None:
    path = talks(tmp_path, asked("Was it Ada?", "Yes/No", "yes"), asked("Why?", "Essay", "x"))
    added = read_added(TALKS, path, corpus(tmp_path, LIGHT))
    assert [tuple(added.scorers_of(item)) for item in added.loaded_items.items] == [("yes_no", "verbatim"), ()]
    assert added.documents is not None
    assert added.documents["page_content"].to_pylist() == ["Ada kept the light."]


def test_a_metric_that_its_scorer_cannot_read_leaves_the_item_out(tmp_path: Path) -> None:
    wrong = asked("Which?", "PickOne", '{"Pink": 1}', options=["Red", "Blue"])
    path = talks(tmp_path, asked("Was it Ada?", "Yes/No", "yes"), wrong, asked("Was it?", "Yes/No", "maybe"))
    added = read_added(TALKS, path, None)
    assert [item.text for item in added.loaded_items.items] == ["Was it Ada?"]
    assert len(added.loaded_items.errors) == 2
    assert "Pink" in str(added.loaded_items.errors[0])
    with pytest.raises(ItemError, match="Pink"):
        read_added(TALKS, path, None, strict=True)


def test_documents_that_cannot_be_read_are_findings_beside_those_of_items(tmp_path: Path) -> None:
    path, documents = talks(tmp_path, asked("Was it Ada?", "Yes/No", "yes")), corpus(tmp_path, LIGHT, {"metadata": {}}, 7)
    added = read_added(TALKS, path, documents)
    assert [(one.level, one.code, one.file) for one in added.loaded_items.findings] == [("error", "corpus", str(documents))] * 2
    assert all(one.allowed and one.text for one in added.loaded_items.findings)
    assert "corpus.json:1: " in str(added.loaded_items.findings[0])
    assert added.documents is not None
    assert len(added.documents) == 1
    with pytest.raises(ItemError, match="page_content"):
        read_added(TALKS, path, documents, strict=True)


def test_quotes_are_looked_up_in_the_documents(tmp_path: Path) -> None:
    pair = {**asked("Was it Ada?", "Yes/No", "yes"), "evidence": [{"file": "light.csv", "turn": 0}], "quotes": ["Bo kept it."]}
    path = talks(tmp_path, pair)
    assert read_added(TALKS, path, None).loaded_items.findings == ()
    (finding,) = read_added(TALKS, path, corpus(tmp_path, LIGHT)).loaded_items.findings
    assert (finding.level, finding.part) == ("warning", "talks")


def test_other_layouts_are_about_no_documents(tmp_path: Path) -> None:
    """A corpus that is given with sums is not read, whatever it is."""
    path = tmp_path / "sums.jsonl"
    path.write_text('{"question": "1 + 1?", "answer": "#### 2"}\n', encoding="utf-8")
    added = read_added(SUMS, path, tmp_path)
    assert (added.documents, added.parts) == (None, ["all"])
    assert added.scorers_of(added.loaded_items.items[0]) == ("numeric",)


def test_a_scorer_that_there_is_not_is_reported_before_anything_is_asked(tmp_path: Path) -> None:
    """Responses to a suite with a misspelled scorer were bought, and none of them had a score."""
    path = tmp_path / "sums.jsonl"
    path.write_text('{"question": "1 + 1?", "answer": "#### 2"}\n', encoding="utf-8")
    misspelled = SUMS.model_copy(update={"scorers": ["judge", "nummeric"]})
    with pytest.raises(ConfigError, match="'nummeric'; known: numeric, code_execution"):
        read_added(misspelled, path, None)
