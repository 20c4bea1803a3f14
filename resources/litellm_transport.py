"""Hosted and self-hosted models, by litellm. It is imported (3 seconds) only when such a model has something to ask."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from dtef_pipeline.prediction.models import ModelSpec
from dtef_pipeline.prediction.request import Request
from resources.retries import retry_after
from resources.transport import CallError, Reply, Scope

_log = logging.getLogger("dtef.gateway")

# Servers send these when the same call may well succeed a little later.
_PASSING_STATUSES = frozenset({408, 409, 425, 429})
# Unauthorised, and no such model: true of every further call to the model as well.
_MODEL_STATUSES = frozenset({401, 404})
# Beyond the client's own time limit, so that its clearer message comes first.
_GRACE_S = 0.5


class LitellmTransport:
    """One attempt of one request by `litellm.acompletion`, without litellm's retries, caches or network look-ups."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._warned: set[str] = set()

    def problem(self, spec: ModelSpec) -> str | None:
        if spec.api_key_env:
            present = self._environ.get(spec.api_key_env, "").strip()
            return None if present else f"environment variable {spec.api_key_env} is not set"
        if spec.api_base:
            return None
        return self._provider_problem(spec)

    def _provider_problem(self, spec: ModelSpec) -> str | None:
        litellm = _litellm()
        try:
            litellm.get_llm_provider(spec.model)
        except litellm.exceptions.BadRequestError:
            return f"{spec.model!r} names no provider litellm knows; expected provider/model, as in openai/gpt-4.1-mini"
        missing = litellm.validate_environment(spec.model)["missing_keys"]
        # Other settings (AWS, Vertex, Ollama addresses) have sources beside the environment that litellm finds itself.
        keys = [key for key in missing if key.endswith("_API_KEY")]
        absent = keys and not any(self._environ.get(key) for key in keys)
        return f"environment variable {' or '.join(keys)} is not set" if absent else None

    async def ask(self, request: Request) -> Reply:
        litellm = _litellm()
        arguments = self._arguments(request)
        self._warn_of_dropped(litellm, request.model)
        try:
            # litellm's timeout is the longest silence; ours is the whole call, so that a slow drip ends too.
            async with asyncio.timeout(request.model.timeout + _GRACE_S):
                answer = await litellm.acompletion(**arguments)
        except TimeoutError:
            raise CallError(f"no answer within {request.model.timeout:g} s", Scope.PASSING) from None
        except Exception as error:
            raise _call_error(error) from None
        return _reply(litellm, request.model, answer)

    def _arguments(self, request: Request) -> dict[str, Any]:
        spec = request.model
        messages = [{"role": "system", "content": request.system}] if request.system else []
        arguments = {
            "model": spec.model,
            "messages": [*messages, {"role": "user", "content": request.user}],
            "timeout": spec.timeout,
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": True,
            **spec.sampling,
        }
        if spec.api_base:
            arguments["api_base"] = spec.api_base
            # litellm knows no list for such a server: everything asked for is sent, and the server decides.
            arguments["allowed_openai_params"] = list(spec.sampling)
            # Without a key of its own, litellm would send such a server the provider's (OPENAI_API_KEY).
            arguments["api_key"] = "none"
        if spec.api_key_env:
            arguments["api_key"] = self._environ[spec.api_key_env].strip()
        return arguments

    def _warn_of_dropped(self, litellm: Any, spec: ModelSpec) -> None:
        """Say once a model which sampling parameters its provider refuses, and are therefore not sent."""
        if spec.api_base or spec.variant in self._warned:
            return
        self._warned.add(spec.variant)
        given = {key: value for key in ("temperature", "top_p", "seed") if (value := spec.sampling.get(key)) is not None}
        try:
            model, provider, *_ = litellm.get_llm_provider(spec.model)
            sent = litellm.utils.get_optional_params(model=model, custom_llm_provider=provider, drop_params=True, **given)
        except Exception:  # the call itself will say what is wrong
            return
        kept = [value for value in sent.values() if not isinstance(value, bool)]
        if dropped := [key for key, value in given.items() if value not in kept]:
            _log.warning(
                "%s: the provider takes no %s, so it is not sent; in the models file say `%s: null`",
                spec.name,
                ", ".join(dropped),
                dropped[0],
            )

    async def open(self) -> None:
        """Import litellm: several seconds that are nobody's latency."""
        _litellm()

    async def close(self) -> None:
        """Give back what litellm keeps for this loop: HTTP clients (a later loop may get the same id) and log tasks."""
        litellm = _litellm()
        worker = litellm.litellm_core_utils.logging_worker.GLOBAL_LOGGING_WORKER
        await worker.clear_queue()
        await worker.stop()
        cached = litellm.in_memory_llm_clients_cache.cache_dict
        suffix = f"-{id(asyncio.get_running_loop())}"
        for key in [key for key in cached if str(key).endswith(suffix)]:
            client = cached.pop(key)
            close = getattr(client, "close", None) or getattr(client, "aclose", None)
            if close is not None and asyncio.iscoroutinefunction(close):
                await close()


@cache
def _litellm() -> Any:
    # Else the import fetches the price list from the network.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.cache = None
    litellm.num_retries = 0
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # httpx logs every address at INFO, and some providers take the key in it.
    for name in ("httpx", "httpcore", "openai"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return litellm


def _call_error(error: Exception) -> CallError:
    status = getattr(error, "status_code", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(getattr(error, "response", None), "headers", {})
    message = f"{type(error).__name__}: {getattr(error, 'message', None) or error}"
    if status in _MODEL_STATUSES:
        return CallError(message, Scope.MODEL)
    if isinstance(status, int) and (status in _PASSING_STATUSES or status >= 500):
        return CallError(message, Scope.PASSING, retry_after(headers, datetime.now(UTC)))
    return CallError(message, Scope.REQUEST)


def _reply(litellm: Any, spec: ModelSpec, answer: Any) -> Reply:
    if not answer.choices:
        raise CallError("the server sent an answer without choices", Scope.PASSING)
    choice = answer.choices[0]
    text = choice.message.content
    if text is None:
        text = _text_of_nothing(choice)
    usage = getattr(answer, "usage", None)
    return Reply(
        text=text,
        finish_reason=choice.finish_reason,
        served_model=answer.model,
        prompt_tokens=getattr(usage, "prompt_tokens", None),
        completion_tokens=getattr(usage, "completion_tokens", None),
        cost_usd=_cost(litellm, spec, answer, usage),
    )


def _text_of_nothing(choice: Any) -> str:
    """An answer without content: a refusal, a filter and a spent token budget are answers; anything else is a fault."""
    refusal = (getattr(choice.message, "provider_specific_fields", None) or {}).get("refusal")
    if refusal:
        return str(refusal)
    # Asked again these would cost again and end the same.
    if choice.finish_reason in ("content_filter", "length"):
        return ""
    raise CallError(f"the server sent an answer without content (finish reason {choice.finish_reason})", Scope.PASSING)


def _cost(litellm: Any, spec: ModelSpec, answer: Any, usage: Any) -> float | None:
    """US dollars by the model's own prices, else by litellm's list; None where neither knows."""
    if usage is None:
        return None
    if spec.input_price is not None and spec.output_price is not None:
        prompt, completion = int(usage.prompt_tokens), int(usage.completion_tokens)
        return (prompt * spec.input_price + completion * spec.output_price) / 1e6
    if spec.api_base:
        return None
    try:
        return float(litellm.completion_cost(completion_response=answer, model=spec.model))
    except Exception:  # litellm raises many types, ValueError to its own, for a model without prices
        return None
