"""A request in the documented form, `{k, filter, question, model, auth}`: what is allowed in it, and what is found for it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.transcripts.metadata import checked_filter, shortened
from dtef_pipeline.qa.transcripts.retriever import Retrieval, Retriever, checked_k

PAYLOAD_KEYS = ("k", "filter", "question", "model", "auth")
DEFAULT_K = 10
"""Chunks that are shown unless another number is asked for."""
_PROVIDER_AND_NAME = re.compile(r"([A-Za-z0-9_-]+):(\S+)")


@dataclass(frozen=True, slots=True)
class RetrievalPayload:
    """A request that was checked. It never holds `auth`: the secret is read where it is used."""

    question: str
    k: int = DEFAULT_K
    filter: Mapping[str, str | int] = field(default_factory=dict)
    model: str | None = None
    """A litellm string, or the name of a model of this project; None: not said."""

    @property
    def documented(self) -> dict[str, Any]:
        """The request as a server of the documented form takes it, without `auth`. The model is `provider:name` again."""
        named = {} if self.model is None else {"model": self.model.replace("/", ":", 1)}
        return {"k": self.k, "filter": dict(self.filter), "question": self.question, **named}


def read_payload(payload: Any, models: Collection[str] = ()) -> RetrievalPayload:
    """A checked request.

    Args:
        payload: `question` is needed. `k` is 10 unless given, `filter` takes all chunks unless given, `auth` is looked at by nobody.
        models: names of models of this project, which are taken as they are.

    Raises:
        ConfigError: for an unknown key, a k that is no whole number of 1 or more (true is none), a filter with an unknown key or a value of
            another kind, a blank question, and a model that is neither `provider:name` nor `provider/name` nor one of `models`.
    """
    if not isinstance(payload, Mapping):
        raise ConfigError(f"payload: got a {type(payload).__name__}; allowed: an object with {', '.join(PAYLOAD_KEYS)}")
    if unknown := [key for key in payload if key not in PAYLOAD_KEYS]:
        # The key alone: its value may be a secret in the wrong place.
        raise ConfigError(f"payload: got the key {shortened(unknown[0])!r}; allowed: {', '.join(PAYLOAD_KEYS)}")
    question = payload.get("question")
    if not isinstance(question, str) or not question.strip():
        raise ConfigError(f"question: got {shortened(question)!r}; allowed: text that is not blank")
    model = payload.get("model")
    return RetrievalPayload(
        question,
        checked_k(payload.get("k", DEFAULT_K)),
        checked_filter(payload.get("filter")),
        None if model is None else model_string(model, models),
    )


def model_string(model: Any, models: Collection[str] = ()) -> str:
    """How this project calls a model: `openai:gpt-4o-mini` is litellm's `openai/gpt-4o-mini`; names in `models` are taken as they are.

    Raises ConfigError for anything else.
    """
    if isinstance(model, str):
        if model in models:
            return model
        if found := _PROVIDER_AND_NAME.fullmatch(model):
            return f"{found[1]}/{found[2]}"
        provider, slash, name = model.partition("/")
        if slash and provider and name and not re.search(r"\s", model):
            return model
    allowed = "provider:name (openai:gpt-4o-mini), provider/name, or the name of a model of this project"
    raise ConfigError(f"model: got {shortened(model)!r}; allowed: {allowed}")


def retrieve(payload: Any, retriever: Retriever, models: Collection[str] = ()) -> Retrieval:
    """What is found for a request: as many chunks as are wanted, or all that there are. Raises ConfigError as `read_payload`."""
    read = read_payload(payload, models)
    return retriever.retrieve(read.question, read.k, read.filter)
