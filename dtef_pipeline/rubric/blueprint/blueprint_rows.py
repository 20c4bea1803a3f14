"""A blueprint as rows of the tables that later stages read, and its file in numbers: planned requests, criteria and findings."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from dtef_pipeline.identity import digest
from dtef_pipeline.rubric import tables
from dtef_pipeline.rubric.blueprint.findings import list_blocking_codes
from dtef_pipeline.rubric.blueprint.model import (
    FUNCTION_KIND,
    SHOULD,
    SHOULD_NOT,
    TEXT_KIND,
    Blueprint,
    BlueprintFinding,
    Criterion,
    ParsedBlueprint,
    test_hash,
)


def build_blueprint_tables(read: ParsedBlueprint, blueprint: Blueprint, path: str) -> dict[str, pa.Table]:
    """Return the tables of a blueprint that was read from `path`, by name; excluded parts have only findings."""
    of = {"blueprint": blueprint.id}
    findings = [{**of, **asdict(finding)} for finding in read.findings]
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
        "judges": list(blueprint.judges),
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


_PROMPT_COLUMNS = ("weight", "ideal", "description", "citation")
_CRITERION_COLUMNS = ("block", "path", "position", "kind", "text", "fn", "weight", "citation", "source", "fault")


def _iterate_prompt_rows(blueprint: Blueprint) -> Iterator[Mapping[str, Any]]:
    for place, prompt in enumerate(blueprint.prompts):
        yield {
            **{name: getattr(prompt, name) for name in _PROMPT_COLUMNS},
            "prompt": prompt.id,
            "position": place,
            "messages": [asdict(turn) for turn in prompt.turns],
            "systems": list(prompt.systems),
            "temperatures": list(prompt.temperatures),
        }


def _iterate_criterion_rows(blueprint: Blueprint) -> Iterator[Mapping[str, Any]]:
    for prompt in blueprint.prompts:
        for criterion in prompt.criteria:
            yield {
                **{name: getattr(criterion, name) for name in _CRITERION_COLUMNS},
                "prompt": prompt.id,
                "criterion_id": digest("criterion", criterion.kind, criterion.text, criterion.fn, criterion.args),
                "args": None if criterion.args is None else json.dumps(criterion.args, ensure_ascii=False),
            }


USUAL_JUDGES = 2
"""Default number of judges per criterion in words, if a blueprint names none."""
_OTHER_SCRIPTS = (
    range(0x370, 0x1D00),
    range(0x1F00, 0x2000),
    range(0x2E80, 0x3000),
    range(0x3040, 0xD7B0),
    range(0xF900, 0xFB00),
    range(0x20000, 0x32000),
)
"""Unicode's blocks of scripts other than Latin, from Greek on. Between them lie Latin letters, and marks and signs that all scripts share."""


def summarise_file(path: str, identifier: str, read: ParsedBlueprint) -> dict[str, Any]:
    """Return a file's id, counts and findings, ready for JSON. If it cannot be parsed, `line` replaces the counts."""
    findings = read.findings
    summary: dict[str, Any] = {"path": path, "id": identifier, "parses": read.structure is not None}
    if read.structure is None:
        return {**summary, "line": findings[0].line, "findings": _group_by_finding_code(findings)}
    blueprint = read.blueprint or Blueprint(identifier, identifier, None, (), (), None, ())
    codes = Counter(finding.code for finding in findings)
    return {
        **summary,
        "structure": read.structure,
        "title": blueprint.title,
        "tags": list(blueprint.tags),
        **_summarise_prompts(blueprint),
        "duplicate_ids": codes["duplicate-prompt-id"],
        **_summarise_criteria([criterion for prompt in blueprint.prompts for criterion in prompt.criteria], blueprint),
        **_count_planned(blueprint),
        **_count_letters(blueprint),
        "findings": _group_by_finding_code(findings),
        "errors": list_blocking_codes(findings),
    }


def _summarise_prompts(blueprint: Blueprint) -> dict[str, Any]:
    prompts, systems = blueprint.prompts, blueprint.systems
    return {
        "prompts": len(prompts),
        "prompt_ids": len({prompt.id for prompt in prompts}),
        "prompts_with_ideal": sum(prompt.ideal is not None for prompt in prompts),
        "ideal_only": sum(prompt.ideal is not None and not prompt.criteria for prompt in prompts),
        "prompts_without_criteria": sum(not prompt.criteria for prompt in prompts),
        "multi_turn": sum(len(prompt.turns) > 1 for prompt in prompts),
        "prompts_with_null_turns": sum(any(turn.text is None for turn in prompt.turns) for prompt in prompts),
        "systems": len(systems or ()),
        "null_system": None in (systems or ()),
        "prompts_with_system": 0 if systems else sum(prompt.systems[0] is not None for prompt in prompts),
        "temperatures": list(blueprint.temperatures),
        "weighted_prompts": sum(prompt.weight != 1 for prompt in prompts),
        "models": len(blueprint.models),
    }


def _summarise_criteria(criteria: list[Criterion], blueprint: Blueprint) -> dict[str, Any]:
    kinds = Counter(criterion.kind for criterion in criteria)
    blocks = Counter(criterion.block for criterion in criteria)
    paths = {
        (prompt.id, criterion.block, criterion.path)
        for prompt in blueprint.prompts
        for criterion in prompt.criteria
        if criterion.path is not None
    }
    return {
        "criteria": len(criteria),
        "should": blocks[SHOULD],
        "should_not": blocks[SHOULD_NOT],
        "text_criteria": kinds[TEXT_KIND],
        "function_criteria": kinds[FUNCTION_KIND],
        "weighted_criteria": sum(criterion.weight != 1 for criterion in criteria),
        "or_blocks": len({path[:2] for path in paths}),
        "or_paths": len(paths),
        "path_criteria": sum(criterion.path is not None for criterion in criteria),
        "functions": dict(sorted(Counter(criterion.fn for criterion in criteria if criterion.fn is not None).items())),
        "repaired_strings": sum(criterion.is_repaired for criterion in criteria),
        "refs": sum(criterion.ref is not None for criterion in criteria),
        "function_only": bool(criteria) and not kinds[TEXT_KIND],
    }


def _count_planned(blueprint: Blueprint) -> dict[str, int]:
    """Count the planned requests to candidates, to the default number of judges, and to an embedder."""
    models, systems = len(blueprint.models), len(blueprint.systems or ())
    variants = models * max(1, len(blueprint.temperatures)) * max(1, systems)
    pairs = variants * sum(criterion.kind == TEXT_KIND for prompt in blueprint.prompts for criterion in prompt.criteria)
    n_ideals = sum(prompt.ideal is not None for prompt in blueprint.prompts)
    return {
        "planned_responses": variants * len(blueprint.prompts),
        "planned_candidate_calls": variants * sum(prompt.n_generated_turns for prompt in blueprint.prompts),
        "judge_pairs": pairs,
        "judge_calls_default": USUAL_JUDGES * pairs,
        "embeddings_planned": n_ideals + variants * n_ideals,
    }


def _count_letters(blueprint: Blueprint) -> dict[str, int]:
    """Count the letters of prompts and criteria, Latin letters beyond A to Z, and characters of other scripts, with their vowel signs."""
    texts = (part.text for prompt in blueprint.prompts for parts in (prompt.turns, prompt.criteria) for part in parts)
    counts = Counter("".join(text or "" for text in texts))
    letters = {character: count for character, count in counts.items() if character.isalpha()}
    others = (count for character, count in counts.items() if any(ord(character) in block for block in _OTHER_SCRIPTS))
    accented = (
        count
        for character, count in letters.items()
        if not character.isascii() and unicodedata.name(character, "").startswith("LATIN")
    )
    return {"non_latin_letters": sum(others), "accented_letters": sum(accented), "letters": sum(letters.values())}


def _group_by_finding_code(findings: Iterable[BlueprintFinding]) -> dict[str, dict[str, Any]]:
    """Return level and places by code, each place once."""
    by_code: dict[str, dict[str, Any]] = {}
    for finding in findings:
        entry = by_code.setdefault(finding.code, {"level": finding.level, "at": []})
        if finding.place not in entry["at"]:
            entry["at"].append(finding.place)
    return by_code
