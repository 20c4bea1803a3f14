"""Labels for people: suites, parts, conditions, metrics and checks of the qa family."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from dtef_pipeline.text.number_words import format_count

METRICS_FIRST = ("correct", "passed", "score", "judged", "existence", "existence_relaxed")
"""Metrics in the order shown; others follow by name."""
_SUITE_TITLES = {"mmlu": "MMLU", "gsm8k": "GSM8K", "humaneval": "HumanEval", "socioscope": "Socioscope"}
_WAY_WORDS = {
    "letters": "letters",
    "parens": "letters in brackets",
    "cot": "step by step",
    "plain": "",
    "bm25": "BM25",
    "remote": "passages of a server",
}
_METRIC_WORDS = {
    "correct": ("correct answers", "Share of correct answers"),
    "passed": ("programs that pass", "Share of programs that pass their tests"),
    "score": ("score", "Mean score of the answers"),
    "judged": ("judged", "Mean score that judges give"),
    "existence": ("exact quotations", "Share of quotations found exactly"),
    "existence_relaxed": ("quotations", "Share of quotations found apart from case, marks and white space"),
}
CHECK_WORDS = {
    "position_bias": "Order of the options moves the mean",
    "judge_against_numeric": "Judge disagrees with the number",
    "self_judged": "Judged by a model of the same maker",
    "judge_failures": "Judgements that failed",
    "length_and_semantic": "Longer answers score higher",
}
_SCORER_WORDS = {
    "exact_choice": "the option that was chosen",
    "numeric": "the number in the answer",
    "code_execution": "the tests of the program",
    "verbatim": "a search for each quotation in the passages",
    "by type": "rules for each type of question",
    "no scorer": "nothing, as no scorer fits the type",
}
_SCORER = re.compile(r"(by type|[a-z_]+) ([0-9]+)\Z")
_WAY_OF_ANSWERING = re.compile(r"(.*), (\w+) by (.*)")
_METRIC_OF_SUITE = re.compile(r"(.+?): (\w+) \[(.*)\]")


def format_suite_title(name: str) -> str:
    """Format `mmlu` as MMLU, `demo-mmlu` as Demo MMLU; other names are unchanged."""
    pieces = name.split("-")
    if not {*pieces} & {*_SUITE_TITLES}:
        return name
    title = " ".join(_SUITE_TITLES.get(piece, piece) for piece in pieces)
    return f"{title[:1].upper()}{title[1:]}"


def format_part_title(name: str) -> str:
    """Format `college_physics` as College physics."""
    words = name.replace("_", " ").strip()
    return f"{words[:1].upper()}{words[1:]}" or "(no name)"


@cache
def format_qa_condition(condition: str) -> str:
    """Format `cot,5-shot,rotated-1` as step by step, 5 examples, options rotated by 1; the plain way is empty."""
    return ", ".join(filter(None, (_format_piece(piece) for piece in condition.split(","))))


def _format_piece(piece: str) -> str:
    if match := re.fullmatch(r"([0-9]{1,6})-(shot|chunks)(-turns)?", piece):
        number, unit, turns = match.groups()
        return format_count(int(number), "example" if unit == "shot" else "passage") + (" as turns" if turns else "")
    if match := re.fullmatch(r"rotated-([0-9])", piece):
        return f"options rotated by {match[1]}"
    return _WAY_WORDS.get(piece, piece)


def format_metric(metric: str) -> str:
    """Return the name of a metric on a board."""
    return _METRIC_WORDS[metric][0] if metric in _METRIC_WORDS else metric.replace("_", " ")


def measure_words(metric: str) -> str:
    """Describe a score of a metric, with its range."""
    meaning = _METRIC_WORDS[metric][1] if metric in _METRIC_WORDS else f"Mean {format_metric(metric)}"
    return f"{meaning}, 0-1, higher is better"


def rank_metric(metric: str) -> tuple[int, str]:
    """Return the place of a metric among others."""
    return METRICS_FIRST.index(metric) if metric in METRICS_FIRST else len(METRICS_FIRST), metric


def format_board_title(suite: str, condition: str, metric: str) -> str:
    """Format a board as `MMLU, letters` or `GSM8K: judged`; the usual metrics are not named."""
    words = ", ".join(filter(None, (format_suite_title(suite), format_qa_condition(condition))))
    return words if metric in ("correct", "passed", "score") else f"{words}: {format_metric(metric)}"


@cache
def scorer_words(measured_by: str) -> str:
    """Format `numeric 2` as the number in the answer (version 2), `judge 3, o3, accuracy+tone` as the judge o3 (accuracy, tone).

    A lexicon is named only; the rest of it identifies a reading. Others are unchanged.
    """
    head, _, reader = measured_by.partition(", reasons by ")
    scorer, *details = head.split(", ")
    match = _SCORER.match(scorer)
    if match is None:
        return _SCORER_WORDS.get(scorer, measured_by)
    if match[1] == "judge":
        judge, *evaluators = details or ["that is not known"]
        return f"the judge {judge}" + (f" ({', '.join(', '.join(evaluators).split('+'))})" if evaluators else "")
    notes = [re.sub(r"^lexicon ([^/]*).*", r"synonyms of \1", words) for words in details]
    notes = [f"version {match[2]}", *notes, *([f"reasons by {scorer_words(reader)}"] if reader else [])]
    return f"{_SCORER_WORDS.get(match[1], match[1].replace('_', ' '))} ({', '.join(notes)})"


WORDS: Mapping[str, Callable[[str], str]] = {
    "suite": format_suite_title,
    "part": lambda part: "" if part == "all" else format_part_title(part),
    "condition": format_qa_condition,
    "metric": format_metric,
    "measured_by": scorer_words,
}
"""By column, the function that formats its values for people."""


def partition_words(key: str) -> str:
    """Format the partition `demo-mmlu/kitchen_science` as `Demo MMLU, Kitchen science`, a suite as `Demo MMLU`."""
    suite, _, part = key.partition("/")
    return f"{format_suite_title(suite)}, {format_part_title(part)}" if part else format_suite_title(suite)


def ranked_metric_words(metric: str) -> str:
    """Format preference's names of metrics for people: `correct`, or `mmlu: correct [letters, exact_choice 2]`."""
    match = _METRIC_OF_SUITE.fullmatch(metric)
    if match is None:
        return format_metric(metric)
    condition, _, scorer = match[3].partition(", ")
    words = (format_metric(match[2]), format_qa_condition(condition), f"by {scorer_words(scorer)}" if scorer else "")
    return f"{format_suite_title(match[1])}: {', '.join(filter(None, words))}"


def describe_watched_setting(condition: str) -> str:
    """Format drift's names of conditions for people: `letters, correct by numeric 2`."""
    match = _WAY_OF_ANSWERING.fullmatch(condition)
    if match is None:
        return condition
    return ", ".join(filter(None, (format_qa_condition(match[1]), f"{format_metric(match[2])} by {scorer_words(match[3])}")))
