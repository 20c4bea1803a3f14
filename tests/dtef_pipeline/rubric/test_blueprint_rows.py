"""A blueprint as rows: what later stages and queries read."""

from __future__ import annotations

from dtef_pipeline.rubric.blueprint.blueprint_rows import BlueprintTables, build_blueprint_tables
from dtef_pipeline.rubric.blueprint.reading import read_blueprint

WRITTEN = """
title: Rivers
tags: [Global South]
models: ["openai:one"]
---
- id: nile
  prompt: Name a river.
  should: ["$icontains: nile", {$contains: Nile}, names a river]
"""


def tables_of(text: str) -> BlueprintTables:
    read = read_blueprint(text, "rivers", as_json=False)
    assert read.blueprint is not None
    return build_blueprint_tables(read, read.blueprint, "rivers.yml")


def test_the_writing_of_a_repaired_criterion_is_kept() -> None:
    rows = tables_of(WRITTEN).rubric_criteria.to_pylist()
    assert [row["source"] for row in rows] == ["$icontains: nile", None, None]


def test_a_prompt_has_the_tags_and_the_test_of_its_blueprint() -> None:
    tables = tables_of(WRITTEN)
    (head,), (prompt,) = tables.rubric_blueprints.to_pylist(), tables.rubric_prompts.to_pylist()
    assert prompt["tags"] == head["tags"] == ["global-south"]
    assert prompt["test_hash"] == head["test_hash"] != ""
