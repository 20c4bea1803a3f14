"""`dtef responses`: what the store holds, and how responses move between machines."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dtef_pipeline.asking.request import Response
from dtef_pipeline.identity import digest, request_key
from resources.responses.store import ResponseStore
from tests.dtef_pipeline.cli.commands import ok, refused
from tests.strict_json import strict


def keep(folder: Path, model: str, snapshot: str, cost: float | None) -> Response:
    prompt, variant = digest("prompt", model, snapshot, cost), f"openai/{model}"
    key, when = request_key(prompt, variant, 0, snapshot), datetime(2026, 1, 2, tzinfo=UTC)
    kept = Response(key, prompt, model, variant, 0, snapshot, "[50, 50]", "stop", None, None, 10, None, cost, 0.5, 1, when)
    with ResponseStore(folder / "responses.sqlite") as store:
        store.add([kept])
    return kept


@pytest.fixture
def kept(state: Path) -> list[Response]:
    given = [("mini", "base", 0.25), ("mini", "base", None), ("mini", "night", 0.5), ("maxi", "night", None)]
    return [keep(state, *one) for one in given]


class TestShow:
    def test_each_model_and_snapshot_has_a_line_and_unknown_costs_are_counted(self, kept: list[Response]) -> None:
        rows = strict(ok("responses", "--json"))
        found = [(row["model"], row["snapshot"], row["responses"], row["cost_usd"], row["unpriced"]) for row in rows]
        assert found == [
            ("maxi", "night", 1, None, 1),
            ("mini", "base", 2, pytest.approx(0.25), 1),
            ("mini", "night", 1, pytest.approx(0.5), 0),
        ]
        assert [(row["prompt_tokens"], row["completion_tokens"]) for row in rows] == [(10, None), (20, None), (10, None)]
        printed = ok("responses")
        assert "4 responses, 0." in printed
        assert "responses.sqlite" in printed
        assert printed.endswith("Columns: dtef explain responses\n")

    def test_an_empty_store_says_so_and_nothing_is_forgotten_unasked(self, state: Path) -> None:
        assert "0 responses, " in ok("responses")
        assert ok("responses", "--json").strip() == "[]"
        assert "--empty, --truncated" in refused("responses", "--forget")


class TestForgetting:
    def test_what_would_be_forgotten_is_listed_and_only_then_forgotten(self, kept: list[Response], state: Path) -> None:
        listed = ok("responses", "--snapshot", "base", "--model", "mini")
        assert "2 responses, " in listed
        assert "4 responses" in ok("responses")
        assert "2 responses removed" in ok("responses", "--snapshot", "base", "--model", "mini", "--forget")
        shown = ok("responses")
        assert "2 responses, " in shown
        assert "2 responses removed before, at a known cost of $0.2500" in shown

    def test_days_are_those_of_utc(self, kept: list[Response], state: Path) -> None:
        assert "4 responses, " in ok("responses", "--since", "2026-01-02", "--before", "2026-01-03")
        assert "no such responses" in ok("responses", "--since", "2026-01-02T00:01")


class TestMoving:
    def test_responses_move_between_machines(self, kept: list[Response], state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = state / "moved.jsonl.gz"
        assert ok("export", "responses", file).startswith(f"{file}: 4 responses of sqlite:///")
        monkeypatch.setenv("DTEF_RESPONSES", str(state / "other.sqlite"))
        assert f"4 responses added from {file}, 0 stored before" in ok("import", "responses", file)
        assert f"0 responses added from {file}, 4 stored before" in ok("import", "responses", file)
        with ResponseStore(state / "other.sqlite") as store:
            assert store.find_known_keys(one.request_key for one in kept) == {one.request_key for one in kept}

    def test_a_model_and_a_snapshot_can_be_chosen(self, kept: list[Response], state: Path) -> None:
        file = state / "some.jsonl"
        assert "1 response of" in ok("export", "responses", file, "--model", "mini", "--model", "maxi2", "--snapshot", "night")
        assert json.loads(file.read_text(encoding="utf-8"))["request_key"] == kept[2].request_key

    def test_a_choice_of_nothing_says_what_there_is_and_leaves_the_file(self, kept: list[Response], state: Path) -> None:
        file = state / "some.jsonl"
        file.write_text("mine", encoding="utf-8")
        message = refused("export", "responses", file, "--model", "mimi")
        assert "has no responses that match; it has maxi in night, mini in base, mini in night" in message
        assert file.read_text(encoding="utf-8") == "mine"
