"""Two conditions in one run, and their comparison on `dtef board --by conditions`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dtef_pipeline.cli.commands import CHOSEN, distribution, ok, query, refused, run_stages, serve_as
from tests.fake_llm_server import Call, FakeLLM
from tests.strict_json import strict

PLAIN, COT = "distribution/attribute-label", "distribution/attribute-label+cot"


def reply(call: Call) -> str:
    """Far off, and nearer after reasoning."""
    if "DISTRIBUTION:" in str(call.body["messages"]):
        return f"Let me think.\nDISTRIBUTION: {distribution(call, 40.0)}"
    return distribution(call, 97.0)


def test_two_conditions_of_one_run_are_compared(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeLLM(reply=reply) as server:
        serve_as(server, ingested, monkeypatch, input_price=1.0, output_price=2.0)
        conditions = ("--condition", "distribution", "--condition", "distribution+cot")
        run_stages("--round", "S1", *CHOSEN, *conditions, "--model", "fake", "--questions", "2")
        assert server.answered == 2 * 2 * 2
    (row,) = strict(ok("board", "--by", "conditions", "--json"))
    assert (row["model"], row["condition"], row["first_condition"], row["n_pairs"]) == ("fake", COT, PLAIN, 4)
    assert row["difference"] == pytest.approx(row["score"] - row["first_score"])
    assert (row["verdict"], row["low"], row["parse_rate"]) == ("undecided", None, 1)
    usd = query(f"SELECT sum(cost_usd) AS usd FROM predictions WHERE condition = '{COT}'")[0]["usd"]
    assert row["cost_usd"] == pytest.approx(usd)
    (reversed_row,) = strict(ok("board", "--by", "conditions", "--condition", COT, "--json"))
    assert (reversed_row["condition"], reversed_row["difference"]) == (PLAIN, pytest.approx(-row["difference"]))
    printed = ok("board", "--by", "conditions")
    assert COT in printed
    assert "2 batteries, at least 5 are needed" in printed
    assert printed.splitlines()[-1] == "Columns: dtef explain survey/conditions"


def test_scores_of_one_condition_alone_are_refused_with_the_command_that_makes_another(reading: Path) -> None:
    assert "`dtef run --condition distribution --condition distribution+cot`" in refused("board", "--by", "conditions")
