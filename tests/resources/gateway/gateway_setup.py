"""What the gateway's tests share: models of the fake server, requests to them, and a gateway that does not wait long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request
from resources.gateway import Gateway
from resources.gateway.direct_transport import DirectTransport, is_direct
from resources.gateway.gateway import Outcome
from resources.gateway.litellm_transport import LitellmTransport
from resources.gateway.queues import Backoff, BreakerRules
from resources.gateway.transport import CallError, Reply, Transport
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM, Fault, FaultPlan

KEY = "planted-7f3a9c-key"
QUICK = Backoff(first=0.001, longest=0.01)


def model(server: FakeLLM | None, **settings: Any) -> ModelSpec:
    base = {"api_base": server.base_url} if server else {}
    defaults = {"name": "m", "model": "openai/m", "timeout": 20, "api_key_env": "M_KEY", **base}
    return ModelSpec.model_validate({**defaults, **settings})


def requests(spec: ModelSpec, count: int = 1, snapshot: str = "base", draw: int = 0, **settings: Any) -> list[Request]:
    return [Request(f"prompt-{i}", "be brief", f"question {i}", spec, draw, snapshot, **settings) for i in range(count)]


def gateway(store: ResponseStore, **settings: Any) -> Gateway:
    defaults: dict[str, Any] = {
        "environ": {"M_KEY": KEY},
        "backoff": QUICK,
        "breaker": BreakerRules(cool_down=0.01, longest=0.05),
    }
    return Gateway(store, **{**defaults, **settings})


def ask(store: ResponseStore, fault: FaultPlan, **settings: Any) -> tuple[Outcome, FakeLLM]:
    """One request to a server with a fault."""
    with FakeLLM(fault=fault) as server:
        return gateway(store).answer(requests(model(server, **settings))), server


def send(asked: Sequence[Request]) -> list[Reply | CallError]:
    """What comes of one attempt of each, which go out at once, by the way of the first one's model."""

    async def attempt(transport: Transport, request: Request) -> Reply | CallError:
        try:
            return await transport.ask(request)
        except CallError as error:
            return error

    async def all_of_them() -> list[Reply | CallError]:
        transport = (DirectTransport if is_direct(asked[0].model) else LitellmTransport)({"M_KEY": KEY})
        await transport.open()
        try:
            return await asyncio.gather(*(attempt(transport, one) for one in asked))
        finally:
            await transport.close()

    return asyncio.run(all_of_them())


def replies(asked: Sequence[Request]) -> list[Reply]:
    """The same, where no attempt fails."""
    found = send(asked)
    assert not [one for one in found if isinstance(one, CallError)]
    return [one for one in found if isinstance(one, Reply)]


def met(faults: Sequence[Fault], **settings: Any) -> list[Reply | CallError]:
    """What comes of one attempt each of a server at which the first request meets the first fault, and so on."""
    with FakeLLM(fault=lambda call: faults[int(call.user.split()[1])]) as server:
        return send(requests(model(server, **settings), len(faults)))


def failures(faults: Sequence[Fault], **settings: Any) -> list[CallError]:
    """The same, where every attempt fails."""
    found = met(faults, **settings)
    assert not [one for one in found if isinstance(one, Reply)]
    return [one for one in found if isinstance(one, CallError)]
