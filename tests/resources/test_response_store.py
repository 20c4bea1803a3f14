from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.identity import digest
from dtef_pipeline.prediction.request import Response
from resources.response_store import RESPONSES, SCHEMA_VERSION, ResponseStore


def response(number: int, **changed: object) -> Response:
    one = Response(
        request_key=digest(number),
        prompt_id=digest("prompt", number),
        model="mini",
        model_variant="openai/mini[temperature=0]",
        draw=0,
        snapshot="base",
        text=f"[{number}]",
        finish_reason="stop",
        served_model="mini-2025",
        fingerprint="fp_1",
        prompt_tokens=10,
        completion_tokens=5,
        cost_usd=None,
        latency_s=0.25,
        attempts=1,
        answered_at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    )
    return replace(one, **changed)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path):  # type: ignore[no-untyped-def]
    with ResponseStore(tmp_path / "deep" / "er" / "responses.sqlite") as opened:
        yield opened


def keys(*numbers: int) -> list[str]:
    return [digest(number) for number in numbers]


def test_a_response_comes_back_as_it_was_in_the_order_of_the_keys(store: ResponseStore) -> None:
    kept = [response(1), response(2, text="ü\n😀", cost_usd=0.125, finish_reason=None, prompt_tokens=None), response(3)]
    store.add(kept)
    table = store.responses(keys(3, 9, 2, 3, 1))
    assert table.schema == RESPONSES
    assert table.to_pylist() == [asdict(kept[i]) for i in (2, 1, 0)]


def test_an_answer_is_never_written_over(store: ResponseStore) -> None:
    store.add([response(1, text="first")])
    store.add([response(1, text="second"), response(2)])
    assert store.responses(keys(1))["text"].to_pylist() == ["first"]
    assert store.count() == 2


def test_known_keys_are_those_with_an_answer_across_chunks(store: ResponseStore) -> None:
    store.add(response(number) for number in range(0, 12_000, 2))
    assert store.known(keys(*range(12_000))) == set(keys(*range(0, 12_000, 2)))
    assert store.responses(keys(*range(12_000))).num_rows == 6_000


def test_no_keys_and_no_responses_are_no_rows(store: ResponseStore) -> None:
    store.add([])
    assert store.known([]) == set()
    assert store.responses(keys(1)).schema == RESPONSES
    assert store.count() == 0


def test_text_no_database_takes_is_kept_with_replacement_characters(store: ResponseStore) -> None:
    store.add([response(1, text="a\0b\ud800c 😀")])
    assert store.responses(keys(1))["text"].to_pylist() == ["a\ufffdb\ufffdc 😀"]


def test_opened_again_it_has_what_was_committed(tmp_path: Path) -> None:
    for number in range(3):
        with ResponseStore(f"sqlite:///{tmp_path}/responses.sqlite") as store:
            store.add([response(number)])
            assert store.count() == number + 1


def test_threads_write_at_once(store: ResponseStore) -> None:
    def write(start: int) -> None:
        for number in range(start, start + 40):
            store.add([response(number)])

    threads = [threading.Thread(target=write, args=(20 * worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.count() == 140


def _fill(path: Path, start: int) -> None:
    with ResponseStore(path) as store:
        for number in range(start, start + 50):
            store.add([response(number)])


def test_processes_open_and_write_the_same_store_at_once(tmp_path: Path) -> None:
    path = tmp_path / "responses.sqlite"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_fill, args=(path, 25 * worker)) for worker in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    with ResponseStore(path) as store:
        assert store.count() == 100


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "responses.sqlite"
    ResponseStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE response_store SET schema_version = ?", (SCHEMA_VERSION + 1,))
    connection.commit()
    connection.close()
    with pytest.raises(WarehouseError, match=rf"newer dtef-pipeline \(schema version {SCHEMA_VERSION + 1}; this one knows"):
        ResponseStore(path)


def test_a_file_that_is_no_database_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to have a header " * 10)
    with pytest.raises(WarehouseError, match=r"cannot open the response store sqlite:///.*notes\.txt"):
        ResponseStore(path)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u:secret@h/db", "no support for 'mysql'; allowed: sqlite, postgresql"),
        ("sqlite://", "in memory forgets"),
        ("://", "not readable; expected a file"),
    ],
)
def test_an_unusable_url_is_a_config_error_without_its_password(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        ResponseStore(url)
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(WarehouseError, match=r"cannot open the response store postgresql\+psycopg://u:\*\*\*@") as caught:
        ResponseStore("postgresql://u:secret@127.0.0.1:1/db?connect_timeout=2")
    assert "secret" not in str(caught.value)
