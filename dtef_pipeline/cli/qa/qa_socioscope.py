"""`dtef score --corpus`: score answers about interviews, and write results and bar charts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import Any, NamedTuple

import click

from assets.qa.part_checks import require_server
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.cli import family_verbs
from dtef_pipeline.cli.family_run import run
from dtef_pipeline.cli.options import refuse_others
from dtef_pipeline.cli.qa import qa_files
from dtef_pipeline.cli.qa.qa_run import QA_RUN
from dtef_pipeline.cli.settings_command import RunFlags
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.cli.warehouse_access import open_warehouse
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.qa.item_files.suite_files import AddedFiles
from dtef_pipeline.qa.model import ItemScore, QaItem, ScorerSettings
from dtef_pipeline.qa.prompt_rows import AskSettings, explain_unmatched
from dtef_pipeline.qa.scoring import GRADED_METRIC, group_by_response, list_response_keys
from dtef_pipeline.qa.settings import QaSettings
from dtef_pipeline.qa.socioscope.lexicon import make_lexicon_fingerprint
from dtef_pipeline.qa.socioscope.socioscope_results import (
    INDEX_WRITTEN,
    MeanOfScores,
    ScoredAnswer,
    SocioscopeResults,
    TranscriptAverages,
    score_given_answers,
)
from dtef_pipeline.qa.tables import QA_SPACE
from dtef_pipeline.qa.transcripts.citation_reply import read_cited
from dtef_pipeline.qa.transcripts.corpus_files import load_corpus
from dtef_pipeline.qa.transcripts.metadata import parse_filter
from dtef_pipeline.site.charts import render_svg
from dtef_pipeline.site.content import Chart
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.shortening import shorten_to_line
from resources.model_catalog import load_known_models
from resources.settings import Settings

_SUITE = "socioscope"
_CITED_COLUMNS = ("quote", "reason", "doc_id")
_LARGEST_SOURCE = 2**31 - 1
_WITHOUT_ANSWER = ("error", "missing")
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_MOST_OF_A_TITLE, _MOST_OF_A_FILE_NAME = 26, 80
"""Longest names, in characters."""


class SocioscopeInput(NamedTuple):
    """The command's input in addition to the run settings."""

    questions: Path
    corpus: Path
    out: Path
    part: str | None = None
    """The part's name, or None for the file's."""
    replace: bool = False
    """Whether a part from another path may be replaced by these questions."""

    @property
    def key(self) -> str:
        """The key of the questions' partition."""
        return QA_SPACE.key(_SUITE, self.part or self.questions.stem)


def socioscope(source: SocioscopeInput, options: QaSettings) -> int:
    """Score. Returns 1 if a question was left out or the run failed. `options`: of the run; without models the answers are scored."""
    questions, corpus = source.questions, source.corpus
    specs = _check_models(options)
    setup = _build_how(options)  # reports an invalid or empty filter before anything is added
    files = qa_files.read_files(_SUITE, questions, corpus, None, part=source.part)[1]
    if specs and files.documents is not None and (problem := explain_unmatched(files.documents, setup)):
        raise ConfigError(problem)
    for finding in files.loaded_items.findings:
        say(f"{finding.level}: {finding}", err=True)
    if not files.loaded_items.items:
        raise ConfigError(f"{questions}: no question of it can be used")
    code = int(bool(files.loaded_items.errors))
    if specs:
        return max(code, _ask_questions(source, options, specs, files))
    answers = score_given_answers(files.loaded_items.items, files.loaded_items.answers, load_corpus(corpus), ScorerSettings())
    if not answers:
        raise ConfigError(f"{questions}: no question of it has answers: --model MODEL asks a model")
    _write(SocioscopeResults(files.loaded_items.items, tuple(answers)), files, source, {})
    return code


def _check_models(options: QaSettings) -> tuple[ModelSpec, ...]:
    """Return the models to call. Raises ConfigError for problems of a run before anything is added."""
    if not options.models:
        refuse_others(
            ("corpus", "part", "out"),
            "--corpus without --model, which scores the answers of a file and makes no calls",
            ("family",),
        )
        return ()
    require_safe(options.snapshot)
    settings = Settings.read_environment()
    specs = load_known_models(settings, COMPUTED_MODELS).resolve(options.models)
    require_server(options.retriever, settings)
    return specs


def _ask_questions(source: SocioscopeInput, options: QaSettings, specs: Sequence[ModelSpec], files: AddedFiles) -> int:
    """Return the exit code. Results are written for each model that answered, or for none if the run failed."""
    code = family_verbs.add_files(
        "qa",
        "table",
        suite=_SUITE,
        path=source.questions,
        corpus=source.corpus,
        suites=None,
        strict=False,
        part=source.part,
        replace=source.replace,
    )
    if code or (code := run(QA_RUN, options.model_copy(update={"parts": [escape(source.key)]}), RunFlags())):
        return code
    setup = _build_how(options)
    pairs = _read_stored_answers(
        source.key, options.snapshot, setup.condition((), about_documents=True), files.loaded_items.items
    )
    for spec in specs:
        click.echo(f"\n{spec.name}")
        answers = tuple(answer for variant, answer in pairs if variant == spec.variant)
        if all(answer.score.status in _WITHOUT_ANSWER for answer in answers):
            say(f"error: {spec.name}: no stored answers, so no results are written", err=True)
            code = 1
            continue
        facts = {"model": spec.name, "model_variant": spec.variant, "snapshot": options.snapshot, **_describe_how(setup)}
        _write(SocioscopeResults(files.loaded_items.items, answers), files, source, facts)
    return code


def _build_how(options: QaSettings) -> AskSettings:
    return AskSettings(retriever=options.retriever, k=options.k, filter=parse_filter(options.filter))


def _describe_how(setup: AskSettings) -> dict[str, Any]:
    return {"retriever": setup.retriever, "k": setup.k, "filter": dict(setup.filter)}


def _read_stored_answers(part: str, snapshot: str, condition: str, items: Sequence[QaItem]) -> list[tuple[str, ScoredAnswer]]:
    """Return the stored answers of all models, each with its model's variant."""
    warehouse, partition = open_warehouse(), {**QA_SPACE.levels(part), "snapshot": snapshot}
    responses = warehouse.rows("qa_responses", **partition)
    scores = group_by_response(warehouse.rows("qa_scores", **partition))
    citation_rows = group_by_response(warehouse.rows("qa_citations", **partition))
    item_ids = {item.item_id for item in items}
    answers = []
    for key, model, text in zip(
        list_response_keys(responses), responses["model"].to_pylist(), responses["response"].to_pylist(), strict=True
    ):
        if key[0] not in item_ids or key[1] != condition:
            continue
        row = next((score for score in scores.get(key, []) if score["metric"] == GRADED_METRIC), None)
        citations = tuple(_convert_citation(citation) for citation in citation_rows.get(key, []))
        reply = read_cited(text)
        answer = reply.answer if reply.problem is None else text
        answers.append((key[2], ScoredAnswer(key[0], answer, _parse_item_score(row), citations, None, model)))
    return answers


def _convert_citation(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored citation in the types of one from a file."""
    try:
        index = json.loads(row["source_index"])
    except ValueError:  # also raised for numbers with more digits than Python reads
        index = None
    is_number = isinstance(index, int) and not isinstance(index, bool) and abs(index) <= _LARGEST_SOURCE
    checks = {"exact": int(row["exact"]), "relaxed": int(row["relaxed"])}
    parts_of_text = {"source_index": index if is_number else None, **checks, **{name: row[name] for name in _CITED_COLUMNS}}
    return {**parts_of_text, INDEX_WRITTEN: None if is_number else row["source_index"]}


def _parse_item_score(row: dict[str, Any] | None) -> ItemScore:
    if row is None:
        return ItemScore("missing", reason="it was not scored")
    details = {**(json.loads(row["detail"]) if row["detail"] else {}), "measured_by": row["measured_by"]}
    return ItemScore(row["status"], row["value"], row["read_by"], tuple(row["flags"]), details, row["reason"])


def _write(results: SocioscopeResults, files: AddedFiles, source: SocioscopeInput, facts: Mapping[str, Any]) -> None:
    """Write the results of the file's answers, or of the model in `facts`."""
    source.out.mkdir(parents=True, exist_ok=True)
    now, model = datetime.now(UTC), facts.get("model")
    path = _choose_file_name(source.out, now, model)
    header = {"time": f"{now:%Y-%m-%dT%H:%M:%SZ}", "lexicon": make_lexicon_fingerprint(ScorerSettings()), **facts}
    document = {**header, "findings": [str(finding) for finding in files.loaded_items.findings], **results.document()}
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    scores, existence = results.scores(), results.existence()
    whose = ", ".join(shorten_to_line(name, _MOST_OF_A_TITLE) for name in (model, source.questions.name) if name)
    _write_plot(path, "scores", scores, f"Mean score by interview: {whose}")
    _write_plot(path, "quotations", existence, f"Quotations found, by interview: {whose}")
    click.echo(f"score:      {_format_means(scores)}")
    click.echo(f"quotations: {_format_means(existence)}")
    click.echo(f"{format_count(len(results.answers), 'answer')} to {format_count(len(results.items), 'question')}: {path}")


def _choose_file_name(folder: Path, now: datetime, model: str | None) -> Path:
    """Return an unused file name with the model's name. A later run in the same second gets a number."""
    whose = f"-{_NO_FILE_NAME.sub('-', model)[:_MOST_OF_A_FILE_NAME]}" if model else ""
    stem = f"results-{now:%Y%m%dT%H%M%SZ}{whose}"
    names = (folder / f"{stem}{f'-{number}' if number else ''}.json" for number in range(1_000))
    for path in names:
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
