"""Requests to models for the items of a part, and the rows of their responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.calls import CallTable
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Message, Request
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import request_keys
from dtef_pipeline.qa.item_prompts import stop_sequences
from dtef_pipeline.qa.tables import QA_RESPONSES

_QA_PROMPT_KEYS = ("suite", "part", "item_id", "condition", "prompt_id")
_NOTHING_TO_CHOOSE = ()
QA_CALLS = CallTable(QA_RESPONSES, _QA_PROMPT_KEYS, ("item_id", "condition"), lambda options, reading: _NOTHING_TO_CHOOSE)
"""The stage `qa_responses`, which reads `qa_prompts`."""


def build_qa_requests(prompts: pa.Table, model: ModelSpec, draws: int, snapshot: str) -> list[Request]:
    """Return one request per (prompt, draw); items with the same prompt share its requests.

    `prompts`: rows of `qa_prompts`; those without messages, whose look-up failed, make no request. Raises ConfigError if a prompt's id does
    not match its messages, because its response would be stored under a key that is never looked up.
    """
    prompts = prompts.filter(pc.greater(pc.list_value_length(prompts["messages"]), 0))
    columns = [
        prompts[name].to_pylist() for name in ("prompt_id", "messages", "response_schema", "answer_tokens", "n_examples")
    ]
    first = {row[0]: row for row in reversed(list(zip(*columns, strict=True)))}
    requests = []
    for prompt, messages, schema, tokens, examples in (first[prompt_id] for prompt_id in dict.fromkeys(columns[0])):
        turns = [Message(message["role"], message["text"]) for message in messages]
        stop = stop_sequences(examples or 0, len(turns))
        for draw in range(draws):
            request = Request.build_request(
                turns, model, draw, snapshot, response_schema=schema, answer_tokens=tokens, stop=stop
            )
            if request.prompt_id != prompt:
                raise ConfigError(f"prompt {prompt}: its messages do not match its id. Make the prompts of the part again")
            requests.append(request)
    return requests


def explain_failed_look_ups(prompts: pa.Table, context: pa.Table) -> dict[str, str]:
    """Return the reason of each failed look-up by prompt id, including prompts that use earlier results. `context`: rows of `qa_context` of
    the part."""
    named = ("item_id", "condition")
    failed_rows = context.filter(pc.is_valid(context["problem"]))
    reasons = dict(
        zip(
            zip(*(failed_rows[name].to_pylist() for name in named), strict=True),
            failed_rows["problem"].to_pylist(),
            strict=True,
        )
    )
    rows = zip(*(prompts[name].to_pylist() for name in (*named, "prompt_id", "messages")), strict=True)
    return {
        prompt: reasons.get((item, condition), "the reason is not known")
        for item, condition, prompt, messages in rows
        if not messages or (item, condition) in reasons
    }


def list_unsent_requests(
    look_ups: Mapping[str, str], models: Sequence[ModelSpec], draws: int, snapshot: str
) -> dict[str, Failure]:
    """Return by request key the failures of prompts that are not sent and have no stored response. `look_ups`: see
    `explain_failed_look_ups`."""
    failures = {}
    for model in models:
        for draw in range(draws):
            for key, reason in zip(request_keys(look_ups, model.variant, draw, snapshot), look_ups.values(), strict=True):
                failures[key] = Failure(key, f"was not sent, because the look-up of its sources failed: {reason}", 0)
    return failures


def build_qa_response_rows(
    prompts: pa.Table,
    models: Sequence[ModelSpec],
    draws: int,
    snapshot: str,
    responses: pa.Table,
    failures: Mapping[str, Failure],
) -> pa.Table:
    """Return the rows of `qa_responses` for these prompts and models. `responses` (a superset is allowed) and failures are keyed by request
    key."""
    tables = [QA_CALLS.build_answered_rows(prompts, model, draws, snapshot, responses, failures) for model in models]
    return pa.concat_tables([QA_RESPONSES.empty_table(), *tables])


def merge_qa_responses(existing: pa.Table, new: pa.Table, prompts: pa.Table) -> pa.Table:
    """Return the new rows and those of earlier runs whose prompt still exists, so that a run with fewer models or conditions deletes
    nothing."""
    return QA_CALLS.merge_rows(existing, new, prompts)


def select_condition_prompts(prompts: pa.Table, condition: str, limit: int | None) -> pa.Table:
    """Return the prompts of one condition, at most `limit` of them: evenly spread over the part and the same in every run."""
    rows = prompts.filter(pc.equal(prompts["condition"], condition))
    if limit is None or limit >= len(rows):
        return rows
    return rows.take([index * len(rows) // limit for index in range(limit)])
