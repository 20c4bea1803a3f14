"""Prompts of one text are asked once: whose response serves which of them.

Two items can have the same text and options; their prompts then read the same, letter by letter, but each has its own
`prompt_id`. One of them is sent, and its response stands for all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from dtef_pipeline.identity import request_keys

SEEN = ("prompt_id", "system", "user", "options", "reading", "response_schema", "answer_tokens")
"""The columns of a table of prompts that say what is sent."""
Listed = Callable[[Sequence[str], Mapping[str, Any] | None], tuple[str, ...]]
"""Makes of a prompt's `options` and `reading` what it gives to choose from, in its order; none where the response is no choice."""


class SharedResponse(NamedTuple):
    """The request whose response serves another one."""

    prompt_id: str
    request_key: str


def same_texts(prompts: pa.Table, listed: Listed) -> dict[str, tuple[str, ...]]:
    """By prompt id, the ids of all prompts that are sent with the same words, in the order of the table.

    Prompts whose words no other has are left out. `prompts`: of one partition, with the columns SEEN.
    """
    columns = [prompts[name].to_pylist() for name in SEEN]
    found: dict[tuple[Any, ...], dict[str, None]] = {}
    for prompt, system, user, options, reading, schema, tokens in zip(*columns, strict=True):
        found.setdefault((system, user, listed(options, reading), schema, tokens), {})[prompt] = None
    return {prompt: tuple(members) for members in found.values() if len(members) > 1 for prompt in members}


def sources(
    prompt_ids: Iterable[str],
    same: Mapping[str, Sequence[str]],
    variant: str,
    draws: int,
    snapshot: str,
    known: Callable[[Sequence[str]], Collection[str]],
) -> dict[str, SharedResponse]:
    """By request key, the request that is sent in its place; those that are sent themselves are left out.

    A request whose own response is stored keeps it. Else the first of its text with a stored response serves it, else the first of
    its text, asked for in this run or not: so whatever is asked first, everything later finds it. `known`: those of the request
    keys with a response.
    """
    wanted = [prompt for prompt in dict.fromkeys(prompt_ids) if prompt in same]
    members = list(dict.fromkeys(member for prompt in wanted for member in same[prompt]))
    found: dict[str, SharedResponse] = {}
    for draw in range(draws if members else 0):
        keys = dict(zip(members, request_keys(members, variant, draw, snapshot), strict=True))
        stored = known(list(keys.values()))
        for prompt in wanted:
            first = next((member for member in (prompt, *same[prompt]) if keys[member] in stored), same[prompt][0])
            if first != prompt:
                found[keys[prompt]] = SharedResponse(first, keys[first])
    return found


def count_distinct_requests(prompt_ids: Collection[str], draws: int, served: Mapping[str, SharedResponse]) -> int:
    """How many requests are sent or replayed for `draws` draws of the distinct prompts."""
    elsewhere = {source for source in served.values() if source.prompt_id not in prompt_ids}
    return len(prompt_ids) * draws - len(served) + len(elsewhere)
