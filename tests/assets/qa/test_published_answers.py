"""Answers that a model gave elsewhere, scored as the page on questions says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.assets.qa.conftest import QaPipeline
from tests.dtef_pipeline.cli.commands import ok


def test_a_file_of_answers_is_scored_in_the_documented_steps(
    qa: QaPipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qa.add("gsm8k", Path("data/questions/gsm8k").absolute())
    assert qa.run(["qa_items"]).failures == ()
    items = qa.rows("qa_items")
    answers = [{"item_id": row["item_id"], "model": "mine", "text": f"#### {row['reference']}"} for row in items[:3]]
    answers[2]["text"] = "no idea"
    monkeypatch.chdir(tmp_path)
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers), encoding="utf-8")
    ok(
        "sql",
        "COPY (SELECT item_id, a.model, 'numeric' AS scorer, a.text AS response, reference, options "
        "FROM qa_items JOIN 'answers.jsonl' AS a USING (item_id) ORDER BY item_id) TO 'lines.jsonl'",
    )
    printed = ok("score", "--family", "qa", "lines.jsonl")
    assert [json.loads(line)["score"] for line in printed.splitlines()] == [1.0, 1.0, 0.0]
