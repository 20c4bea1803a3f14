"""The `dtef` command, and those that serve. Heavy packages are imported inside the commands, so that `dtef --help` is instant."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any, TextIO

import click

from dtef_pipeline.cli.games_group import games
from dtef_pipeline.cli.options import (
    ADDED_UP_BY,
    VIEWS_OF_FAMILIES,
    Commands,
    OfFamily,
    chooses_a_board,
    of_estimate,
    of_family,
    of_format,
    of_metric,
    of_rounds,
    of_targets,
    reads_a_survey,
    reads_families,
    selects_what_is_asked,
    starts_from,
    writes_a_table,
)
from dtef_pipeline.cli.preference_group import preference
from dtef_pipeline.cli.qa_group import qa
from dtef_pipeline.cli.reported import reports_errors
from dtef_pipeline.cli.responses_group import responses
from dtef_pipeline.cli.rubric_group import rubric
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.counted import counted


@click.command(short_help="Start Dagster: its web page, schedules and sensors.")
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True, help="Port of the web page.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that the web page is served at.")
@reports_errors
def ui(port: int, host: str) -> None:
    """Start Dagster on the results of these commands: its web page, and the daemon that runs schedules and sensors."""
    from dtef_pipeline.cli import run

    sys.exit(run.ui(host, port))


@click.command(short_help="Start the HTTP API and its pages.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that the API is served at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="Port of the API; 0: one that is free."
)
@click.option(
    "--dev", is_flag=True, help="Ask nobody for a token: whoever is on this computer may do everything. Loopback only."
)
@reports_errors
def api(host: str, port: int, dev: bool) -> None:
    """Start the HTTP API: evaluations and their progress, personas, scenarios, pairs and votes; and pages for the browser.

    It is closed to all who hold no token of the file that DTEF_API_TOKENS names: make one with `dtef tokens new NAME --role admin`. The API
    stores what is asked for; a sensor of Dagster starts the runs, so `dtef ui` or Dagster's daemon must run beside it.

    Start it once per response store: each process counts the votes of a minute, and remembers which pairs come next, by itself.

    \b
    Exit code: 0 stopped; 2 the options or the set-up need mending.
    """
    from dtef_pipeline.cli import serve_api

    sys.exit(serve_api.serve(host, port, is_open=dev))


@click.group(short_help="Make, list and remove the tokens that the API takes.")
def tokens() -> None:
    """Say who may use the HTTP API. The file that DTEF_API_TOKENS names holds a name, a role and the hash of a token per line.

    \b
        dtef tokens new NAME --role ROLE   make a token and show it, once
        dtef tokens list                   show who holds one
        dtef tokens remove NAME            refuse it from now on

    A reviewer gets pairs and votes on them, under the name of the token. An operator does everything else, except what only an admin may:
    void votes, export votes, and read the log of actions. A running API notices changes of the file by itself.
    """


@tokens.command(short_help="Make a token and show it, once.")
@click.argument("name")
@click.option(
    "--role", required=True, type=click.Choice(["reviewer", "operator", "admin"]), help="What the holder of the token may do."
)
@reports_errors
def new(name: str, role: str) -> None:
    """Make a token for NAME, show it once, and store its hash. Of a reviewer NAME is the id that votes are stored under."""
    from dtef_pipeline.cli import kept_tokens

    kept_tokens.add(name, role)


@tokens.command("list", short_help="Show who holds a token, and which role.")
@of_format
@reports_errors
def list_tokens(output: str) -> None:
    """Show who holds a token, and which role. No token is shown, since none is stored."""
    from dtef_pipeline.cli import kept_tokens

    kept_tokens.show(output)


@tokens.command(short_help="Refuse a token from now on.")
@click.argument("name")
@reports_errors
def remove(name: str) -> None:
    """Remove the token of NAME, which is refused from then on. Votes and actions under the name stay."""
    from dtef_pipeline.cli import kept_tokens

    kept_tokens.remove(name)


SERVING_COMMANDS = (ui, api, tokens)


@click.command("export-blueprints", short_help="Write the prompts of a round as YAML files.")
@click.option("--round", "round_id", type=str.upper, metavar="ROUND", required=True, help="Round whose prompts are written.")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to; one YAML file per segment.",
)
@click.option(
    "--context",
    "contexts",
    multiple=True,
    help="Only prompts with this number of context questions; may be repeated.  [default: all]",
)
@click.option(
    "--condition", "conditions", multiple=True, help="Only prompts of this condition; may be repeated.  [default: all]"
)
@reports_errors
def export_blueprints(round_id: str, out: Path, contexts: tuple[str, ...], conditions: tuple[str, ...]) -> None:
    """Write the prompts of a round (its blueprints) as YAML files in the style of weval."""
    from dtef_pipeline.cli import read

    read.export_blueprints(round_id, out, contexts, conditions)


@click.command("score-answers", short_help="Score answers to questions in a file of JSON lines.")
@click.argument("file", type=click.File("r", encoding="utf-8-sig", errors="replace"))
@click.option(
    "--tasks",
    type=click.Path(exists=True, path_type=Path),
    help="File of programs to write in the layout of HumanEval, which lines of code_execution name by `task`.",
)
@click.option(
    "--trust-answers",
    is_flag=True,
    help="Run code where only resource limits hold it: it can read files and use the network.",
)
@reports_errors
def score_answers(file: TextIO, tasks: Path | None, trust_answers: bool) -> None:
    """Score the answers in FILE, which has one JSON object per line; FILE may be - for standard input.

    \b
    In:  {"scorer": "list_one", "response": "They came by car.",
          "reference": {"car": 1, "bicycle": 0.5}}
         and, where wanted, options, synonyms, senses (first, all), penalty,
         strict, finish_reason, timeout_s, task; other keys are handed on
    Out: the same line with status, value (null unless ok), score (as published),
         how (the rule that read the answer), flags, reason, and what the scorer
         tells beside them, such as raw, binary, rationale, found

    A scorer is named by itself or by a type of questions: yes_no (Yes/No), list_one (ListOne), list_many (ListMany), pick_one (PickOne),
    pick_many (PickMany), yes_no_rationale (Yes/No with Rationale); exact_choice (a letter), numeric (a number); code_execution, with
    `task`, the name of a program in the file of --tasks, or with a reference of prompt, entry_point and test, whose status is the verdict;
    verbatim, with context and citations. An answer of a type that nothing scores has the status no_scorer, and a line at the end counts these.

    \b
    Exit code: 0 done; 2 a line is not usable: nothing was scored, and the message names it.
    """
    from dtef_pipeline.cli.outside_scorers import outside_scorers
    from dtef_pipeline.qa.score_lines import read_answer_lines, scored_answer_lines, unknown_scorers

    where = getattr(file, "name", "<stdin>")  # a pipe into this very process has none
    out = sys.stdout
    outside = outside_scorers(tasks, trust_answers)
    lines = read_answer_lines(file, where, outside)
    if not lines:
        click.echo(f"{where}: nothing to score", err=True)
    statuses: Counter[str] = Counter()
    for line in scored_answer_lines(lines, statuses):
        out.write(f"{line}\n")  # click.echo would send each line on its way alone
    out.flush()
    if unknown := unknown_scorers(lines, outside):
        click.echo(unknown, err=True)
    if not_run := statuses["sandbox_unavailable"]:
        click.echo(f"no sandbox: {counted(not_run, 'program')} not run, and without a score; `dtef doctor` says why", err=True)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="dtef-pipeline")
def main() -> None:
    """Measure how accurately language models predict the survey answers of real demographic groups, and how well they do other things.

    \b
    A survey round goes through six stages: ingest, blueprint, predict, score, aggregate, drift.
        dtef ingest SURVEY            read a round: what each group really answered
        dtef run --round GD4          ask models and score their predictions; --estimate says what that would cost
        dtef leaderboard              show who predicts best
        dtef ui                       look at the same results in Dagster, in a browser
        dtef api                      serve the HTTP API and its pages (tokens: dtef tokens new)

    `dtef rubric --help` has the commands of rubrics (responses judged by criteria), `dtef qa --help` those of questions with expected answers,
    `dtef games --help` those of games that models, personas, baselines and you play, `dtef preference --help` those of votes on two responses.
    With --family rubric, qa or games costs, drift, leaderboard, report and responses are about these; doctor, models, sql, ui, api serve all.

    Results are kept in the folder .dtef/, or where DTEF_WAREHOUSE, DTEF_RESPONSES and DAGSTER_HOME say. A command that reads tables skips
    a file that it cannot read, names it with the command that makes it again, and ends with exit code 1.
    """


@main.command(short_help="Read a survey round: what each group really answered.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@reads_a_survey
@reports_errors
def ingest(paths: tuple[Path, ...], **options: Any) -> None:
    """Read survey rounds and store what each segment answered to each question (the table `survey_responses`).

    Each PATH is a Global Dialogues folder, a DTEFSurveyData JSON file, or a long table (CSV or Parquet). All are checked before one is stored.

    \b
    Exit code: 0 done; 1 something was not read, and all else was stored; 2 nothing was changed; 130 interrupted.
    """
    if sys.stderr.isatty():
        click.echo(f"reading {', '.join(map(str, paths))}", err=True)
    from dtef_pipeline.cli import ingest

    sys.exit(ingest.ingest(paths, ingest.IngestOptions(**options)))


@main.command(short_help="Ask models about a round and score their predictions.")
@selects_what_is_asked
@of_metric
@starts_from("ingest", "ask")
@click.option(
    "--from-store", is_flag=True, help="Make the partitions again from the response store: by default, no model is asked."
)
@click.option("--no-roll-ups", is_flag=True, help="Do not update the roll-ups now; `dtef rollup` or the next run does.")
@of_estimate
@reports_errors
def run(is_estimate: bool, output: str, **given: Any) -> None:
    """Ask models about a round, score their predictions and look for drift; then update the roll-ups.

    Roll-ups are the tables over all rounds, such as the leaderboard, and the report. Responses that are stored already are used again, and
    only the missing ones are asked for; --snapshot with a new label asks for all anew. When a budget is reached, finished work is kept. Give
    the command again to ask for the rest: a budget counts from zero at each start. `dtef leaderboard --help` explains the columns of the board.

    With --estimate the tokens of prompts are estimated on the high side. For responses two numbers are given: what is usual (the mean of
    earlier responses, if there are any), and the most that the models' max_tokens allow. Where the price of a model is not known, its cost is
    `unknown`.

    \b
    Exit code: 0 done; 1 a partition failed, or a file was left out; 2 the options or the set-up need mending; 4 a model never answered;
    130 interrupted (the responses so far are kept).
    """
    from dtef_pipeline.cli import estimate, run
    from dtef_pipeline.cli.selection import RunOptions

    options = RunOptions(**given)
    if is_estimate:
        estimate.estimate(options, output)
    else:
        sys.exit(run.run(options))


@main.command(short_help="Update the boards over all that is scored, and the report.")
@of_metric
@reports_errors
@reads_families(more=["preference"])
def rollup(metric: str) -> None:
    """Update the roll-ups of a family: the tables over all its partitions (boards, tests, costs, drift of the models) and the report.

    Every run does so too, unless `--no-roll-ups` is given. After several such runs, give this command once. With --family preference the table
    preference_scores is made of all votes that are not voided, as the section `preference` of the panel says. No model is asked.

    \b
    Exit code: 0 done; 1 a roll-up failed, or a file was left out; 2 nothing is scored yet, or the options or the set-up need mending;
    130 interrupted.
    """
    from dtef_pipeline.cli import run

    sys.exit(run.rollup(metric))


@main.command(short_help="Show what language models were asked, and what it cost.")
@click.option(
    "--by",
    multiple=True,
    type=ADDED_UP_BY,
    help="What to add up the requests by; a variant is a model with its sampling; may be repeated.  [default: family and role; with "
    "--family survey model, rubric role and model, qa role, suite, evaluator and model, games role, scenario, persona and model]",
)
@of_family(None, "Family of evaluations to show.  [default: all]")
@of_rounds
@click.option("--snapshot", help="Only this snapshot.  [default: all]")
@writes_a_table
@reports_errors
def costs(by: tuple[str, ...], family: str | None, rounds: tuple[str, ...], snapshot: str | None, output: str) -> None:
    """Show what was asked of language models, and what it cost: requests, tokens, US dollars.

    A request counts once, however many rows rest on it. The numbers are those of the table costs, which every run brings up to date.
    """
    from dtef_pipeline.cli.costs import costs as show_costs

    show_costs(family, by, rounds, snapshot, output)


@main.command(short_help="Compare ways of asking by their scores.")
@click.argument("name", required=False)
@of_rounds
@click.option(
    "--model",
    "models",
    multiple=True,
    help="Only this model or collection; may be repeated.  [default: all models that were asked]",
)
@click.option(
    "--context",
    "contexts",
    multiple=True,
    help="Only this number of context questions; may be repeated.  [default: those of the experiment]",
)
@click.option("--snapshot", default="base", show_default=True, help="Snapshot whose scores are compared.")
@of_metric
@of_targets
@click.option(
    "--margin",
    type=float,
    default=0.01,
    show_default=True,
    help="Difference of scores that is too small to matter; conditions that surely differ by less are called equivalent.",
)
@writes_a_table
@reports_errors
def experiment(name: str | None, output: str, **options: Any) -> None:
    """Compare the conditions (ways of asking) of an experiment by their scores. Without NAME, list the experiments there are.

    NAME is an experiment of that list, or a file. The models must have been asked before: `dtef run --experiment NAME`.

    \b
    Every condition is compared with the first one:
    better, worse  the difference is more than chance (t test of whole batteries, adjusted for all rows, p < .05)
    equivalent     the difference is surely smaller than the margin (its 90 % interval lies within the margin)
    undecided      none of these
    """
    from dtef_pipeline.cli import after_run

    if name is None:
        after_run.experiments(output)
    else:
        after_run.experiment(name, output, **options)


@main.command(short_help="Rank models by their mean score, overall or in groups.", epilog=VIEWS_OF_FAMILIES)
@of_rounds
@chooses_a_board
@writes_a_table
@reports_errors
@reads_families("by", "output")
def leaderboard(by: str, output: str, rounds: tuple[str, ...], **options: Any) -> None:
    """Rank models by their mean score with 95 % intervals, overall or within groups; or test what the ranks show."""
    from dtef_pipeline.cli import read

    read.leaderboard(by, output, rounds=rounds, **options)


@main.command(short_help="Tell whether models respond in another way than before.")
@of_rounds
@click.option(
    "--by",
    type=OfFamily(
        survey=["model", "round", "segment"], rubric=["model", "blueprint"], qa=["model", "part"], games=["model", "scenario"]
    ),
    default="model",
    show_default=True,
    help="What gets a verdict: each model over all there is, or in a round, a segment, a blueprint (rubric), a part (qa), a scenario (games).",
)
@click.option(
    "--since",
    multiple=True,
    metavar="[MODEL=]DATE",
    help="Leave out snapshots before this date, of all models, or of one model or judge, to accept a known drift; may be repeated.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["watch", "drift"]),
    help="Exit with code 3 at this verdict or a worse one; with 4 where it is too early to tell a drift.",
)
@writes_a_table
@reports_errors
@reads_families("by", "since", "fail_on", "output")
def drift(rounds: tuple[str, ...], by: str, since: tuple[str, ...], fail_on: str | None, output: str) -> None:
    """Tell whether a model now responds to the same prompts in another way than before, and what else changed.

    The first snapshots of a model (five, unless a panel file says otherwise) are its baseline. Later snapshots are compared with the baseline
    on the prompts that both asked. Only models at temperature 0 get a verdict:

    \b
    drift   the highest mean score is at least 0.05 and 10 % above the lowest (the documented rule), and there is
            strong evidence of a change: if no model changed, the chance that any row ever says drift is at most 5 %
            (any row of a round, with --by round or --by segment), however many snapshots follow
    watch   the rule is met without strong evidence: look again when there are more snapshots
    none    the rule is not met
    A row without a verdict was not compared, and says why.

    The verdict is about the model: where other models were asked in the same nights, it is of what this one did beyond them. The column night
    has the verdict on what all of them did together, such as when a provider, the network or the prompts changed: watch at most, since no model
    stood still to compare them with. --fail-on counts both.

    \b
    Exit code: 0 done; 1 a file was left out; 2 the options or the set-up need mending; 3 the verdict that --fail-on names, or a worse one;
    4 --fail-on drift was given, no row says drift, and of one it is too early to tell (the baseline and one more snapshot are needed);
    5 --fail-on was given and no row could be compared.
    """
    from dtef_pipeline.cli import read

    sys.exit(read.drift(rounds, by, since, fail_on, output))


@main.command(short_help="Score single responses in a file of JSON lines.")
@click.argument("file", type=click.File("r", encoding="utf-8-sig", errors="replace"))
@reports_errors
def score(file: TextIO) -> None:
    """Score the responses in FILE, which has one JSON object per line; FILE may be - for standard input.

    \b
    In:  {"response": "[45, 30, 15, 10]", "expected": [40, 35, 15, 10], "options": [...], "metric": "js"}
    Out: the same line with status, reason, predicted (fractions), score,
         js, cosine, emd, emd_normalized, tv, mae, top_hit.
    """
    from dtef_pipeline.cli import read

    sys.exit(read.score(file))


@main.command(short_help="Query the tables with DuckDB SQL.")
@click.argument("query")
@writes_a_table
@reports_errors
def sql(query: str, output: str) -> None:
    """Query the tables with DuckDB SQL: survey_responses, scores, leaderboard, rubric_scores, qa_scores, qa_board, ..."""
    from dtef_pipeline.cli import read

    read.sql(query, output)


@main.command(short_help="Write the results as one HTML page.")
@click.option(
    "--out",
    default="report.html",
    show_default="report.html; of rubrics the folder rubric_report, of qa qa_report, of games games_report",
    type=click.Path(path_type=Path),
    help="File to write.",
)
@click.option(
    "--snapshot", help="Only the runs of this snapshot; with --family rubric.  [default: the latest run that has a score]"
)
@reports_errors
@reads_families("out", "snapshot")
def report(out: Path, snapshot: str | None) -> None:
    """Write the report: one HTML page that needs no other file and no network; of rubrics, qa and games a folder of such pages.

    Pages that an earlier report wrote into the folder, and that do not belong to this one, are removed; other files are not touched, and where
    one of them has the name of a page it is left, with an error.
    """
    from dtef_pipeline.cli import read

    if snapshot is not None:
        raise ConfigError("--snapshot: allowed with --family rubric")
    if out.is_dir():
        raise click.BadParameter(f"File {str(out)!r} is a directory.", param_hint="'--out'")
    read.report(out)


@main.command(short_help="List the models and collections that --model takes.")
@writes_a_table
@reports_errors
def models(output: str) -> None:
    """List the models and collections that --model takes, --judge of rubrics and questions, and the panel file.

    A model is asked as `transport` says: direct (to the address, without litellm), litellm, or local (in this process); nobody is asked where
    it says nothing. `address` is that of a server of yours, without a password.
    """
    from dtef_pipeline.cli import models

    models.list_models(output)


for _other in (export_blueprints, responses, rubric, qa, games, preference, score_answers, *SERVING_COMMANDS):
    main.add_command(_other)


@main.command(short_help="Check that everything that commands need is there.")
@of_format
@reports_errors
def doctor(output: str) -> None:
    """Check Python, response store, warehouse, models and keys, panel, sandbox, Dagster's home and its daemon.

    A line per check says ok, warning or problem, and what to do. Nothing is changed, no model is asked, and no key is shown.

    \b
    Exit code: 0 no problem; 1 there is a problem.
    """
    from dtef_pipeline.cli import doctor

    sys.exit(doctor.doctor(output))
