"""What a server found for a part: kept by text, number of chunks, filter and server; one that only fails is given up on."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from assets.qa.lookups import LOOK_UPS_AT_ONCE, LookUpCache, open_retrieval_server
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.transcripts.retriever import Retrieval
from resources.settings import Settings
from resources.warehouse import Warehouse
from tests.json_server import answers, serving

PART = "socioscope/talks"


class Found:
    """A server that finds one chunk, named as what is looked up, and knows how many are waited for at a time."""

    def __init__(self) -> None:
        self.most = self.now = 0
        self._lock = threading.Lock()
        self._barrier = threading.Barrier(LOOK_UPS_AT_ONCE)

    def __call__(self, handler: BaseHTTPRequestHandler, received: dict[str, Any]) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        if received["question"].startswith("together"):
            self._barrier.wait(timeout=30)
        with self._lock:
            self.now -= 1
        metadata = {"FILE": received["question"], "YEAR": 2024}
        answers(200, {"context": [{"page_content": "It is so.", "metadata": metadata}] * 3})(handler, received)


def named(url: str, **more: str) -> Settings:
    return Settings.read_environment({"DTEF_SOCIOSCOPE_URL": url, **more})


def test_look_ups_are_made_some_at_a_time_and_found_again_in_whichever_order(tmp_path: Path) -> None:
    found = Found()
    texts = [f"together {n}" for n in range(2 * LOOK_UPS_AT_ONCE)]
    with serving(found) as server:
        settings = named(server.url, DTEF_SOCIOSCOPE_MODEL="openai:gpt-4o-mini")
        made = LookUpCache(Warehouse(tmp_path), PART).fetch_missing(settings, texts, 2, {"PROJECT": "A"})
    assert found.most <= LOOK_UPS_AT_ONCE
    assert sorted(one["question"] for one in server.received) == sorted(texts)
    assert {(one["k"], one["filter"]["PROJECT"], one["model"]) for one in server.received} == {(2, "A", "openai:gpt-4o-mini")}
    kept = LookUpCache(Warehouse(tmp_path), PART).find_cached(texts[::-1], 2, {"PROJECT": "A"})
    for text in texts:
        assert kept.retrieve(text, 2) == made.retrieve(text, 2)
        assert [source.metadata for source in kept.retrieve(text, 2).sources] == [{"FILE": text, "YEAR": 2024}] * 2


def test_what_differs_in_text_chunks_filter_or_server_is_looked_up_by_itself(tmp_path: Path) -> None:
    with serving(answers(200, {"context": []})) as server, serving(answers(200, {"context": []})) as other:
        for _ in range(2):
            for texts, k, where in ((["a"], 1, {}), (["a", "b", "a"], 1, {}), (["a"], 2, {}), (["a"], 1, {"YEAR": 2024})):
                LookUpCache(Warehouse(tmp_path), PART).fetch_missing(named(server.url), texts, k, where)
        assert len(server.received) == 4
        LookUpCache(Warehouse(tmp_path), PART).fetch_missing(named(other.url), ["a"], 1, {})
        assert len(other.received) == 1
        kept = LookUpCache(Warehouse(tmp_path), PART).find_cached(["a", "c"], 1, {})
        assert kept.retrieve("a", 1).problem is None
        assert "not looked up yet" in str(kept.retrieve("c", 1).problem)
        expected = LookUpCache(Warehouse(tmp_path), PART).list_expected(named(other.url), ["a", "b"], 1, {})
        assert expected.retrieve("a", 1).problem is None
        assert "not looked up yet" in str(expected.retrieve("b", 1).problem), "the other server has not been asked it"


def found_by(name: str) -> Any:
    return answers(200, {"context": [{"page_content": name, "metadata": {}}]})


def words(found: Retrieval) -> tuple[list[str], bool]:
    """What was found, and whether it failed."""
    return [source.page_content for source in found.sources], found.problem is not None


def test_what_a_server_found_outlives_the_failures_of_another_one(tmp_path: Path) -> None:
    """The failure of one server took the place of what another one had found."""

    def made(url: str) -> Retrieval:
        return LookUpCache(Warehouse(tmp_path), PART).fetch_missing(named(url), ["a"], 1, {}).retrieve("a", 1)

    with serving(found_by("one")) as one, serving(found_by("two")) as two, serving(answers(403)) as fails:
        assert [words(made(server.url)) for server in (one, two, one)] == [(["one"], False), (["two"], False), (["one"], False)]
        failed = made(fails.url)
        assert words(failed) == (["one"], True), "it stays what it was, and nobody is asked"
        assert LookUpCache(Warehouse(tmp_path), PART).find_cached(["a"], 1, {}).retrieve("a", 1) == failed
        assert words(made(two.url)) == (["two"], False)
        assert (len(one.received), len(two.received), len(fails.received)) == (2, 2, 1)
        assert words(LookUpCache(Warehouse(tmp_path), PART).find_cached(["a"], 1, {}).retrieve("a", 1)) == (["two"], False)


def test_a_server_that_only_fails_is_given_up_on_and_asked_again_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.qa.lookups.LOOK_UPS_BETWEEN_WRITINGS", 6)
    texts = [str(n) for n in range(6 + 8)]
    with serving(answers(403)) as server:
        made = LookUpCache(Warehouse(tmp_path), PART).fetch_missing(named(server.url), texts, 1, {})
        assert len(server.received) == 6
        problems = [str(made.retrieve(text, 1).problem) for text in texts]
        assert problems[0].endswith("answered 403")
        assert problems[-1].startswith("was not looked up: the 6 look-ups before it failed, ")
        server.behaviours = [answers(200, {"context": []})]
        again = LookUpCache(Warehouse(tmp_path), PART).fetch_missing(named(server.url), texts, 1, {})
        assert {again.retrieve(text, 1).problem for text in texts} == {None}


def test_what_cannot_be_read_is_looked_up_again(tmp_path: Path) -> None:
    with serving(answers(200, {"context": []})) as server:
        LookUpCache(Warehouse(tmp_path), PART).fetch_missing(named(server.url), ["a"], 1, {})
        (file,) = tmp_path.rglob("*.parquet")
        file.write_bytes(b"rubbish")
        LookUpCache(Warehouse(tmp_path), PART).fetch_missing(named(server.url), ["a"], 1, {})
        assert len(server.received) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "DTEF_SOCIOSCOPE_URL is not set"),
        ({"DTEF_SOCIOSCOPE_URL": "https://me:planted@h/x"}, "DTEF_SOCIOSCOPE_URL has a user name or a password in it"),
        ({"DTEF_SOCIOSCOPE_URL": "ftp://planted/x"}, "DTEF_SOCIOSCOPE_URL is not a web address"),
        (
            {"DTEF_SOCIOSCOPE_URL": "https://h/planted", "DTEF_SOCIOSCOPE_MODEL": "mini"},
            "model: got 'mini'; allowed: provider:name",
        ),
    ],
)
def test_a_server_that_cannot_be_asked_is_refused_without_its_address(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_retrieval_server(Settings.read_environment(given))
    assert said in str(caught.value)
    assert "planted" not in str(caught.value)
