"""The scorers of `dtef score --family qa` that need a sandbox or the quoted documents in addition to a text and its reference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.judging.code_checks import PASSED_CHECK, UNDECIDED_CHECKS, CheckResult, SandboxTask
from dtef_pipeline.qa.item_files.benchmarks import load_humaneval
from dtef_pipeline.qa.judging.judgement_rows import VERBATIM_SCORER
from dtef_pipeline.qa.model import OK_STATUS, ItemScore, ScoreResponse, WrittenResponse
from dtef_pipeline.qa.program import CODE_SCORER, build_helpers, build_program
from dtef_pipeline.qa.scorers import MakeScoreWritten
from dtef_pipeline.qa.transcripts.citation_reply import read_cited
from dtef_pipeline.qa.transcripts.quotations import check_citations, compute_existence_rate
from dtef_pipeline.text.name_matching import list_nearest
from resources.sandbox.run import CHECK_TIMEOUT, run_checks

_TASK_PARTS = ("prompt", "entry_point", "test")


def build_outside_scorers(tasks: Path | None) -> dict[str, MakeScoreWritten]:
    """Return the scorers by name. `tasks`: a file in HumanEval's layout, whose programs lines name by `task`."""
    items = load_humaneval(tasks, strict=True).items if tasks else ()
    known_tasks = {item.item_id: json.loads(item.reference) for item in items}
    return {
        CODE_SCORER: lambda line: _make_test_scorer(
            _find_task(line, known_tasks), float(line.get("timeout_s") or CHECK_TIMEOUT)
        ),
        VERBATIM_SCORER: _make_citation_scorer,
    }


def _find_task(line: Mapping[str, Any], tasks: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """Return a line's task: its reference, or the named one."""
    reference = line.get("reference")
    if isinstance(reference, Mapping):
        if missing := [name for name in _TASK_PARTS if not isinstance(reference.get(name), str)]:
            raise ConfigError(
                f"reference without {', '.join(missing)}; allowed: an object with {', '.join(_TASK_PARTS)}, each a text"
            )
        return dict(reference)
    name = line.get("task")
    if not isinstance(name, str):
        raise ConfigError(
            f"{CODE_SCORER} without a task; allowed: task, of the file that --tasks names, or a reference with {', '.join(_TASK_PARTS)}"
        )
    if name not in tasks:
        named = f"known: {list_nearest(name, tasks)}" if tasks else "--tasks FILE names the file that has it"
        raise ConfigError(f"no task {name!r}; {named}")
    return tasks[name]


def _make_test_scorer(task: Mapping[str, str], timeout_s: float) -> ScoreResponse:
    def score(answer: WrittenResponse) -> ItemScore:
        program = build_program(answer.text, task["prompt"], task["entry_point"])
        if program.fault:
            return _convert_check_result(CheckResult(program.fault, program.detail or ""))
        ready = SandboxTask(program.source, task["entry_point"], task["test"], build_helpers(task["prompt"]))
        (result,) = run_checks([ready], timeout_s=timeout_s, workers=1)
        return _convert_check_result(result)

    return score


def _convert_check_result(result: CheckResult) -> ItemScore:
    value = None if result.status in UNDECIDED_CHECKS else float(result.status == PASSED_CHECK)
    details = {"level": result.level, "python": result.python}
    return ItemScore(result.status, value, None, (), details, result.detail or None)


def _make_citation_scorer(line: Mapping[str, Any]) -> ScoreResponse:
    context, citations = line.get("context"), line.get("citations")
    if not isinstance(context, list) or (citations is not None and not isinstance(citations, list)):
        raise ConfigError(f"{VERBATIM_SCORER}: allowed: context, a list of documents with page_content, and citations, a list")

    def score(answer: WrittenResponse) -> ItemScore:
        checks = check_citations(context, read_cited(answer.text).citations if citations is None else citations)
        value = compute_existence_rate([check.exact for check in checks])
        details = {
            "exact": [check.exact for check in checks],
            "relaxed": [check.relaxed for check in checks],
            "reasons": [check.reason for check in checks],
        }
        return ItemScore(OK_STATUS if checks else "missing", value, None, (), details, None if checks else "nothing is cited")

    return score
