"""Shared interviews, items and answers through the stages: a model that is honest, one that makes its quotations up, one asked elsewhere."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dtef_pipeline.qa.scoring import EXISTENCE, EXISTENCE_RELAXED
from tests.assets.qa.conftest import QaPipeline
from tests.dtef_pipeline.cli.commands import ok
from tests.made.qa_replies import INVENTIONS
from tests.made.shared_cases import shared


def expected_answer(question: dict[str, Any]) -> str:
    """What the metric gives the most for, as text."""
    metric = question["metric"]
    try:
        values = json.loads(metric)
    except ValueError:
        return str(metric)
    if isinstance(values, dict) and "rationale" in values:
        return f"{values['answer']}, {' and '.join(values['rationale'])}"
    best = sorted(values, key=lambda one: -values[one]) if isinstance(values, dict) else values
    return json.dumps(best) if "Many" in question["type"] else str(best[0])


def test_an_honest_model_is_believed_and_an_inventor_found_out(qa: QaPipeline) -> None:
    interviews = shared("transcripts")
    pairs = json.loads((interviews / "questions.json").read_text(encoding="utf-8"))["qa_pairs"]
    qa.players.evidence = {
        pair["question"]["text"]: (expected_answer(pair["question"]), tuple(pair["quotes"])) for pair in pairs
    }
    assert qa.add("socioscope", interviews / "questions.json", interviews) == ["socioscope/questions"]
    ran = qa.run(qa_responses={"models": ["honest", "inventor"]})
    assert ran.failures == ()
    assert qa.server.answered == 2 * len(pairs) == 84
    scores = qa.rows("qa_scores")
    existence = {
        model: [row["value"] for row in scores if row["model"] == model and row["metric"] == metric]
        for model in ("honest", "inventor")
        for metric in (EXISTENCE,)
    }
    cites = [value for value in existence["honest"] if value is not None]
    assert len(existence["honest"]) == len(existence["inventor"]) == 42
    assert set(cites) == {1.0}
    assert len(cites) >= 38, "BM25 shows the evidence of 95 % of the questions"
    assert set(existence["inventor"]) == {0.0}
    relaxed = [row["value"] for row in scores if row["model"] == "inventor" and row["metric"] == EXISTENCE_RELAXED]
    assert set(relaxed) == {0.0}

    # Who cites nothing has no score of existence, and says why.
    silent = [row for row in scores if row["model"] == "honest" and row["metric"] == EXISTENCE and row["value"] is None]
    assert {(row["status"], row["score"], row["reason"]) for row in silent} <= {("missing", None, "the response cites nothing")}

    citations = qa.rows("qa_citations")
    assert {(row["exact"], row["reason"]) for row in citations if row["model"] == "honest"} == {(True, None)}
    reasons = Counter(row["reason"] for row in citations if row["model"] == "inventor")
    assert reasons == qa.players.invented
    assert set(reasons) == set(INVENTIONS)

    # What the honest model answers is right wherever it was shown the evidence.
    graded = [row for row in scores if row["model"] == "honest" and row["metric"] == "score"]
    assert len(graded) == 42
    shown = {row["item_id"] for row in citations if row["model"] == "honest"}
    assert {row["item_id"] for row in graded if row["value"] == 1.0} >= shown


def test_mmlu_is_read_as_57_parts_in_one_run(qa: QaPipeline) -> None:
    keys = qa.add("mmlu", shared("benchmarks/mmlu"))
    assert len(keys) == 57
    ran = qa.run(["qa_items"])
    assert (ran.failures, len(ran.run_ids)) == ((), 1)
    items = qa.table("qa_items")
    assert len(items) == 1026
    assert set(Counter(items["part"].to_pylist()).values()) == {18}
    assert len(qa.table("qa_examples")) == 285
    # The options of items are texts, also where they say None.
    assert not any(option is None or option == "nan" for options in items["options"].to_pylist() for option in options)
    made = qa.instance.get_materialized_partitions(dg.AssetKey("qa_items"))
    assert set(made) == set(keys)


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
