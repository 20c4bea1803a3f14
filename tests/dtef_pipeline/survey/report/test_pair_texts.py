"""Prompts and responses inside the page: those that count, within a budget, whatever they say."""

from __future__ import annotations

import json
import re
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.survey.report.pairs import pairs
from tests.made.predictions import blueprints_of, predictions_of
from tests.made.scores import scores_table, survey_rows

HOSTILE = "</script><script>alert(1)</script>\u202e\u2028\x00 'x' <!--"


def page(scores: list[dict[str, Any]], responses: list[str], **given: Any) -> str:
    """The section of pairs, of a language model's predictions with these responses."""
    known = {"model": "gpt", "model_variant": "gpt[t=0]", "predicted": [0.5, 0.3, 0.2]}
    rows = scores_table([{**known, **row} for row in scores])
    texts = predictions_of(rows, responses)
    survey = survey_rows(*({"question_id": f"q{at}", "question_order": at} for at in range(3)))
    tables: dict[str, pa.Table] = {
        "scores": rows,
        "predictions": texts,
        "blueprints": blueprints_of(rows),
        "survey_responses": survey,
    }
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return pairs(connection, **given)


def texts_of(markup: str) -> dict[str, Any]:
    (data,) = re.findall(r'id="pair-text-data">(.*?)</script>', markup)
    found = json.loads(data)
    assert isinstance(found, dict)
    return found


def responses_of(data: dict[str, Any]) -> list[str]:
    return [data["pool"][row[1]] for rows in data["said"].values() for row in rows]


def test_the_texts_of_the_snapshot_that_counts_are_held_and_their_lines_once() -> None:
    markup = page([{"snapshot": "base"}, {"snapshot": "2026-01-02"}, {"question_id": "q1"}], ["old", "new", "other"])
    data = texts_of(markup)
    assert responses_of(data) == ["new", "other"]
    assert list(data["said"]) == ["0.0.0.0", "1.0.0.0"]
    assert [data["pool"][at] for at in data["prompts"][0]] == ["Be exact.", "Group: country:kenya", "", "q0?"]
    assert data["pool"].count("Be exact.") == 1
    assert "behind 2 of 2 predictions of language models.</p>" in markup


def test_texts_are_data_that_no_text_can_leave() -> None:
    markup = page([{"status": "unparseable", "reason": HOSTILE}], [HOSTILE])
    assert responses_of(texts_of(markup)) == [HOSTILE]
    assert "alert(1)" in markup
    assert "<script>alert" not in markup
    assert "<!--" not in markup


def test_the_texts_take_no_more_room_than_was_allowed_and_the_page_says_what_is_left_out() -> None:
    rows = [{"question_id": f"q{at}", "question_order": at, "draw": draw} for at in range(3) for draw in range(20)]
    responses = [f"{'words ' * 50}{at}" for at in range(len(rows))]
    for most in (2_000, 9_000):
        markup = page(rows, responses, most_text_bytes=most)
        data = texts_of(markup)
        assert 0 < len(responses_of(data)) < len(rows)
        assert len(json.dumps(data, separators=(",", ":"))) <= most
        assert f"behind {len(responses_of(data))} of {len(rows)} predictions of language models, in the order" in markup
        assert "dtef export responses" in markup
