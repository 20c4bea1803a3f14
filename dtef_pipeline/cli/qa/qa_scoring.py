"""`dtef score` of questions: the answers in a file of interviews, with bar charts, and scorers that need a sandbox or documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.qa.qa_files import read_files
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.judging.code_checks import PASSED_CHECK, UNDECIDED_CHECKS, CheckResult, SandboxTask
from dtef_pipeline.qa.item_files.benchmarks import load_humaneval
from dtef_pipeline.qa.judging.judgement_rows import VERBATIM_SCORER
from dtef_pipeline.qa.model import OK_STATUS, ItemScore, ScoreResponse, ScorerSettings, WrittenResponse
from dtef_pipeline.qa.program import CODE_SCORER, build_helpers, build_program
from dtef_pipeline.qa.scorers import MakeScoreWritten
from dtef_pipeline.qa.socioscope.socioscope_results import (
    MeanOfScores,
    SocioscopeResults,
    TranscriptAverages,
    score_given_answers,
)
from dtef_pipeline.qa.socioscope.words import make_lexicon_fingerprint
from dtef_pipeline.qa.transcripts.citation_reply import read_cited
from dtef_pipeline.qa.transcripts.corpus import load_corpus
from dtef_pipeline.qa.transcripts.quotations import check_citations, compute_existence_rate
from dtef_pipeline.site.content import Chart
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.number_words import format_count
from resources.sandbox.run import CHECK_TIMEOUT, run_checks


def score_interviews(questions: Path, corpus: Path, out: Path) -> int:
    """Score the answers of a file and write the results to the folder `out`. Returns 1 if a question was left out."""
    loaded = read_files("socioscope", questions, corpus, None)[1].loaded_items
    for finding in loaded.findings:
        say(f"{finding.level}: {finding}", err=True)
    if not loaded.items:
        raise ConfigError(f"{questions}: no question of it can be used")
    answers = score_given_answers(loaded.items, loaded.answers, load_corpus(corpus), ScorerSettings())
    if not answers:
        raise ConfigError(f"{questions}: no question of it has answers: `dtef qa add` and `dtef qa run` ask models")
    _write(SocioscopeResults(loaded.items, tuple(answers)), [str(finding) for finding in loaded.findings], questions, out)
    return int(bool(loaded.errors))


def _write(results: SocioscopeResults, findings: list[str], questions: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    path = out / f"results-{now:%Y%m%dT%H%M%S%f}Z.json"  # with microseconds, so that no file is replaced
    header = {"time": f"{now:%Y-%m-%dT%H:%M:%SZ}", "lexicon": make_lexicon_fingerprint(ScorerSettings()), "findings": findings}
    path.write_text(json.dumps({**header, **results.document()}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    scores, existence = results.scores(), results.existence()
    _write_plot(path, "scores", scores, f"Mean score by interview: {questions.name}")
    _write_plot(path, "quotations", existence, f"Quotations found, by interview: {questions.name}")
    click.echo(f"score:      {_format_means(scores)}")
    click.echo(f"quotations: {_format_means(existence)}")
    click.echo(f"{format_count(len(results.answers), 'answer')} to {format_count(len(results.items), 'question')}: {path}")


def _write_plot(path: Path, suffix: str, means: TranscriptAverages, title: str) -> None:
    from dtef_pipeline.site.charts import render_svg

    rows = [{"label": name, "value": mean.value, "kind": "score"} for name, mean in means.transcripts.items()]
    if _is_any(means.without_transcript):
        rows.append({"label": "of no interview", "value": means.without_transcript.value, "kind": "score"})
    path.with_name(f"{path.stem}-{suffix}.svg").write_text(render_svg(Chart("bars", rows, title)), encoding="utf-8")


def _format_means(means: TranscriptAverages) -> str:
    if means.micro.value is None:
        return "nothing is scored"
    parts_of_text = [f"{means.micro.value:.3f} over {format_count(means.micro.n_scored, 'question')} (micro)"]
    if means.macro.value is not None:
        parts_of_text.append(f"{means.macro.value:.3f} over {format_count(means.macro.n_scored, 'interview')} (macro)")
    if _is_any(means.without_transcript):
        parts_of_text.append(
            f"{format_count(means.without_transcript.n_scored + means.without_transcript.n_skipped, 'question')} of no interview"
        )
    if means.micro.n_skipped:
        parts_of_text.append(f"{format_count(means.micro.n_skipped, 'question')} without a score")
    return ", ".join(parts_of_text)


def _is_any(mean: MeanOfScores) -> bool:
    return bool(mean.n_scored or mean.n_skipped)


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
