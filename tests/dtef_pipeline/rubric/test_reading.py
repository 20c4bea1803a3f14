"""Header and prompts in every structure, the id from the path, and what the header says."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.rubric.blueprint.blueprint_rows import build_blueprint_tables
from dtef_pipeline.rubric.blueprint.model import ParsedBlueprint
from dtef_pipeline.rubric.blueprint.model import test_hash as hash_of_test
from dtef_pipeline.rubric.blueprint.reading import (
    PROMPT_SIGNS,
    is_blueprint_file,
    make_blueprint_id,
    normalise_tag,
    read_blueprint,
)

A, B = "{id: a, prompt: x, should: [y]}", "{id: b, prompt: z, ideal: w, should: [v]}"
HEAD = "title: T\nmodels: [openai:gpt-4o]\n"
STRUCTURES = {
    "header+list": f"{HEAD}---\n- {A}\n- {B}\n",
    "header+lists": f"{HEAD}---\n- {A}\n---\n- {B}\n",
    "header+stream": f"{HEAD}---\n{A}\n---\n{B}\n",
    "list": f"- {A}\n- {B}\n",
    "lists": f"- {A}\n---\n- {B}\n",
    "stream": f"{A}\n---\n{B}\n",
    "prompts": f"{HEAD}prompts:\n- {A}\n- {B}\n",
}
JSON = json.dumps(
    {
        "title": "T",
        "models": ["openai:gpt-4o"],
        "prompts": [
            {"id": "a", "promptText": "x", "points": [{"text": "y", "multiplier": 1.0}]},
            {"id": "b", "promptText": "z", "idealResponse": "w", "points": ["v"]},
        ],
    }
)


def codes(read: ParsedBlueprint) -> list[str]:
    return [finding.code for finding in read.findings]


@pytest.mark.parametrize("structure", STRUCTURES)
def test_structure_is_reported_and_prompts_are_the_same_in_each(structure: str) -> None:
    read = read_blueprint(STRUCTURES[structure], "folder__file", {"CORE": ["openai:gpt-4o"]})
    assert read.structure == structure
    assert read.blueprint is not None
    assert [item.id for item in read.blueprint.prompts] == ["a", "b"]
    has_header = structure.startswith(("header", "prompts"))
    assert (read.blueprint.title, codes(read)) == (("T", []) if has_header else ("folder__file", ["no-models"]))


def test_all_structures_and_json_are_one_test() -> None:
    read = [read_blueprint(text, "a").blueprint for text in STRUCTURES.values()] + [
        read_blueprint(JSON, "a", as_json=True).blueprint
    ]
    assert len({hash_of_test(blueprint) for blueprint in read if blueprint}) == 1
    assert None not in read


def test_lists_and_single_prompts_may_mix_and_null_documents_are_dropped() -> None:
    read = read_blueprint(f"---\n---\n{HEAD}---\n- {A}\n---\nnull\n---\n{B}\n---\n", "a")
    assert read.blueprint is not None
    assert (read.structure, len(read.blueprint.prompts), codes(read)) == ("header+stream", 2, [])


def test_prompts_in_the_header_and_after_it_are_all_read() -> None:
    read = read_blueprint(f"{HEAD}prompts:\n- {A}\n---\n- {B}\n", "a")
    assert read.blueprint is not None
    assert [item.id for item in read.blueprint.prompts] == ["a", "b"]


@pytest.mark.parametrize("sign", PROMPT_SIGNS)
def test_first_document_with_a_sign_of_a_prompt_is_no_header(sign: str) -> None:
    sign = f"{sign}: [user: x]"
    read = read_blueprint(f"id: a\n{sign}\n---\n{B}\n", "a", {"CORE": ["openai:a"]})
    assert read.structure == "stream"
    assert read_blueprint(f"id: a\n{sign}\n", "a").structure == "prompt"


def test_prompt_key_without_a_value_leaves_the_header_a_header() -> None:
    assert read_blueprint(f"{HEAD}prompt: null\nshould: []\n---\n{A}\n", "a").structure == "header+stream"


@pytest.mark.parametrize("text", ["", "---\n---\n", "title: T\n", "prompts: []\n", "prompts: five\n", "[]\n"])
def test_file_without_prompts_is_an_error(text: str) -> None:
    read = read_blueprint(text, "a", {"CORE": ["openai:a"]})
    assert read.blueprint is None
    assert "no-prompts" in codes(read)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        *((f"a.{ending}", "a") for ending in ("yml", "yaml", "json", "civic.yml", "weval.yml")),
        *(("safety/uk/a.yml", "safety__uk__a"), ("a.b.yml", "a.b"), ("a", "a"), ("yml/a.yml.yml", "yml__a.yml")),
    ],
)
def test_id_follows_from_the_path(path: str, name: str) -> None:
    assert make_blueprint_id(path) == name
    assert make_blueprint_id(Path(path)) == name


@pytest.mark.parametrize("name", ["_pr_1", "_staging_a", "_test_a", "a__", "a__test_b", "pr_1", "_a"])
def test_reserved_ids_are_errors(name: str) -> None:
    reserved = name in ("_pr_1", "_staging_a", "_test_a", "a__")
    assert ("reserved-id" in codes(read_blueprint(STRUCTURES["header+list"], name))) is reserved


@pytest.mark.parametrize(
    ("tag", "normal"),
    [
        ("Global South", "global-south"),
        (" LGBTQ+ ", "lgbtq"),
        ("a_b", "a-b"),
        ("AI-Safety", "ai-safety"),
        ("_Featured", "_Featured"),
        ("_compass:bold", "_compass:bold"),
        ("São Tomé", "são-tomé"),
        ("+", ""),
    ],
)
def test_tags_have_one_form(tag: str, normal: str) -> None:
    assert normalise_tag(tag) == normal


def test_header_under_its_other_names() -> None:
    header = (
        "configTitle: T\ndescription: D\ntags: [A B, a_b, 5, +]\nreference: {title: r, url: u}\ncitations: [c]\n"
        "defs: {d: r.length}\nauthor: me\nconfigId: 3\nmodels: [openai:gpt-4o]\n"
    )
    read = read_blueprint(f"{header}---\n- {{id: a, prompt: x, should: [$ref: d]}}", "a")
    assert codes(read) == ["ignored-id"]
    assert read.blueprint is not None
    assert (read.blueprint.title, read.blueprint.description, read.blueprint.tags) == ("T", "D", ("a-b", "5"))
    assert read.blueprint.references == ("r (u)", "c")
    assert read.blueprint.prompts[0].criteria[0].fn == "js"


def test_definitions_that_are_no_mapping_are_an_error() -> None:
    assert codes(read_blueprint(f"{HEAD}point_defs: [a]\n---\n- {A}", "a")) == ["bad-header"]


def test_judges_of_the_header_are_those_of_the_blueprint() -> None:
    judges = "evaluationConfig:\n  llm-coverage:\n    judges:\n    - {model: 'google:g', approach: holistic}\n    - {model: {openai: h}}\n"
    read = read_blueprint(f"{HEAD}{judges}    backupJudge: {{model: 'openai:i', approach: standard}}\n---\n- {A}", "a")
    assert read.blueprint is not None
    assert read.blueprint.judges == ("holistic=gemini/g", "standard=openai/h")
    assert codes(read) == ["deprecated-judges"]


def test_file_that_cannot_be_parsed_is_one_finding(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_bytes(b"title: a\n\xff\n")
    read = read_blueprint(tmp_path / "a.yml", "a")
    assert [(one.code, one.line) for one in read.findings] == [("yaml", 2)]
    assert (read.blueprint, read.structure) == (None, None)
    assert codes(read_blueprint(tmp_path / "nowhere.yml", "a")) == ["yaml"]


def test_json_is_read_by_its_suffix_and_a_mark_at_the_beginning_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(JSON, encoding="utf-8-sig")
    (tmp_path / "b.yml").write_text(STRUCTURES["header+list"], encoding="utf-8-sig")
    assert codes(read_blueprint(tmp_path / "a.json", "a")) == []
    assert codes(read_blueprint(tmp_path / "b.yml", "b")) == []
    (tmp_path / "c.json").write_text("title: T\n")
    assert codes(read_blueprint(tmp_path / "c.json", "c")) == ["yaml"]


MANY = 4_000
LONG_FILES = {
    "one id": "\n".join(["- {id: a, prompt: b, should: [c]}"] * MANY),
    "no text": "\n".join(["- {should: [c]}"] * MANY),
    "one system prompt": f"system: [{', '.join(['a'] * MANY)}]\n---\n- {{id: a, prompt: b, should: [c]}}",
    "one model": f"models: [{', '.join(['openai:a'] * MANY)}]\n---\n- {{id: a, prompt: b, should: [c]}}",
    "references": f"point_defs: {{{', '.join(f'd{n}: e' for n in range(MANY))}}}\n---\n"
    f"- {{prompt: b, should: [{', '.join(['$ref: x'] * MANY)}]}}",
    "equal prompts": "\n".join(["- {prompt: b, should: [c]}"] * MANY),
    "unknown keys": f"- {{prompt: b, {', '.join(f'k{n}: 1' for n in range(MANY))}}}",
}


@pytest.mark.parametrize("text", LONG_FILES.values(), ids=LONG_FILES)
def test_long_file_with_one_fault_many_times_is_read_in_time_in_proportion(text: str) -> None:
    """Thousands of one fault took minutes where each looked through all before it."""
    began = time.process_time()
    assert len(read_blueprint(text, "a", {"CORE": ["openai:a"]}).findings) > MANY / 2
    assert time.process_time() - began < 5


SCRAPS = (
    "- |prompt: |id: |should: |messages: |[|]|{|}|, |\n|\n  |---\n|null|5|a|$contains: |$ref: |text: |weight: |system: |temperatures: |"
    "models: |prompts: |&a |*a|'|: |user: |role: |evaluationConfig: |point_defs: |tags: "
)


@given(st.lists(st.sampled_from(SCRAPS.split("|")), max_size=40))
def test_any_file_is_read_with_findings_and_never_raises(scraps: list[str]) -> None:
    read = read_blueprint("".join(scraps), "a", {"CORE": ["openai:a"]})
    assert read.blueprint is not None or any(finding.level == "error" for finding in read.findings)
    if read.blueprint is not None:
        assert len({item.id for item in read.blueprint.prompts}) == len(read.blueprint.prompts) > 0
        assert len(hash_of_test(read.blueprint)) == 32


def test_prompts_key_below_the_header_is_reported_as_such() -> None:
    *_, found = read_blueprint(f"{HEAD}---\nprompts:\n- {A}\n", "a").findings
    assert found.code == "no-prompt-text"
    assert "no `prompts:`" in found.text


def test_header_text_of_another_form_is_not_lost_in_silence() -> None:
    (found,) = read_blueprint(f"{HEAD}description: [b]\n---\n- {A}\n", "a").findings
    assert found.text.startswith('`description` is ["b"]')


@pytest.mark.parametrize(("key", "meant"), [("shouldNot", "should_not"), ("should-not", "should_not"), ("promt", "prompt")])
def test_slip_in_a_key_is_reported_with_the_key_that_is_intended(key: str, meant: str) -> None:
    text = f"{HEAD}---\n- {{id: a, prompt: b, should: [c], {key}: [d]}}\n"
    (found,) = (one for one in read_blueprint(text, "a").findings if one.code == "unknown-key")
    assert f"`{meant}`?" in found.text


def test_ending_in_capitals_is_an_ending_and_hidden_files_are_none() -> None:
    assert make_blueprint_id("safety/A.YML") == "safety__A"
    assert is_blueprint_file("safety/A.YML")
    assert not is_blueprint_file(".github/a.yml")
    assert not is_blueprint_file("notes.md")


WRITTEN = """
title: Rivers
tags: [Global South]
models: ["openai:one"]
---
- id: nile
  prompt: Name a river.
  should: ["$icontains: nile", {$contains: Nile}, names a river]
"""


def test_rows_have_the_writing_of_a_repaired_criterion_and_the_tags_and_test_of_their_blueprint() -> None:
    read = read_blueprint(WRITTEN, "rivers", as_json=False)
    assert read.blueprint is not None
    tables = build_blueprint_tables(read, read.blueprint, "rivers.yml")
    assert tables["rubric_criteria"]["source"].to_pylist() == ["$icontains: nile", None, None]
    (head,), (prompt,) = tables["rubric_blueprints"].to_pylist(), tables["rubric_prompts"].to_pylist()
    assert prompt["tags"] == head["tags"] == ["global-south"]
    assert prompt["test_hash"] == head["test_hash"] != ""
