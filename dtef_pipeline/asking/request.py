"""What a request to a language model is, and what comes back. Nothing here knows of surveys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.identity import request_key


@dataclass(frozen=True, slots=True)
class Request:
    """One draw of one prompt by one model variant in one snapshot."""

    prompt_id: str
    system: str
    user: str
    model: ModelSpec
    draw: int
    snapshot: str
    choices: tuple[str, ...] = ()
    """The answer options as the prompt lists them, for models that choose rather than write (`local/*`)."""
    response_schema: str | None = None
    """JSON schema, as JSON text, that the answer is to follow where the model can be made to."""
    answer_tokens: int | None = None
    """The model may answer with at least so many tokens, whatever its own `max_tokens`."""

    key: str = ""
    """Primary key in the response store; made here unless it is given."""

    def __post_init__(self) -> None:
        if not self.key:
            key = request_key(self.prompt_id, self.model.variant, self.draw, self.snapshot)
            object.__setattr__(self, "key", key)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer that was paid for, as it is kept in the response store."""

    request_key: str
    prompt_id: str
    model: str
    model_variant: str
    draw: int
    snapshot: str
    text: str
    finish_reason: str | None
    served_model: str | None
    fingerprint: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    latency_s: float
    attempts: int
    answered_at: datetime
    reasoning: str | None = None
    """What the model thought before it answered, where the provider sends that apart from the answer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that got no answer for good. Not kept in the store: a rerun asks again."""

    request_key: str
    message: str
    attempts: int
    status: str = "error"
    """error | budget: the request was not sent, because a budget was reached."""
