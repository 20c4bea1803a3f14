"""What the `dtef` commands that start something do; the words are in `dtef_pipeline/cli.py`."""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pyarrow.compute as pc

from assets.reading import COMMON_COLUMNS, warehouse
from dtef_pipeline.aggregation.boards import BoardOptions, board
from dtef_pipeline.blueprint.options import BlueprintOptions
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import partition_key
from dtef_pipeline.report.text import named_apart, render
from resources.progress import keep_terminal
from resources.settings import Settings, shipped
from resources.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`dtef run` as it was called."""

    rounds: tuple[str, ...]
    segments: tuple[str, ...]
    models: tuple[str, ...]
    contexts: tuple[str, ...]
    questions: int | None
    draws: int
    snapshot: str
    limits: tuple[str, ...]
    metric: str
    selection: str
    token_budget: int
    show_n: bool
    with_ingest: bool

    @property
    def context_levels(self) -> list[str]:
        return list(dict.fromkeys(level for given in self.contexts or ("0",) for level in given.replace(",", " ").split()))

    def config(self) -> dict[str, dict[str, Any]]:
        """Run configuration by asset name."""
        if not self.snapshot.strip():
            raise ConfigError("snapshot '': allowed: a label such as base, or a date such as 2026-01-31")
        of_snapshot = {"snapshot": self.snapshot}
        blueprint = BlueprintOptions(
            tuple(self.context_levels), self.selection, token_budget=self.token_budget, show_n=self.show_n
        )
        return {
            "blueprints": {
                "context_levels": list(blueprint.context_levels),
                "conditions": [blueprint.condition],
            },
            "predictions": {
                "models": list(self.models or ("baselines",)),
                "context_levels": self.context_levels,
                "conditions": [blueprint.condition],
                "draws": self.draws,
                "limits": _limits(self.limits),
                **({"questions": self.questions} if self.questions else {}),
                **of_snapshot,
            },
            "scores": {"metric": BoardOptions(metric=self.metric).metric, **of_snapshot},
            "segment_results": of_snapshot,
        }


def _limits(given: tuple[str, ...]) -> dict[str, int]:
    limits = {}
    for text in given:
        name, _, most = text.rpartition("=")
        if not name or not most.isdigit():
            raise ConfigError(f"limit {text!r}: allowed: MODEL=N, such as gpt-4.1-mini=100")
        limits[name] = int(most)
    return limits


@contextmanager
def dagster_instance() -> Iterator[Any]:
    """The instance of DAGSTER_HOME (made on first use from the shipped template): the one the UI shows."""
    home = prepare_home()
    import dagster as dg

    with dg.DagsterInstance.get() as instance:
        yield instance
    del home


def prepare_home() -> Path:
    home = Settings.from_environment().dagster_home
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "dagster.yaml").exists():
        shutil.copyfile(shipped("dagster.yaml"), home / "dagster.yaml")
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def ingest(path: Path, round_id: str | None, min_n: int | None) -> int:
    from dtef_pipeline.survey.adapters import read_surveys
    from dtef_pipeline.survey.observe import MIN_N

    surveys = read_surveys(path, round_id)
    from assets.launch import materialize
    from assets.rounds import register_round
    from resources.survey_source import SurveySources

    house = warehouse()
    failures = 0
    with dagster_instance() as instance:
        for survey in surveys:
            started = time.monotonic()
            keys, retired = register_round(instance, SurveySources(house), survey, path, min_n=min_n or MIN_N)
            outcome = materialize(instance, ["survey_responses"], keys, {})
            failures += len(outcome.failures)
            _say_ingested(house, survey.round, retired, time.monotonic() - started)
            for failure in outcome.failures:
                click.echo(f"error: {failure}", err=True)
    house.refresh_database()
    return 1 if failures else 0


def _say_ingested(house: Warehouse, round_id: str, retired: list[str], seconds: float) -> None:
    rows = house.read_or_empty("survey_responses", columns=["segment", "question_id", "n_source"], round=round_id)
    quarantine = house.read_or_empty("survey_quarantine", round=round_id)
    pairs = len(quarantine) - quarantine["question_id"].null_count
    click.echo(
        f"{round_id}: {len(pc.unique(rows['segment']))} segments, {len(pc.unique(rows['question_id']))} questions, "
        f"{len(rows):,} pairs, {pairs:,} pairs and {len(quarantine) - pairs} whole segments in quarantine ({seconds:.1f} s)"
    )
    if retired:
        click.echo(f"  warning: retired {len(retired)} segments that the round no longer has: {', '.join(retired)}")
    findings = house.read_or_empty("survey_findings", round=round_id).to_pylist()
    left_out = [finding for finding in findings if finding["code"] == "profile-question"]
    if left_out:
        click.echo(f"  profile questions, left out: {'; '.join(item for f in left_out for item in f['items'])}")
    for finding in findings:
        if finding["level"] != "info":
            click.echo(
                f"  {finding['level']}: {finding['message']}: {', '.join(finding['items'][:20])}",
                err=finding["level"] == "error",
            )


def run(options: RunOptions) -> int:
    from assets.launch import ROLL_UP_NAMES, STAGE_NAMES, materialize
    from assets.resources import Store

    config = options.config()
    house = warehouse()
    keys = _partition_keys(house, options)
    store = Store()
    asked = store.models.resolve(config["predictions"]["models"])
    if unknown := set(config["predictions"]["limits"]) - {model.name for model in asked}:
        raise ConfigError(
            f"limit for {', '.join(sorted(unknown))}: allowed: a model of this run: {', '.join(m.name for m in asked)}"
        )
    started = time.monotonic()
    names = ", ".join(model.name for model in asked)
    click.echo(f"{len(keys)} partitions, snapshot {options.snapshot}, models: {names}", err=True)
    keep_terminal()
    with dagster_instance() as instance:
        stages = STAGE_NAMES if options.with_ingest else STAGE_NAMES[1:]
        outcome = materialize(instance, stages, keys, config)
        failures = list(outcome.failures)
        if house.values("scores", "round"):
            by_metric = {"leaderboard": {"metric": options.metric}, "breakdowns": {"metric": options.metric}}
            failures += materialize(instance, ROLL_UP_NAMES, [], by_metric).failures
    _say_run(house, options, keys, outcome.run_ids, time.monotonic() - started)
    if outcome.superseded:
        click.echo(
            f"warning: {outcome.superseded:,} earlier predictions answered prompts that are made in another way now, and are no longer "
            "in the tables; their raw responses stay in the response store, and the earlier options bring them back",
            err=True,
        )
    for failure in failures:
        click.echo(f"error: {failure}", err=True)
    return 1 if failures else 0


def _partition_keys(house: Warehouse, options: RunOptions) -> list[str]:
    keys: list[str] = []
    found: set[str] = set()
    for round_id in dict.fromkeys(options.rounds):
        segments = house.segments(round_id)
        if not segments:
            raise ConfigError(f"round {round_id} is not ingested; ingested: {', '.join(house.rounds()) or 'none'}")
        wanted = [s for s in segments if not options.segments or s in options.segments]
        found.update(wanted)
        keys += [partition_key(round_id, segment) for segment in wanted]
    if absent := [s for s in options.segments if s not in found]:
        known = sorted({s for round_id in options.rounds for s in house.segments(round_id)})
        raise ConfigError(f"no segment {', '.join(absent)} in {', '.join(options.rounds)}; segments: {', '.join(known)}")
    return keys


def _say_run(house: Warehouse, options: RunOptions, keys: list[str], run_ids: tuple[str, ...], seconds: float) -> None:
    with house.connect(only=["scores"]) as connection:
        rounds = list(options.rounds)
        if not house.values("scores", "round"):
            return
        rows = connection.execute(
            "SELECT status, count(*) FROM scores WHERE snapshot = $1 AND list_contains($2, round) GROUP BY 1 ORDER BY 1",
            [options.snapshot, rounds],
        ).fetchall()
        counts = ", ".join(f"{count:,} {status}" for status, count in rows)
        runs = f"{len(run_ids)} run{'s' if len(run_ids) != 1 else ''}"
        click.echo(f"{len(keys)} partitions in {runs}, {seconds:.1f} s; snapshot {options.snapshot}: {counts}")
        for line in _call_summary(house, options):
            click.echo(line)
        for level in options.context_levels:
            chosen = BoardOptions(metric=options.metric, rounds=options.rounds, context_level=level)
            click.echo("\n" + render(named_apart(board(connection, "overall", chosen)), "table", columns=COMMON_COLUMNS))


def _call_summary(house: Warehouse, options: RunOptions) -> Iterator[str]:
    """Of each language model of the snapshot: answers, tokens, cost, and what failed with the first reason."""
    with house.connect(only=["predictions"]) as connection:
        rows = connection.execute(
            """
            SELECT model, count(*) FILTER (call_status = 'answered'), count(*) FILTER (call_status = 'error'),
                sum(prompt_tokens + completion_tokens), sum(cost_usd), count(*) FILTER (call_status = 'answered' AND cost_usd IS NULL),
                any_value(error) FILTER (call_status = 'error')
            FROM predictions WHERE snapshot = $1 AND list_contains($2, round) AND model NOT LIKE 'baseline/%' GROUP BY 1 ORDER BY 1
            """,
            [options.snapshot, list(options.rounds)],
        ).fetchall()
    for model, answered, failed, tokens, cost, unpriced, reason in rows:
        price = f"${cost:,.4f}" if cost is not None else "cost unknown"
        more = f" and {unpriced:,} of unknown cost" if cost is not None and unpriced else ""
        yield f"  {model}: {answered:,} answers, {int(tokens or 0):,} tokens, {price}{more}"
        if failed:
            yield f"  {model}: {failed:,} calls failed (the same command asks them again): {reason}"


def ui(host: str, port: int) -> int:
    settings = Settings.from_environment()
    home = prepare_home()
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "dagster",
        "dev",
        "-w",
        str(shipped("workspace.yaml")),
        "-h",
        host,
        "-p",
        str(port),
    ]
    click.echo(f"Dagster on http://{host}:{port} (state: {settings.warehouse}); stop with Ctrl-C")
    # Started elsewhere than here, so every place is given in full.
    environment = {**os.environ, **settings.environment()}
    os.chdir(home)
    # In place of this process, so that whoever stops it stops Dagster.
    os.execve(command[0], command, environment)  # noqa: S606 - our own interpreter and arguments
