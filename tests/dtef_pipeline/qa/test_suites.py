"""Which scorers a suite's items have, and what is said of suites whose answers are public."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.item_files.socioscope import ITEM_LAYOUTS, SOCIOSCOPE_TYPES, load_items
from dtef_pipeline.qa.suites import SuiteSpec, load_suites
from resources.settings import find_shipped
from tests.made.shared_cases import cases

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "suites: {a: {layout: csv, scorers: [x]}}",
            "suite 'a': layout: got 'csv'; allowed: mmlu, gsm8k, humaneval, socioscope",
        ),
        ("suites: {a: {layout: mmlu}}", "got neither; allowed: one of the two"),
        ("suites: {a: {layout: mmlu, scorers: [x], scorers_by_type: {b: [c]}}}", "got both; allowed: one of the two"),
        ("suites: {a: {layout: mmlu, scorers: []}}", "suite 'a': scorers"),
        (
            "suites: {a: {layout: mmlu, scorers: [x], public_since: 2020-13}}",
            "public_since: got '2020-13'; allowed: pattern",
        ),
        ("suites: {a: {layout: mmlu, scorers: [x], colour: red}}", "suite 'a': colour: unknown key; known: layout, scorers"),
        ("suites: {a/b: {layout: mmlu, scorers: [x]}}", "suite 'a/b': name: got 'a/b'"),
        ("suites: {a: 5}", "got 5; allowed: a mapping"),
        ("suits: {}", "suits: unknown key; known: suites"),
        ("suites: {a: {layout: mmlu, scorers: [x]}, a: {layout: mmlu, scorers: [y]}}", "the key 'a' is given twice"),
    ],
)
def test_what_cannot_be_a_suite_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_suites(text)
    assert message in str(error.value)
    assert "suites text 1:1: " in str(error.value)


def test_every_layout_of_a_suite_can_be_read(tmp_path: Path) -> None:
    layouts = SuiteSpec.model_fields["layout"].annotation
    assert getattr(layouts, "__args__", ()) == ITEM_LAYOUTS
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "empty.jsonl").write_bytes(b"")
    for layout in ITEM_LAYOUTS:
        path = tmp_path / ("empty.json" if layout == "socioscope" else "empty.jsonl")
        assert [finding.code for finding in load_items(layout, path, "mine").findings] == ["empty"]
    with pytest.raises(ConfigError, match="layout 'csv': allowed: mmlu, gsm8k"):
        load_items("csv", tmp_path, "mine")


def test_items_of_a_users_suite_bear_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"question": "How many?", "answer": "#### 4"}', encoding="utf-8")
    (item,) = load_items("gsm8k", tmp_path / "x.jsonl", "sums").items
    assert (item.suite, item.item_id) == ("sums", "sums/0")
