"""Requests to language models and their responses, for all families."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple, Self

from dtef_pipeline.asking.models import LOCAL_MODELS, ModelSpec
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import compute_messages_id, digest, request_key


class AskingRun(NamedTuple):
    """The software and its configuration at the time when responses were stored."""

    code_version: str
    config_hash: str

    @property
    def run_id(self) -> str:
        """32 hexadecimal digits, equal for runs of the same code and configuration."""
        return digest("asking run", *self)


Hash = Annotated[str, "32 hexadecimal digits"]
"""A prompt id or a request key: see `identity.digest`."""
SPEAKERS = ("system", "user", "assistant", "tool")
CANDIDATE = "candidate"
EMBEDDER = "embedder"
ROLES = (CANDIDATE, "judge", "analyst", EMBEDDER)
"""Role of a model: it is measured, judges another model's text, summarises, or embeds a text."""
LAST_ERROR = "; last error: "
"""Separator in a failure's message, between the budget that ended the attempts and the error of the last attempt."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation. Raises ConfigError if the role is not in SPEAKERS."""

    role: str
    text: str

    def __post_init__(self) -> None:
        _require_member("role of a message", self.role, SPEAKERS)


@dataclass(frozen=True, slots=True)
class Request:
    """One draw of one prompt by one model variant in one snapshot.

    The prompt is either a system and a user text or a conversation (`build_request`). Raises ConfigError if it is both, or if the role is
    not in ROLES.
    """

    prompt_id: str
    system: str | None
    """None or empty: no system message is sent."""
    user: str
    model: ModelSpec
    draw: int
    snapshot: str
    choices: tuple[str, ...] = ()
    """The options as the prompt lists them, for models that choose rather than write (`local/*`)."""
    response_schema: str | None = None
    """JSON schema, as JSON text, for the response, if the model supports schemas."""
    answer_tokens: int | None = None
    """Minimum token limit of the response, even if the model's own `max_tokens` is lower."""

    key: str = ""
    """Primary key in the response store; computed unless it is given."""

    messages: tuple[Message, ...] = ()
    """A conversation, in place of `system` and `user`."""
    role: str = CANDIDATE
    """Role of the model, by which costs are split. It changes neither the prompt nor the key."""
    stop: tuple[str, ...] = ()
    """Stop sequences, for models that support them. Readers also end the response there, so they change neither the prompt nor the key."""

    def __post_init__(self) -> None:
        _require_member("role of a request", self.role, ROLES)
        if self.messages and (self.system or self.user):
            raise ConfigError("a request has both messages and a system or user text; allowed: one of the two forms")
        if not self.key:
            key = request_key(self.prompt_id, self.model.variant, self.draw, self.snapshot)
            object.__setattr__(self, "key", key)

    @classmethod
    def build_request(
        cls,
        messages: Sequence[Message],
        model: ModelSpec,
        draw: int,
        snapshot: str,
        *,
        role: str = CANDIDATE,
        response_schema: str | None = None,
        answer_tokens: int | None = None,
        stop: tuple[str, ...] = (),
    ) -> Self:
        """Build the request of a conversation, under the id of its messages; no system message is added. Raises ConfigError if it is empty."""
        if not messages:
            raise ConfigError("a conversation without messages: allowed: at least one")
        turns = ((message.role, message.text) for message in messages)
        return cls(
            prompt_id=compute_messages_id(turns, response_schema=response_schema, answer_tokens=answer_tokens),
            system=None,
            user="",
            model=model,
            draw=draw,
            snapshot=snapshot,
            response_schema=response_schema,
            answer_tokens=answer_tokens,
            messages=tuple(messages),
            role=role,
            stop=stop,
        )

    @property
    def max_tokens(self) -> int | None:
        """The limit on response tokens that is sent: the larger of the model's own and `answer_tokens`, or None if no limit is sent."""
        limit = self.model.max_tokens
        return limit if limit is None else max(limit, self.answer_tokens or 0)

    @property
    def conversation(self) -> tuple[Message, ...]:
        """The messages that are sent, for either form."""
        if self.messages:
            return self.messages
        return (*([Message("system", self.system)] if self.system else []), Message("user", self.user))


@dataclass(frozen=True, slots=True)
class Response:
    """A response that was paid for, as stored in the response store.

    The columns of the store and its files, and those that call tables copy, follow from these fields.
    """

    request_key: Hash
    prompt_id: Hash
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
    """US dollars of the response and of earlier attempts with a known cost; None: the cost of the response is unknown."""
    latency_s: float
    attempts: int
    answered_at: datetime
    reasoning: str | None = None
    """The model's reasoning, if the provider sends it separately from the response."""
    role: str = CANDIDATE
    """Role of the model: one of ROLES."""
    host: str | None = None
    """Host that served the model, if a gateway of several hosts reports it."""
    reported_cost_usd: float | None = None
    """US dollars that the provider states for the response (`usage.cost`); None: it states none."""
    cached_tokens: int | None = None
    """Prompt tokens that the provider read from its cache; None: not reported."""
    reasoning_tokens: int | None = None
    """Reasoning tokens, as the provider counts them; None: not reported."""
    unknown_cost_attempts: int | None = None
    """Calls of this request that may have been billed at an unknown cost; None: not counted."""
    unknown_cost_usd_most: float | None = None
    """US dollars that these calls may have cost at most, beyond `cost_usd`; None: there are none, or no price is known."""


@dataclass(frozen=True, slots=True)
class UnansweredCall:
    """A call without a response that the provider may have billed, as stored in the response store."""

    request_key: Hash
    role: str
    ended_at: datetime
    cost_usd: float | None
    """US dollars, if the server reported the call's usage; None: unknown."""
    most_usd: float | None
    """US dollars that a call of unknown cost may have cost at most; None: the cost is known, or no price is."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that finally got no response. It is not stored: a rerun sends it again."""

    request_key: str
    message: str
    attempts: int
    status: str = "error"
    """error | budget: the request was not sent, because a budget was reached | missing: the model is imported, and has no such response."""
    cost_usd: float | None = None
    """US dollars of the attempts with a known cost; None: no cost is known."""
    unknown_cost_attempts: int = 0
    unknown_cost_usd_most: float | None = None
    """As in `Response`."""


def _require_member(label: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{label} {value!r}: allowed: {', '.join(choices)}")


def parse_variant(name: str, variant: str) -> ModelSpec | None:
    """Return the model that a variant names, as far as its responses depend on it, or None if it is not a variant."""
    model, _, settings = variant.removesuffix("]").partition("[")
    parameters = {part.partition("=")[0]: part.partition("=")[2] for part in settings.split(",") if part}
    local = model in LOCAL_MODELS
    values = {"name": name, "model": model, "temperature": None, **({} if local else {"max_tokens": None}), **parameters}
    try:
        spec = ModelSpec.model_validate(values)
    except ValueError:
        return None
    return spec if spec.variant == variant else None
