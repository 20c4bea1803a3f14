"""`dtef qa socioscope`: the documented command. Heavy packages are imported inside it, as in `dtef.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.qa_options import documented_models, of_arbiter, of_filter, of_named_part
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.run_options import snapshot_or_base


@click.command(short_help="Score answers about interviews, and check quotations.")
@click.argument("questions", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("corpus", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--model",
    "models",
    multiple=True,
    callback=documented_models,
    help="Model to ask, as `dtef qa run` takes it; may be repeated.  [default: score what the file holds]",
)
@snapshot_or_base("Label to store responses under.")
@click.option(
    "--k", type=click.IntRange(min=1), default=10, show_default=True, help="Number of chunks of interviews to show to a model."
)
@click.option(
    "--retriever",
    type=click.Choice(["bm25", "embedding", "hybrid", "remote"]),
    default="bm25",
    show_default=True,
    help="How these chunks are found; remote: by the server of DTEF_SOCIOSCOPE_URL.",
)
@of_filter
@of_arbiter
@of_named_part
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder to write to.  [default: the current one]",
)
@reports_errors
def socioscope(
    questions: Path, corpus: Path, out: Path, models: tuple[str, ...], part: str | None, replace: bool, **given: Any
) -> None:
    """Score the answers in QUESTIONS, or what models answer, and check that every quotation stands in CORPUS; write the results to a file.

    QUESTIONS is a JSON file with `qa_pairs`; CORPUS is a JSON file of documents, or a folder with interviews/*.csv and metadata.csv. The results
    are `results-TIME.json` and two bar charts by interview, of scores and of quotations found, for each model of
    their own (`results-TIME-MODEL.json`); both averages are printed. No file is replaced. A judge reads the answers of models to one kind
    of question alone: those of the type `Yes/No with Rationale` whose metric says {"judge": true}. Answers in the file are scored without one.
    Without --model nobody is asked, and of the options only --part and --out are allowed.

    \b
    Exit code: 0 done; 1 a question was left out, or asking failed; 2 the options or the set-up need mending.
    """
    from dtef_pipeline.cli import qa_run, qa_socioscope

    options = qa_run.with_switches(models=models, **given)
    sys.exit(qa_socioscope.socioscope(qa_socioscope.Documented(questions, corpus, out, part, replace), options))
