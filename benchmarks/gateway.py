"""Throughput of the gateway against a bare `asyncio.gather` over `litellm.acompletion` at the same concurrency.

Both ask the same local server, a process of its own, in alternating rounds. The gateway has everything on: claims, budgets of calls, tokens
and dollars, retries, and an SQLite file (or `--store URL`) to which each response is committed. It asks the server directly, as it asks every
`openai/` model with an address, and by litellm. Prints responses per second of the clock and milliseconds of processor per response, the
ratios to the bare gather, round by round and the best, and the peak memory.

    python -m benchmarks.gateway [--requests 3000] [--rounds 3] [--concurrency 100] [--latency 0.05] [--store URL] [--only direct]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import Request
from resources.gateway import Gateway
from resources.gateway.litellm_module import load_litellm
from resources.responses.store import ResponseStore

ROOT = Path(__file__).resolve().parent.parent
LIMITS = Budget(max_calls=10_000_000, max_tokens=10**12, max_cost_usd=1e9)


class Speed(NamedTuple):
    """Of one round."""

    responses: int
    wall_s: float
    processor_s: float

    def __str__(self) -> str:
        return f"{self.responses / self.wall_s:5.0f}/s ({1000 * self.processor_s / self.responses:.2f} ms)"


def serve(latency: float) -> None:
    """Answer every chat completion after a pause, as quickly as a server in Python can: it must not be what is measured."""
    from aiohttp import web

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        await asyncio.sleep(latency)
        message = {"role": "assistant", "content": "[40.0, 30.0, 20.0, 10.0]"}
        usage = {"prompt_tokens": 700, "completion_tokens": 12, "total_tokens": 712}
        choices = [{"index": 0, "finish_reason": "stop", "message": message}]
        answer = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": choices,
            "usage": usage,
        }
        return web.json_response(answer)

    async def run() -> None:
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        print(json.dumps({"base_url": f"http://127.0.0.1:{runner.addresses[0][1]}/v1"}), flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


@contextmanager
def server(latency: float) -> Iterator[str]:
    """The base URL of a server with a steady latency."""
    command = [sys.executable, "-m", "benchmarks.gateway", "--serve", "--latency", str(latency)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["base_url"]
    finally:
        process.kill()
        process.wait()


def requests(spec: ModelSpec, count: int, snapshot: str) -> list[Request]:
    """Requests with prompts of about a page, as they are in a campaign."""
    page = "They answered: strongly agree 20.1 %, agree 40.2 %, disagree 30.3 %, strongly disagree 9.4 %.\n" * 30
    return [Request(f"prompt-{i}", "Answer in percent.", f"{page}{snapshot} {i}", spec, 0, snapshot) for i in range(count)]


def timed(work: Callable[[], object], responses: int) -> Speed:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Speed(responses, time.perf_counter() - wall, time.process_time() - processor)


def bare(asked: list[Request]) -> None:
    """A plain gather. It keeps nothing, tries nothing again, and reports nothing."""
    litellm = load_litellm()

    async def ask_all() -> None:
        slots = asyncio.Semaphore(asked[0].model.max_concurrency)

        async def ask(request: Request) -> object:
            messages = [{"role": "system", "content": request.system}, {"role": "user", "content": request.user}]
            arguments: dict[str, Any] = {"temperature": 0, "max_tokens": 256, "api_key": "none"}
            async with slots:
                return await litellm.acompletion(
                    model=request.model.model, messages=messages, api_base=request.model.api_base, **arguments
                )

        await asyncio.gather(*(ask(request) for request in asked))

    asyncio.run(ask_all())


def through_gateway(asked: list[Request], store: ResponseStore) -> None:
    """Until every response is committed."""
    answers = Gateway(store, budget=LIMITS).answer(asked)
    assert answers.n_sent == len(asked)
    assert not answers.failures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=100)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds")
    parser.add_argument("--store", help="URL of a response store; by default an SQLite file")
    parser.add_argument("--only", choices=["bare", "direct", "litellm"], help="one of the ways, as for its peak memory")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return serve(given.latency)
    with server(given.latency) as base_url, tempfile.TemporaryDirectory() as folder:
        settings = {"model": "openai/m", "api_base": base_url, "max_concurrency": given.concurrency}
        prices = {"input_price": 1, "output_price": 2}
        direct = ModelSpec.model_validate({"name": "m", **settings, **prices})
        by_litellm = ModelSpec.model_validate({"name": "m", **settings, **prices, "transport": "litellm"})
        run = time.strftime("%H%M%S")
        with ResponseStore(given.store or f"{folder}/responses.sqlite") as store:
            through = partial(through_gateway, store=store)
            ways = {"bare": (bare, by_litellm), "direct": (through, direct), "litellm": (through, by_litellm)}
            measure(given.requests, given.rounds, {given.only: ways[given.only]} if given.only else ways, run)
    print(f"{given.requests} requests, {given.concurrency} at once, {given.latency * 1000:.0f} ms each")
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")
    return None


def measure(count: int, rounds: int, ways: dict[str, tuple[Callable[[list[Request]], None], ModelSpec]], run: str) -> None:
    """Warm every way up, then time all in turn, round by round; ratios are those to the first."""
    best: dict[str, list[float]] = {}
    for number in range(-1, rounds):
        found = {}
        for name, (work, spec) in ways.items():
            asked = requests(spec, 200 if number < 0 else count, f"{run} {name} {number}")
            found[name] = timed(partial(work, asked), len(asked))
        if number >= 0:
            yardstick = next(iter(found.values())).wall_s
            ratios = {name: yardstick / speed.wall_s for name, speed in found.items()}
            print("; ".join(f"{name} {speed}, ratio {ratios[name]:.2f}" for name, speed in found.items()), flush=True)
            for name, ratio in ratios.items():
                best.setdefault(name, []).append(ratio)
    print("; ".join(f"{name}: best ratio {max(all_ratios):.2f}" for name, all_ratios in best.items()))


if __name__ == "__main__":
    main()
