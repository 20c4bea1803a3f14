"""What `dtef rubric compare` does; the words are in `dtef_pipeline/cli/rubric_compare_group.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_label import snapshot_time
from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.rubric_stored_run import known_snapshot, printable_frame, require_blueprint, scored_snapshots
from dtef_pipeline.cli.terminal_width import say, terminal_fit
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.report.column_lines import column_lines
from dtef_pipeline.report.fitting import shown_columns
from dtef_pipeline.report.terminal import intervals_of, render
from dtef_pipeline.rubric.runs_compared import compare_runs, has_regression, moved_prompts
from dtef_pipeline.rubric.watched_drift import documented_drift, times_of
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.text.counted import and_more, counted
from dtef_pipeline.text.nearest import nearest
from resources.warehouse import Warehouse

MODEL_WORSE = 3
"""Exit code of `--fail-on regression` where a model is worse."""
_MODELS_NAMED = 10
_HASHES = {"test_hash": "the prompts or criteria", "judge_hash": "the judges", "policy_hash": "the scoring policy"}
_COLUMNS_OF_TWO_RUNS = [
    "model",
    "verdict",
    "difference",
    "interval",
    "other_score",
    "score",
    "n_prompts",
    "n_pairs",
    "p_adjusted",
]
_COMPARISON_WORDS = {
    "model": "Model, over all its temperatures and system prompts",
    "verdict": "Decision: regression, improvement, equivalent or undecided",
    "difference": "Mean hybrid score in B less that in A, over pairs, by the weights of prompts",
    "interval": "95 % interval of the difference; empty: too few prompts",
    "other_score": "Mean hybrid score of the pairs in A, 0-1",
    "score": "Mean hybrid score of the pairs in B, 0-1",
    "n_prompts": "Prompts with a pair",
    "n_pairs": "Prompts as one variant answered them in both runs",
    "p_adjusted": "Probability of so large a difference by chance, adjusted over the models (Holm)",
    "moved_model": "Model that moved most on the prompt",
    "model_difference": "Its mean hybrid score on the prompt in B less that in A",
}


@reads_tables
def compare(
    warehouse: Warehouse,
    blueprint: str,
    before: str | None,
    after: str | None,
    drift: str | None,
    by: str,
    top: int,
    fail_on: str | None,
    output: str,
) -> int:
    """The exit code."""
    require_blueprint(warehouse, blueprint)
    known = scored_snapshots(warehouse, blueprint)
    first, second = _pair(warehouse, blueprint, known, before, after, drift)
    old, new = (warehouse.rows("rubric_scores", blueprint=blueprint, snapshot=one).to_pandas() for one in (first, second))
    models, prompts = compare_runs(old, new), moved_prompts(old, new)
    if output != "table":
        click.echo(render(models if by == "model" else prompts, output))
    else:
        _print(warehouse, blueprint, (first, second), models, prompts.head(top or len(prompts)))
    if not fail_on:
        return 0
    for line in _not_to_be_shown(models, fail_on):
        say(f"warning: {line}", err=True)
    return MODEL_WORSE if has_regression(models) else 0


def _not_to_be_shown(models: pd.DataFrame, fail_on: str) -> Iterator[str]:
    """Of which models `--fail-on` says nothing, however much worse they are."""
    if not len(models):
        yield f"--fail-on {fail_on} says nothing: no model has a score for the same prompt in both runs"
        return
    few = models[models["n_prompts"] < MIN_CLUSTERS]
    if len(few):
        counts = zip(few["model"], few["n_prompts"].tolist(), strict=True)
        who = [f"{model} ({counted(n, 'prompt')})" for model, n in counts]
        among = f"at least {counted(MIN_CLUSTERS, 'prompt')} in both runs are needed to show a {fail_on}"
        yield f"--fail-on {fail_on} says nothing about {and_more(who, _MODELS_NAMED)}: {among}"


def _pair(
    warehouse: Warehouse, blueprint: str, known: Sequence[str], before: str | None, after: str | None, drift: str | None
) -> tuple[str, str]:
    """The two snapshots, the one that counts as before first."""
    if drift is not None:
        if before is not None:
            raise ConfigError("--drift names the two runs: allowed is either a model with --drift, or two snapshots")
        return _drifted(warehouse, blueprint, known, drift)
    if before is None or after is None:
        raise ConfigError(f"two snapshots of {blueprint} are needed, A and B; known, earliest first: {', '.join(known)}")
    chosen = known_snapshot(blueprint, before, known), known_snapshot(blueprint, after, known)
    if before == after:
        raise ConfigError(f"snapshot {before!r} twice: allowed are two that differ; known: {', '.join(known)}")
    return chosen


def _drifted(warehouse: Warehouse, blueprint: str, known: Sequence[str], model: str) -> tuple[str, str]:
    """The lowest and the highest run of the variant of the model with the largest gap, the earlier one first."""
    scores, runs, times = (
        pa.concat_tables(_of_snapshots(warehouse, table, columns, blueprint, known)).to_pandas()
        for table, columns in (
            ("rubric_scores", None),
            ("rubric_runs", None),
            ("rubric_responses", ["blueprint", "snapshot", "answered_at"]),
        )
    )
    # A label that begins with a date counts as that date, as everywhere.
    when = {run: snapshot_time(run[1], first) for run, first in times_of(times).items()}
    found = documented_drift(scores, runs, when, known)
    own = found[(found["model"] == model) | (found["model_variant"] == model)]
    if not len(own):
        names = sorted({*found["model"]}) or ["none at temperature 0"]
        raise ConfigError(f"--drift {model!r}: no run of it at temperature 0; known: {nearest(model, names)}")
    gaps = own.dropna(subset=["gap"]).sort_values("gap", ascending=False, kind="stable")
    if not len(gaps):
        raise ConfigError(f"--drift {model!r}: the rule compares no two runs of it: {own['reason'].iloc[0]}")
    row = gaps.iloc[0]
    pair = [one for one in known if one in (row["lowest_snapshot"], row["highest_snapshot"])]
    if len(pair) != 2:
        raise ConfigError(f"--drift {model!r}: its lowest and its highest run are the same one, {pair[0]}: nothing moved")
    return pair[0], pair[1]


def _of_snapshots(
    warehouse: Warehouse, table: str, columns: Sequence[str] | None, blueprint: str, known: Sequence[str]
) -> list[pa.Table]:
    return [warehouse.rows(table, columns=columns, blueprint=blueprint, snapshot=one) for one in known]


def _print(warehouse: Warehouse, blueprint: str, pair: tuple[str, str], models: pd.DataFrame, prompts: pd.DataFrame) -> None:
    click.echo(f"{blueprint}: A = {pair[0]}, B = {pair[1]}\n")
    for line in _differing(warehouse, blueprint, pair):
        say(f"note: {line}")
    if not len(models):
        say("no model has a score for the same prompt in both")
        return
    shown = printable_frame(models.assign(interval=intervals_of(models, "difference", ("low", "high"))))
    fit = terminal_fit(["model", "verdict", "difference"], ["n_pairs", "n_prompts"])
    ends = {"difference": ("low", "high")}
    click.echo(render(shown, "table", columns=_COLUMNS_OF_TWO_RUNS, ends=ends, fit=fit))
    for note in dict.fromkeys(note for note in models["note"] if note):
        say(f"{counted(int((models['note'] == note).sum()), 'model')}: {note}")
    moved = printable_frame(prompts)
    click.echo(f"\n{counted(len(moved), 'prompt')} that moved most\n")
    click.echo(render(moved, "table", fit=terminal_fit(["prompt", "difference"], ["n_pairs"])))
    told = [*shown_columns(_COLUMNS_OF_TWO_RUNS, fit), "moved_model", "model_difference"]
    click.echo(column_lines(told, _COMPARISON_WORDS, fit.width))


def _differing(warehouse: Warehouse, blueprint: str, pair: tuple[str, str]) -> Iterator[str]:
    """What else than the responses is another one in the two runs, so that a difference need not be the models'."""
    rows: list[list[dict[str, Any]]] = [
        warehouse.rows("rubric_runs", blueprint=blueprint, snapshot=one).to_pylist() for one in pair
    ]
    if not all(rows):
        return
    differ = [words for name, words in _HASHES.items() if rows[0][0][name] != rows[1][0][name]]
    if differ:
        yield f"{', '.join(differ)} differ between the two runs, so a difference need not be the models' own"
