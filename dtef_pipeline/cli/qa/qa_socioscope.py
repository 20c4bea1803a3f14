"""`dtef score --corpus`: score the answers in a file of questions about interviews, and write results and bar charts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from dtef_pipeline.cli.qa.qa_files import read_files
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.model import ScorerSettings
from dtef_pipeline.qa.socioscope.socioscope_results import (
    MeanOfScores,
    SocioscopeResults,
    TranscriptAverages,
    score_given_answers,
)
from dtef_pipeline.qa.socioscope.words import make_lexicon_fingerprint
from dtef_pipeline.qa.transcripts.corpus import load_corpus
from dtef_pipeline.site.charts import render_svg
from dtef_pipeline.site.content import Chart
from dtef_pipeline.text.number_words import format_count


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
    path = _choose_file_name(out, now)
    header = {"time": f"{now:%Y-%m-%dT%H:%M:%SZ}", "lexicon": make_lexicon_fingerprint(ScorerSettings()), "findings": findings}
    path.write_text(json.dumps({**header, **results.document()}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    scores, existence = results.scores(), results.existence()
    _write_plot(path, "scores", scores, f"Mean score by interview: {questions.name}")
    _write_plot(path, "quotations", existence, f"Quotations found, by interview: {questions.name}")
    click.echo(f"score:      {_format_means(scores)}")
    click.echo(f"quotations: {_format_means(existence)}")
    click.echo(f"{format_count(len(results.answers), 'answer')} to {format_count(len(results.items), 'question')}: {path}")


def _choose_file_name(folder: Path, now: datetime) -> Path:
    """Create and return an unused file. A later run in the same second gets a number."""
    stem = f"results-{now:%Y%m%dT%H%M%SZ}"
    for path in (folder / f"{stem}{f'-{number}' if number else ''}.json" for number in range(1_000)):
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            continue
        return path
    raise ConfigError(f"{folder}: there are too many results of this second")


def _write_plot(path: Path, suffix: str, means: TranscriptAverages, title: str) -> None:
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
