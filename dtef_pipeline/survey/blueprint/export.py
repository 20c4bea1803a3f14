"""Blueprints as weval-style YAML: title, system prompt, prompts with `distribution_metric` points.

The metric compares one distribution per answer, so prompts of the tasks `synthetic-individuals` and `batch` are left out. So is the JSON
schema of a structured condition, whose prompt also describes the form of the answer in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import yaml

from dtef_pipeline.errors import DtefError
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.wording import is_one_distribution

# The C implementation, where there is one, is ten times as fast.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_WEVAL_METRIC = "js-divergence"  # weval's name of the Jensen-Shannon similarity
_USUAL = BlueprintOptions().condition

Row = Mapping[str, Any]


def write_weval_yaml(blueprints: pa.Table, survey: pa.Table) -> str:
    """Return the blueprints of one segment as a YAML document, with expected distributions in percent, in the prompt's order of options.

    `blueprints` and `survey` are rows of one (round, segment). Conditions of `list_not_for_weval` are omitted and listed in the
    description. Raises DtefError if nothing is left.
    """
    rows = survey.to_pylist()
    by_question = {row["question_id"]: row for row in rows}
    first, prompts = rows[0], [prompt for prompt in blueprints.to_pylist() if is_one_distribution(prompt["reading"])]
    absent = list_not_for_weval(blueprints)
    if not prompts:
        raise DtefError(
            f"{first['round']}/{first['segment']}: nothing to export: Weval's distribution_metric needs one distribution per answer; "
            f"conditions without one: {', '.join(absent) or 'none'}"
        )
    systems = {prompt["system"] for prompt in prompts}
    document = {
        "id": f"{first['round']}-{first['segment']}".lower().replace(":", "-"),
        "title": f"{first['round']}: {first['attribute']} {first['value']}",
        "description": f"Predict how {first['value']} ({first['attribute']}) answered survey round {first['round']}."
        + (f" Left out, because an answer is more than one distribution: {', '.join(absent)}." if absent else ""),
        "tags": ["dtef", first["round"], first["attribute"]],
        **_make_system_key(prompts[0] if len(systems) == 1 else None),
        "temperature": 0,
        "prompts": [
            _make_weval_prompt(prompt, by_question[prompt["question_id"]], own_system=len(systems) > 1) for prompt in prompts
        ],
    }
    return yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=120)


def list_not_for_weval(blueprints: pa.Table) -> list[str]:
    """Return the sorted conditions whose answers are not one distribution."""
    rows = blueprints.select(["condition", "reading"]).to_pylist()
    return sorted({row["condition"] for row in rows if not is_one_distribution(row["reading"])})


def _make_system_key(prompt: Row | None) -> dict[str, str]:
    """Return the key `system`, or none without a system prompt, because an empty value could mean that none was given."""
    return {"system": prompt["system"]} if prompt and prompt["system"] else {}


def _make_weval_prompt(prompt: Row, row: Row, *, own_system: bool) -> dict[str, Any]:
    condition = "" if prompt["condition"] == _USUAL else f"-{prompt['condition']}"
    order = (prompt["reading"] or {}).get("order") or range(len(row["observed"]))
    expected = [round(100 * row["observed"][place], 6) for place in order]
    return {
        "id": f"{prompt['question_id']}-context-{prompt['context_level']}{condition}",
        **_make_system_key(prompt if own_system else None),
        "prompt": prompt["user"],
        "points": [{"fn": "distribution_metric", "fnArgs": {"expected": expected, "metric": _WEVAL_METRIC}}],
    }
