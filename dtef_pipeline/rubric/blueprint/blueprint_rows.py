"""A blueprint as rows of the tables that later stages read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from dtef_pipeline.identity import digest
from dtef_pipeline.rubric import tables
from dtef_pipeline.rubric.blueprint.model import Blueprint, ParsedBlueprint, test_hash


def build_blueprint_tables(read: ParsedBlueprint, blueprint: Blueprint, path: str) -> dict[str, pa.Table]:
    """Return the tables of a blueprint that was read from `path`, by name; excluded parts have only findings."""
    of = {"blueprint": blueprint.id}
    findings = [
        {**of, "level": finding.level, "code": finding.code, "place": finding.place, "line": finding.line, "text": finding.text}
        for finding in read.findings
    ]
    blueprint_columns = {"tags": list(blueprint.tags), "test_hash": test_hash(blueprint)}
    prompts = [{**of, **row, **blueprint_columns} for row in _iterate_prompt_rows(blueprint)]
    criteria = [{**of, **row} for row in _iterate_criterion_rows(blueprint)]
    head = {
        **of,
        **blueprint_columns,
        "title": blueprint.title,
        "description": blueprint.description,
        "references": list(blueprint.references),
        "models": list(blueprint.models),
        "judges": [f"{judge.approach}={judge.model}" for judge in blueprint.judges],
        "n_prompts": len(prompts),
        "n_criteria": len(criteria),
        "n_errors": sum(finding.level == "error" for finding in read.findings),
        "path": path,
    }
    return {
        "rubric_blueprints": pa.Table.from_pylist([head], schema=tables.RUBRIC_BLUEPRINTS),
        "rubric_prompts": pa.Table.from_pylist(prompts, schema=tables.RUBRIC_PROMPTS),
        "rubric_criteria": pa.Table.from_pylist(criteria, schema=tables.RUBRIC_CRITERIA),
        "rubric_findings": pa.Table.from_pylist(findings, schema=tables.RUBRIC_FINDINGS),
    }


def _iterate_prompt_rows(blueprint: Blueprint) -> Iterator[Mapping[str, Any]]:
    for place, prompt in enumerate(blueprint.prompts):
        yield {
            "prompt": prompt.id,
            "position": place,
            "weight": prompt.weight,
            "messages": [{"role": turn.role, "text": turn.text} for turn in prompt.turns],
            "systems": list(prompt.systems),
            "temperatures": list(prompt.temperatures),
            "ideal": prompt.ideal,
            "description": prompt.description,
            "citation": prompt.citation,
        }


def _iterate_criterion_rows(blueprint: Blueprint) -> Iterator[Mapping[str, Any]]:
    for prompt in blueprint.prompts:
        for criterion in prompt.criteria:
            yield {
                "prompt": prompt.id,
                "block": criterion.block,
                "path": criterion.path,
                "position": criterion.position,
                "criterion_id": digest("criterion", criterion.kind, criterion.text, criterion.fn, criterion.args),
                "kind": criterion.kind,
                "text": criterion.text,
                "fn": criterion.fn,
                "args": None if criterion.args is None else json.dumps(criterion.args, ensure_ascii=False),
                "weight": criterion.weight,
                "citation": criterion.citation,
                "source": criterion.source,
                "fault": criterion.fault,
            }
