"""A server that looks up and answers in the documented form: its replies, and the server as a retriever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dtef_pipeline.identity import digest
from dtef_pipeline.qa.transcripts.cited_reply import CitedReply, read_cited_value
from dtef_pipeline.qa.transcripts.corpus import FILE_FIELD, METADATA_FIELDS, MetadataValue
from dtef_pipeline.qa.transcripts.metadata import checked_filter, is_of_field, storable
from dtef_pipeline.qa.transcripts.payload import RetrievalPayload
from dtef_pipeline.qa.transcripts.retriever import Retrieval, SourceText, checked_k

_ID_DIGITS = 12
_MOST_SOURCES = 1_000


class Posted(Protocol):
    """What became of a request to a server."""

    @property
    def value(self) -> Any:
        """The reply, decoded from JSON; None: there is none."""

    @property
    def problem(self) -> str | None:
        """Why there is no reply, in words without secrets; None: there is one."""


PostPayload = Callable[[Mapping[str, Any]], Posted]
"""Sends a request as JSON, adds what the server needs to let it in, and waits for the reply. Raises nothing."""


@dataclass(frozen=True, slots=True)
class RemoteReply:
    """What a server found and answered."""

    retrieval: Retrieval
    reply: CitedReply | None = None
    """None: the server gave no answer, for the reason in `retrieval.problem` or because it only looks up."""


class RemoteRetriever:
    """Asks a server for the chunks. One that fails gives no chunks and says why."""

    name = "remote"
    is_remote = True

    def __init__(self, post: PostPayload, model: str | None = None) -> None:
        """`model`: what the server is to answer with, `provider/name`, where it answers too."""
        self._post, self._model = post, model

    def ask(self, payload: RetrievalPayload) -> RemoteReply:
        """What the server finds and answers. Raises nothing for what happens on the way."""
        posted = self._post(payload.documented)
        if posted.problem is not None:
            return RemoteReply(Retrieval(problem=posted.problem))
        return read_remote(posted.value)

    def retrieve(self, text: str, k: int, where: Mapping[str, str | int] | None = None) -> Retrieval:
        """The first k chunks of what the server finds. Raises ConfigError for a k and a filter that are not allowed, before anything is sent."""
        found = self.ask(RetrievalPayload(text, checked_k(k), checked_filter(where), self._model)).retrieval
        return Retrieval(found.sources[:k], found.problem)


def read_remote(value: Any) -> RemoteReply:
    """A reply in the documented form, `{question, context, answer}`. One of another form is a problem; a source without text stays a source."""
    context = value.get("context") if isinstance(value, Mapping) else None
    if not isinstance(context, list):
        problem = (
            "the server replied without a list of documents; allowed: {question, context: [{page_content, metadata}], answer}"
        )
        return RemoteReply(Retrieval(problem=problem))
    sources = tuple(map(_source, context[:_MOST_SOURCES]))
    answer = value.get("answer")
    return RemoteReply(Retrieval(sources), None if answer is None else read_cited_value(answer))


def _source(document: Any) -> SourceText:
    values = document if isinstance(document, Mapping) else {}
    content, given = values.get("page_content"), values.get("metadata")
    text = storable(content) if isinstance(content, str) else ""
    metadata = _known(given if isinstance(given, Mapping) else {})
    name = values.get("doc_id")
    own = (
        name if isinstance(name, str) and name.strip() else f"{metadata.get(FILE_FIELD, 'remote')}@{digest(text)[:_ID_DIGITS]}"
    )
    return SourceText(storable(own), text, metadata)


def _known(metadata: Mapping[str, Any]) -> dict[str, MetadataValue]:
    """The fields of the right kind."""
    known = {name: metadata[name] for name in METADATA_FIELDS if name in metadata}
    return {name: value for name, value in known.items() if is_of_field(name, value)}
