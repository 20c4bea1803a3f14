"""Labels for people: suites, parts, conditions, metrics and checks of the qa family."""

from __future__ import annotations

import re

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
    "correct": ("correct answers", "Share of correct answers, 0-1, higher is better"),
    "passed": ("programs that pass", "Share of programs that pass their tests, 0-1, higher is better"),
    "score": ("score", "Mean score of the answers, 0-1, higher is better"),
    "judged": ("judged", "Mean score that judges give, 0-1, higher is better"),
    "existence": ("exact quotations", "Share of quotations found exactly, 0-1, higher is better"),
    "existence_relaxed": (
        "quotations",
        "Share of quotations found apart from case, marks and white space, 0-1, higher is better",
    ),
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


def format_qa_condition(condition: str) -> str:
    """Format `cot,5-shot,rotated-1` as step by step, 5 examples, options rotated by 1; the plain way is empty."""
    return ", ".join(filter(None, (_format_piece(piece) for piece in condition.split(","))))


def _format_piece(piece: str) -> str:
    if piece in _WAY_WORDS:
        return _WAY_WORDS[piece]
    if match := re.fullmatch(r"([0-9]{1,6})-(shot|chunks)(-turns)?", piece):
        number, unit, turns = match.groups()
        return format_count(int(number), "example" if unit == "shot" else "passage") + (" as turns" if turns else "")
    if match := re.fullmatch(r"rotated-([0-9])", piece):
        return f"options rotated by {match[1]}"
    return piece


def format_metric(metric: str) -> str:
    """Return the name of a metric on a board."""
    return _METRIC_WORDS[metric][0] if metric in _METRIC_WORDS else metric.replace("_", " ")


def measure_words(metric: str) -> str:
    """Describe a score of a metric, with its range."""
    return _METRIC_WORDS[metric][1] if metric in _METRIC_WORDS else f"Mean {format_metric(metric)}, 0-1, higher is better"


def rank_metric(metric: str) -> tuple[int, str]:
    """Return the place of a metric among others."""
    return METRICS_FIRST.index(metric) if metric in METRICS_FIRST else len(METRICS_FIRST), metric


def scorer_words(measured_by: str) -> str:
    """Format `numeric 2` as the number in the answer (version 2), `judge 3, o3, accuracy+tone` as the judge o3 (accuracy, tone).

    Others are unchanged.
    """
    head, _, reader = measured_by.partition(", reasons by ")
    scorer, *details = head.split(", ")
    match = _SCORER.match(scorer)
    if scorer == "no scorer" or match is None:
        return _SCORER_WORDS.get(scorer, measured_by)
    if match[1] == "judge":
        judge, *evaluators = details or ["that is not known"]
        return f"the judge {judge}" + (f" ({', '.join(', '.join(evaluators).split('+'))})" if evaluators else "")
    notes = [f"version {match[2]}", *map(_scorer_note, details), f"reasons by {scorer_words(reader)}" if reader else ""]
    return f"{_SCORER_WORDS.get(match[1], match[1].replace('_', ' '))} ({', '.join(filter(None, notes))})"


def _scorer_note(words: str) -> str:
    """Format `lexicon wordnet-3.0/first/155b9d97508c` as synonyms of wordnet-3.0; the rest only identifies a reading of the lexicon."""
    name, _, value = words.partition(" ")
    return f"synonyms of {value.partition('/')[0]}" if name == "lexicon" else words


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
