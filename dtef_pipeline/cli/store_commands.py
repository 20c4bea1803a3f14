"""`dtef responses`, `dtef export` and `dtef import`: stored data, and its transfer between machines. Heavy packages are imported inside."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from dtef_pipeline.cli.error_reports import reports_errors
from dtef_pipeline.cli.options import (
    existing_path,
    family_option,
    flag,
    lines_as_json,
    refuse_others,
    several,
    whole_number,
    writes_a_table,
)

_WHEN = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])
admin_option = click.option(
    "--user", metavar="NAME", help="Name for the record of actions.  [default: the user of this computer]"
)


@click.command(short_help="List stored responses, or remove some (--forget).")
@click.option("--empty", is_flag=True, help="Only responses without any text. With --truncated: either.")
@click.option("--truncated", is_flag=True, help="Only responses that were cut off at max_tokens.")
@several("--model", "models", metavar="NAME", help="Only this model, by name or variant")
@several("--snapshot", "snapshots", metavar="SNAPSHOT", help="Only this snapshot")
@click.option(
    "--since", type=_WHEN, metavar="DATE", help="Only responses from this day on: 2026-01-31, or 2026-01-31T12:00, UTC."
)
@click.option("--before", type=_WHEN, metavar="DATE", help="Only responses from before this day or time, UTC.")
@family_option(None, "Only responses that the tables of this family use.  [default: all in the store]")
@click.option("--forget", is_flag=True, help="Remove them, so that the next run of the same snapshot requests them again.")
@writes_a_table
@reports_errors
def responses(
    models: tuple[str, ...],
    snapshots: tuple[str, ...],
    since: datetime | None,
    before: datetime | None,
    family: str | None,
    output: str,
    *,
    empty: bool,
    truncated: bool,
    forget: bool,
) -> None:
    """List the contents of the response store, which keeps every response of a model: responses, tokens and cost by model and snapshot.

    --forget removes the responses that fit all options. Tables and boards keep the old text until a run has requested them again. Their cost
    stays in costs.

    \b
    dtef responses --empty --model gpt-4.1-mini            lists them
    dtef responses --empty --model gpt-4.1-mini --forget   removes them
    """
    from dtef_pipeline.cli import responses
    from resources.responses.store import ResponseSelection

    period = [moment and moment.replace(tzinfo=UTC) for moment in (since, before)]
    selection = ResponseSelection(empty, truncated, models, snapshots, *period)
    if forget:
        responses.remove_responses(selection, family, output)
    else:
        responses.show(selection, family, output)


class _Transfer(NamedTuple):
    done_by: str
    """MODULE:FUNCTION, called with the path and the options."""
    options: tuple[str, ...] = ()


_WRITTEN_TO: Mapping[str, _Transfer] = {
    "prompts": _Transfer("read:export_prompts", ("rounds", "contexts", "conditions")),
    "responses": _Transfer("responses:export_file", ("models", "snapshots")),
    "votes": _Transfer("preference.preference_votes:export_file", ("justifications", "user")),
    "labels": _Transfer(
        "rubric.rubric_labels:sample", ("blueprints", "snapshots", "n_prompts", "seed", "per_model", "show_names")
    ),
    "personas": _Transfer("games.games_files:export_personas"),
    "scenarios": _Transfer("games.games_files:export_scenarios"),
}
_READ_FROM: Mapping[str, _Transfer] = {
    "responses": _Transfer("responses:import_file"),
    "votes": _Transfer("preference.preference_votes:import_file", ("responses", "prompts", "user")),
    "labels": _Transfer("rubric.rubric_labels:import_sheet", ("author",)),
}


def _transfer(transfer: _Transfer, path: Path, options: Mapping[str, Any]) -> None:
    module, function = transfer.done_by.split(":")
    getattr(import_module(f"dtef_pipeline.cli.{module}"), function)(path, **{name: options[name] for name in transfer.options})


@click.command("export", short_help="Write prompts, responses, votes, labels or personas to a file.")
@click.argument("what", type=click.Choice(list(_WRITTEN_TO)))
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--round", "rounds", type=str.upper, metavar="ROUND", multiple=True, help="(prompts) The round whose prompts are written."
)
@several("--context", "contexts", help="(prompts) Only this number of context questions")
@several("--condition", "conditions", help="(prompts) Only those of this condition")
@several("--model", "models", metavar="NAME", help="(responses) Only this model")
@click.option(
    "--snapshot",
    "snapshots",
    multiple=True,
    metavar="SNAPSHOT",
    help="(responses, labels) Only this snapshot; for responses, may be repeated.  [default: all; for labels the latest of each blueprint]",
)
@click.option(
    "--justifications/--no-justifications",
    default=True,
    show_default=True,
    help="(votes) Whether to write the reasons that people gave, which may identify them.",
)
@several(
    "--blueprint",
    "blueprints",
    metavar="ID|PATTERN",
    help="(labels) Only this blueprint, or those that match",
    usual="all but those with the tag test",
)
@whole_number("--prompts", "n_prompts", floor=1, default=40, help="(labels) Number of prompts to draw.")
@whole_number("--seed", floor=0, default=7, help="(labels) Seed of the sample; another seed draws other prompts.")
@whole_number("--per-model", floor=1, help="(labels) Responses of each model in each prompt.  [default: all]")
@flag(
    "--show-names",
    help="(labels) Leave the names of models, makers and providers in the responses, even if they reveal the author.",
)
@admin_option
@reports_errors
@lines_as_json
def export_file(what: str, path: Path, **given: Any) -> None:
    """Write stored data to PATH, as a copy, to move it, or to work on it.

    \b
    prompts    the prompts of a round (its blueprints): a folder with a YAML file per segment, in the style of weval
    responses  raw responses: Parquet or JSON lines, by the ending of PATH (.parquet, .jsonl, .jsonl.gz)
    votes      all pairs, with their responses, votes and the runs that asked: JSON lines (.jsonl, .jsonl.gz), sorted
    labels     a sheet for people to label responses in: a random sample of prompts, with their criteria (CSV)
    personas   every version of every persona, a JSON object a line; a PATH that ends in .gz is compressed
    scenarios  every version of every scenario's manifest, without the game engines

    Reviewers who gave no consent get pseudonyms, and their votes new ids in each export, with only the day. What decides which text is shown as
    A is not exported.

    The sheet of labels names no model and no verdict. Names in a response that may reveal its author are replaced by [model], [company] or
    [provider], and the column `hidden` counts them. Rows that have a label are left out. The draw is kept in the
    warehouse, so that `dtef import labels` can read the sheet. A draw with another seed adds to the earlier ones.

    Personas and scenarios are the shipped ones, those in the folders that DTEF_PERSONAS and DTEF_SCENARIOS name, and what was made over HTTP;
    equal ones give equal bytes. `dtef games add` adds them.
    """
    refuse_others(_WRITTEN_TO[what].options, what)
    _transfer(_WRITTEN_TO[what], path, given)


@click.command("import", short_help="Add the responses, votes or labels of a file.")
@click.argument("what", type=click.Choice(list(_READ_FROM)))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@existing_path(
    "--responses", kind="file", help="(votes in a CSV) JSON lines with prompt_id, model and text; also maker and api_id."
)
@existing_path("--prompts", kind="file", help="(votes in a CSV) JSON lines with prompt_id and text.")
@admin_option
@click.option("--author", help="(labels) Name of the person who filled in rows without an author.")
@reports_errors
@lines_as_json
def import_file(what: str, file: Path, **given: Any) -> None:
    """Add the contents of FILE. Rows that are stored already are skipped; if a line is faulty, the error names it, and nothing is added.

    \b
    responses  what `dtef export responses` wrote
    votes      pairs, responses and votes: what `dtef export votes` or the page of a reviewer wrote, or a CSV of another tool
    labels     a filled-in sheet of `dtef export labels`: a class per row, and an optional reason

    A CSV of votes has the columns left, right and choice (A is left, B is right, or tie), and may have prompt_id, reviewer_id and confidence.
    Without --responses its votes count, but its pairs cannot be shown. Ids of reviewers have 1 to 200 printable characters and are not those of
    judges, times lie between 1970 and now, and no key occurs twice in a line.

    Classes of labels are UNMET, PARTIALLY_MET, MODERATELY_MET, MAJORLY_MET and EXACTLY_MET; rows without one are skipped. A later label by
    the same person overrules the earlier one, which stays on record. A sheet that is imported again changes nothing.

    \b
    Exit code: 0 done; 2 a line or an option is wrong, and nothing was added.
    """
    refuse_others(_READ_FROM[what].options, what)
    _transfer(_READ_FROM[what], file, given)
