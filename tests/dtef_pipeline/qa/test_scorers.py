"""Scorers by name and by type, those of other packages too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint

import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa import scorers
from dtef_pipeline.qa.metric import parse_metric
from dtef_pipeline.qa.model import ItemScore, ScoreResponse, ScorerSettings, WrittenResponse
from dtef_pipeline.qa.scorers import SCORER_OF_TYPE, find_lexicon_name, find_scorer, list_scorer_names, make_unscored_scorer
from tests.made.shared_cases import shared


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


def test_every_scorer_has_a_name_and_a_version() -> None:
    found = [find_scorer(name) for name in list_scorer_names()]
    assert [one.name for one in found if one] == list_scorer_names()
    assert all(one.version >= 1 for one in found if one)


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
