"""Which scorers a suite's items have, what is said of suites whose answers are public, and what the files of a suite come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.item_files.socioscope import SOCIOSCOPE_TYPES
from dtef_pipeline.qa.item_files.suite_files import TABLE_LAYOUTS, read_added
from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.qa.suites import SuiteSpec, load_suites
from resources.settings import find_shipped
from tests.made.shared_cases import cases, cases_beside

CASES = cases_beside(__file__)
SHIPPED = find_shipped("suites.yaml")
OWN = """
suites:
  my-exam:
    layout: mmlu
    scorers: [exact_choice]
"""


def test_the_documented_data_sets_go_to_their_scorers() -> None:
    suites = load_suites(SHIPPED)
    assert suites.route("mmlu").scorers_of("choice") == ("exact_choice",)
    assert suites.route("gsm8k").scorers_of("number") == ("judge", "numeric")
    assert suites.route("humaneval").scorers_of("code") == ("code_execution",)
    of_types = [suites.route("socioscope").scorers_of(name) for name in (*SOCIOSCOPE_TYPES, "Essay")]
    assert of_types == [("yes_no",), ("list_one",), ("list_many",), ("pick_one",), ("pick_many",), ("yes_no_rationale",), ()]


def test_the_shared_routes_are_ours() -> None:
    for case in cases("benchmarks", "route"):
        assert load_suites(SHIPPED).route(case["in"]["dataset"]).scorers_of("")[0] == case["out"], case["id"]


def test_an_unknown_suite_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(ConfigError, match=r"'mlu'; known: mmlu, gsm8k, humaneval, socioscope"):
        load_suites(SHIPPED).route("mlu")


def test_a_users_file_adds_suites_and_replaces_them_whole(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(OWN + "  mmlu: {layout: mmlu, scorers: [judge]}\n", encoding="utf-8")
    suites = load_suites(SHIPPED, tmp_path / "mine.yaml")
    assert suites.route("my-exam").scorers_of("choice") == ("exact_choice",)
    assert (suites.route("mmlu").scorers, suites.route("mmlu").public_since) == (["judge"], None)
    assert set(suites.specs) == {"mmlu", "gsm8k", "humaneval", "socioscope", "my-exam"}


def test_public_suites_say_since_when_answers_may_be_known() -> None:
    suites = load_suites(SHIPPED, OWN)
    said = {name: spec.exposure for name, spec in suites.specs.items()}
    assert said["mmlu"] == "answers may be in the training data (public since 2020-09)"
    assert said["gsm8k"] == "answers may be in the training data (public since 2021-10)"
    assert said["humaneval"] == "answers may be in the training data (public since 2021-07)"
    assert (said["socioscope"], said["my-exam"]) == (None, None)


@pytest.mark.parametrize(("text", "message"), CASES["what_cannot_be_a_suite_is_named"])
def test_what_cannot_be_a_suite_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_suites(text)
    assert message in str(error.value)
    assert "suites text 1:1: " in str(error.value)


def test_every_layout_of_a_suite_can_be_read_and_its_items_bear_its_name(tmp_path: Path) -> None:
    layouts = getattr(SuiteSpec.model_fields["layout"].annotation, "__args__", ())
    assert layouts == (*TABLE_LAYOUTS, "socioscope")
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "empty.jsonl").write_bytes(b"")
    for layout in layouts:
        path = tmp_path / ("empty.json" if layout == "socioscope" else "empty.jsonl")
        spec = SuiteSpec(name="mine", layout=layout, scorers=["numeric"])
        assert [finding.code for finding in read_added(spec, path, None).loaded_items.findings] == ["empty"]
    (tmp_path / "x.jsonl").write_text('{"question": "How many?", "answer": "#### 4"}', encoding="utf-8")
    (item,) = read_added(SUMS, tmp_path / "x.jsonl", None).loaded_items.items
    assert (item.suite, item.item_id) == ("own-sums", "own-sums/0")


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
