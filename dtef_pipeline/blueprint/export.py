"""Blueprints as weval-style YAML: title, system prompt, prompts with `distribution_metric` points."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import yaml

# The C implementation, where there is one, is ten times as fast.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_WEVAL_METRIC = "js-divergence"  # weval's name of the Jensen-Shannon similarity


def weval_yaml(blueprints: pa.Table, survey: pa.Table) -> str:
    """One segment's blueprints as a YAML document; expected distributions in percent, in option order.

    `blueprints` and `survey`: rows of one (round, segment).
    """
    rows = survey.to_pylist()
    by_question = {row["question_id"]: row for row in rows}
    first, prompts = rows[0], blueprints.to_pylist()
    document = {
        "id": f"{first['round']}-{first['segment']}".lower().replace(":", "-"),
        "title": f"{first['round']}: {first['attribute']} {first['value']}",
        "description": f"Predict how {first['value']} ({first['attribute']}) answered survey round {first['round']}.",
        "tags": ["dtef", first["round"], first["attribute"]],
        "system": prompts[0]["system"],
        "temperature": 0,
        "prompts": [_prompt(prompt, by_question[prompt["question_id"]]) for prompt in prompts],
    }
    return yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=120)


def _prompt(prompt: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    expected = [round(100 * share, 6) for share in row["observed"]]
    return {
        "id": f"{prompt['question_id']}-context-{prompt['context_level']}",
        "prompt": prompt["user"],
        "points": [{"fn": "distribution_metric", "fnArgs": {"expected": expected, "metric": _WEVAL_METRIC}}],
    }
