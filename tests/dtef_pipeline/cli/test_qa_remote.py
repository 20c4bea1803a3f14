"""`--retriever remote`: a server finds the chunks. What it found is kept, what it did not is a failed row, and its secret is nowhere."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml

from assets.launch import materialize
from dtef_pipeline.cli.started_runs import dagster_instance
from resources.gateway.retries import Backoff
from resources.json_endpoint import SECRET_LEFT_OUT
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.warehouse import TABLES, Warehouse
from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.fake_llm_server import FakeLLM
from tests.json_server import Server, answers, serving
from tests.made.qa_replies import QaPlayers

SECRET = "sk-planted-look-up-27182818284"
FAR = "Bo mended the nets at dawn."
"""Stands in no document here."""
NAMES = ("calm", "flaky", "forbidden", "odd")
ASKING = ("--suite", "socioscope", "--retriever", "remote", "--judge", "none")


def text_of(name: str) -> str:
    return f"Who mended the {name} nets?"


class Interviews:
    """What the server does, by what it is asked: it fails twice, refuses, replies in another form, or finds two chunks."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, int]] = Counter()
        """By name of what is looked up, and number of chunks."""
        self.refuses = True
        self._lock = threading.Lock()

    def __call__(self, handler: BaseHTTPRequestHandler, received: dict[str, Any]) -> None:
        name = next(one for one in NAMES if text_of(one) == received["question"])
        with self._lock:
            self.asked[name, received["k"]] += 1
            times = self.asked[name, received["k"]]
        if name == "flaky" and times < 3:
            answers(503)(handler, received)
        elif name == "forbidden" and self.refuses:
            answers(403, {"detail": received["auth"]})(handler, received)
        elif name == "odd":
            answers(200, {"documents": [], "auth": received["auth"]})(handler, received)
        else:
            seen = {"page_content": f"{FAR} The key was {received['auth']}.", "metadata": {"FILE": "nets.csv", "NAME": name}}
            other = {"page_content": "Ada kept the light.", "metadata": {"FILE": "light.csv"}}
            answers(200, {"question": text_of(name), "context": [seen, other], "answer": None})(handler, received)


@pytest.fixture
def played(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, Interviews, FakeLLM]]:
    """Questions about interviews that a server has, and an honest model."""
    pairs = [
        {
            "id": name,
            "question": {"text": text_of(name), "type": "ListOne", "metric": '{"Bo": 1}'},
            "evidence": [{"file": "nets.csv", "turn": 0}],
            "quotes": [FAR],
        }
        for name in NAMES
    ]
    corpus = [{"page_content": FAR, "metadata": {"FILE": "nets.csv"}}]
    (state / "talks.json").write_text(json.dumps({"qa_pairs": pairs}), encoding="utf-8")
    (state / "corpus.json").write_text(json.dumps(corpus), encoding="utf-8")
    players = QaPlayers(evidence={text_of(name): ("Bo", (FAR,)) for name in NAMES})
    interviews = Interviews()
    monkeypatch.setattr("resources.json_endpoint.Backoff", lambda **_: Backoff(first=0.01, longest=0.1))
    with FakeLLM(reply=players.reply) as model, serving(interviews) as server:
        spec = {"model": "openai/honest", "api_base": model.base_url, "retries": 1}
        late = {**spec, "model": "openai/late"}
        (state / "models.yaml").write_text(yaml.safe_dump({"models": {"honest": spec, "late": late}}), encoding="utf-8")
        monkeypatch.setenv("DTEF_MODELS", str(state / "models.yaml"))
        ok("qa", "add", "socioscope", state / "talks.json", "--corpus", state / "corpus.json")
        yield server, interviews, model


def names_the_server(server: Server, patch: pytest.MonkeyPatch) -> str:
    """What may be told of it."""
    patch.setenv("DTEF_SOCIOSCOPE_URL", server.url)
    patch.setenv("DTEF_SOCIOSCOPE_AUTH", SECRET)
    return f"{server.url.partition('/evaluation')[0]}/..."


def rows(table: str, condition: str = "remote,10-chunks") -> dict[str, dict[str, Any]]:
    """The first row of each question, by its name."""
    found = Warehouse(Settings.from_environment().warehouse).read_or_empty(table).to_pylist()
    return {row["item_id"].rpartition("/")[2]: row for row in reversed(found) if row["condition"] == condition}


def test_what_a_server_finds_is_kept_and_what_it_does_not_is_a_failed_row_that_a_rerun_mends(
    played: tuple[Server, Interviews, FakeLLM], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, interviews, model = played
    assert "DTEF_SOCIOSCOPE_URL is not set" in refused("qa", "run", *ASKING, "--model", "honest")
    talks = ("qa", "socioscope", state / "talks.json", state / "corpus.json", "--retriever", "remote", "--model", "honest")
    assert "DTEF_SOCIOSCOPE_URL is not set" in refused(*talks)
    estimate = ("qa", "run", "--estimate", *ASKING, "--model", "honest", "--format", "json")
    before = dtef(*estimate)
    (state / "theirs.jsonl").write_text('{"id": "calm", "model": "they", "text": "Bo"}\n', encoding="utf-8")
    imported = refused(
        "responses", "import", "--suite", "socioscope", "--condition", "remote,10-chunks", state / "theirs.jsonl"
    )
    assert "1 question of" in imported
    assert "it was not looked up yet" in imported
    assert "not counted: 4 questions for which nothing was looked up yet; `dtef qa run" in before.stderr
    assert (server.received, model.answered) == ([], 0)

    where = names_the_server(server, monkeypatch)
    first = dtef("qa", "run", *ASKING, "--model", "honest", "--no-roll-ups")
    assert first.exit_code == 0, first.output
    form = f"{where} replied without a list of documents; allowed: {{question, context: [{{page_content, metadata}}], answer}}"
    told = f"2 look-ups of 4 failed, so that nobody was asked: {where} answered 403 (1); {form} (1); the same command looks up again"
    assert told in " ".join(first.stderr.split())
    assert interviews.asked == {("calm", 10): 1, ("flaky", 10): 3, ("forbidden", 10): 1, ("odd", 10): 1}
    assert {frozenset(received) for received in server.received} == {frozenset({"k", "filter", "question", "auth"})}
    assert {received["auth"] for received in server.received} == {SECRET}
    assert model.answered == 2

    assert {name: row["problem"] for name, row in rows("qa_context").items()} == {
        "calm": None,
        "flaky": None,
        "forbidden": f"{where} answered 403",
        "odd": form,
    }
    assert {name: len(row["messages"]) for name, row in rows("qa_prompts").items()} == {
        "calm": 2,
        "flaky": 2,
        "forbidden": 0,
        "odd": 0,
    }
    calm = rows("qa_context")["calm"]
    assert (calm["holds_quote"], calm["page_content"]) == (True, f"{FAR} The key was {SECRET_LEFT_OUT}.")
    assert rows("qa_retrieval") == {}
    failed = rows("qa_responses")["forbidden"]
    reason = f"was not asked, because the look-up of its sources failed: {where} answered 403"
    assert (failed["call_status"], failed["error"], failed["response"], failed["attempts"]) == ("error", reason, None, 0)
    scores = rows("qa_scores")
    assert {name: (row["status"], row["score"]) for name, row in scores.items() if name in ("forbidden", "odd")} == {
        "forbidden": ("error", None),
        "odd": ("error", None),
    }
    assert scores["forbidden"]["reason"] == reason
    assert {(row["exact"], row["reason"]) for row in rows("qa_citations").values()} == {(True, None)}
    with dagster_instance() as instance:
        assert materialize(instance, ["qa_board"], [], {}).failures == ()
    (board,) = [row for row in json.loads(ok("qa", "board", "--format", "json")) if row["metric"] == "score"]
    assert (board["n_items"], board["score"], board["coverage"]) == (2, 1.0, 0.5)

    monkeypatch.delenv("DTEF_SOCIOSCOPE_URL")
    interviews.asked.clear()
    second = dtef(*estimate)
    assert "not counted: 2 questions for which" in second.stderr
    (planned,) = json.loads(second.stdout)
    assert (planned["planned"], planned["replayed"], planned["calls"]) == (2, 2, 0)
    assert interviews.asked == {}

    names_the_server(server, monkeypatch)
    interviews.refuses = False
    prompt = rows("qa_prompts")["calm"]["prompt_id"]
    again = dtef("qa", "run", *ASKING, "--model", "honest", "--no-roll-ups")
    assert "1 look-up of 4 failed" in again.stderr
    assert interviews.asked == {("forbidden", 10): 1, ("odd", 10): 1}
    assert (model.answered, rows("qa_prompts")["calm"]["prompt_id"]) == (3, prompt)
    assert {name: row["status"] for name, row in rows("qa_scores").items()} == {
        "calm": "ok",
        "flaky": "ok",
        "forbidden": "ok",
        "odd": "error",
    }

    made = rows("qa_prompts")
    interviews.asked.clear()
    ok("qa", "run", *ASKING, "--model", "honest", "--k", "1", "--no-roll-ups")
    assert {k for _, k in interviews.asked} == {1}, "prompts of the other condition are made again of what was found"
    assert rows("qa_prompts") == made
    assert rows("qa_context")["odd"]["problem"] == form

    asked, answered = len(server.received), {name: row["call_status"] for name, row in rows("qa_responses").items()}
    scored = rows("qa_scores")
    with serving(answers(403)) as other:
        monkeypatch.setenv("DTEF_SOCIOSCOPE_URL", other.url)
        elsewhere = dtef("qa", "run", *ASKING, "--model", "honest", "--model", "late", "--no-roll-ups")
    assert "4 look-ups of 4 failed" in elsewhere.stderr
    assert rows("qa_prompts") == made
    found = Warehouse(Settings.from_environment().warehouse).read("qa_responses").to_pylist()
    of_model = {
        model: {
            row["item_id"].rpartition("/")[2]: row["call_status"]
            for row in found
            if (row["model"], row["condition"]) == (model, "remote,10-chunks")
        }
        for model in ("honest", "late")
    }
    assert of_model == {"honest": answered, "late": dict.fromkeys(answered, "error")}, "a failed look-up takes nothing away"
    assert {name: row["score"] for name, row in rows("qa_scores").items()} == {
        name: row["score"] for name, row in scored.items()
    }
    names_the_server(server, monkeypatch)
    ok("qa", "run", *ASKING, "--no-roll-ups")
    assert len(server.received) == asked + 1, "what the first server found is kept, and only `odd` is looked up again"

    ok("report", "--family", "qa", "--out", state / "pages")
    printed = "".join(result.output for result in (before, first, second, again))
    check_nowhere(state, printed, (SECRET, "s3cret", "/evaluation"))


def check_nowhere(state: Path, printed: str, planted: tuple[str, ...]) -> None:
    """No table, stored response, page, log or line holds any of these texts."""
    house = Warehouse(Settings.from_environment().warehouse)
    tables = {name: str(house.read_or_empty(name).to_pylist()) for name in TABLES}
    assert SECRET_LEFT_OUT in tables["qa_lookups"]
    with ResponseStore(Settings.from_environment().responses_url) as store:
        tables["responses"] = str([page.to_pylist() for page in store.pages()])
    files = [path for path in state.rglob("*") if path.is_file()]
    assert any(path.suffix == ".html" for path in files)
    for text in planted:
        assert text not in printed
        assert [name for name, rows in tables.items() if text in rows] == []
        assert [path for path in files if text.encode() in path.read_bytes()] == []
