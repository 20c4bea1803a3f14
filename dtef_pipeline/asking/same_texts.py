"""Prompts of one text are asked once: whose answer serves which of them.

Two questions of a round can have the same text and options; their prompts then read the same, letter by letter, but each has its own
`prompt_id`. One of them is sent, and its answer stands for all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from dtef_pipeline.identity import request_keys
from dtef_pipeline.survey.blueprint.answers import is_one_distribution

SEEN = ("prompt_id", "system", "user", "options", "reading", "response_schema", "answer_tokens")
"""The columns of `blueprints` that say what is sent."""


class Source(NamedTuple):
    """The request whose answer serves another one."""

    prompt_id: str
    request_key: str


def same_texts(blueprints: pa.Table) -> dict[str, tuple[str, ...]]:
    """By prompt id, the ids of all prompts that are sent with the same words, in the order of the table.

    Prompts whose words no other has are left out. `blueprints`: of one partition, with the columns SEEN.
    """
    columns = [blueprints[name].to_pylist() for name in SEEN]
    found: dict[tuple[Any, ...], dict[str, None]] = {}
    for prompt, system, user, options, reading, schema, tokens in zip(*columns, strict=True):
        found.setdefault((system, user, as_listed(options, reading), schema, tokens), {})[prompt] = None
    return {prompt: tuple(members) for members in found.values() if len(members) > 1 for prompt in members}


def as_listed(options: Sequence[str], reading: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The options in the order of the prompt; none where the answer is not one distribution over them."""
    if not is_one_distribution(reading):
        return ()
    order = reading["order"] if reading else None
    return tuple(options[place] for place in order) if order else tuple(options)


def sources(
    prompt_ids: Iterable[str],
    same: Mapping[str, Sequence[str]],
    variant: str,
    draws: int,
    snapshot: str,
    known: Callable[[Sequence[str]], Collection[str]],
) -> dict[str, Source]:
    """By request key, the request that is sent in its place; those that are sent themselves are left out.

    A request whose own answer is stored keeps it. Else the first of its text with a stored answer serves it, else the first of its text,
    asked for in this run or not: so whatever is asked first, everything later finds it. `known`: those of the request keys with an answer.
    """
    wanted = [prompt for prompt in dict.fromkeys(prompt_ids) if prompt in same]
    members = list(dict.fromkeys(member for prompt in wanted for member in same[prompt]))
    found: dict[str, Source] = {}
    for draw in range(draws if members else 0):
        keys = dict(zip(members, request_keys(members, variant, draw, snapshot), strict=True))
        stored = known(list(keys.values()))
        for prompt in wanted:
            first = next((member for member in (prompt, *same[prompt]) if keys[member] in stored), same[prompt][0])
            if first != prompt:
                found[keys[prompt]] = Source(first, keys[first])
    return found


def distinct_requests(prompt_ids: Collection[str], draws: int, served: Mapping[str, Source]) -> int:
    """How many requests are sent or replayed for `draws` draws of the distinct prompts."""
    elsewhere = {source for source in served.values() if source.prompt_id not in prompt_ids}
    return len(prompt_ids) * draws - len(served) + len(elsewhere)
