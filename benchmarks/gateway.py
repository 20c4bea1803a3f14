"""Throughput of the gateway against a bare `asyncio.gather` over `litellm.acompletion` at the same concurrency.

Both ask the same local server, a process of its own, in alternating rounds; the gateway commits every answer to an SQLite file.
Prints answers per second of both, and the median of the rounds' ratios. Run: `python benchmarks/gateway.py [REQUESTS] [ROUNDS]`.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request
from resources.gateway import Gateway
from resources.gateway.litellm_module import load_litellm
from resources.responses.store import ResponseStore

ROOT = Path(__file__).resolve().parent.parent
CONCURRENCY = 32
LATENCY_S = 0.05


@contextmanager
def server() -> Iterator[str]:
    """The base URL of a server with a steady latency."""
    command = [sys.executable, "-m", "tests.fake_llm_server", "--latency", str(LATENCY_S)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["base_url"]
    finally:
        process.terminate()
        process.wait()


def requests(base_url: str, count: int, snapshot: str) -> list[Request]:
    """Requests with prompts of about a page, as they are in a campaign."""
    spec = ModelSpec(name="m", model="openai/m", api_base=base_url, max_concurrency=CONCURRENCY)
    page = "They answered: strongly agree 20.1 %, agree 40.2 %, disagree 30.3 %, strongly disagree 9.4 %.\n" * 30
    return [Request(f"prompt-{i}", "Answer in percent.", f"{page}{snapshot} {i}", spec, 0, snapshot) for i in range(count)]


def bare(asked: list[Request]) -> float:
    """Seconds of a plain gather. It keeps nothing, tries nothing again, and reports nothing."""
    litellm = load_litellm()

    async def ask_all() -> None:
        slots = asyncio.Semaphore(CONCURRENCY)

        async def ask(request: Request) -> object:
            messages = [{"role": "system", "content": request.system}, {"role": "user", "content": request.user}]
            async with slots:
                return await litellm.acompletion(
                    model=request.model.model,
                    messages=messages,
                    api_base=request.model.api_base,
                    api_key="none",
                    temperature=0,
                    max_tokens=256,
                )

        await asyncio.gather(*(ask(request) for request in asked))

    started = time.perf_counter()
    asyncio.run(ask_all())
    return time.perf_counter() - started


def through_gateway(asked: list[Request], folder: Path) -> float:
    """Seconds until every answer is committed."""
    with ResponseStore(folder / "responses.sqlite") as store:
        started = time.perf_counter()
        answers = Gateway(store).answer(asked)
        seconds = time.perf_counter() - started
    assert answers.asked == len(asked)
    assert not answers.failures
    return seconds


def main() -> None:
    count, rounds = [int(word) for word in (*sys.argv[1:3], "1500", "5")][:2] if len(sys.argv) != 2 else (int(sys.argv[1]), 5)
    ratios = []
    with server() as base_url, tempfile.TemporaryDirectory() as folder:
        bare(requests(base_url, 100, "warm-up"))
        through_gateway(requests(base_url, 100, "warm-up"), Path(folder))
        for number in range(rounds):
            plain = bare(requests(base_url, count, f"bare-{number}"))
            ours = through_gateway(requests(base_url, count, f"gateway-{number}"), Path(folder))
            ratios.append(plain / ours)
            print(f"gather {count / plain:5.0f} answers/s, gateway {count / ours:5.0f} answers/s, ratio {ratios[-1]:.2f}")
    print(
        f"{count} requests, {CONCURRENCY} at once, {LATENCY_S * 1000:.0f} ms each: median ratio {statistics.median(ratios):.2f}"
    )


if __name__ == "__main__":
    main()
