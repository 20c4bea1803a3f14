"""Blueprints of one segment: a prompt a (target question, context level)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dtef_pipeline.blueprint import wording
from dtef_pipeline.blueprint.options import BlueprintOptions, context_order
from dtef_pipeline.blueprint.tokens import estimate_tokens
from dtef_pipeline.errors import DtefError
from dtef_pipeline.identity import blueprint_hash, digest, prompt_id
from dtef_pipeline.tables import BLUEPRINTS

_SEPARATOR_TOKENS = 2  # the blank line between two parts


@dataclass(frozen=True, slots=True)
class _Question:
    """A question of the segment, with its text as context and what that costs."""

    row: Mapping[str, Any]
    group: str  # the same for a question and its duplicates
    context: str
    context_tokens: int


def build_blueprints(survey: pa.Table, *options: BlueprintOptions) -> pa.Table:
    """Blueprints of one segment, in question order and then context order.

    `survey`: `survey_responses` rows of one (round, segment). `options`: usually one; several when context levels are made in several
    ways. Every question is a target, circular and duplicate ones too (they carry flags), but for those that do not fit the token budget
    even without context. Context never holds the target, a duplicate of it, or a circular question. Raises DtefError when nothing fits.
    """
    rows = sorted(survey.to_pylist(), key=lambda row: row["question_order"])
    prompts = [prompt for choice in options for prompt in _prompts(rows, choice)]
    if not prompts:
        raise DtefError(
            f"{rows[0]['round']}/{rows[0]['segment']}: no question fits {options[0].token_budget - options[0].reserve} tokens "
            "(token budget less the answer's reserve), not even without context"
        )
    prompts.sort(key=lambda prompt: (prompt["question_order"], context_order(prompt["context_level"])))
    whole = blueprint_hash(prompt["prompt_id"] for prompt in prompts)
    columns = {name: [prompt.get(name) for prompt in prompts] for name in BLUEPRINTS.names}
    columns["blueprint_hash"] = [whole] * len(prompts)
    return pa.table(columns, schema=BLUEPRINTS)


def _prompts(rows: Sequence[Mapping[str, Any]], options: BlueprintOptions) -> Iterator[dict[str, Any]]:
    questions = [_question(row, options) for row in rows]
    levels = sorted(set(options.context_levels), key=context_order)
    for question in questions:
        yield from _prompts_of(question, questions, levels, options)


def _question(row: Mapping[str, Any], options: BlueprintOptions) -> _Question:
    text = wording.context_question(row["question_text"], row["options"], row["observed"], row["n"] if options.show_n else None)
    return _Question(row, row["duplicate_of"] or row["question_id"], text, estimate_tokens(text) + _SEPARATOR_TOKENS)


def _prompts_of(
    target: _Question, questions: Sequence[_Question], levels: Sequence[str], options: BlueprintOptions
) -> Iterator[dict[str, Any]]:
    row = target.row
    head, tail = (
        wording.profile(row["attribute"], row["value"]),
        wording.target_question(row["question_text"], row["options"]),
    )
    fixed = estimate_tokens(f"{wording.SYSTEM_PROMPT}\n{head}\n{tail}") + 2 * _SEPARATOR_TOKENS
    room = options.token_budget - options.reserve - fixed
    if room < 0:
        return
    candidates = _context_candidates(target, questions, options)
    costs = np.cumsum([estimate_tokens(wording.CONTEXT_HEADING) + _SEPARATOR_TOKENS, *(c.context_tokens for c in candidates)])[
        1:
    ]
    fitting = int(np.searchsorted(costs, room, side="right"))
    for level in levels:
        requested = None if level == "all" else int(level)
        included = min(fitting, len(candidates) if requested is None else requested)
        chosen = candidates[:included]
        context = "\n\n".join([wording.CONTEXT_HEADING, *(c.context for c in chosen)]) if chosen else None
        user = "\n\n".join(part for part in (head, context, tail) if part)
        yield {
            **{name: row[name] for name in ("round", "segment", "question_id", "question_order", "options", "circular")},
            "context_level": level,
            "condition": options.condition,
            "recipe": options.recipe,
            "prompt_id": prompt_id(wording.SYSTEM_PROMPT, user, row["question_id"], row["options"]),
            "system": wording.SYSTEM_PROMPT,
            "user": user,
            "context_requested": requested,
            "context_included": included,
            "context_question_ids": [c.row["question_id"] for c in chosen],
            "tokens": fixed + (int(costs[included - 1]) if included else 0),
        }


def _context_candidates(target: _Question, questions: Sequence[_Question], options: BlueprintOptions) -> list[_Question]:
    allowed = [q for q in questions if not q.row["circular"] and q.group != target.group]
    if options.selection == "random":
        # The same order for every segment of the round, so that segments are compared on the same context.
        seed = int(digest(options.seed, target.row["round"], target.row["question_id"])[:16], 16)
        order = sorted((digest(seed, q.row["question_id"]), i) for i, q in enumerate(allowed))
        return [allowed[i] for _, i in order]
    return allowed
