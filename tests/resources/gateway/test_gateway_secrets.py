"""A key that is planted everywhere a server can send it back stays out of everything that is kept or shown."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.conftest import ROOT
from tests.fake_llm_server import Call, FakeLLM, Fault
from tests.resources.gateway.gateway_setup import KEY

RUN = """
    import logging, sys
    logging.basicConfig(level=logging.DEBUG)
    from resources.gateway.progress import ModelsProgress
    from resources.responses.store import ResponseStore
    from tests.resources.gateway.gateway_setup import QUICK, model, requests
    from resources.gateway import Gateway
    ways = [argument.split() for argument in sys.argv[3:]]
    specs = [model(None, name=name, model=name, transport=way, api_base=sys.argv[2], retries=1) for name, way in ways]
    wanted = [request for spec in specs for request in requests(spec, 12)]
    with ResponseStore(sys.argv[1]) as store:
        answers = Gateway(store, backoff=QUICK).answer(wanted, on_progress=ModelsProgress(print))
        print(answers)
        print(store.responses([request.key for request in wanted]).to_pylist())
"""
STATUSES = (400, 429, 500, 503, 401)


def echo(call: Call) -> Fault | None:
    """Every kind of refusal, each with the key in its message; some calls are answered."""
    number = int(call.user.split()[-1])
    if number % 6 == 5 or call.attempt > 2:
        return None
    # 401 ends the model, so it comes last.
    status = STATUSES[number % 4] if number < 10 else 401
    return Fault("status", status=status, message=f"the key {KEY} (Bearer {KEY}) is not for ?key={KEY}")


def test_a_key_is_in_no_output_no_log_and_no_store(tmp_path: Path) -> None:
    """Directly, and by both of litellm's ways to a server of one's own, which log and fail differently."""
    models = ["openai/m direct", "openai/o litellm", "hosted_vllm/n litellm"]
    with FakeLLM(fault=echo, reply=lambda call: f"<think>{KEY}</think>You sent {call.key}: [60, 40]") as server:
        command = [sys.executable, "-c", textwrap.dedent(RUN), str(tmp_path / "responses.sqlite"), server.base_url, *models]
        environ = {**os.environ, "M_KEY": KEY, "LITELLM_LOG": "DEBUG"}
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        assert {(call.body["model"], call.key) for call in server.calls} == {("m", KEY), ("n", KEY), ("o", KEY)}
    assert all(f"{model.split()[0]}: HTTP 401: the key [key]" in done.stdout for model in models)
    assert "You sent [key]: [60, 40]" in done.stdout
    assert KEY not in done.stdout
    assert KEY not in done.stderr
    for file in tmp_path.iterdir():
        assert KEY.encode() not in file.read_bytes(), file.name
