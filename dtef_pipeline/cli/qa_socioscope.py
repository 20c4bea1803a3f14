"""What `dtef qa socioscope` does; the words are in `dtef_pipeline/cli/qa_socioscope_group.py`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli import qa_add, qa_run
from dtef_pipeline.cli.left_out import open_reader
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.qa.added_files import AddedFiles
from dtef_pipeline.qa.model import ItemScore, QaItem, ScorerSettings
from dtef_pipeline.qa.scoring import GRADED_METRIC, by_response, response_keys
from dtef_pipeline.qa.socioscope_results import ScoredAnswer, SocioscopeResults, scored_given
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.transcripts.averages import TranscriptAverages
from dtef_pipeline.qa.transcripts.cited_reply import read_cited
from dtef_pipeline.qa.transcripts.corpus_files import load_corpus
from dtef_pipeline.report.bars import Bar, bars
from dtef_pipeline.text.counted import counted
from resources.known_models import known_models
from resources.settings import Settings

_SUITE = "socioscope"
_CITED_COLUMNS = ("source_index", "quote", "exact", "relaxed", "reason")


def socioscope(questions: Path, corpus: Path, models: Sequence[str], snapshot: str, k: int, retriever: str, out: Path) -> int:
    """The exit code: 1 where a question was left out, or asking failed."""
    added = qa_add.read_files(_SUITE, questions, corpus, None)[1]
    for one in added.loaded.findings:
        say(f"{one.level}: {one}", err=True)
    if not added.loaded.items:
        raise ConfigError(f"{questions}: no question of it can be used")
    code = int(bool(added.loaded.errors))
    if models:
        code = max(code, qa_add.add(_SUITE, questions, corpus, None, False), _ask(questions, models, snapshot, k, retriever))
        named = [spec.name for spec in known_models(Settings.from_environment(), COMPUTED_MODELS).resolve(models)]
        of_models = _of_models(added.loaded.items, questions.stem, snapshot, f"{retriever},{k}-chunks")
        for name in named:
            click.echo(f"\n{name}")
            _write(SocioscopeResults(added.loaded.items, tuple(one for one in of_models if one.model == name)), added, out)
        return code
    answers = scored_given(added.loaded.items, added.loaded.answers, load_corpus(corpus), ScorerSettings())
    if not answers:
        raise ConfigError(f"{questions}: no question of it has answers: --model MODEL asks a model")
    _write(SocioscopeResults(added.loaded.items, tuple(answers)), added, out)
    return code


def _ask(questions: Path, models: Sequence[str], snapshot: str, k: int, retriever: str) -> int:
    options = qa_run.QaOptions(
        parts=(escape(QA_SPACE.key(_SUITE, questions.stem)),), models=tuple(models), snapshot=snapshot, k=k, retriever=retriever
    )
    return qa_run.run(options)


def _of_models(items: Sequence[QaItem], part: str, snapshot: str, condition: str) -> list[ScoredAnswer]:
    """The answers of all models as they are stored."""
    reader, at = open_reader(), {**QA_SPACE.levels(QA_SPACE.key(_SUITE, part)), "snapshot": snapshot}
    responses = reader.rows("qa_responses", **at)
    scores = by_response(reader.rows("qa_scores", **at))
    cited = by_response(reader.rows("qa_citations", **at))
    known = {item.item_id for item in items}
    found = []
    for key, model, text in zip(
        response_keys(responses), responses["model"].to_pylist(), responses["response"].to_pylist(), strict=True
    ):
        if key[0] not in known or key[1] != condition:
            continue
        row = next((one for one in scores.get(key, []) if one["metric"] == GRADED_METRIC), None)
        citations = tuple({name: one[name] for name in _CITED_COLUMNS} for one in cited.get(key, []))
        found.append(ScoredAnswer(key[0], read_cited(text).answer, _item_score(row), citations, None, model))
    return found


def _item_score(row: dict[str, Any] | None) -> ItemScore:
    if row is None:
        return ItemScore("missing", reason="it was not scored")
    own = json.loads(row["detail"]) if row["detail"] else {}
    return ItemScore(row["status"], row["value"], row["how"], tuple(row["flags"]), own, row["reason"])


def _write(results: SocioscopeResults, added: AddedFiles, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    path = _new_file(out, datetime.now(UTC))
    document = {"findings": [str(one) for one in added.loaded.findings], **results.document()}
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    scores, existence = results.scores(), results.existence()
    _plot(path, "scores", scores, "Mean score by interview")
    _plot(path, "quotations", existence, "Share of quotations that stand in their source, by interview")
    click.echo(f"score:      {_told(scores)}")
    click.echo(f"quotations: {_told(existence)}")
    click.echo(f"{counted(len(results.answers), 'answer')} to {counted(len(results.items), 'question')}: {path}")


def _new_file(out: Path, now: datetime) -> Path:
    """A name that is not taken: of two runs in one second the later one has a number behind it."""
    stem = f"results-{now:%Y%m%dT%H%M%SZ}"
    names = (out / f"{stem}{f'-{again}' if again else ''}.json" for again in range(1_000))
    for path in names:
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            continue
        return path
    raise ConfigError(f"{out}: there are too many results of this second")


def _plot(path: Path, what: str, means: TranscriptAverages, title: str) -> None:
    rows = [Bar(name, one.value, one.n_scored) for name, one in means.transcripts.items()]
    path.with_name(f"{path.stem}-{what}.svg").write_text(bars(rows, title, standalone=True), encoding="utf-8")


def _told(means: TranscriptAverages) -> str:
    if means.micro.value is None:
        return "nothing is scored"
    skipped = f", {means.micro.n_skipped:,} without one" if means.micro.n_skipped else ""
    macro = "-" if means.macro.value is None else f"{means.macro.value:.3f}"
    return f"{means.micro.value:.3f} over {means.micro.n_scored:,} (micro), {macro} over {len(means.transcripts):,} interviews (macro){skipped}"
