"""Suites of the qa family for tests and for looking at: subjects with options, numbers with judges, a program, interviews that are cited."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa

from dtef_pipeline.qa.site.family_site import QA_SITE, read
from dtef_pipeline.qa.suites import build_qa_boards
from dtef_pipeline.site.build import build_site_files
from dtef_pipeline.site.content import DataFile, Page
from dtef_pipeline.site.family_content import FamilyContent
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
    options = [f"option {number} {words}" for number in ("one", "two", "three", "four")]
    for at in range(n_items):
        item, flags = f"{part}/{at}", ["equal_options"] if at == 1 else []
        made.item("mmlu", part, item, text=f"What is {at}? {words}", options=options, reference="B", flags=flags)
        for condition, order, letter in (("letters", None, "B"), ("letters,rotated-1", [1, 2, 3, 0], "A")):
            made.asked("mmlu", part, item, condition, option_order=order)
            for model in MODELS:
                right = model == "best" or at == 0
                own = {"letter": letter if right else "D", **({"file_letter": "B"} if order and right else {})}
                score = {
                    "score": float(right),
                    "metric": "correct",
                    "read_by": "alone",
                    "detail": json.dumps(own),
                    "cluster": part,
                }
                score |= {"flags": ["several"] if at == 2 else []}
                made.said(_named("mmlu", part, item, condition, model), f"{own['letter']} {words}", [score])


def _named(suite: str, part: str, item_id: str, condition: str, model: str) -> dict[str, Any]:
    return {"suite": suite, "part": part, "item_id": item_id, "condition": condition, "model": model}


def _numbers(made: QaMade, n_items: int, words: str) -> None:
    numeric = {"scorer": "numeric", "metric": "correct", "measured_by": "numeric 1"}
    judged = {"scorer": "judge", "metric": "judged", "measured_by": "judge 1, jury"}
    for at in range(n_items):
        item, about = f"gsm8k/{at}", {"type": "number", "scorers": ["judge", "numeric"], "reference": str(2 + at)}
        made.item("gsm8k", "all", item, text=f"2 + {at}? {words}", **about)
        made.asked("gsm8k", "all", item, "plain")
        for model in MODELS:
            lost = model == "worst" and at == 1
            read = {"score": float(model == "best"), "read_by": "marker"}
            unread = {"score": None, "status": "unparseable", "flags": ["truncated"]}
            failed = {"score": None, "status": "judge_failed", "reason": f"unreadable {words}"}
            scores = [
                {**numeric, **(unread if at == 3 else read)},
                {**judged, **(failed if lost else {"score": 0.75, "read_by": "judge"})},
            ]
            named = _named("gsm8k", "all", item, "plain", model)
            made.said(named, f"#### {2 + at} {words}", scores, finish_reason="length" if at == 3 else "stop")
            _judged(made, named, lost, words)


def _judged(made: QaMade, named: Mapping[str, Any], lost: bool, words: str) -> None:
    run = {**named, "snapshot": "base", "draw": 0, "model_variant": f"{named['model']}[temperature=0]"}
    for evaluator, score in (("semantic", 0.5), ("factuality", 1.0)):
        made.add(
            "qa_judgements",
            **run,
            judge_model="jury",
            judge_variant="j",
            evaluator=evaluator,
            score=None if lost else score,
            reason="unreadable" if lost else None,
            explanation=None if lost else f"It holds. {words}",
            attempts=2 if lost else 1,
            raw=[f"high {words}"],
            self_judged=evaluator == "semantic" and not lost,
        )


def _programs(made: QaMade, words: str) -> None:
    item, test = "HumanEval/1", f"def check(candidate):\n    assert candidate() == 1  # {words}"
    tests = json.dumps({"prompt": "def f():", "entry_point": "f", "test": test})
    made.item("humaneval", "all", item, type="code", scorers=["code_execution"], text=f"def f(): {words}", reference=tests)
    made.asked("humaneval", "all", item, "plain")
    by = {"scorer": "code_execution", "metric": "passed", "measured_by": "code_execution 1, sandlock", "type": "code"}
    for model, verdict in (("best", "passed"), ("worst", "sandbox_unavailable")):
        named = _named("humaneval", "all", item, "plain", model)
        scored = (
            {"score": 1.0, "status": "ok", "read_by": verdict} if verdict == "passed" else {"score": None, "status": verdict}
        )
        score = {**by, **scored, "reason": words or "no"}
        made.said(named, f"```python\ndef f(): return 1  # {words}\n```", [score])
        run = {
            **named,
            "snapshot": "base",
            "draw": 0,
            "model_variant": f"{model}[temperature=0]",
            "message": f"AssertionError {words}",
        }
        made.add("qa_executions", **run, verdict=verdict, wall_s=0.05, isolation="sandlock", python="3.11.2")


def _interviews(made: QaMade, words: str) -> None:
    file, condition = f"one.csv{words}", "bm25,2-chunks"
    for place, chunk in enumerate((f"{CHUNK} {words}", f"Nothing of it here. {words}")):
        about = {"doc_id": f"{file}#{place}.0", "page_content": chunk, "name": f"Ann {words}", "year": 1999, "file": file}
        made.add("qa_documents", suite="socioscope", part="talks", **about)
    quotes = [{"text": "nobody came to the field", "file": file, "turn": 3}]
    listed = {"type": "ListOne", "scorers": ["list_one", "verbatim"], "reference": '{"none": 1}', "quotes": quotes}
    for at, cluster in enumerate(("one.csv", "one.csv", "two.csv", "two.csv")):
        item = f"talks/{at}"
        made.item("socioscope", "talks", item, text=f"Who came? {words}", **listed)
        made.rows["qa_items"][-1]["cluster"] = cluster
        made.asked("socioscope", "talks", item, condition)
        named = {"suite": "socioscope", "part": "talks", "item_id": item, "condition": condition}
        for rank in range(2):
            found = {"doc_id": f"{file}#{rank}.0", "relevance": 2.0 - rank, "contains_quote": rank == 0}
            made.add("qa_context", **named, rank=rank, **found)
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
    existence: dict[str, Any] = {"scorer": "verbatim", "metric": "existence", "measured_by": "verbatim 1", "type": "ListOne"}
    if cited:
        existence |= {"cluster": cluster, "score": 0.5 if is_best else 0.0, "detail": '{"citations": 2, "found": 1}'}
    else:
        existence |= {"cluster": cluster, "status": "missing", "reason": "the response cites nothing"}
    score: dict[str, Any] = {
        "scorer": "list_one",
        "metric": "score",
        "measured_by": "by type 1, lexicon l",
        "read_by": "longest",
    }
    score |= {"cluster": cluster, "score": float(is_best)}
    made.said(named, json.dumps({"answer": f"nobody {words}", "citations": []}), [score, existence])


def _costs() -> list[dict[str, Any]]:
    used = {"family": "qa", "answered": 4, "calls": 4, "prompt_tokens": 100, "completion_tokens": 10}
    best, worst = ({"model": name, "model_variant": f"{name}[temperature=0]", "first_level": "mmlu"} for name in MODELS)
    jury = {"model": "jury", "model_variant": "j", "first_level": "gsm8k", "purpose": "semantic"}
    return [
        {**used, **best, "role": "candidate", "cost_usd": 0.25, "unpriced": 0},
        {**used, **worst, "role": "candidate", "cost_usd": None, "unpriced": 4},
        {**used, **jury, "role": "judge", "cost_usd": 0.5, "unpriced": 0},
    ]


def _judge_drift(words: str) -> list[dict[str, Any]]:
    moved = {"shift": -0.2, "shift_low": -0.3, "shift_high": -0.1, "lowest": 0.5, "highest": 0.7, "gap": 0.2}
    judge = {"family": "qa", "judge": f"jury {words}", "judge_variant": "j", "evaluator": "semantic", "n_items": 48}
    found = {
        "n_snapshots": 12,
        "verdict": "drift",
        "flagged": True,
        "latest_snapshot": "2026-01-12",
        "reason": f"moved {words}",
    }
    return [{**judge, **moved, **found}]


def _validity(words: str) -> list[dict[str, Any]]:
    usual = {"suite": "mmlu", "condition": "letters", "model": "best", "model_variant": "best[temperature=0]"}
    usual |= {"metric": "correct", "measured_by": "exact_choice 1"}
    biased = {"value": 0.25, "low": 0.1, "high": 0.4, "n": 12, "is_suspect": True, "note": f"moves {words}"}
    return [
        {**usual, "check": "self_judged", "value": 0.0, "n": 4, "is_suspect": False, "note": ""},
        {**usual, "check": "position_bias", **biased},
    ]


def connected_qa(tables: Mapping[str, pa.Table], *, boards: bool = True) -> duckdb.DuckDBPyConnection:
    """A connection with the tables, and the boards of their scores."""
    connection = duckdb.connect(config={"threads": 1})
    for name, rows in tables.items():
        connection.register(name, rows)
    for name, rows in (build_qa_boards(connection, exposure={"mmlu": "public for long"}) if boards else {}).items():
        connection.register(name, rows)
    return connection


def view_of(made: QaMade, *, boards: bool = True) -> FamilyContent:
    """What the family shows."""
    return read(connected_qa(made.tables(), boards=boards))


def pages_of(view: FamilyContent) -> dict[str, Page]:
    """Its pages of details by path."""
    return {one.path: one for one in view.pages() if isinstance(one, Page)}


def data_of(view: FamilyContent) -> dict[str, Any]:
    """The values of its data files by path."""
    return {one.path: one.value for one in view.pages() if isinstance(one, DataFile)}


def items_of(data: Mapping[str, Any], suite: str) -> list[dict[str, Any]]:
    """Every item of a suite as the explorer opens it, in order."""
    folder = f"qa/suites/{suite}/items-"
    paths = sorted((path for path in data if path.startswith(folder)), key=lambda path: int(path.removeprefix(folder)[:-3]))
    return [item for path in paths for item in data[path]["items"]]


def qa_site_files(made: QaMade) -> dict[str, str]:
    """Every file of a site of this family alone, without those that all sites share: the chart library takes seconds."""
    with mock.patch("dtef_pipeline.site.build.static_files", return_value=()):
        return dict(build_site_files(connected_qa(made.tables()), [QA_SITE], {}, "Made today."))
