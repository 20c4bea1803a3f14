"""The results of the documented command: each question with its scored answers, and averages per transcript."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dtef_pipeline.qa.item_files.item_log import FileAnswer
from dtef_pipeline.qa.model import QaItem, ScorerSettings
from dtef_pipeline.qa.socioscope.socioscope_results import SocioscopeResults, score_given_answers
from dtef_pipeline.qa.transcripts.corpus import Corpus
from tests.made.qa_items import KEEPER, LIGHTHOUSE
from tests.strict_json import strict

NETS = QaItem(
    "d02", "socioscope", "talks", "ListOne", "What did Bo mend?", reference='{"nets": 1, "sails": 0.5}', cluster="light.csv"
)
COLD = QaItem("d03", "socioscope", "talks", "Yes/No", "Was it cold?", reference="yes", cluster="ferry.csv")
ESSAY = QaItem("d04", "socioscope", "talks", "Essay", "Write.", reference="x", cluster="mill.csv")
ITEMS = (replace(KEEPER, cluster="light.csv"), NETS, COLD, ESSAY)
CORPUS = Corpus((LIGHTHOUSE,))
CONTEXT = ({"page_content": "They mended the nets."}, {"page_content": "It was cold."})


def answered(*answers: FileAnswer) -> SocioscopeResults:
    return SocioscopeResults(ITEMS, tuple(score_given_answers(ITEMS, answers, CORPUS, ScorerSettings())))


def answer(item: str, text: str | None, *citations: object, number: int = 0, context: tuple[object, ...] = ()) -> FileAnswer:
    return FileAnswer(item, number, text, f"run {number}", context, citations)


def quoting(index: object, quote: str) -> dict[str, object]:
    return {"source_index": index, "quote": quote}


class TestScores:
    def test_averages_are_those_worked_out_by_hand(self) -> None:
        """light.csv: 1 and the mean of 0.5 and 1; ferry.csv: 0; mill.csv: nothing is scored. Micro 1.75 / 3, macro (1.75 / 2 + 0) / 2.

        Answers in a file counted one by one, those of models by question, and both means were called micro.
        """
        results = answered(
            answer("d01", "Ada"),
            answer("d02", "the sails"),
            answer("d02", "the nets", number=1),
            answer("d03", "no"),
            answer("d04", "An essay."),
        )
        means = results.scores()
        assert means.micro.value == pytest.approx(1.75 / 3)
        assert means.macro.value == pytest.approx(1.75 / 4)
        assert {name: (one.n_scored, one.n_skipped) for name, one in means.transcripts.items()} == {
            "light.csv": (2, 0),
            "ferry.csv": (1, 0),
            "mill.csv": (0, 1),
        }
        assert means.transcripts["mill.csv"].value is None

    def test_an_item_without_evidence_goes_to_the_transcript_that_each_answer_names(self) -> None:
        """Each such question was a transcript of its own, whatever the `source` of its answers; without one it is of none."""
        free = replace(COLD, cluster=COLD.item_id)
        given = [FileAnswer("d03", 0, "yes", "a.csv"), FileAnswer("d03", 1, "no", "b.csv"), FileAnswer("d03", 2, "no", None)]
        given += [FileAnswer("d02", 0, "nets", "a.csv")]
        results = SocioscopeResults((free, NETS), tuple(score_given_answers((free, NETS), given, CORPUS, ScorerSettings())))
        scores = results.scores()
        means = {name: one.value for name, one in scores.transcripts.items()}
        assert means == {"a.csv": 1.0, "b.csv": 0.0, "light.csv": 1.0}
        assert (scores.without_transcript.value, scores.without_transcript.n_scored) == (0.0, 1)
        assert (scores.micro.value, scores.micro.n_scored) == (pytest.approx((1 / 3 + 1) / 2), 2)
        assert scores.macro.value == pytest.approx(2 / 3)
        assert [pair["transcript"] for pair in results.document()["qa_pairs"]] == [None, "light.csv"]
        of_one = SocioscopeResults((free,), results.answers[:1]).document()
        assert [pair["transcript"] for pair in of_one["qa_pairs"]] == ["a.csv"], "it was the question's own id"

    def test_a_question_without_answers_counts_nowhere(self) -> None:
        results = answered(answer("d01", "Ada"))
        assert list(results.scores().transcripts) == ["light.csv"]
        assert (results.scores().micro.n_scored, results.scores().micro.n_skipped) == (1, 0)
        assert results.existence().micro.n_skipped == 1

    def test_an_answer_to_no_question_of_the_file_is_left_out(self) -> None:
        assert answered(answer("d99", "Ada")).answers == ()

    def test_a_metric_that_cannot_be_read_is_unscorable_with_a_reason(self) -> None:
        wrong = replace(NETS, reference="{")
        (one,) = score_given_answers([wrong], [answer("d02", "nets")], CORPUS, ScorerSettings())
        assert (one.score.status, one.score.score, bool(one.score.reason)) == ("unscorable", None, True)

    def test_settings_reach_the_scorers(self) -> None:
        both = answer("d02", "sails and nets")
        scores = [
            score_given_answers([NETS], [both], CORPUS, settings)[0].score.score
            for settings in (ScorerSettings(), ScorerSettings(strict=True))
        ]
        assert scores == [0.5, 0.0]


class TestQuotations:
    def test_a_source_is_one_of_the_answers_own_context(self) -> None:
        (one,) = answered(
            answer("d02", "nets", quoting(0, "mended the nets"), quoting(1, "mended the nets"), context=CONTEXT)
        ).answers
        assert [(cited["exact"], cited["reason"]) for cited in one.citations] == [(1, None), (0, "found_elsewhere")]

    def test_without_a_context_it_is_a_transcript_by_its_place(self) -> None:
        (one,) = answered(answer("d01", "Ada", quoting(0, "Ada kept it"), quoting(1, "Ada kept it"))).answers
        assert [(cited["exact"], cited["reason"]) for cited in one.citations] == [(1, None), (0, "index_out_of_range")]

    def test_existence_is_pooled_over_the_answers_of_a_question(self) -> None:
        """[1, 1] and [0] are 2/3, not the mean of 1 and 0."""
        results = answered(
            answer("d02", "nets", quoting(0, "the nets"), quoting(1, "cold"), context=CONTEXT),
            answer("d02", "sails", quoting(0, "the sails"), number=1, context=CONTEXT),
            answer("d03", "yes"),
        )
        means = results.existence()
        assert (means.micro.value, means.micro.n_scored, means.micro.n_skipped) == (pytest.approx(2 / 3), 1, 1)


class TestDocument:
    def test_it_holds_every_question_with_its_answers_in_the_order_of_the_file(self) -> None:
        document = answered(
            answer("d03", "yes", quoting(1, "It was cold."), context=CONTEXT),
            answer("d01", None),
            answer("d01", "Bo", number=1),
        ).document()
        assert strict(json.dumps(document)) == document
        pairs = document["qa_pairs"]
        assert [(pair["id"], pair["transcript"], len(pair["answers"])) for pair in pairs] == [
            ("d01", "light.csv", 2),
            ("d02", "light.csv", 0),
            ("d03", "ferry.csv", 1),
            ("d04", "mill.csv", 0),
        ]
        assert pairs[0]["question"] == {
            "text": KEEPER.text,
            "type": "PickOne",
            "metric": '{"Ada": 1}',
            "options": ["Ada", "Bo"],
        }
        assert "options" not in pairs[1]["question"]
        assert [(one["answer"], one["status"], one["score"], one["source"]) for one in pairs[0]["answers"]] == [
            (None, "unparseable", 0.0, "run 0"),
            ("Bo", "ok", 0.0, "run 1"),
        ]
        assert pairs[2]["answers"][0]["citations"] == [
            {**quoting(1, "It was cold."), "exact": 1, "relaxed": 1, "reason": None, "source_index_written": None}
        ]
        assert (pairs[2]["existence_score"], pairs[0]["existence_score"]) == (1.0, None)
        averages = document["averages"]
        assert averages["score"] == {
            "micro": pytest.approx(0.5),
            "macro": 0.5,
            "n_transcripts": 2,
            "n": 2,
            "n_skipped": 0,
            "transcripts": {
                "light.csv": {"mean": 0.0, "n": 1, "n_skipped": 0},
                "ferry.csv": {"mean": 1.0, "n": 1, "n_skipped": 0},
            },
            "without_transcript": {"mean": None, "n": 0, "n_skipped": 0},
        }
        assert (averages["existence_score"]["micro"], averages["existence_score"]["n_skipped"]) == (1.0, 1)

    def test_what_stood_in_the_place_of_a_number_is_reported(self) -> None:
        """ "0" and 0.0 were null, and nobody could tell why they are no numbers of sources."""
        given = answer("d01", "Ada", *(quoting(index, "Ada") for index in ("0", 0.0, None, True, 0)), context=CONTEXT)
        (one,) = answered(given).document()["qa_pairs"][0]["answers"]
        told = [(cited["source_index"], cited["source_index_written"], cited["reason"]) for cited in one["citations"]]
        assert told == [(None, text, "bad_index") for text in ('"0"', "0.0", "null", "true")] + [(0, None, "not_found")]
