"""Suites of the qa family for tests and for looking at: subjects with options, numbers with judges, a program, interviews that are cited."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.made.qa_tables import QaMade

MODELS = ("best", "worst")
CHUNK = "NASA: \U0001f680 She said that \u201cit was  raining\u201d on the day, and nobody came to the field. Later it was dry again."
"""A chunk with a character of two halves before what is quoted of it."""


def made_qa(n_subjects: int = 3, n_items: int = 4, words: str = "") -> QaMade:
    """Subjects with options in two orders, code, judged numbers and cited interviews; `words` stand in every text of models and files."""
    made = QaMade()
    for subject in range(n_subjects):
        _choices(made, f"subject_{subject}", n_items, words)
    _numbers(made, n_items, words)
    _programs(made, words)
    _interviews(made, words)
    made.extra |= {"costs": _costs(), "qa_validity": _validity(words), "judge_drift": _judge_drift(words)}
    return made


def _choices(made: QaMade, part: str, n_items: int, words: str) -> None:
    for at in range(n_items):
        item = f"{part}/{at}"
        options = [f"option {letter} {words}" for letter in ["one", "two", "three", "four"]]
        made.item(
            "mmlu",
            part,
            item,
            text=f"What is {at}? {words}",
            options=options,
            reference="B",
            flags=["equal_options"] if at == 1 else [],
        )
        for condition, order, letter in (("letters", None, "B"), ("letters,rotated-1", [1, 2, 3, 0], "A")):
            made.asked("mmlu", part, item, condition, option_order=order)
            for model in MODELS:
                right = model == "best" or at == 0
                own = {"letter": letter if right else "D", **({"file_letter": "B"} if order and right else {})}
                named = {"suite": "mmlu", "part": part, "item_id": item, "condition": condition, "model": model}
                score = {
                    "score": float(right),
                    "metric": "correct",
                    "read_by": "alone",
                    "flags": ["several"] if at == 2 else [],
                    "detail": json.dumps(own),
                    "cluster": part,
                }
                made.said(named, f"{own['letter']} {words}", [score])


def _numbers(made: QaMade, n_items: int, words: str) -> None:
    judge = {"scorer": "judge", "measured_by": "judge 1, jury"}
    for at in range(n_items):
        made.item(
            "gsm8k",
            "all",
            f"gsm8k/{at}",
            type="number",
            scorers=["judge", "numeric"],
            text=f"2 + {at}? {words}",
            reference=str(2 + at),
        )
        made.asked("gsm8k", "all", f"gsm8k/{at}", "plain")
        for model in MODELS:
            named = {"suite": "gsm8k", "part": "all", "item_id": f"gsm8k/{at}", "condition": "plain", "model": model}
            lost = model == "worst" and at == 1
            scores = [
                {
                    "score": None,
                    "status": "unparseable",
                    "scorer": "numeric",
                    "metric": "correct",
                    "measured_by": "numeric 1",
                    "flags": ["truncated"],
                }
                if at == 3
                else {
                    "score": float(model == "best"),
                    "scorer": "numeric",
                    "metric": "correct",
                    "measured_by": "numeric 1",
                    "read_by": "marker",
                },
                {**judge, "score": None, "status": "judge_failed", "metric": "judged", "reason": f"unreadable {words}"}
                if lost
                else {**judge, "score": 0.75, "metric": "judged", "read_by": "judge"},
            ]
            made.said(named, f"#### {2 + at} {words}", scores, finish_reason="length" if at == 3 else "stop")
            _judged(made, named, lost, words)


def _judged(made: QaMade, named: Mapping[str, Any], lost: bool, words: str) -> None:
    run = {
        **named,
        "snapshot": "base",
        "draw": 0,
        "model_variant": f"{named['model']}[temperature=0]",
        "judge_model": "jury",
        "judge_variant": "j",
    }
    for evaluator, score in (("semantic", 0.5), ("factuality", 1.0)):
        made.add(
            "qa_judgements",
            **run,
            evaluator=evaluator,
            score=None if lost else score,
            reason="unreadable" if lost else None,
            explanation=None if lost else f"It holds. {words}",
            attempts=2 if lost else 1,
            raw=[f"high {words}"],
            self_judged=evaluator == "semantic" and not lost,
        )


def _programs(made: QaMade, words: str) -> None:
    tests = json.dumps(
        {"prompt": "def f():", "entry_point": "f", "test": f"def check(candidate):\n    assert candidate() == 1  # {words}"}
    )
    made.item(
        "humaneval", "all", "HumanEval/1", type="code", scorers=["code_execution"], text=f"def f(): {words}", reference=tests
    )
    made.asked("humaneval", "all", "HumanEval/1", "plain")
    for model, verdict in (("best", "passed"), ("worst", "sandbox_unavailable")):
        named = {"suite": "humaneval", "part": "all", "item_id": "HumanEval/1", "condition": "plain", "model": model}
        by = {"scorer": "code_execution", "metric": "passed", "measured_by": "code_execution 1, sandlock", "type": "code"}
        passed = verdict == "passed"
        score = {
            **by,
            "score": 1.0 if passed else None,
            "status": "ok" if passed else verdict,
            "read_by": verdict if passed else None,
            "reason": words or "no",
        }
        made.said(named, f"```python\ndef f(): return 1  # {words}\n```", [score])
        run = {**named, "snapshot": "base", "draw": 0, "model_variant": f"{model}[temperature=0]"}
        made.add(
            "qa_executions",
            **run,
            verdict=verdict,
            message=f"AssertionError {words}",
            wall_s=0.05,
            isolation="sandlock",
            python="3.11.2",
        )


def _interviews(made: QaMade, words: str) -> None:
    file = f"one.csv{words}"
    for place in range(2):
        chunk = f"{CHUNK} {words}" if place == 0 else f"Nothing of it here. {words}"
        made.add(
            "qa_documents",
            suite="socioscope",
            part="talks",
            doc_id=f"{file}#{place}.0",
            page_content=chunk,
            name=f"Ann {words}",
            year=1999,
            file=file,
        )
    for at, cluster in enumerate(("one.csv", "one.csv", "two.csv", "two.csv")):
        item = f"talks/{at}"
        quotes = [{"text": "nobody came to the field", "file": file, "turn": 3}]
        about: dict[str, Any] = {
            "type": "ListOne",
            "scorers": ["list_one", "verbatim"],
            "reference": '{"none": 1}',
            "quotes": quotes,
        }
        made.item("socioscope", "talks", item, text=f"Who came? {words}", **about)
        made.rows["qa_items"][-1]["cluster"] = cluster
        condition = "bm25,2-chunks"
        made.asked("socioscope", "talks", item, condition)
        named = {"suite": "socioscope", "part": "talks", "item_id": item, "condition": condition}
        for rank in range(2):
            made.add(
                "qa_context", **named, rank=rank, doc_id=f"{file}#{rank}.0", relevance=2.0 - rank, contains_quote=rank == 0
            )
        made.add("qa_retrieval", **named, k=2, precision=0.5, recall=1.0, hit=1.0, mrr=1.0, ndcg=1.0)
        for model in MODELS:
            _cited(made, {**named, "model": model}, cluster, f"{file}#0.0", words)


def _cited(made: QaMade, named: Mapping[str, Any], cluster: str, doc: str, words: str) -> None:
    """The best model quotes to the letter and nearly so; the worst one makes quotations up, and has none of the second transcript."""
    is_best = named["model"] == "best"
    run = {**named, "snapshot": "base", "draw": 0, "model_variant": f"{named['model']}[temperature=0]"}
    quoted = "nobody came to the field"
    begin = CHUNK.index(quoted)
    nearly = {"quote": '"it was raining"', "begin": CHUNK.index("\u201cit"), "end": CHUNK.index("\u201d") + 1}
    found: list[dict[str, Any]] = [
        {"quote": quoted, "exact": True, "relaxed": True, "reason": None, "begin": begin, "end": begin + len(quoted)},
        {"exact": False, "relaxed": True, "reason": "not_found", **nearly},
    ]
    invented: list[dict[str, Any]] = [
        {"quote": f"made up {words}", "exact": False, "relaxed": False, "reason": "not_found"},
        {"quote": None, "exact": False, "relaxed": False, "reason": "index_out_of_range", "doc_id": None, "source_index": "7"},
    ]
    cited = found if is_best else invented if cluster == "one.csv" else []
    for position, citation in enumerate(cited):
        made.add("qa_citations", **{**run, "position": position, "source_index": "0", "doc_id": doc, **citation})
    existence: dict[str, Any] = {
        "scorer": "verbatim",
        "metric": "existence",
        "measured_by": "verbatim 1",
        "cluster": cluster,
        "type": "ListOne",
    }
    existence |= (
        {"score": 0.5 if is_best else 0.0, "detail": '{"citations": 2, "found": 1}'}
        if cited
        else {"status": "missing", "reason": "the response cites nothing"}
    )
    score = {
        "scorer": "list_one",
        "metric": "score",
        "measured_by": "by type 1, lexicon l",
        "score": float(is_best),
        "read_by": "longest",
        "cluster": cluster,
    }
    made.said(named, json.dumps({"answer": f"nobody {words}", "citations": []}), [score, existence])


def _costs() -> list[dict[str, Any]]:
    used = {"family": "qa", "answered": 4, "calls": 4, "prompt_tokens": 100, "completion_tokens": 10}
    return [
        {
            "role": "candidate",
            "first_level": "mmlu",
            "model": "best",
            "model_variant": "best[temperature=0]",
            **used,
            "cost_usd": 0.25,
            "unpriced": 0,
        },
        {
            "role": "candidate",
            "first_level": "mmlu",
            "model": "worst",
            "model_variant": "worst[temperature=0]",
            **used,
            "cost_usd": None,
            "unpriced": 4,
        },
        {
            "role": "judge",
            "first_level": "gsm8k",
            "purpose": "semantic",
            "model": "jury",
            "model_variant": "j",
            **used,
            "cost_usd": 0.5,
            "unpriced": 0,
        },
    ]


def _judge_drift(words: str) -> list[dict[str, Any]]:
    moved = {"shift": -0.2, "shift_low": -0.3, "shift_high": -0.1, "lowest": 0.5, "highest": 0.7, "gap": 0.2}
    usual = {
        "family": "qa",
        "judge": f"jury {words}",
        "judge_variant": "j",
        "evaluator": "semantic",
        "n_items": 48,
    }
    return [
        {
            **usual,
            **moved,
            "n_snapshots": 12,
            "verdict": "drift",
            "flagged": True,
            "latest_snapshot": "2026-01-12",
            "reason": f"moved {words}",
        }
    ]


def _validity(words: str) -> list[dict[str, Any]]:
    usual = {
        "suite": "mmlu",
        "condition": "letters",
        "model": "best",
        "model_variant": "best[temperature=0]",
        "metric": "correct",
        "measured_by": "exact_choice 1",
    }
    return [
        {**usual, "check": "self_judged", "value": 0.0, "n": 4, "is_suspect": False, "note": ""},
        {
            **usual,
            "check": "position_bias",
            "value": 0.25,
            "low": 0.1,
            "high": 0.4,
            "n": 12,
            "is_suspect": True,
            "note": f"moves {words}",
        },
    ]
