"""Names in words: of suites, parts and ways of asking."""

from __future__ import annotations

import pytest

from dtef_pipeline.qa.settings import ITEM_TEMPLATES, QaCondition
from dtef_pipeline.qa.site.qa_labels import (
    CHECK_WORDS,
    describe_watched_setting,
    format_metric,
    format_part_title,
    format_qa_condition,
    partition_words,
    rank_metric,
    ranked_metric_words,
    scorer_words,
)
from dtef_pipeline.qa.suites import QA_VALIDITY_CHECKS


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("letters", "letters"),
        ("plain", ""),
        ("cot,5-shot-turns,rotated-1", "step by step, 5 examples as turns, options rotated by 1"),
        ("parens,1-shot", "letters in brackets, 1 example"),
        ("bm25,10-chunks", "BM25, 10 passages"),
        ("bm25,1-chunks,country=Kenya", "BM25, 1 passage, country=Kenya"),
        ("", ""),
    ],
)
def test_ways_of_asking_are_words(condition: str, words: str) -> None:
    assert format_qa_condition(condition) == words


def test_every_template_and_check_has_words() -> None:
    assert all(
        format_qa_condition(str(QaCondition(template))) != template or template == "letters" for template in ITEM_TEMPLATES
    )
    assert set(CHECK_WORDS) == set(QA_VALIDITY_CHECKS)


def test_parts_and_metrics_are_words() -> None:
    assert [format_part_title(name) for name in ("college_physics", "all", "")] == ["College physics", "All", "(no name)"]
    assert format_metric("my_metric") == "my metric"
    assert sorted(["zeta", "judged", "correct"], key=rank_metric) == ["correct", "judged", "zeta"]


@pytest.mark.parametrize(
    ("measured_by", "words"),
    [
        ("numeric 2", "the number in the answer (version 2)"),
        ("code_execution 2, sandlock", "the tests of the program (version 2, sandlock)"),
        (
            "by type 3, lexicon wordnet-3.0/first/155b9d97508c",
            "rules for each type of question (version 3, synonyms of wordnet-3.0)",
        ),
        (
            "by type 3, reasons by judge 1, o3, rationale",
            "rules for each type of question (version 3, reasons by the judge o3 (rationale))",
        ),
        ("judge 1, o3[effort=low], accuracy+tone", "the judge o3[effort=low] (accuracy, tone)"),
        ("my_scorer 4", "my scorer (version 4)"),
        ("no scorer", "nothing, as no scorer fits the type"),
        ("o3[effort=low]", "o3[effort=low]"),
        ("", ""),
    ],
)
def test_scorers_are_words(measured_by: str, words: str) -> None:
    assert scorer_words(measured_by) == words


def test_partitions_and_metrics_of_votes_are_words() -> None:
    assert partition_words("demo-mmlu/kitchen_science") == "Demo MMLU, Kitchen science"
    assert partition_words("demo-mmlu") == "Demo MMLU"
    assert ranked_metric_words("mmlu: correct [letters, numeric 2]") == (
        "MMLU: correct answers, letters, by the number in the answer (version 2)"
    )
    assert ranked_metric_words("passed") == "programs that pass"
    assert describe_watched_setting("bm25,10-chunks, correct by numeric 2") == (
        "BM25, 10 passages, correct answers by the number in the answer (version 2)"
    )
    assert describe_watched_setting("asked") == "asked"
