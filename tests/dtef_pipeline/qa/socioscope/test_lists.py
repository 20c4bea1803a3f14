"""ListOne and ListMany, beside a definition that tries every way in which values may be found."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.model import ItemScore, ScorerSettings
from dtef_pipeline.qa.socioscope.lists import ListMany, ListOne
from tests.dtef_pipeline.qa.socioscope.scored import score
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)
TRAVEL = {"car": 1, "bicycle": 0.5, "bus": 0}
SEA = {"oyster": 0.5, "seaweed": 0.3, "mussel": 0.2}
VOCABULARY = ("new", "york", "city", "car", "bus", "5", "72", "tide", "and")
ANSWERS = st.lists(st.sampled_from(VOCABULARY), max_size=9)
WEIGHTS = st.sampled_from((-0.5, 0.0, 0.2, 0.5, 1.0, 2.0))
METRICS = st.dictionaries(
    st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=3).map(" ".join), WEIGHTS, min_size=1, max_size=5
)
SYNONYMS = st.dictionaries(
    st.sampled_from(VOCABULARY), st.lists(st.sampled_from((*VOCABULARY, "york city")), max_size=3), max_size=4
)


class ByHand:
    """The values in a text, by the definition: of all names at all places the longest, then the leftmost, is taken, again and again."""

    def __init__(self, metric: dict[str, float], synonyms: dict[str, list[str]], answer: list[str]) -> None:
        owners: dict[tuple[str, ...], list[tuple[int, float, int]]] = {}
        for number, (value, weight) in enumerate(metric.items()):
            owners.setdefault(tuple(value.split()), []).append((0, -weight, number))
            for synonym in [] if value.isdigit() else synonyms.get(value, []):
                if not synonym.isdigit():
                    owners.setdefault(tuple(synonym.split()), []).append((2, -weight, number))
        self.mentions: list[tuple[int, int]] = []
        free = list(answer)
        while True:
            spans = [
                (start - end, start, end)
                for start, end in itertools.combinations(range(len(free) + 1), 2)
                if tuple(free[start:end]) in owners
            ]
            if not spans:
                break
            _, start, end = min(spans)
            self.mentions.append((start, min(owners[tuple(free[start:end])])[2]))
            free[start:end] = ["\0"] * (end - start)
        self.order = list(dict.fromkeys(number for _, number in sorted(self.mentions)))
        weights = list(metric.values())
        self.one = min(max(weights[self.order[0]], 0), 1) if self.order else 0.0
        self.raw = sum(weights[number] for number in self.order)
        self.most = sum(weight for weight in weights if weight > 0)


@given(METRICS, SYNONYMS, ANSWERS)
def test_lists_are_scored_as_by_hand(metric: dict[str, float], synonyms: dict[str, list[str]], answer: list[str]) -> None:
    settings, text = ScorerSettings(synonyms=synonyms), " ".join(answer)
    expected = ByHand(metric, synonyms, answer)
    one, many = score(ListOne(), text, metric, settings=settings), score(ListMany(), text, metric, settings=settings)
    if expected.most == 0:
        assert many.status == "unscorable"
    if not answer:
        assert one.flags == ("empty",)
        return
    assert one.value == pytest.approx(expected.one)
    assert ("multi" in one.flags) == (len(expected.order) > 1)
    if expected.most:
        assert many.details["raw"] == pytest.approx(expected.raw)
        assert many.value == pytest.approx(min(max(expected.raw / expected.most, 0), 1))


@pytest.mark.parametrize(
    ("metric", "answer", "value", "found"),
    [
        ({"bus": 1.0, "city bus": 0.5, "bus car new": 0.0}, "city bus", 0.5, ["city bus"]),
        ({"new": 0.2, "new york": 0.5, "york": 1.0, "york new new": 0.0}, "new york", 0.5, ["new york"]),
        ({"city tide": 0.2, "tide": 1.0, "tide bus bus": 0.0}, "by city tide", 0.2, ["city tide"]),
    ],
)
def test_a_name_that_the_text_only_begins_counts_nothing(
    metric: dict[str, float], answer: str, value: float, found: list[str]
) -> None:
    """The last word was taken for a name of three words, longer than the one of two that stands there."""
    for turned in (metric, dict(reversed(metric.items()))):
        one = score(ListOne(), answer, turned)
        assert (one.value, one.details["found"], one.flags) == (pytest.approx(value), found, ())


class TestListOne:
    @pytest.mark.parametrize(("answer", "value", "flags"), CASES["what_is_mentioned_first_counts"])
    def test_what_is_mentioned_first_counts(self, answer: str, value: float, flags: list[str]) -> None:
        found = score(ListOne(), answer, TRAVEL)
        assert (found.status, found.value, [*found.flags]) == ("ok", value, flags)

    @pytest.mark.parametrize("answer", ["", " ", None, "?!", "<think>car</think>", "🚗"])
    def test_an_answer_without_words_cannot_be_read(self, answer: str | None) -> None:
        found = score(ListOne(), answer, TRAVEL)
        assert (found.status, found.value, found.score, found.flags) == ("unparseable", None, 0, ("empty",))

    def test_several_values_count_nothing_where_it_is_strict(self) -> None:
        strict = ScorerSettings(strict=True, synonyms={})
        assert score(ListOne(), "car or bicycle", TRAVEL, settings=strict).value == 0
        assert score(ListOne(), "car, a car", TRAVEL, settings=strict).value == 1

    def test_numbers_are_compared_by_value(self) -> None:
        everything = ScorerSettings(wordnet_senses="all")
        for answer in ("five", "5", "5.0", "05", "about five of them", "5%"):
            assert score(ListOne(), answer, {"5": 1}, settings=ScorerSettings()).value == 1, answer
        for answer in ("5th", "15", "V", "fin", "-5", "5.5", "fifth", "five hundred", "55"):
            assert score(ListOne(), answer, {"5": 1}, settings=everything).value == 0, answer
        assert score(ListOne(), "There were 1,319 of them.", {"1319": 1, "319": 0}).flags == ()
        assert score(ListOne(), "one hundred fifty-seven thousand", {"157,000": 1}).value == 1

    def test_the_longest_name_uses_its_words_up(self) -> None:
        assert score(ListOne(), "York? New York", {"new york": 1, "york": 0.2}).flags == ("multi",)
        assert score(ListOne(), "New York", {"new york": 1, "york": 0.2}) == ItemScore(
            "ok", 1.0, "value", (), {"found": ["new york"]}
        )

    def test_own_names_come_before_aliases_and_those_before_synonyms(self) -> None:
        metric = [
            {"value": "doctor", "weight": 1, "aliases": ["medic"]},
            {"value": "physician", "weight": 0.4},
            {"value": "nurse", "weight": 0.1},
        ]
        settings = ScorerSettings(
            synonyms={"doctor": ["physician", "nurse"], "nurse": ["medic", "sister"], "physician": ["sister"]}
        )
        found = {
            answer: score(ListOne(), answer, metric, settings=settings) for answer in ("physician", "medic", "nurse", "sister")
        }
        assert {name: (one.value, one.read_by, one.flags) for name, one in found.items()} == {
            "physician": (0.4, "value", ()),
            "medic": (1, "alias", ()),
            "nurse": (0.1, "value", ()),
            "sister": (0.4, "synonym", ("ambiguous_synonym",)),
        }

    def test_two_spellings_of_one_value_are_one(self) -> None:
        metric = {"car": 0.5, "cars": 1}
        settings = ScorerSettings(synonyms={"car": ["auto"]})
        assert score(ListOne(), "a car and cars", metric, settings=settings) == ItemScore(
            "ok", 1.0, "value", (), {"found": ["cars"]}
        )
        assert score(ListOne(), "autos", metric, settings=settings).flags == ()

    def test_the_shipped_synonyms_count(self) -> None:
        assert score(ListOne(), "an automobile", TRAVEL, settings=ScorerSettings()).read_by == "synonym"
        assert score(ListOne(), "Seattle or so", {"Oregon": 1}, settings=ScorerSettings(wordnet_senses="all")).value == 0


class TestListMany:
    @pytest.mark.parametrize(("answer", "raw"), CASES["each_value_counts_once"])
    def test_each_value_counts_once(self, answer: str, raw: float) -> None:
        found = score(ListMany(), answer, SEA)
        assert (found.status, found.flags) == ("ok", ())
        assert found.details["raw"] == pytest.approx(raw)
        assert found.value == pytest.approx(raw)

    def test_a_share_of_what_the_metric_gives_at_most(self) -> None:
        assert score(ListMany(), "a1, b1", {"a1": 1, "b1": 1}).value == 1
        assert score(ListMany(), "good, wrong", {"good": 1, "wrong": -0.5}).value == pytest.approx(0.5)
        assert score(ListMany(), "wrong", {"good": 1, "wrong": -0.5}).value == 0
        assert score(ListMany(), "car", {"car": 1, "cars": 1}).value == 1

    def test_a_value_may_be_longer_than_an_item(self) -> None:
        metric = {"research and development": 1, "research": 0.2, "Appleton, Wisconsin": 1}
        found = score(
            ListMany(), "Appleton, Wisconsin; research & development", metric, settings=ScorerSettings(penalty=1, synonyms={})
        )
        assert found.details == {"raw": pytest.approx(1.2 - 1), "found": ["Appleton, Wisconsin", "research"]}
        assert score(ListMany(), "research and development", metric).details["found"] == ["research and development"]

    @pytest.mark.parametrize(("answer", "others"), CASES["the_penalty_is_taken_for_each_item_that_is_no_value"])
    def test_the_penalty_is_taken_for_each_item_that_is_no_value(self, answer: str, others: int) -> None:
        found = score(ListMany(), answer, SEA, settings=ScorerSettings(penalty=0.1, synonyms={}))
        assert found.details["raw"] == pytest.approx(0.5 - 0.1 * others)

    def test_nothing_that_is_worth_anything_cannot_be_scored(self) -> None:
        for metric in ({"car": 0}, {"car": -1}, "", {}):
            found = score(ListMany(), "car", metric)
            assert (found.status, found.value, found.score) == ("unscorable", None, None)
            assert found.reason

    def test_an_empty_answer_cannot_be_read(self) -> None:
        assert score(ListMany(), "[]", SEA).flags == ("empty",)
