"""A retrieval server with the documented interface: its requests, its replies, and stored look-ups, as retrievers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.qa.transcripts.metadata import (
    FILE_FIELD,
    METADATA_FIELDS,
    check_filter,
    is_of_field,
    replace_unreadable,
)
from dtef_pipeline.qa.transcripts.retriever import Retrieval, SourceText, check_k
from dtef_pipeline.text.shortening import shorten_value

REMOTE = "remote"
"""Name of the retrievers that use a server."""
NOT_LOOKED_UP = "it was not looked up yet; run `dtef qa run --retriever remote` to look it up"
_ID_DIGITS = 12
_MAX_SOURCES = 1_000


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
        named = {} if self._model is None else {"model": self._model.replace("/", ":", 1)}
        reply = self._post({"k": check_k(k), "filter": check_filter(where), "question": text, **named})
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
    return Retrieval(tuple(map(_read_remote_source, context[:_MAX_SOURCES])))


def _read_remote_source(document: Any) -> SourceText:
    values = document if isinstance(document, Mapping) else {}
    content, fields = values.get("page_content"), values.get("metadata")
    text = replace_unreadable(content) if isinstance(content, str) else ""
    known = fields if isinstance(fields, Mapping) else {}
    metadata = {name: known[name] for name in METADATA_FIELDS if name in known and is_of_field(name, known[name])}
    name = values.get("doc_id")
    doc_id = (
        name if isinstance(name, str) and name.strip() else f"{metadata.get(FILE_FIELD, 'remote')}@{digest(text)[:_ID_DIGITS]}"
    )
    return SourceText(replace_unreadable(doc_id), text, metadata)


_PROVIDER_AND_NAME = re.compile(r"([A-Za-z0-9_-]+):(\S+)")


def normalise_model_string(model: str) -> str:
    """Return LiteLLM's name of a model: `openai:gpt-4o-mini` is `openai/gpt-4o-mini`. Raises ConfigError for anything else."""
    if match := _PROVIDER_AND_NAME.fullmatch(model):
        return f"{match[1]}/{match[2]}"
    provider, slash, name = model.partition("/")
    if slash and provider and name and not re.search(r"\s", model):
        return model
    form = "provider:name (openai:gpt-4o-mini) or provider/name"
    raise ConfigError(f"model: got {shorten_value(model)!r}; allowed: {form}")
