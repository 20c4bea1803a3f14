"""Which questions were asked as one block, within a round and over rounds, and the table that says so."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import duckdb
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.survey.answer_scales.batteries import assign_batteries, build_question_batteries, link_batteries
from dtef_pipeline.survey.model import Question
from dtef_pipeline.survey.tables import QUESTION_BATTERIES
from tests.made.scores import survey_rows

TRUST = ("Distrust", "Neither", "Trust")
AGREE = ("Agree", "Neutral", "Disagree")


def trust(whom: str) -> str:
    return f"To what extent, if at all, do you trust {whom} to do what is right?"


def found(*asked: tuple[str, Sequence[str]], **more: dict[int, str]) -> list[int]:
    """For each question the place of the first one of its battery."""
    questions = [
        Question(f"q{i}", text, tuple(options), **{name: of.get(i) for name, of in more.items()})
        for i, (text, options) in enumerate(asked)
    ]
    names = assign_batteries(questions)
    return [names.index(name) for name in names]


TWO_VIEWS = "taxes are much too high in general", "people should vote from age sixteen"
LONG = "the people who live next door to you and look after your children"


class TestOneRound:
    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ([(trust("judges"), TRUST), (trust("the police"), TRUST), ("How old are you?", ("Old", "Young"))], [0, 0, 2]),
            ([(trust("judges"), TRUST), (trust("the police"), ("Yes", "No", "Perhaps"))], [0, 1]),
            ([(f"Do you think that {what}?", ("Yes", "No")) for what in TWO_VIEWS], [0, 1]),
            (
                [(trust("judges"), TRUST), ("Are you well?", ("Yes", "No")), (trust(LONG), TRUST)],
                [0, 1, 2],
            ),
            ([(item, AGREE) for item in ("A romantic partner.", "A tutor or teacher", "Would you ever do that?")], [0, 0, 2]),
        ],
        ids=["neighbours of one stem", "other options", "a common phrase", "apart", "items of a list"],
    )
    def test_neighbours_over_one_scale_that_differ_in_one_part_are_a_battery(self, asked, expected):
        assert found(*asked) == expected

    def test_a_block_of_the_questionnaire_joins_and_its_end_parts(self):
        asked = [(text, AGREE) for text in ("Is it good?", "May it be sold?", "A teacher", "A judge")]
        blocks = {0: "Say of each:", 1: "Say of each:", 2: "Now on persons:", 3: "Now on persons:"}
        assert found(*asked) == [0, 1, 2, 2]
        assert found(*asked, block=blocks) == [0, 0, 2, 2]
        assert found(*asked[2:], block={0: "Of people:", 1: "Of machines:"}) == [0, 1]

    def test_a_question_that_is_asked_again_later_is_of_the_battery(self):
        between = "How old are you?", ("Old", "Young")
        assert found((trust("judges"), TRUST), (trust("the police"), TRUST), between, (trust("judges"), TRUST)) == [0, 0, 2, 0]
        again = "Please say how acceptable you find it to form a bond with pets:"
        block = {0: "Of each, please say how acceptable you find it to form a bond with:"}
        assert found(("Pets", AGREE), between, (again, AGREE), block=block) == [0, 1, 0]

    def test_what_the_survey_names_holds(self):
        asked = [(trust(whom), TRUST) for whom in ("judges", "the police", "doctors", "nurses")]
        assert found(*asked, battery={0: "B", 3: "B"}) == [0, 1, 1, 0]

    @given(
        st.lists(
            st.tuples(st.sampled_from([trust("judges"), trust("nurses"), "Why?", "A cat"]), st.sampled_from([TRUST, AGREE]))
        )
    )
    def test_every_question_is_in_one_battery_that_is_named_after_its_first(self, asked):
        questions = [Question(f"q{i}", text, options) for i, (text, options) in enumerate(asked)]
        names = assign_batteries(questions)
        assert len(names) == len(questions)
        assert all(names[names.index(name)] == f"rule:q{names.index(name)}" for name in names)


def frame(*rows: tuple[str, str, str, Sequence[str]]) -> pd.DataFrame:
    """Of round, battery, text and options."""
    table = pd.DataFrame(rows, columns=["round", "battery", "question_text", "options"])
    return table.assign(question_id=[f"q{i}" for i in range(len(table))])


def linked(*rows: tuple[str, str, str, Sequence[str]]) -> list[int]:
    names = list(link_batteries(frame(*rows)))
    return [names.index(name) for name in names]


class TestOverRounds:
    def test_batteries_that_share_a_question_are_one_over_rounds(self):
        assert linked(
            ("A", "x", trust("judges"), TRUST),
            ("A", "x", "Pets", AGREE),
            ("B", "x", trust("judges"), TRUST),
            ("B", "x", "Why?", AGREE),
        ) == [0, 0, 0, 0]

    @pytest.mark.parametrize(
        ("text", "options"),
        [
            (trust("your chatbot"), TRUST),
            (trust("your chatbot (eg ChatGPT)"), ("trust", "Neither (of both)", "Distrust")),
            (trust("your AI chatbot"), TRUST),
            (trust("your chatbot"), ("No trust", "Neither", "Trust")),
            (trust("your chatbot"), ("Much distrust", "Some distrust", "Neither", "Some trust", "Much trust")),
        ],
        ids=["equal", "brackets", "a word more", "half of the options", "regrouped options"],
    )
    def test_one_question_in_other_words_or_over_regrouped_options_is_linked(self, text, options):
        assert linked(("A", "1", trust("your chatbot"), TRUST), ("B", "2", text, options)) == [0, 0]

    @pytest.mark.parametrize(
        ("text", "options"),
        [
            ("Which of these comes closer to your own view?", ("Earn", "Give")),
            ("Do you agree on this?", AGREE),
            ("Agree", AGREE),
        ],
        ids=["a general text over other options", "short text in other words", "other text"],
    )
    def test_what_only_looks_alike_is_not_linked(self, text, options):
        first = text if text.startswith("Which") else "Do you agree?"
        assert linked(("A", "1", first, AGREE), ("B", "2", text, options)) == [0, 1]

    @given(st.data())
    def test_links_do_not_depend_on_the_order_of_rows_and_are_complete(self, data):
        texts = [*map(trust, ("judges", "nurses (eg yours)", "nurses", "all of your old nurses")), "Pets", "Why?"]
        row = st.tuples(
            st.sampled_from("AB"),
            st.sampled_from(["1", "2", "given:x"]),
            st.sampled_from(texts),
            st.sampled_from([TRUST, AGREE]),
        )
        rows = frame(*data.draw(st.lists(row, min_size=1, max_size=12)))
        names = link_batteries(rows)
        order = list(rows.index)
        random.Random(data.draw(st.integers(0, 9))).shuffle(order)
        assert link_batteries(rows.loc[order]).loc[rows.index].equals(names)
        assert (
            rows.groupby(["question_text", rows["options"].map(tuple)])["round"].transform(lambda of: names[of.index].nunique())
            == 1
        ).all()


SIZES = {  # those of two and more questions, of the JSON file and of the folder with its discussion guide
    "GD1": ([], []),
    "GD2": ([], []),
    "GD3": ([13, 7, 5, 5, 4, 2], [13, 7, 5, 5, 4, 2]),
    "GD4": ([13, 12, 10, 8, 7, 7, 6, 5, 5, 5, 2, 2, 2, 2, 2], [13, 12, 10, 8, 7, 7, 7, 5, 5, 5, 2, 2, 2, 2, 2]),
    "GD5": ([6, 5, 5, 3, 3, 3, 2, 2, 2], [6, 5, 5, 3, 3, 3, 2, 2, 2]),
}


@pytest.fixture
def rounds(published_surveys):
    return {r: [survey.questions for survey in both] for r, both in published_surveys.items()}


class TestPublishedRounds:
    """The batteries of GD1-GD5, as someone reads them off the questionnaires (docs/explanation/batteries.md)."""

    def test_sizes_are_those_that_were_looked_at(self, rounds):
        def sizes(questions: Sequence[Question]) -> list[int]:
            return sorted((size for size in Counter(assign_batteries(questions)).values() if size > 1), reverse=True)

        assert {r: tuple(map(sizes, both)) for r, both in rounds.items()} == SIZES

    def test_linked_over_rounds_no_battery_swallows_the_others(self, rounds):
        """The largest is that of trust: 13 questions of GD3 and of GD4 and 6 of GD5, which are 13 different ones."""
        rows = [
            (r, name, q.text, q.options)
            for r, (questions, _) in rounds.items()
            for q, name in zip(questions, assign_batteries(questions), strict=True)
        ]
        sizes = link_batteries(frame(*rows)).value_counts()
        assert len(rows) == 212
        assert len(sizes) == 63
        assert list(sizes.iloc[:4]) == [32, 19, 15, 12]


def of(battery: str, *texts: str, round_id: str = "S1") -> list[dict[str, Any]]:
    return [
        {"battery": battery, "question_text": text, "round": round_id, "question_id": f"{battery}{at}"}
        for at, text in enumerate(texts)
    ]


def test_the_table_has_one_row_for_each_question_of_a_round_with_its_linked_battery_and_why() -> None:
    """Who recomputed an interval had to link batteries himself."""
    rows = [*of("rule:a", "A judge", "The nurse"), *of("rule:b", "A judge", "Why?", round_id="S2"), *of("rule:c", "Where?")]
    with duckdb.connect() as connection:
        assert build_question_batteries(connection) == QUESTION_BATTERIES.empty_table()
        connection.register("survey_responses", survey_rows(*rows))
        found = build_question_batteries(connection).to_pylist()
    assert [(row["round"], row["question_id"], row["battery"]) for row in found] == [
        *(("S1", f"{battery}{at}", battery) for battery, at in (("rule:a", 0), ("rule:a", 1), ("rule:c", 0))),
        *(("S2", name, "rule:b") for name in ("rule:b0", "rule:b1")),
    ]
    linked = {row["question_text"]: (row["linked_battery"], row["reason"]) for row in found}
    assert linked["The nurse"] == linked["Why?"] == linked["A judge"]
    assert linked["A judge"][1].endswith("; questions asked in several rounds")
    assert linked["Where?"][1] == ""
    assert linked["Where?"][0] != linked["A judge"][0]


@pytest.mark.parametrize(
    ("battery", "texts", "expected"),
    [
        ("rule:a", ("Do you trust judges?", "Do you trust <nurses>?"), "same stem: “Do you trust …”"),
        ("rule:a", ("Judges act as they should?", "Nurses act as they should?"), "same stem: “… act as they should?”"),
        ("rule:a", ("A judge", "The nurse"), "items of one list with the same scale"),
        ("rule:a", ("Is it?", "Was it?"), "neighbouring questions with the same scale, or repeated later"),
        ("given:B", ("Is it?", "Was it?"), "named B by the survey"),
    ],
)
def test_it_says_why_questions_are_together(battery: str, texts: tuple[str, ...], expected: str) -> None:
    with duckdb.connect() as connection:
        connection.register("survey_responses", survey_rows(*of(battery, *texts)))
        assert build_question_batteries(connection)["reason"].to_pylist() == [expected, expected]
