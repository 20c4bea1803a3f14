"""A text that two questions share is bought once, and found again whatever is asked first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from assets.survey import predictor as module
from dtef_pipeline.identity import request_key
from resources.warehouse import Warehouse
from tests.assets.survey.predict_setup import LLM, UNIFORM, Answers, predict, put

KEY = "S1/country:kenya"
AGAIN = {"question_text": "How is it?", "duplicate_of": "q0"}
TEXTS = 2 * 2
"""Two texts at two context levels; four questions."""


@pytest.fixture
def house(tmp_path: Path) -> Warehouse:
    """Of four questions the first, the third and the fourth are the same."""
    warehouse = Warehouse(tmp_path / "wh")
    put(warehouse, KEY, {"question_text": "How is it?"}, {"question_text": "And why?"}, AGAIN, AGAIN)
    return warehouse


def as_before(house: Warehouse, answers: Answers) -> None:
    """What the software did before each text was asked once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "has_duplicates", lambda survey: False)
        predict(house, answers, [KEY], LLM)


def own_key(prompt_id: str) -> str:
    return request_key(prompt_id, LLM.variant, 0, "base")


def asked(answers: Answers) -> Sequence[str]:
    return [request.key for batch in answers.batches for request in batch]


def test_each_text_is_asked_once_and_every_question_has_its_answer(house: Warehouse) -> None:
    answers = Answers()
    rows = predict(house, answers, [KEY], LLM, UNIFORM)[KEY].to_pylist()
    assert len(asked(answers)) == len({(r.system, r.user) for batch in answers.batches for r in batch}) == TEXTS
    language = [row for row in rows if row["model"] == "m"]
    assert len(language) == 4 * 2
    assert {row["call_status"] for row in language} == {"answered"}
    assert len({row["prompt_id"] for row in language}) == 4 * 2
    assert {row["request_key"] for row in language} == set(answers.answered)


def test_questions_added_later_find_the_answer_of_the_first_run(house: Warehouse) -> None:
    answers = Answers()
    predict(house, answers, [KEY], LLM, questions=1)
    bought = set(answers.answered)
    rows = predict(house, answers, [KEY], LLM)[KEY].to_pylist()
    same = {row["request_key"] for row in rows if row["question_id"] != "q1"}
    assert same == bought


def test_an_answer_to_a_later_question_serves_the_earlier_ones(house: Warehouse) -> None:
    """As when one segment or one limited model was asked the other question before."""
    answers = Answers()
    as_before(house, answers)
    of_the_last = {r.key: r for r in answers.answered.values() if r.prompt_id in prompts_of(house, "q3")}
    answers.answered = dict(of_the_last)
    rows = predict(house, answers, [KEY], LLM)[KEY].to_pylist()
    assert {row["request_key"] for row in rows if row["question_id"] != "q1"} == set(of_the_last)


def test_answers_that_several_questions_have_of_their_own_stay(house: Warehouse) -> None:
    answers = Answers()
    as_before(house, answers)
    assert len(answers.answered) == 4 * 2
    answers.batches.clear()
    rows = predict(house, answers, [KEY], LLM)[KEY].to_pylist()
    assert all(row["request_key"] == own_key(row["prompt_id"]) for row in rows)
    assert set(asked(answers)) == set(answers.answered)


def test_rows_of_requests_that_are_made_no_more_are_replaced(house: Warehouse) -> None:
    """Their request failed; the question is served by another request now, and must not occur twice."""
    answers = Answers(refused=[own_key(prompt) for prompt in prompts_of(house, "q2") | prompts_of(house, "q3")])
    as_before(house, answers)
    rows = predict(house, answers, [KEY], LLM)[KEY].to_pylist()
    assert len(rows) == len({(row["question_id"], row["context_level"]) for row in rows}) == 4 * 2
    assert {row["call_status"] for row in rows} == {"answered"}


def prompts_of(house: Warehouse, question: str) -> set[str]:
    rows = house.read("blueprints", round="S1", segment="country:kenya").to_pylist()
    return {row["prompt_id"] for row in rows if row["question_id"] == question}
