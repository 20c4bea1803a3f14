"""A blueprint as rows: what later stages and queries read."""

from __future__ import annotations

from dtef_pipeline.rubric.blueprint.blueprint_rows import build_blueprint_tables
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


def test_rows_have_the_writing_of_a_repaired_criterion_and_the_tags_and_test_of_their_blueprint() -> None:
    read = read_blueprint(WRITTEN, "rivers", as_json=False)
    assert read.blueprint is not None
    tables = build_blueprint_tables(read, read.blueprint, "rivers.yml")
    assert tables["rubric_criteria"]["source"].to_pylist() == ["$icontains: nile", None, None]
    (head,), (prompt,) = tables["rubric_blueprints"].to_pylist(), tables["rubric_prompts"].to_pylist()
    assert prompt["tags"] == head["tags"] == ["global-south"]
    assert prompt["test_hash"] == head["test_hash"] != ""
