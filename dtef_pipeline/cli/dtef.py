"""The `dtef` command. Heavy packages are imported inside the commands, so that `dtef --help` is instant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TextIO

import click

from dtef_pipeline.cli.options import OUTPUT_FORMATS, VIEWS_SHOWN, chooses_a_board, of_rounds, selects_what_is_asked
from dtef_pipeline.cli.reported import reports_errors


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="dtef-pipeline")
def main() -> None:
    """Measure how accurately language models predict the survey answers of real demographic groups.

    \b
    A survey round goes through six stages: ingest, blueprint, predict, score, aggregate, drift.
        dtef ingest SURVEY            register a round and read its observed distributions
        dtef estimate --round GD4     what asking would cost
        dtef run --round GD4          ask models and score what they say
        dtef leaderboard              who predicts best
        dtef ui                       the same state in the Dagster UI

    State is found through DTEF_WAREHOUSE, DTEF_RESPONSES and DAGSTER_HOME (default: below .dtef/).
    """


@main.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--round", "round_id", help="Round id.  [default: the folder's name, or the survey's id in the file]")
@click.option(
    "--min-n", type=click.IntRange(min=1), help="Smallest number of respondents of a distribution that is used.  [default: 10]"
)
@reports_errors
def ingest(path: Path, round_id: str | None, min_n: int | None) -> None:
    """Read a survey round, register its partitions and materialize `survey_responses`.

    PATH is a Global Dialogues folder, a DTEFSurveyData JSON file, or a long table (CSV or Parquet).
    """
    from dtef_pipeline.cli import run

    sys.exit(run.ingest(path, round_id, min_n))


@main.command()
@selects_what_is_asked
@click.option("--metric", default="js", show_default=True, help="Metric behind the score.")
@click.option("--ingest", "with_ingest", is_flag=True, help="Read the survey again first.")
@click.option(
    "--no-roll-ups",
    is_flag=True,
    help="Leave out the boards, costs and report over all rounds; `dtef rollup` or the next run makes them.",
)
@reports_errors
def run(**options: Any) -> None:
    """Ask models, score and aggregate, check for drift: the stages after ingest, in one Dagster run, then the roll-ups.

    Within a snapshot, what was answered before is replayed from the response store; only what is missing is asked. On reaching a budget
    what is done is kept, and the rest is asked when the command is given again. A budget counts from zero at each start.

    \b
    Exit code: 0 done; 1 a partition failed; 2 the options or the set-up need mending; 4 a model never answered;
    130 interrupted (what was answered is kept).
    """
    from dtef_pipeline.cli import run
    from dtef_pipeline.cli.selection import RunOptions

    sys.exit(run.run(RunOptions.of(options)))


@main.command()
@click.option("--metric", default="js", show_default=True, help="Metric behind the score.")
@reports_errors
def rollup(metric: str) -> None:
    """Make the roll-ups of everything that is stored: boards, tests of what they show, costs, drift of the models, the report.

    `dtef run` makes them too, unless told `--no-roll-ups`: after several such runs this makes them once. No model is asked.

    \b
    Exit code: 0 done; 1 a roll-up failed; 2 nothing is scored yet, or the options or the set-up need mending; 130 interrupted.
    """
    from dtef_pipeline.cli import run

    sys.exit(run.rollup(metric))


@main.command()
@selects_what_is_asked
@click.option("--format", "output", type=OUTPUT_FORMATS, default="table", show_default=True)
@reports_errors
def estimate(output: str, **options: Any) -> None:
    """Count what `dtef run` with the same options would ask, and what it would cost. Nothing is asked, nothing is written.

    Tokens of prompts are estimated on the high side. Responses: what is usual (the mean of earlier ones, if there are any), and the most that
    the models' max_tokens allow. A price that is not known is `unknown`.
    """
    from dtef_pipeline.cli import estimate
    from dtef_pipeline.cli.selection import RunOptions

    estimate.estimate(RunOptions.of(options), output)


@main.command()
@click.option(
    "--by",
    multiple=True,
    type=click.Choice(["model", "round", "segment", "snapshot", "condition"]),
    help="Breakdown to show; may be repeated.  [default: model]",
)
@of_rounds
@click.option("--snapshot", help="Only this snapshot.  [default: all]")
@click.option("--format", "output", type=OUTPUT_FORMATS, default="table", show_default=True)
@reports_errors
def costs(by: tuple[str, ...], rounds: tuple[str, ...], snapshot: str | None, output: str) -> None:
    """Show what was asked of language models, and what it cost: requests, tokens, US dollars."""
    from dtef_pipeline.cli import after_run

    after_run.costs(by or ("model",), rounds, snapshot, output)


@main.command()
@click.argument("name", required=False)
@of_rounds
@click.option(
    "--model",
    "models",
    multiple=True,
    help="Only this model or collection; may be repeated.  [default: all models that were asked]",
)
@click.option(
    "--context", "contexts", multiple=True, help="Only this context level; may be repeated.  [default: those of the experiment]"
)
@click.option("--snapshot", default="base", show_default=True, help="Snapshot whose scores are compared.")
@click.option("--metric", default="js", show_default=True, help="Metric behind the score.")
@click.option(
    "--targets",
    default="clean",
    show_default=True,
    type=click.Choice(["clean", "all"]),
    help="Questions that count; clean leaves out those that define the segment itself.",
)
@click.option(
    "--margin",
    type=float,
    default=0.01,
    show_default=True,
    help="Largest difference of scores that does not matter; conditions that are surely closer count as equivalent.",
)
@click.option("--format", "output", type=OUTPUT_FORMATS, default="table", show_default=True)
@reports_errors
def experiment(name: str | None, output: str, **options: Any) -> None:
    """Compare the conditions of an experiment, from the scores there are; without NAME, list the experiments that are shipped.

    NAME is a shipped experiment, or a file. `dtef run --experiment NAME` asks.

    Each condition is better or worse than the first (sign-flip test of whole questions, adjusted over the rows, p < .05), equivalent to it
    (the 90 % interval of the difference lies within the margin), or undecided.
    """
    from dtef_pipeline.cli import after_run

    if name is None:
        after_run.experiments(output)
    else:
        after_run.experiment(name, output, **options)


@main.command(epilog=VIEWS_SHOWN)
@of_rounds
@chooses_a_board
@click.option("--format", "output", type=OUTPUT_FORMATS, default="table", show_default=True)
@reports_errors
def leaderboard(by: str, output: str, rounds: tuple[str, ...], **options: Any) -> None:
    """Rank models, overall or broken down, with 95 % intervals; or test what the ranks show."""
    from dtef_pipeline.cli import read

    read.leaderboard(by, output, rounds=rounds, **options)


@main.command()
@of_rounds
@click.option(
    "--by",
    type=click.Choice(["model", "round", "segment"]),
    default="model",
    show_default=True,
    help="Series to judge: one per model over all rounds and segments, or one per round or segment.",
)
@click.option(
    "--since",
    multiple=True,
    metavar="[MODEL=]DATE",
    help="Leave out snapshots before this date, of all models or of one, because an earlier drift is known and accepted; may be repeated.",
)
@click.option("--fail-on", type=click.Choice(["watch", "drift"]), help="Exit with code 3 at this verdict or a worse one.")
@click.option("--format", "output", type=OUTPUT_FORMATS, default="table", show_default=True)
@reports_errors
def drift(rounds: tuple[str, ...], by: str, since: tuple[str, ...], fail_on: str | None, output: str) -> None:
    """Tell whether a model answers the same prompts otherwise than it did, and what changed with it.

    The first snapshots (five, unless the panel says otherwise) are the baseline; later ones are compared with it on the prompts that both asked.

    \b
    drift   the documented rule says so (at temperature 0 the highest mean is 0.05 and 10 % above the lowest),
            and so does the evidence, however often one looks: by chance among the series of a list in 5 % (alpha)
    watch   the rule alone says so: look again when there are more snapshots
    none    neither; a row without a verdict was not compared, and says why

    \b
    Exit code: 0 done; 2 the options or the set-up need mending; 3 the verdict that --fail-on names, or a worse one.
    """
    from dtef_pipeline.cli import read

    sys.exit(read.drift(rounds, by, since, fail_on, output))


@main.command()
@click.argument("file", type=click.File("r", encoding="utf-8-sig", errors="replace"))
@reports_errors
def score(file: TextIO) -> None:
    """Score responses given as JSON lines; FILE may be - for standard input.

    \b
    In:  {"response": "[45, 30, 15, 10]", "expected": [40, 35, 15, 10], "options": [...], "metric": "js"}
    Out: the same line with status, predicted (fractions), score, js, cosine, emd, emd_normalized, tv.
    """
    from dtef_pipeline.cli import read

    sys.exit(read.score(file))


@main.command("export-blueprints")
@click.option("--round", "round_id", type=str.upper, metavar="ROUND", required=True, help="Round whose blueprints are written.")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to; one YAML file per segment.",
)
@click.option("--context", "contexts", multiple=True, help="Only this context level; may be repeated.  [default: all made]")
@click.option("--condition", "conditions", multiple=True, help="Only this condition; may be repeated.  [default: all made]")
@reports_errors
def export_blueprints(round_id: str, out: Path, contexts: tuple[str, ...], conditions: tuple[str, ...]) -> None:
    """Write a round's blueprints as weval-style YAML."""
    from dtef_pipeline.cli import read

    read.export_blueprints(round_id, out, contexts, conditions)


@main.command()
@click.argument("query")
@click.option("--format", "output", type=OUTPUT_FORMATS, default="table", show_default=True)
@reports_errors
def sql(query: str, output: str) -> None:
    """Query the tables with DuckDB SQL: survey_responses, blueprints, predictions, scores, segment_results, leaderboard, ..."""
    from dtef_pipeline.cli import read

    read.sql(query, output)


@main.command()
@click.option("--out", default="report.html", show_default=True, type=click.Path(dir_okay=False, path_type=Path))
@reports_errors
def report(out: Path) -> None:
    """Write the report as one self-contained HTML page."""
    from dtef_pipeline.cli import read

    read.report(out)


@main.command()
@reports_errors
def models() -> None:
    """List the models and collections that --model takes."""
    from dtef_pipeline.cli import read

    read.models()


@main.group()
def responses() -> None:
    """Look into the response store, where every response of a model is kept, and move responses between machines."""


@responses.command()
@click.option("--format", "output", type=OUTPUT_FORMATS, default="table", show_default=True)
@reports_errors
def show(output: str) -> None:
    """List what the response store holds: responses, tokens and cost of each model and snapshot."""
    from dtef_pipeline.cli import responses

    responses.show(output)


@responses.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--model", "models", multiple=True, metavar="NAME", help="Only this model; may be repeated.")
@click.option("--snapshot", "snapshots", multiple=True, metavar="LABEL", help="Only this snapshot; may be repeated.")
@reports_errors
def export_responses(file: Path, models: tuple[str, ...], snapshots: tuple[str, ...]) -> None:
    """Write raw responses to FILE: Parquet or JSON lines, by its suffix (.parquet, .jsonl, .jsonl.gz)."""
    from dtef_pipeline.cli import responses

    responses.export_file(file, models, snapshots)


@responses.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@reports_errors
def import_responses(file: Path) -> None:
    """Add the responses of FILE to the response store. Those it has already stay as they are; a bad row adds nothing."""
    from dtef_pipeline.cli import responses

    responses.import_file(file)


@main.command()
@click.option("--port", type=int, default=3000, show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True)
@reports_errors
def ui(port: int, host: str) -> None:
    """Open Dagster on the same state: web server and daemon."""
    from dtef_pipeline.cli import run

    sys.exit(run.ui(host, port))
