"""`dtef score`: JSON lines in, JSON lines out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dtef_pipeline.survey.scoring.score import score_lines
from dtef_pipeline.survey.tables import METRICS


def scored(**fields: Any) -> dict[str, Any]:
    (line,) = score_lines([json.dumps(fields)])
    assert not line.malformed, line.text
    found: dict[str, Any] = json.loads(line.text)
    return found


def test_options_let_labels_be_read_in_any_order() -> None:
    found = scored(response="No: 30%\nYes: 70%", expected=[70, 30], options=["Yes", "No"])
    assert found["predicted"] == pytest.approx([0.7, 0.3])
    assert found["score"] == pytest.approx(1)


def test_chosen_metric_is_the_score_and_a_distance_is_turned_round() -> None:
    assert scored(response="[50, 30, 20]", expected=[20, 30, 50], metric="emd")["score"] == pytest.approx(0.4)
    assert scored(response="[50, 30, 20]", expected=[20, 30, 50], metric="tv")["score"] == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("response", "status", "score"),
    [(None, "unparseable", 0), ("no idea", "unparseable", 0), ("[1, 1, 1]", "wrong_length", 0.1), ("Sorry.", "refused", 0)],
)
def test_unscored_responses_keep_their_status_and_have_no_metric(response: str, status: str, score: float) -> None:
    found = scored(response=response, expected=[40, 60])
    assert (found["status"], found["score"], found["predicted"]) == (status, score, None)
    assert all(found[name] is None for name in METRICS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"response": "[1, 1]"', "not JSON"),
        ("[1, 2]", "got list; allowed: a JSON object"),
        ('{"expected": [1, 1]}', "response is missing"),
        ('{"response": 3, "expected": [1, 1]}', "response: got int"),
        ('{"response": ""}', "expected: got nothing; allowed: a list of 2 or more"),
        ('{"response": "", "expected": [1]}', "expected: got [1]"),
        ('{"response": "", "expected": [-1, 2]}', "expected: got [-1, 2]"),
        ('{"response": "", "expected": [0, 0]}', "not all zero"),
        ('{"response": "", "expected": [true, 1]}', "expected: got [true, 1]"),
        ('{"response": "", "expected": ["1", 1]}', "expected: got"),
        ('{"response": "", "expected": [NaN, 1]}', "not JSON: NaN"),
        ('{"response": "", "expected": [1e999, 1]}', "too large"),
        (f'{{"response": "", "expected": [{10**400}, 1]}}', "too large"),
        ('{"response": "", "expected": [1e308, 1e308]}', "expected: got [1e+308, 1e+308]"),
        ('{"response": "", "expected": [1, 1], "metric": "kl"}', f"allowed: {', '.join(METRICS)}"),
        ('{"response": "", "expected": [1, 1], "metric": ["js"]}', "no metric"),
        ('{"response": "", "expected": [1, 1], "scale": "ratio"}', "allowed: ordinal, nominal"),
        ('{"response": "", "expected": [1, 1], "options": ["Yes"]}', "1 option for 2 expected values"),
        ('{"response": "", "expected": [1, 1], "options": "YN"}', "options: got"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_malformed_line_is_named_and_the_rest_goes_on(line: str, message: str) -> None:
    good = '{"response": "[1, 1]", "expected": [1, 1]}'
    first, second, third = score_lines([good, "  \n", line, good])
    assert (first.malformed, second.malformed, third.malformed) == (False, True, False)
    error = json.loads(second.text)
    assert error["line"] == 3
    assert message in error["error"]


def test_scales_and_odd_letters_of_labels_are_respected() -> None:
    assert scored(response="[5, 5]", expected=[40, 60], scale="nominal", metric="emd_normalized")["score"] is None
    assert scored(response="\ud800 [1, 2, 3]", expected=[1, 2, 3], options=["a", "\udfff", "c"])["score"] == pytest.approx(1)
    with_refusals = scored(response="[25, 15, 10, 50]", expected=[10, 15, 25, 50], options=["Bad", "Fair", "Good", "Refused"])
    assert with_refusals["emd_normalized"] == pytest.approx(0.7)


def test_what_came_before_the_input_broke_off_is_scored() -> None:
    def broken() -> Iterator[str]:
        yield from ['{"response": "[1, 1]", "expected": [1, 1]}'] * 5
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    scored_lines = []
    with pytest.raises(UnicodeDecodeError):
        scored_lines.extend(iter(score_lines(broken())))
    assert len(scored_lines) == 5


def test_first_line_is_answered_before_the_second_is_read() -> None:
    def endless() -> Iterator[str]:
        yield '{"response": "[1, 1]", "expected": [1, 1]}'
        pytest.fail("read on before the first line was answered")

    assert not next(score_lines(endless())).malformed
