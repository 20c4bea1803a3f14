"""Calls that a run would make, by role and model: requests, cache hits and tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import CANDIDATE, EMBEDDER, Message
from dtef_pipeline.asking.tokens import estimate_tokens

PLANNED_ROLES = (CANDIDATE, "judge", EMBEDDER, "analyst")
"""Roles of models, in the order in which a run sends their requests."""
PLANNED: Mapping[str, str] = {
    "role": "Role of the model: candidate (to be evaluated), judge, embedder or analyst",
    "planned": "Turns to be written, judgements, texts to be embedded, summaries, or extractions of key points",
    "requests": "Distinct requests; requests with the same text are sent once",
    "replayed": "Requests whose response is stored: they cost nothing",
    "calls": "Requests to send: all that are not replayed; one embeds up to 64 texts",
    "calls_max": "Calls if each request to a judge or an analyst has to be repeated once",
    "prompt_tokens": "Tokens of the prompts to send, estimated on the high side",
    "response_tokens": "Tokens of responses of the usual length: the mean of stored ones, if any",
    "response_tokens_max": "Tokens of responses of the greatest length: max_tokens of the model, or what the prompt needs if that is more",
    "cost_usd": "US dollars for these calls with responses of the usual length",
    "cost_usd_max": "US dollars for the most calls with the longest responses",
}
"""Columns of an estimate, by name."""


@dataclass(slots=True)
class PlannedCalls:
    """The planned calls of one model in one role. Tokens cover only calls that are sent; a `most` without a limit is infinite."""

    role: str
    name: str
    model: ModelSpec
    """The first variant, if the model has several."""
    planned: int = 0
    requests: int = 0
    replayed: int = 0
    calls: int = 0
    calls_max: int = 0
    prompt_tokens: float = 0.0
    prompt_tokens_max: float = 0.0
    """Like `prompt_tokens`, if every possible second request is sent and every text shown in prompts has its maximum length."""
    response_tokens: float = 0.0
    response_tokens_max: float = 0.0

    def send(self, prompt: float, usual: float, calls: int = 1) -> None:
        """Add `calls` calls with `prompt` prompt tokens in total and `usual` response tokens each."""
        self.calls += calls
        self.prompt_tokens += prompt
        self.response_tokens += calls * usual

    def may_send(self, prompt: float, limit: float, calls: int = 1) -> None:
        """Add at most `calls` calls, including those of `send`, with `prompt` prompt tokens in total and `limit` response tokens each at
        most.
        """
        self.calls_max += calls
        self.prompt_tokens_max += prompt
        self.response_tokens_max += calls * limit if calls else 0


@dataclass(slots=True)
class PlannedTotals:
    """The calls of several partitions together. A request that several partitions share counts once."""

    rows: dict[tuple[str, str], PlannedCalls] = field(default_factory=dict)
    """Keyed by role and name of the model."""
    _seen_keys: set[bytes] = field(default_factory=set)

    def row(self, role: str, model: ModelSpec, behind_name: str = "") -> PlannedCalls:
        name = model.name + behind_name
        return self.rows.setdefault((role, name), PlannedCalls(role, name, model))

    def is_new(self, key: str) -> bool:
        """Return whether the request key is new, and remember it."""
        short = bytes.fromhex(key)
        if short in self._seen_keys:
            return False
        self._seen_keys.add(short)
        return True

    def list_sorted_rows(self) -> list[PlannedCalls]:
        """Return the rows with planned work, by role in the order of a run, then in the order in which models were added."""
        rows = [row for row in self.rows.values() if row.planned]
        return sorted(rows, key=lambda row: PLANNED_ROLES.index(row.role))


def prompt_tokens(messages: Sequence[Message]) -> int:
    """Return the estimated tokens of a conversation."""
    return sum(estimate_tokens_cached(message.text) for message in messages)


@lru_cache(maxsize=8_192)
def estimate_tokens_cached(text: str) -> int:
    """Return `estimate_tokens(text)`, cached because many prompts share instructions."""
    return estimate_tokens(text)
