"""What `dtef qa replay-policies` does: stored scores, costs and latencies of a suite, and what each policy would have made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.terminal import print_table, say
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.qa.latest_scores import latest_scores
from dtef_pipeline.qa.policies.front import pareto_plot
from dtef_pipeline.qa.policies.outcomes import OUTCOMES_READ, scored_outcomes
from dtef_pipeline.qa.policies.replay import POLICY_NAMES, POLICY_RESULTS, PolicyReplay, replay_policies
from dtef_pipeline.qa.policies.stream import OutcomeStream, outcome_stream
from dtef_pipeline.report.terminal import render
from dtef_pipeline.tables import description
from dtef_pipeline.text.counted import counted
from resources.warehouse import Warehouse

_ALWAYS_SHOWN = ["policy", "quality", "cost_usd", "regret"]
_SHOWN_WITH_ROOM = [
    "on_front",
    "latency_s",
    "quality_low",
    "quality_high",
    "quality_in_tenths",
    "regret_low",
    "regret_high",
    "cost_low",
    "cost_high",
]
_QUALITY_SPREAD_TOLD = "Percent of the items whose answers score in each tenth from 0 to 1, ten numbers; a dot: none"


@dataclass(frozen=True)
class ReplayOptions:
    """Options of `dtef qa replay-policies`."""

    suite: str
    metric: str | None = None
    measured_by: str | None = None
    condition: str | None = None
    models: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    seeds: int = 100
    seed: int = 0
    out: Path | None = None


@reads_tables
def replay(warehouse: Warehouse, options: ReplayOptions, output: str) -> None:
    rows = warehouse.query(lambda connection: _outcomes(connection, options), only=OUTCOMES_READ)
    stream = outcome_stream(rows, categories=["cluster"])
    found = replay_policies(stream, options.policies or POLICY_NAMES, seeds=options.seeds, seed=options.seed)
    if options.out is not None:
        _write(options.out, found)
    if output != "table":
        click.echo(render(found.results.to_pandas(), output))
        return
    click.echo(_told(stream, options) + "\n")
    results = found.results.to_pandas()
    results["quality_in_tenths"] = results["quality_shares"].map(_in_tenths)
    frame = results[[*_ALWAYS_SHOWN, *_SHOWN_WITH_ROOM]].sort_values("quality", ascending=False, kind="stable")
    meanings = {column.name: description(column) for column in POLICY_RESULTS} | {"quality_in_tenths": _QUALITY_SPREAD_TOLD}
    print_table(frame, meanings, kept=_ALWAYS_SHOWN, first_out=_SHOWN_WITH_ROOM)
    if options.out is not None:
        say(f"written to {options.out}: policies.csv, regret.csv and pareto.svg")


def _told(stream: OutcomeStream, options: ReplayOptions) -> str:
    """What is replayed, what is missing of which model, and whether all cost the same: a line each."""
    left_out = f", {counted(stream.left_out, 'item')} without a score of each left out" if stream.left_out else ""
    orders = f"{counted(options.seeds, 'order')} of the items, seed {options.seed}"
    items, models = counted(len(stream.scores), "item"), counted(len(stream.models), "model")
    missing = [f"  {one}" for one in (*stream.partly_scored(), *stream.unknown(), stream.equal_costs()) if one]
    return "\n".join([f"{options.suite}: {items}, {models}{left_out}; {orders}", *missing])


def _in_tenths(shares: Sequence[float] | None) -> str | None:
    """`40 . . . . . . . . 60`."""
    return None if shares is None else " ".join(f"{100 * share:.0f}" if share else "." for share in shares)


def _write(folder: Path, found: PolicyReplay) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in (("policies", found.results), ("regret", found.regret)):
        (folder / f"{name}.csv").write_text(render(table.to_pandas(), "csv") + "\n", encoding="utf-8")
    (folder / "pareto.svg").write_text(pareto_plot(found.results), encoding="utf-8")


def _outcomes(connection: duckdb.DuckDBPyConnection, options: ReplayOptions) -> pa.Table:
    """One row per response of the suite's latest snapshots, in one condition and by one measure."""
    latest = latest_scores(connection)
    connection.register("scores_of_suites", latest)
    own: dict[str, str] = {}
    for column in ("suite", "condition", "metric", "measured_by"):
        own[column] = _chosen(connection, column, own, getattr(options, column))
    connection.unregister("scores_of_suites")
    rows = scored_outcomes(connection, latest, own)
    if options.models:
        rows = rows.filter(pc.is_in(rows["name"], pa.array(options.models, pa.string())))
    if missing := sorted(set(options.models) - set(rows["name"].to_pylist())):
        raise ConfigError(f"--model {missing[0]}: no response of {options.suite} that is meant here is of it")
    return rows


def _chosen(connection: duckdb.DuckDBPyConnection, column: str, own: Mapping[str, str], given: str | None) -> str:
    """The value of a column that is replayed. Raises ConfigError where it is unknown, or where there are several and none is named."""
    where = " AND ".join(f"{name} = ${name}" for name in own) or "true"
    query = f"SELECT DISTINCT {column}::VARCHAR FROM scores_of_suites WHERE {where} ORDER BY 1"
    known = [str(value) for (value,) in connection.sql(query, params=dict(own)).fetchall()]
    if not known:
        raise WarehouseError("nothing to replay: no response is scored yet; `dtef qa run` does that")
    if given in known or (given is None and len(known) == 1):
        return known[0] if given is None else given
    flag = column.upper() if column == "suite" else f"--{column.replace('_', '-')}"
    raise ConfigError(f"{flag}: got {'none' if given is None else repr(given)}; allowed: one of {', '.join(known)}")
