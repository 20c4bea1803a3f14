"""A key that is planted everywhere a server can send it back stays out of everything that is kept or shown."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from resources.gateway import Gateway
from resources.gateway.litellm_module import load_litellm
from resources.gateway.progress import ModelsProgress
from resources.responses.store import ResponseStore
from tests.fake_llm_server import Call, FakeLLM, Fault
from tests.resources.gateway.gateway_setup import KEY, QUICK, model, requests

WAYS = [("openai/m", "direct"), ("openai/o", "litellm"), ("hosted_vllm/n", "litellm")]
"""Directly, and by both of litellm's ways to a server of one's own, which log and fail differently."""
STATUSES = (400, 429, 500, 503, 401)


def echo(call: Call) -> Fault | None:
    """Every kind of refusal, each with the key in its message; some calls are answered."""
    number = int(call.user.split()[-1])
    if number % 6 == 5 or call.attempt > 2:
        return None
    # 401 ends the model, so it comes last.
    status = STATUSES[number % 4] if number < 10 else 401
    return Fault("status", status=status, message=f"the key {KEY} (Bearer {KEY}) is not for ?key={KEY}")


def test_a_key_is_in_no_output_no_log_and_no_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("M_KEY", KEY)
    load_litellm.cache_clear()
    for name in ("", "LiteLLM", "LiteLLM Router", "httpx", "httpcore", "openai", "aiohttp"):
        caplog.set_level(logging.DEBUG, name)
    with (
        FakeLLM(fault=echo, reply=lambda call: f"<think>{KEY}</think>You sent {call.key}: [60, 40]") as server,
        ResponseStore(tmp_path / "responses.sqlite") as store,
    ):
        specs = [model(server, name=name, model=name, transport=way, retries=1) for name, way in WAYS]
        wanted = [request for spec in specs for request in requests(spec, 12)]
        print(Gateway(store, backoff=QUICK).answer(wanted, on_progress=ModelsProgress(print)))
        print(store.responses([request.key for request in wanted]).to_pylist())
        assert {(call.body["model"], call.key) for call in server.calls} == {("m", KEY), ("n", KEY), ("o", KEY)}
    shown = capfd.readouterr()
    assert all(f"{name}: HTTP 401: the key [key]" in shown.out for name, _ in WAYS)
    assert "You sent [key]: [60, 40]" in shown.out
    assert "this run sends it no more requests" in caplog.text
    assert KEY not in shown.out + shown.err + caplog.text
    for file in tmp_path.iterdir():
        assert KEY.encode() not in file.read_bytes(), file.name
