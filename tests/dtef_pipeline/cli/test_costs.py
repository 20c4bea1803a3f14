"""What was asked of models and what it cost: one rule for the summary of a run, `dtef costs` and the table `costs`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dtef_pipeline.cli.commands import CHOSEN, distribution, ok, query, refused, serve_as
from tests.fake_llm_server import Call, FakeLLM, Fault
from tests.strict_json import strict


@pytest.mark.usefixtures("without_site")
def test_the_summary_the_command_and_the_table_agree(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(call: Call) -> Fault | None:
        return Fault("status", status=400, message="too long") if "hospital" in call.user else None

    with FakeLLM(reply=lambda call: distribution(call, 40), fault=fault) as server:
        serve_as(server, ingested, monkeypatch, input_price=1.0, output_price=2.0)
        printed = ok("run", "--round", "S1", *CHOSEN, "--model", "fake", "--questions", "4", "--context", "0", "--context", "2")
    (row,) = strict(ok("costs", "--family", "survey", "--json"))
    assert row["answered"] == server.answered
    assert row["answered"] + row["failed"] == 2 * 2 * 4
    tokens = row["prompt_tokens"] + row["completion_tokens"]
    assert row["cost_usd"] == pytest.approx((row["prompt_tokens"] + 2 * row["completion_tokens"]) / 1e6)
    assert (
        f"sent as candidate: {row['answered'] + row['failed']} calls, {tokens:,} tokens, ${row['cost_usd']:,.4f}\n" in printed
    )
    assert f"  fake: {row['failed']} calls failed" in printed
    (table,) = query("SELECT sum(answered)::INT AS answered, sum(failed)::INT AS failed, sum(cost_usd) AS usd FROM costs")
    assert (table["answered"], table["failed"]) == (row["answered"], row["failed"])
    assert table["usd"] == pytest.approx(row["cost_usd"])
    for view in ("round", "segment", "snapshot", "condition"):
        rows = strict(ok("costs", "--family", "survey", "--by", view, "--json"))
        assert sum(one["cost_usd"] for one in rows) == pytest.approx(row["cost_usd"])
    assert len(strict(ok("costs", "--family", "survey", "--by", "segment", "--by", "model", "--json"))) == 2


def test_snapshots_and_rounds_can_be_chosen(reading: Path) -> None:
    rows = strict(ok("costs", "--family", "survey", "--by", "snapshot", "--json"))
    assert [(row["snapshot"], row["answered"]) for row in rows] == [("2026-01-01", 12), ("2026-01-03", 12)]
    (night,) = strict(ok("costs", "--family", "survey", "--snapshot", "2026-01-03", "--json"))
    assert night["answered"] == 12
    assert "no costs of snapshot base; there are: 2026-01-01, 2026-01-03" in refused(
        "costs", "--family", "survey", "--snapshot", "base"
    )
