"""Scorers by name and by type, those of other packages too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa import scorers
from dtef_pipeline.qa.metric import parse_metric
from dtef_pipeline.qa.model import ItemError, ItemScore, ScoreResponse, ScorerSettings, WrittenResponse
from dtef_pipeline.qa.scorers import (
    SCORER_OF_TYPE,
    find_lexicon_name,
    find_scorer,
    list_scorer_names,
    make_unscored_scorer,
    read_answer_lines,
    score_answer_lines,
)
from tests.made.shared_cases import cases, cases_beside, shared
from tests.strict_json import strict


class Shouting:
    """A scorer of another package."""

    name = "shouting"
    version = 3

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreResponse:
        return lambda written: ItemScore("ok", float((written.text or "").isupper()))


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    points = [
        EntryPoint("shouting", f"{__name__}:Shouting", scorers.SCORER_GROUP),
        EntryPoint("broken", "no.such.module:Scorer", scorers.SCORER_GROUP),
        EntryPoint("yes_no", "no.such.module:Scorer", scorers.SCORER_GROUP),
    ]
    monkeypatch.setattr(scorers, "entry_points", lambda group: points)
    monkeypatch.setattr(EntryPoint, "load", lambda self: Shouting if self.name == "shouting" else __import__("no_such_module"))
    _forget()
    yield
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    scorers._find_added_scorers.cache_clear()
    scorers._load_scorer.cache_clear()


@pytest.mark.parametrize(("kind", "name"), SCORER_OF_TYPE.items())
def test_a_type_is_matched_whatever_its_case_and_outer_spaces(kind: str, name: str) -> None:
    for spelled in (kind, f"  {kind.upper()}\n", kind.lower(), name):
        found = find_scorer(spelled)
        assert found is not None
        assert found.name == name


@pytest.mark.parametrize("unknown", ["Essay", "", "yes_noo", "Yes / No"])
def test_a_type_that_nothing_scores_has_no_score(unknown: str) -> None:
    assert find_scorer(unknown) is None
    found = make_unscored_scorer(unknown)(WrittenResponse("yes"))
    assert (found.status, found.value, found.score, found.flags) == ("no_scorer", None, None, ())
    assert "PickMany" in (found.reason or "")


def test_scores_by_synonyms_say_by_which() -> None:
    settings = ScorerSettings(synonyms={})
    using = {name for name in list_scorer_names() if (one := find_scorer(name)) and find_lexicon_name(one, settings)}
    assert using == {"list_one", "list_many", "yes_no_rationale"}


@pytest.mark.usefixtures("added")
class TestAdded:
    def test_a_scorer_of_another_package_is_found(self) -> None:
        found = find_scorer("shouting")
        assert found is not None
        assert found.prepare_item("", (), ScorerSettings())(WrittenResponse("YES")).value == 1
        assert list_scorer_names()[-2:] == ["broken", "shouting"]

    def test_one_that_cannot_be_loaded_is_named(self) -> None:
        with pytest.raises(ConfigError, match="the scorer broken of an unknown package cannot be loaded: ModuleNotFoundError"):
            find_scorer("broken")

    def test_none_takes_the_place_of_ours(self) -> None:
        found = find_scorer("yes_no")
        assert type(found).__name__ == "YesNo"


def ideal_answer(kind: str, metric: str) -> str:
    """What an answer that knows the metric would say."""
    if kind == "Yes/No with Rationale":
        found = json.loads(metric)
        return f"{found['answer']}, because of {' and '.join(found['rationale'])}"
    values = parse_metric(metric)
    return ", ".join(value.text for value in values) if kind.endswith("Many") else max(values, key=lambda one: one.weight).text


def test_an_ideal_answer_to_each_shared_question_has_the_whole_score() -> None:
    pairs = json.loads(shared("transcripts/questions.json").read_text(encoding="utf-8"))["qa_pairs"]
    scores = {}
    for pair in pairs:
        asked = pair["question"]
        scorer = find_scorer(asked["type"])
        assert scorer is not None
        ready = scorer.prepare_item(asked["metric"], asked.get("options", ()), ScorerSettings())
        text = ideal_answer(asked["type"], asked["metric"])
        scores[pair["id"]] = [
            ready(WrittenResponse(answer)).value for answer in (text, f"<think>No.</think>\n**{text}.**", text.upper())
        ]
    assert len(scores) == 42
    assert {name: found for name, found in scores.items() if found != pytest.approx([1, 1, 1])} == {}


CASES = cases_beside(__file__)
LINE: dict[str, Any] = {"scorer": "list_one", "response": "by car", "reference": {"car": 1, "bike": 0.5}, "synonyms": {}}


def scored(*items: Any) -> list[dict[str, Any]]:
    lines = [item if isinstance(item, str) else json.dumps(item) for item in items]
    return [strict(line) for line in score_answer_lines(read_answer_lines(lines, "answers.jsonl"))]


def test_the_published_vectors() -> None:
    found = cases("transcripts", "score")
    assert len(found) >= 46
    assert [case["id"] for case in found if not as_published(case)] == []


def as_published(case: dict[str, Any]) -> bool:
    try:
        (found,) = scored(case["in"])
    except ItemError:
        return case["out"] == {"error": True}
    wanted = case["out"]
    return {name: found.get(name, "not there") for name in wanted} == {
        name: pytest.approx(value, abs=case.get("tol") or 1e-9) if isinstance(value, float) else value
        for name, value in wanted.items()
    }


def test_a_line_keeps_what_it_had_and_gets_its_score() -> None:
    assert scored({**LINE, "id": 7, "score": "old"}) == [
        {
            **LINE,
            "id": 7,
            "status": "ok",
            "value": 1.0,
            "score": 1.0,
            "read_by": "value",
            "flags": [],
            "reason": None,
            "found": ["car"],
        }
    ]


def test_the_order_is_kept_and_blank_lines_are_passed_over() -> None:
    found = scored({**LINE, "id": 1}, "\n", {**LINE, "id": 2, "scorer": "Essay"}, {**LINE, "id": 3, "response": None})
    assert [(one["id"], one["status"], one["score"]) for one in found] == [
        (1, "ok", 1),
        (2, "no_scorer", None),
        (3, "unparseable", 0),
    ]


def test_a_reference_is_text_or_json() -> None:
    for reference in ({"car": 1}, '{"car": 1}', ["car"], "car", '"car"'):
        assert scored({**LINE, "reference": reference})[0]["score"] == 1
    assert scored({**LINE, "scorer": "Yes/No", "response": "Yes", "reference": True})[0]["score"] == 1
    assert scored({**LINE, "response": "five", "reference": 5})[0]["score"] == 1
    assert scored({**LINE, "reference": None})[0]["status"] == "unscorable"


def test_settings_are_those_of_the_line() -> None:
    found = scored(
        {**LINE, "response": "bike or car"},
        {**LINE, "response": "bike or car", "strict": True},
        {**LINE, "response": "auto"},
        {**LINE, "response": "auto", "synonyms": {"car": ["auto"]}},
        {**LINE, "response": "auto", "synonyms": None, "wordnet_senses": "all"},
        {**LINE, "scorer": "list_many", "response": "car, train", "penalty": 0.3},
    )
    assert [one["score"] for one in found] == pytest.approx([0.5, 0, 0, 1, 1, 0.7 / 1.5])


@pytest.mark.parametrize(
    ("line", "message"),
    [*CASES["a_line_that_is_not_usable_is_named_before_anything_is_scored"], ("[" * 100_000, "nested too deeply|not JSON")],
)
def test_a_line_that_is_not_usable_is_named_before_anything_is_scored(line: Any, message: str) -> None:
    with pytest.raises(ItemError, match=message) as refused:
        scored(LINE, {**LINE, **line} if isinstance(line, dict) else line)
    assert str(refused.value).startswith("answers.jsonl:2: ")
    assert len(str(refused.value)) < 700


def test_callers_bring_scorers_of_the_outside_world() -> None:
    line = json.dumps({"scorer": "code_execution", "response": "pass", "task": "HumanEval/4"})
    read = read_answer_lines(
        [line], "x", {"code_execution": lambda item: lambda written: ItemScore("ok", 1.0, details={"ran": item["task"]})}
    )
    (found,) = map(strict, score_answer_lines(read))
    assert (found["score"], found["ran"]) == (1, "HumanEval/4")
    with pytest.raises(ItemError, match=r"got 'judge'; allowed: .*yes_no_rationale, .*code_execution"):
        read_answer_lines(
            [json.dumps({**LINE, "scorer": "judge"})], "x", {"code_execution": lambda item: lambda written: ItemScore("ok")}
        )


def test_lines_of_one_reference_and_one_setting_share_what_scores_them() -> None:
    lines = [json.dumps(one) for one in (LINE, {**LINE, "id": 2}, {**LINE, "strict": True}, {**LINE, "reference": "car"})]
    first, second, strict_one, other = read_answer_lines(lines, "x")
    assert first.score is second.score
    assert len({id(one.score) for one in (first, strict_one, other)}) == 3


@given(
    st.text(st.characters(exclude_categories=())),
    st.sampled_from(["list_one", "list_many", "Yes/No", "pick_one", "pick_many", "yes_no_rationale", "Essay"]),
)
def test_any_response_has_a_line_of_strict_json(response: str, scorer: str) -> None:
    metrics = {"Yes/No": "no", "yes_no_rationale": {"answer": "no", "rationale": {"car": 1}}}
    reference = metrics.get(scorer, {"car": 1, "bike": -0.5})
    (found,) = scored({**LINE, "response": response, "scorer": scorer, "options": ["car", "bike"], "reference": reference})
    assert found["score"] is None or 0 <= found["score"] <= 1
