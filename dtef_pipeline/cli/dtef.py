"""The `dtef` command, and its commands for all families. They import heavy packages inside, so that `dtef --help` is instant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dtef_pipeline.cli.error_reports import reports_errors
from dtef_pipeline.cli.games.games_group import games
from dtef_pipeline.cli.options import (
    USUAL_FAMILY,
    LevelName,
    choice,
    existing_path,
    family_option,
    flag,
    format_options,
    lines_as_json,
    refuse_others,
    rounds_option,
    several,
    snapshot_or_base,
    whole_number,
    writes_a_table,
)
from dtef_pipeline.cli.plugin_group import MainCommands
from dtef_pipeline.cli.preference.preference_group import preference
from dtef_pipeline.cli.qa.qa_group import qa
from dtef_pipeline.cli.rubric.rubric_group import rubric
from dtef_pipeline.cli.store_commands import export_file, import_file, responses
from dtef_pipeline.cli.survey.survey_group import survey
from dtef_pipeline.site.paths import SITE_FOLDER
from dtef_pipeline.statistics.seed import SEED


@click.group(cls=MainCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="dtef-pipeline")
def main() -> None:
    """The Digital Twin Evaluation Framework (DTEF): measure how accurately language models predict the survey answers of real demographic
    groups, and how well they meet criteria, answer questions and play games.

    \b
    A survey round goes through six stages: ingest, blueprint, predict, score, aggregate, drift.
        dtef add SURVEY               read a round: what each group answered
        dtef run --round GD4          ask models and score their predictions; --estimate only shows the cost
        dtef board                    show which models predict best
        dtef report                   write the results as a site: open report/index.html
        dtef ui                       look at the same results in Dagster, in a browser

    There are four families of evaluations: survey, rubric (responses judged by criteria), qa (questions with expected answers) and games
    (between models, baselines and you). Each has the verbs add, check, list, remove, run and board, as in `dtef qa run`. A verb alone is about
    surveys: `dtef run` is `dtef survey run`. `dtef preference` has votes on pairs of responses.

    Results are kept in the folder .dtef/, unless DTEF_WAREHOUSE, DTEF_RESPONSES and DAGSTER_HOME name other places. If a file of a table
    cannot be read, a command skips it, names it and the command that makes it again, and ends with exit code 1.
    """


main.usual = survey
for _group in (survey, rubric, qa, games, preference):
    main.add_command(_group)


@main.command(short_help="Write the results of all families as one static site.")
@click.option(
    "--out",
    default=SITE_FOLDER,
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder to write to, new or existing; or a file whose name ends in .zip.",
)
@reports_errors
@lines_as_json
def report(out: Path) -> None:
    """Write one static site about all families: findings, leaderboards, models, drift, data and method.

    Open its index.html from disk, or put the folder on any static host: it needs no server and no network. Files of an earlier report that are
    not part of this one are removed. Other files stay; if one of them has the name of a page, that page is not written, and the command
    reports an error.
    """
    from dtef_pipeline.cli import read

    read.report(out)


@main.command(epilog="Columns: dtef explain costs", short_help="Show the calls of language models and their cost.")
@click.option(
    "--by",
    multiple=True,
    type=LevelName(
        [
            *("family", "role", "model", "variant", "snapshot", "round", "segment", "condition", "blueprint"),
            *("suite", "part", "evaluator", "league", "scenario", "persona"),
        ]
    ),
    help="Columns to group the requests by; a variant is a model with its sampling, an evaluator one of the prompts of a judge; may be "
    "repeated.  [default: family and role; with --family survey model, rubric role and model, qa role, suite, evaluator and model, games "
    "role, scenario, persona and model]",
)
@family_option(None, "Family of evaluations to show.  [default: all]")
@click.option("--snapshot", help="Only this snapshot.  [default: all]")
@writes_a_table
@reports_errors
def costs(by: tuple[str, ...], family: str | None, snapshot: str | None, output: str) -> None:
    """Show the calls of language models and their cost: requests, tokens, US dollars.

    A request that several rows share counts once. The numbers are those of the table costs, which every run brings up to date.
    """
    from dtef_pipeline.cli import read

    read.costs(family, by, snapshot, output)


@main.command(epilog="Columns: dtef explain drift", short_help="Show whether models respond differently than before.")
@rounds_option
@click.option(
    "--by",
    type=LevelName(["model", "round", "segment", "blueprint", "part", "scenario"]),
    default="model",
    show_default=True,
    help="Unit of a verdict: a model over all its scores, or in a round, a segment, a blueprint (rubric), a part (qa) or a scenario (games).",
)
@several(
    "--since",
    metavar="[MODEL=]DATE",
    help="Leave out snapshots before this date, of all models or of one model or judge, to accept a known drift",
)
@choice(
    "--fail-on",
    choices=["watch", "drift"],
    help="Exit with code 3 at this verdict or a worse one, and with 4 if it is too early to tell.",
)
@writes_a_table
@reports_errors
@family_option()
def drift(family: str, rounds: tuple[str, ...], by: str, since: tuple[str, ...], fail_on: str | None, output: str) -> None:
    """Show whether a model now responds differently to the same prompts, and what else changed.

    The first snapshots of a model (five, unless a panel file says otherwise) are its reference snapshots. Later ones are compared with
    them on the prompts that both have. Only models at temperature 0 get a verdict:

    \b
    drift   the highest mean score is at least 0.05 and 10 % above the lowest (the rule of Weval's methodology), and
            there is strong evidence of a change: if no model changed, the chance that any row ever says drift is
            at most 5 % (any row of a round, with --by round or --by segment), however many snapshots follow
    watch   the rule is met without strong evidence: look again when there are more snapshots
    none    the rule is not met
    A row without a verdict was not compared, and says why.

    The verdict is about one model: if other models have scores in the same snapshots, it concerns only the change that they do not share. The
    column "all models" has the verdict on the change that all models share, such as after a change of provider, network or prompts. It is at
    most watch, because no unchanged model is left to compare with. --fail-on counts both.

    \b
    Exit code: 0 done; 1 a file was left out; 2 an option or the set-up is wrong; 3 the verdict that --fail-on names, or a worse one;
    4 --fail-on drift was given, no row says drift, and for some row it is too early to tell (it needs a snapshot after
    the reference snapshots); 5 --fail-on was given and no row could be compared.
    """
    if family != USUAL_FAMILY:
        refuse_others(("by", "since", "fail_on"), f"--family {family}", exempt=("family",))
    from dtef_pipeline.cli import drift

    sys.exit(drift.drift(family, rounds, by, since, fail_on, output))


@main.command(short_help="Explain the columns of a board or table.")
@click.argument("name", required=False)
@writes_a_table
@reports_errors
def explain(name: str | None, output: str) -> None:
    """Explain the columns of the board or table NAME: unit, range, direction and meaning. Without NAME, list all boards and tables.

    NAME is what the last line of a board says, such as survey/gaps, qa/overall, games, preference, costs, drift or estimate; or a table, such as
    rubric_scores or comparisons.
    """
    from dtef_pipeline.cli import families

    families.explain(name, output)


@main.command(short_help="Query the tables with DuckDB SQL.")
@click.argument("query")
@writes_a_table
@reports_errors
def sql(query: str, output: str) -> None:
    """Query the tables with DuckDB SQL: survey_responses, scores, leaderboard, rubric_scores, qa_scores, qa_board, ..."""
    from dtef_pipeline.cli import read

    read.sql(query, output)


for _command in (responses, export_file, import_file):
    main.add_command(_command)


@main.command(short_help="List the models and collections that --model accepts.")
@writes_a_table
@reports_errors
def models(output: str) -> None:
    """List the models and collections that --model, --judge and the panel file accept.

    `transport` is how a model is called: direct (to the address, without LiteLLM), litellm, or local (in this process); empty: never called.
    `address` is that of your own server, without a password. `key` is the environment variable with the API key.
    """
    from dtef_pipeline.cli import read

    read.list_models(output)


@main.command(short_help="Check the installation and its settings.")
@format_options
@reports_errors
def doctor(output: str) -> None:
    """Check Python, response store, warehouse, models and keys, panel, sandbox, Dagster's home and its daemon.

    Each check prints ok, warning or problem, and what to do. Changes nothing, makes no calls and shows no key.

    \b
    Exit code: 0 no problem; 1 there is a problem.
    """
    from dtef_pipeline.cli import doctor

    sys.exit(doctor.doctor(output))


@main.command(short_help="Score the answers in a file.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@choice("--family", choices=["survey", "qa"], default="survey", help="What FILE answers.")
@existing_path(
    "--tasks", help="(qa) File of programs to write in the layout of HumanEval, which lines of code_execution name by `task`."
)
@existing_path(
    "--corpus",
    help="FILE has questions about these interviews: a JSON file of documents, or a folder with interviews/*.csv and metadata.csv.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="With --corpus: folder to write to.  [default: the current one]",
)
@reports_errors
def score(file: Path, family: str, tasks: Path | None, corpus: Path | None, out: Path) -> None:
    """Score the answers in FILE, which has one JSON object per line; FILE may be - for standard input.

    \b
    In:  {"response": "[45, 30, 15, 10]", "expected": [40, 35, 15, 10], "options": [...], "metric": "js"}
    Out: the same line with status, reason, predicted (fractions), score,
         js, cosine, emd, emd_normalized, tv, mae, top_hit.

    \b
    With --family qa:
    In:  {"scorer": "list_one", "response": "They came by car.",
          "reference": {"car": 1, "bicycle": 0.5}}
         and optionally options, synonyms, wordnet_senses (first, all), penalty,
         strict, finish_reason, timeout_s, task; other keys are kept
    Out: the same line with status, value (null unless ok), score (as published),
         read_by (the rule that read the answer), flags, reason, and further output of
         the scorer, such as raw, binary, rationale, found

    A scorer is named by itself or by a type of questions: yes_no (Yes/No), list_one (ListOne), list_many (ListMany), pick_one (PickOne),
    pick_many (PickMany), yes_no_rationale (Yes/No with Rationale); exact_choice (a letter), numeric (a number); code_execution, with
    `task`, the name of a program in the file of --tasks, or with a reference of prompt, entry_point and test, whose status is the verdict;
    verbatim, with context and citations. An answer of a type without a scorer has the status no_scorer, and a line at the end counts these.

    With --corpus, FILE is a JSON file with `qa_pairs` about interviews. Its answers are scored, and every quotation is looked up in the
    documents. The results are `results-TIME.json` and two bar charts by interview, of scores and of quotations found; both averages are
    printed. No file is replaced, and no model is called: `dtef qa run` asks models the same questions.

    \b
    Exit code: 0 done; 1 a line of a survey or a question was left out; 2 a line or an option is wrong.
    """
    from dtef_pipeline.cli import score_files

    if corpus is not None:
        from dtef_pipeline.cli.qa.qa_scoring import score_interviews

        refuse_others(("corpus", "out"), "--corpus", exempt=("family",))
        sys.exit(score_interviews(file, corpus, out))
    refuse_others(("tasks",) if family == "qa" else (), f"--family {family}", exempt=("family",))
    sys.exit(score_files.score_file(family, file, tasks))


@main.command(short_help="Judge stored responses again, to see if judges changed.")
@click.option("--family", type=click.Choice(["rubric", "qa"]), required=True, help="Family whose judges are watched.")
@snapshot_or_base("Snapshot of the judgements, such as 2026-01-31; a new one judges everything again.")
@whole_number(
    "--n", "anchors", floor=1, help="Number of anchors.  [default: 200 of rubrics (a response and a criterion each), 50 of qa]"
)
@whole_number("--seed", "anchor_seed", floor=0, default=SEED, help="Seed of the choice of new anchors.")
@click.option(
    "--judges",
    "judges_file",
    type=click.Path(exists=True, dir_okay=False),
    help="(qa) YAML file with the block `arbiter`.  [default: data/judges.yaml]",
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="MODEL|APPROACH=MODEL",
    help="Judge to watch: APPROACH=MODEL for rubrics, which may be repeated; a model for qa.  [default: those of the blueprint, of the "
    "collection `judges`, or of the file of judges]",
)
@several("--max-cost-usd", metavar="[MODEL=]USD", help="Maximum cost of this in US dollars")
@several("--max-calls", metavar="[MODEL=]N", help="Maximum number of calls that this makes")
@click.option("--results", "show", is_flag=True, help="Show the results of earlier snapshots per judge; makes no calls.")
@writes_a_table
@reports_errors
def anchors(family: str, show: bool, output: str, **given: Any) -> None:
    """Have judges judge the same stored responses again in each snapshot: a shift is then the judge's, not the models'.

    Anchors are chosen once, spread over the scores, and stay. Each is judged once per snapshot. Models under test are not called.

    \b
    Exit code: 0 done; 1 it failed; 2 an option or the set-up is wrong; 130 interrupted.
    """
    from dtef_pipeline.cli import anchors

    if show:
        anchors.show(family, output)
    else:
        sys.exit(anchors.run(family, given))


@main.command(short_help="Start Dagster: its web page, schedules and sensors.")
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True, help="Port of the web page.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that the web page is served at.")
@reports_errors
def ui(port: int, host: str) -> None:
    """Start Dagster on the results of these commands: its web page, and the daemon that runs schedules and sensors."""
    from dtef_pipeline.cli import serve_ui

    sys.exit(serve_ui.ui(host, port))


@main.command(short_help="Start the HTTP API and its pages.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that the API is served at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="Port of the API; 0: any free port."
)
@flag("--dev", help="Require no token: every user of this computer has all rights. Loopback only.")
@reports_errors
def api(host: str, port: int, dev: bool) -> None:
    """Start the HTTP API: evaluations and their progress, personas, scenarios, pairs and votes; and pages for the browser.

    It requires a token of the file that DTEF_API_TOKENS names: make one with `dtef tokens NAME --role admin`. The API stores requests; a sensor
    of Dagster starts the runs, so `dtef ui` or Dagster's daemon must run, too.

    Start it once per response store: each process keeps its own count of votes per minute and its own queue of pairs.

    \b
    Exit code: 0 stopped; 2 an option or the set-up is wrong.
    """
    from dtef_pipeline.cli import serve_api

    sys.exit(serve_api.serve(host, port, is_open=dev))


@main.command(short_help="List, make or remove the tokens that the API accepts.")
@click.argument("name", required=False)
@choice("--role", choices=["reviewer", "operator", "admin"], help="Make a token for NAME with the rights of this role.")
@click.option("--remove", is_flag=True, help="Remove the token of NAME. Votes and actions under the name stay.")
@format_options
@reports_errors
def tokens(name: str | None, role: str | None, remove: bool, output: str) -> None:
    """Manage access to the HTTP API. The file that DTEF_API_TOKENS names holds a name, a role and the hash of a token per line.

    \b
        dtef tokens                     show who has a token
        dtef tokens NAME --role ROLE    make a token and show it, once
        dtef tokens NAME --remove       remove it: the API refuses it from then on

    A reviewer gets pairs and votes on them, under the name of the token. An operator may do everything except what needs an admin: to void
    votes, and to read the log of actions. A running API notices changes of the file by itself.
    """
    from dtef_pipeline.cli import token_commands

    if (name is None) != (role is None and not remove) or (role and remove):
        raise click.UsageError("give NAME with --role or --remove, or no NAME to list the tokens.")
    if name is None:
        token_commands.show(output)
    elif role is not None:
        token_commands.add(name, role)
    else:
        token_commands.remove(name)
