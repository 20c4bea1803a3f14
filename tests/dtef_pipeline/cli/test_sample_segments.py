"""`--sample-segments S`: what is asked of whom, that more can be bought later, and what is said of it before and after."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.dtef_pipeline.cli.commands import CHOSEN, distribution, ok, query, run_stages, serve_as
from tests.fake_llm_server import FakeLLM
from tests.strict_json import strict


@pytest.fixture
def server(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    with FakeLLM(reply=lambda call: distribution(call, 40)) as running:
        serve_as(running, ingested, monkeypatch)
        yield running


def calls(*options: str) -> int:
    rows: list[dict[str, Any]] = strict(ok("run", "--estimate", "--round", "S1", "--model", "fake", *options, "--json"))
    return sum(row["calls"] for row in rows)


def test_both_draws_and_named_segments_choose_together(server: FakeLLM) -> None:
    run_stages("--round", "S1", *CHOSEN, "--model", "fake", "--questions", "8", "--sample-segments", "9")
    drawn = "draw_order < 8 AND segment_order < 9 AND segment IN ('country:brazil', 'country:germany')"
    wanted = query(f"SELECT segment, question_id FROM survey_responses WHERE {drawn} ORDER BY ALL")
    asked = query("SELECT DISTINCT segment, question_id FROM predictions WHERE model = 'fake' ORDER BY ALL")
    assert asked == wanted
    assert 0 < len(wanted) < 16


def test_the_error_to_expect_is_stated_before_anything_is_asked(server: FakeLLM) -> None:
    few = ok("run", "--estimate", "--round", "S1", "--model", "fake", "--sample-segments", "2")
    more = ok("run", "--estimate", "--round", "S1", "--model", "fake", "--sample-segments", "20")
    assert "32 of 412 pairs" in few
    errors = [float(re.search(r"(0\.\d+) of a difference", text)[1]) for text in (few, more)]  # type: ignore[index]
    assert errors[0] > errors[1] > 0
    assert "from scores of baselines" in few
    assert server.answered == 0
