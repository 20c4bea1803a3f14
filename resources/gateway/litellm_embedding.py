"""Embeddings of hosted and self-hosted models by litellm: one request is a batch of texts, and its response the packed vectors."""

from __future__ import annotations

from typing import Any

from dtef_pipeline.asking.embeddings import decoded, packed
from dtef_pipeline.asking.request import Request
from resources.gateway.bills import bill_of_embedding
from resources.gateway.http_errors import unreadable
from resources.gateway.litellm_module import load_litellm
from resources.gateway.litellm_transport import LitellmTransport, in_time, stated_by
from resources.gateway.transport import Reply


class LitellmEmbedding(LitellmTransport):
    """One attempt of one batch by `litellm.aembedding`. The texts are the messages of the request."""

    async def ask(self, request: Request) -> Reply:
        litellm, spec = load_litellm(), request.model
        texts = [message.text for message in request.messages]
        arguments = {**self.connection(spec), "input": texts, "encoding_format": "float"}
        if spec.api_base:
            arguments["allowed_openai_params"] = ["encoding_format"]
        answer = await in_time(spec, litellm.aembedding(**arguments), bill_of_embedding)
        bill = bill_of_embedding(spec, *stated_by(answer))
        try:
            vectors = decoded([_entry(one) for one in answer.data or ()], len(texts))
        except ValueError as error:
            fault = unreadable(spec, str(error))
            fault.bill = bill.stated
            raise fault from None
        return Reply(
            text=packed(vectors),
            finish_reason=None,
            served_model=answer.model,
            **bill._asdict(),
        )


def _entry(one: Any) -> dict[str, Any]:
    """One embedding of an answer, which is a mapping or an object by provider."""
    return (
        one if isinstance(one, dict) else {"index": getattr(one, "index", None), "embedding": getattr(one, "embedding", None)}
    )
