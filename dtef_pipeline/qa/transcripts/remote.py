"""A retrieval server with the documented interface: its requests, its replies, and stored look-ups, as retrievers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.qa.transcripts.metadata import (
    FILE_FIELD,
    METADATA_FIELDS,
    MetadataValue,
    check_filter,
    is_of_field,
    replace_unreadable,
    shorten_arrived_value,
)
from dtef_pipeline.qa.transcripts.retriever import Retrieval, Retriever, SourceText, check_k

REMOTE = "remote"
"""Name of the retrievers that use a server."""
NOT_LOOKED_UP = "it was not looked up yet; run `dtef qa run --retriever remote` to look it up"
_ID_DIGITS = 12
_MOST_SOURCES = 1_000


class PostResult(Protocol):
    """The result of a request to a server."""

    @property
    def value(self) -> Any:
        """The reply, decoded from JSON, or None without one."""

    @property
    def problem(self) -> str | None:
        """Why there is no reply, in words without secrets; None if there is one."""


PostPayload = Callable[[Mapping[str, Any]], PostResult]
"""Sends a request as JSON with the server's credentials and waits for the reply. Never raises."""


class RemoteRetriever:
    """Requests chunks from a server. If the request fails, the result has no chunks and the reason."""

    name = REMOTE
    is_remote = True

    def __init__(self, post: PostPayload, where: str = "the server", model: str | None = None) -> None:
        """`where`: the server's name in problems. `model`: the model to request, `provider/name`, if the server expects one."""
        self._post, self._where, self._model = post, where, model

    def retrieve(self, text: str, k: int, where: Mapping[str, str | int] | None = None) -> Retrieval:
        """Return the first k chunks that the server finds. Raises ConfigError for an invalid k or filter, before anything is sent."""
        payload = RetrievalPayload(text, check_k(k), check_filter(where), self._model)
        reply = self._post(payload.request_document)
        retrieval = Retrieval(problem=reply.problem) if reply.problem is not None else read_remote(reply.value, self._where)
        return Retrieval(retrieval.sources[:k], retrieval.problem)


class StoredLookUps:
    """Stored results of a server by text; makes no request."""

    name = REMOTE
    is_remote = True

    def __init__(self, found: Mapping[str, Retrieval]) -> None:
        """`found`: results by text, all for the same number of chunks and filter."""
        self.found = found

    def retrieve(self, text: str, k: int, where: Mapping[str, str | int] | None = None) -> Retrieval:
        """Return the stored result of the text, or a problem if it was not looked up."""
        return self.found.get(text, Retrieval(problem=NOT_LOOKED_UP))


LookUp = Callable[[Sequence[str], int, Mapping[str, str | int]], StoredLookUps]
"""Looks up texts, given the number of chunks and a filter, and returns the result of each."""


def read_remote(value: Any, where: str = "the server") -> Retrieval:
    """Read the context of a reply in the documented form, `{question, context, answer}`. Another form gives a problem; a source without
    text stays a source."""
    context = value.get("context") if isinstance(value, Mapping) else None
    if not isinstance(context, list):
        form = "{question, context: [{page_content, metadata}], answer}"
        return Retrieval(problem=f"{where} replied without a list of documents; allowed: {form}")
    return Retrieval(tuple(map(_read_remote_source, context[:_MOST_SOURCES])))


def _read_remote_source(document: Any) -> SourceText:
    values = document if isinstance(document, Mapping) else {}
    content, fields = values.get("page_content"), values.get("metadata")
    text = replace_unreadable(content) if isinstance(content, str) else ""
    metadata = _filter_known_fields(fields if isinstance(fields, Mapping) else {})
    name = values.get("doc_id")
    doc_id = (
        name if isinstance(name, str) and name.strip() else f"{metadata.get(FILE_FIELD, 'remote')}@{digest(text)[:_ID_DIGITS]}"
    )
    return SourceText(replace_unreadable(doc_id), text, metadata)


def _filter_known_fields(metadata: Mapping[str, Any]) -> dict[str, MetadataValue]:
    """Return fields of the right type."""
    fields = {name: metadata[name] for name in METADATA_FIELDS if name in metadata}
    return {name: value for name, value in fields.items() if is_of_field(name, value)}


PAYLOAD_KEYS = ("k", "filter", "question", "model", "auth")
DEFAULT_K = 10
"""Default number of chunks."""
_PROVIDER_AND_NAME = re.compile(r"([A-Za-z0-9_-]+):(\S+)")


@dataclass(frozen=True, slots=True)
class RetrievalPayload:
    """A request. It never contains `auth`: the secret is read only where it is used."""

    question: str
    k: int = DEFAULT_K
    filter: Mapping[str, str | int] = field(default_factory=dict)
    model: str | None = None
    """A LiteLLM string, or the name of a model of this project; None: not given."""

    @property
    def request_document(self) -> dict[str, Any]:
        """The request in the server's documented form, without `auth`. The model is written as `provider:name` again."""
        named = {} if self.model is None else {"model": self.model.replace("/", ":", 1)}
        return {"k": self.k, "filter": dict(self.filter), "question": self.question, **named}


def read_payload(payload: Any, models: Collection[str] = ()) -> RetrievalPayload:
    """Check a request.

    Args:
        payload: `question` is required; `k` defaults to 10, `filter` to all chunks; `auth` is ignored.
        models: names of models of this project, which are kept unchanged.

    Raises:
        ConfigError: for an unknown key, a k that is not a whole number of 1 or more, a filter with an unknown key or a value of the wrong
            kind, a blank question, or a model that is neither `provider:name` nor `provider/name` nor one of `models`.
    """
    if not isinstance(payload, Mapping):
        raise ConfigError(f"payload: got a {type(payload).__name__}; allowed: an object with {', '.join(PAYLOAD_KEYS)}")
    if unknown := [key for key in payload if key not in PAYLOAD_KEYS]:
        # Only the key: its value may be a misplaced secret.
        raise ConfigError(f"payload: got the key {shorten_arrived_value(unknown[0])!r}; allowed: {', '.join(PAYLOAD_KEYS)}")
    question = payload.get("question")
    if not isinstance(question, str) or not question.strip():
        raise ConfigError(f"question: got {shorten_arrived_value(question)!r}; allowed: text that is not blank")
    model = payload.get("model")
    return RetrievalPayload(
        question,
        check_k(payload.get("k", DEFAULT_K)),
        check_filter(payload.get("filter")),
        None if model is None else normalise_model_string(model, models),
    )


def normalise_model_string(model: Any, models: Collection[str] = ()) -> str:
    """Return this project's name of a model: `openai:gpt-4o-mini` is LiteLLM's `openai/gpt-4o-mini`; names in `models` stay unchanged.

    Raises ConfigError for anything else.
    """
    if isinstance(model, str):
        if model in models:
            return model
        if match := _PROVIDER_AND_NAME.fullmatch(model):
            return f"{match[1]}/{match[2]}"
        provider, slash, name = model.partition("/")
        if slash and provider and name and not re.search(r"\s", model):
            return model
    form = "provider:name (openai:gpt-4o-mini), provider/name, or the name of a model of this project"
    raise ConfigError(f"model: got {shorten_arrived_value(model)!r}; allowed: {form}")


def retrieve(payload: Any, retriever: Retriever, models: Collection[str] = ()) -> Retrieval:
    """Return the chunks for a request: as many as requested, or all if there are fewer. Raises ConfigError as `read_payload`."""
    read = read_payload(payload, models)
    return retriever.retrieve(read.question, read.k, read.filter)
