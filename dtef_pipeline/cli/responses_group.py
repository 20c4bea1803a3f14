"""The commands below `dtef responses`. Heavy packages are imported inside them, as in `dtef.py`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.options import of_family, writes_a_table
from dtef_pipeline.cli.reported import reports_errors

_WHEN = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])


@click.group(short_help="Show, export, import or forget the responses of models.")
def responses() -> None:
    """Look into the response store, where every response of a model is kept, and move responses between machines."""


@responses.command(short_help="List what the response store holds.")
@of_family(None, "Only what this family of evaluations asked, by its tables.  [default: all in the store]")
@writes_a_table
@reports_errors
def show(output: str, family: str | None) -> None:
    """List what the response store holds: responses, tokens and cost of each model and snapshot."""
    from dtef_pipeline.cli import responses

    responses.show(output, family)


@responses.command(short_help="Take out responses, so that they are asked again.")
@click.option("--empty", is_flag=True, help="Responses without any text. With --truncated: either.")
@click.option("--truncated", is_flag=True, help="Responses that were cut off at max_tokens.")
@click.option(
    "--model", "models", multiple=True, metavar="NAME", help="Only of this model, by name or variant; may be repeated."
)
@click.option("--snapshot", "snapshots", multiple=True, metavar="LABEL", help="Only this snapshot; may be repeated.")
@click.option(
    "--since", type=_WHEN, metavar="DATE", help="Only what arrived on this day or later: 2026-01-31, or 2026-01-31T12:00, UTC."
)
@click.option("--before", type=_WHEN, metavar="DATE", help="Only what arrived before this day or time, UTC.")
@of_family(None, "Only what this family of evaluations asked, by its tables.  [default: all in the store]")
@click.option("--yes", "confirmed", is_flag=True, help="Forget them.  [default: only list what would be forgotten]")
@reports_errors
def forget(
    models: tuple[str, ...],
    snapshots: tuple[str, ...],
    since: datetime | None,
    before: datetime | None,
    family: str | None,
    *,
    empty: bool,
    truncated: bool,
    confirmed: bool,
) -> None:
    """List the responses that fit all options; with --yes, take them out, so that the next run asks them again in the same snapshot.

    Tables and boards hold the old text until that run is done. What the responses cost was spent: it stays in costs.

    \b
    dtef responses forget --empty --model gpt-4.1-mini          lists them
    dtef responses forget --empty --model gpt-4.1-mini --yes    forgets them
    """
    from dtef_pipeline.cli import responses
    from resources.responses.forgotten import ChosenResponses

    when = [moment and moment.replace(tzinfo=UTC) for moment in (since, before)]
    responses.forget_responses(ChosenResponses(empty, truncated, models, snapshots, *when), family, confirmed=confirmed)


@responses.command("export", short_help="Write responses to a file.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--model", "models", multiple=True, metavar="NAME", help="Only this model; may be repeated.")
@click.option("--snapshot", "snapshots", multiple=True, metavar="LABEL", help="Only this snapshot; may be repeated.")
@reports_errors
def export_responses(file: Path, models: tuple[str, ...], snapshots: tuple[str, ...]) -> None:
    """Write raw responses to FILE: Parquet or JSON lines, by its suffix (.parquet, .jsonl, .jsonl.gz)."""
    from dtef_pipeline.cli import responses

    responses.export_file(file, models, snapshots)


@responses.command("import", short_help="Add the responses of a file to the store.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--suite",
    metavar="SUITE",
    help="FILE holds answers made elsewhere to the questions of this suite, as `dtef qa list` names it.",
)
@click.option("--part", "parts", multiple=True, metavar="PART|PATTERN", help="Only questions of this part; may be repeated.")
@click.option(
    "--condition",
    metavar="CONDITION",
    help="Way of asking that the answers are taken for.  [default: that of a plain `dtef qa run`]",
)
@click.option("--snapshot", metavar="LABEL", help="Snapshot to store the answers in.  [default: base]")
@click.option("--model", metavar="NAME", help="Model of lines that name none.")
@click.option("--key", metavar="FIELD", help="Field that names the question.  [default: item_id, task_id, id or index]")
@click.option(
    "--items",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON list of the numbers by which FILE calls the questions, in the order of those that were added; or an object of lists by subject.",
)
@click.option("--repeats-are-draws", is_flag=True, help="Lines of one model and question are its draws, in the order of FILE.")
@click.option("--skip-unknown", is_flag=True, help="Pass over lines about questions that were not added.")
@reports_errors
def import_responses(file: Path, suite: str | None, **given: Any) -> None:
    """Add the responses of FILE to the response store. Those it has already stay as they are. If a row is faulty, nothing is added.

    Without --suite, FILE is what `dtef responses export` wrote. With it, FILE holds answers that models gave elsewhere: JSON lines (.jsonl,
    .jsonl.gz) or Parquet (.parquet), one answer a line:

    \b
        {"task_id": "HumanEval/4", "model": "gpt-4", "completion": "    return 1"}
        {"subject": "astronomy", "index": 2, "model": "mine", "text": "B"}
        {"index": 17, "model": "mine", "samples": ["... A: 3", "... A: 4"]}

    A line names its question (item_id, task_id, or index, beside subject where there are several), the model, and the text (text, response or
    completion; or samples, a list with a text per draw). It may hold draw, finish_reason, prompt_tokens, completion_tokens, cost_usd and
    latency_s; other fields are passed over. A number counts the questions of the file that was added, from 0. Where the numbers are those of
    a larger file, --items gives them.

    The model `mine` is then called imported/mine. It is never asked and needs no key: `dtef qa run --suite SUITE --model imported/mine`
    scores what is stored. How often questions are asked (--draws) and how (--few-shot, ...) is said there as for other models.

    \b
    Exit code: 0 done; 2 a line, or an option, needs mending, and nothing was added.
    """
    if suite is None:
        _refuse_options(given)
        from dtef_pipeline.cli import responses

        responses.import_file(file)
    else:
        from dtef_pipeline.cli import responses

        responses.import_answers(file, suite, responses.ImportedHow(**given))


def _refuse_options(given: Mapping[str, Any]) -> None:
    names = {name: name.replace("_", "-") for name in given} | {"parts": "part"}
    if named := [f"--{names[name]}" for name, value in given.items() if value]:
        raise click.UsageError(f"{', '.join(named)}: of use only with --suite")
