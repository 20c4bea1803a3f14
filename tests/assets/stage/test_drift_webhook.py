"""The sensor that posts verdicts on drift: each change arrives once, however often sending fails, and no secret is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster._utils.error import serializable_error_info_from_exc_info

from assets.stage.drift_webhook import build_message, drift_webhook
from assets.stage.resources import Store
from dtef_pipeline.drift.verdict_tables import DRIFT
from dtef_pipeline.errors import ConfigError
from resources.json_posts import PostFailure
from tests.json_server import answers, serving

NIGHT = {"shared_verdict": "watch", "shared_shift": -0.08, "shared_first_snapshot": "2026-03-07"}


def row(verdict: str | None, **values: Any) -> dict[str, Any]:
    usual: dict[str, Any] = dict.fromkeys(DRIFT.names)
    usual |= {"family": "qa", "model": "m", "model_variant": "v", "setting": "context 0", "latest_snapshot": "2026-03-08"}
    usual |= {"shift": -0.1, "shift_low": -0.2, "shift_high": -0.05, "first_snapshot": "2026-03-07"}
    return {**usual, "verdict": verdict, "gap": 0.1, "reason": "0.5000 in a, 0.6000 in b", **values}


def store(*rows: dict[str, Any]) -> None:
    Store().warehouse.write("drift", pa.Table.from_pylist(rows, DRIFT), family="qa")


def tick(cursor: str | None = None) -> Any:
    return drift_webhook(dg.build_sensor_context(cursor=cursor, resources={"store": Store()}))


@pytest.mark.parametrize(
    ("before", "after", "is_news"),
    [
        ([], [row("drift")], True),
        ([], [row("watch")], False),
        ([], [row("none")], False),
        ([row("drift")], [row("drift", shift=-0.3)], False),
        ([row("drift")], [row("none")], True),
        ([row("drift")], [row(None)], True),
        ([row("drift")], [row("drift"), row("drift", setting="context 5")], True),
        ([], [row("watch", **NIGHT)], True),
        ([row("drift")], [row("drift", **NIGHT)], True),
    ],
)
def test_changed_verdicts_are_sent_once(
    state: Path, monkeypatch: pytest.MonkeyPatch, before: list[dict[str, Any]], after: list[dict[str, Any]], is_news: bool
) -> None:
    with serving(answers(200)) as receiver:
        monkeypatch.setenv("DTEF_WEBHOOK", receiver.url)
        store(*before)
        first = tick()
        store(*after)
        second = tick(first.cursor)
        assert len(receiver.received) == bool(before) + is_news
        assert tick(second.cursor).cursor == second.cursor
        assert len(receiver.received) == bool(before) + is_news


def test_watch_is_sent_if_the_panel_says_so(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (state / "panel.yaml").write_text("drift: {notify: [watch, drift]}\n", encoding="utf-8")
    store(row("watch"))
    with serving(answers(200)) as receiver:
        monkeypatch.setenv("DTEF_WEBHOOK", receiver.url)
        monkeypatch.setenv("DTEF_PANEL", str(state / "panel.yaml"))
        tick()
    assert [series["verdict"] for series in receiver.received[0]["series"]] == ["watch"]


def test_a_tick_fails_without_the_secret_while_the_receiver_refuses_and_the_next_one_sends_it(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(row("drift"))
    with serving(answers(400), answers(200)) as receiver:
        monkeypatch.setenv("DTEF_WEBHOOK", receiver.url)
        with pytest.raises(PostFailure, match="answered 400") as refused:
            tick()
        tick()
    assert "s3cret" in receiver.url
    assert "s3cret" not in serializable_error_info_from_exc_info(refused._excinfo).to_string()  # type: ignore[arg-type]
    first, second = receiver.received
    assert first == second
    with pytest.raises(PostFailure, match="ConnectError") as down:  # it is closed
        tick()
    assert "s3cret" not in serializable_error_info_from_exc_info(down._excinfo).to_string()  # type: ignore[arg-type]


def test_without_an_address_nothing_is_sent(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(row("drift"))
    monkeypatch.delenv("DTEF_WEBHOOK", raising=False)
    assert isinstance(tick(), dg.SkipReason)
    monkeypatch.setenv("DTEF_WEBHOOK", "ftp://x/s3cret")
    with pytest.raises(ConfigError, match="DTEF_WEBHOOK is not a web address") as error:
        tick()
    assert "s3cret" not in str(error.value)


def test_the_message_is_json_with_the_documented_fields() -> None:
    changes = [{"kind": "parse_rate", "snapshot": "2026-03-07", "before": "parsed 98.0 %", "after": "parsed 60.0 %"}]
    rows = [row("drift", changes=changes, judges_note="the judge moved by -0.20"), row(None, setting="context 5", shift=None)]
    message = json.loads(json.dumps(build_message(rows), allow_nan=False))
    first, second = message["text"].splitlines()
    assert first.startswith(
        "drift: qa, m, context 0: down by 0.1000 (-0.2000 to -0.0500) since 2026-03-07; the judge moved by -0.20"
    )
    assert second.startswith("not compared: qa, m, context 5: ")
    documented = "family model model_variant setting latest_snapshot verdict shared_verdict shift shift_low shift_high first_snapshot changes"
    assert message["series"][0] == {name: rows[0][name] for name in documented.split()}
    assert build_message([row("drift")] * 12)["text"].splitlines()[-1] == "and 2 more series"
