"""What the gateway's tests share: models of the fake server, requests to them, and a gateway that does not wait long."""

from __future__ import annotations

import time
from typing import Any

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request
from resources.gateway import Gateway
from resources.gateway.breaker import BreakerRules
from resources.gateway.gateway import Outcome
from resources.gateway.retries import Backoff
from resources.responses.store import ResponseStore
from tests.fake_llm_server import FakeLLM, FaultPlan

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


def await_answers(server: FakeLLM, count: int) -> None:
    deadline = time.monotonic() + 60
    while server.answered < count and time.monotonic() < deadline:
        time.sleep(0.005)


def await_calls(server: FakeLLM, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(server.calls) < count and time.monotonic() < deadline:
        time.sleep(0.005)


def ask(store: ResponseStore, fault: FaultPlan, **settings: Any) -> tuple[Outcome, FakeLLM]:
    """One request to a server with a fault."""
    with FakeLLM(fault=fault) as server:
        return gateway(store).answer(requests(model(server, **settings))), server
