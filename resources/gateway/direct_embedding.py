"""Embeddings of models at an OpenAI-compatible address of their own, without litellm: one request is a batch of texts."""

from __future__ import annotations

from typing import Any

from dtef_pipeline.asking.embeddings import decoded, packed
from dtef_pipeline.asking.models import OPENAI, ModelSpec
from dtef_pipeline.asking.request import Request
from resources.gateway.bills import NO_BILL, Bill, bill_of_embedding
from resources.gateway.direct_transport import DirectTransport
from resources.gateway.http_errors import unreadable
from resources.gateway.transport import Reply, text_or_none


class DirectEmbedding(DirectTransport):
    """One attempt of one batch by HTTP. The texts are the messages of the request."""

    PATH = "/embeddings"

    def _body(self, request: Request) -> dict[str, Any]:
        texts = [message.text for message in request.messages]
        return {"model": request.model.model.removeprefix(OPENAI), "input": texts, "encoding_format": "float"}

    def _bill(self, spec: ModelSpec, usage: object, header: str | None) -> Bill:
        return bill_of_embedding(spec, usage, header)

    def _reply(self, spec: ModelSpec, answer: dict[str, Any], request: Request, bill: Bill = NO_BILL) -> Reply:
        data = answer.get("data")
        try:
            entries = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
            vectors = decoded(entries, len(request.messages))
        except ValueError as error:
            raise unreadable(spec, str(error)) from None
        return Reply(
            text=packed(vectors),
            finish_reason=None,
            served_model=text_or_none(answer.get("model")),
            **bill._asdict(),
        )
