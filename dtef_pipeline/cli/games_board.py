"""What `dtef games board` does; the words are in `dtef_pipeline/cli/games_run_group.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from dtef_pipeline.cli.blueprint_patterns import fitting
from dtef_pipeline.cli.left_out import reads_tables
from dtef_pipeline.cli.stale_tables import say_stale
from dtef_pipeline.cli.view_table import print_rows
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.games.metrics import BESIDE_METRICS
from dtef_pipeline.games.persona_results import ALL_OPPONENTS, player_names
from dtef_pipeline.games.players import BASELINE_PREFIX
from dtef_pipeline.games.ranked_players import latest_versions, ranked_players
from dtef_pipeline.games.stored_tables import GAMES_TABLES
from dtef_pipeline.tables import description
from dtef_pipeline.text.nearest import nearest
from resources.table_reader import TableReader

EVERY_METRIC = "all"
_PLAYER_TOLD = {
    "player": "Player under test: baseline/NAME, a model, or PERSONA@MODEL",
    "baseline": "yes: a baseline, which plays for nothing and always alike",
}


@dataclass(frozen=True, slots=True)
class GamesView:
    """How rows of `persona_results` are shown."""

    columns: tuple[str, ...] = (
        *(
            "league",
            "scenario",
            "player",
            "baseline",
            "opponent",
            "metric",
            "mean",
            "interval",
            "unit",
            "n_episodes",
            "n_clusters",
        ),
        *BESIDE_METRICS,
    )
    kept: tuple[str, ...] = ("scenario", "player", "mean", "interval")
    first_out: tuple[str, ...] = ("league", "n_clusters", "unit", "baseline")
    estimate: str = "mean"
    notes: str = "note"
    who: tuple[str, ...] = ("scenario", "player")


@reads_tables
def show(
    reader: TableReader, leagues: Sequence[str], scenarios: Sequence[str], metric: str, by_opponent: bool, output: str
) -> None:
    if not reader.warehouse.tables(["persona_results"]):
        raise WarehouseError(
            f"no persona_results in {reader.warehouse.root} yet: `dtef games run` makes it, and `dtef games rollup`"
        )
    say_stale(reader, "persona_results", "episode_scores", "dtef games rollup")
    frame: pd.DataFrame = reader.rows("persona_results").to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    frame = _of_scenarios(frame, leagues, scenarios)
    frame = frame[(frame["opponent"] == ALL_OPPONENTS) != by_opponent]
    frame = ranked_players(_of_metric(frame, metric))
    if not len(frame):
        raise WarehouseError("nothing to show: `dtef games run --player NAME` has players play")
    frame = frame.assign(
        player=player_names(frame["persona"].tolist(), frame["model"].tolist()),
        baseline=frame["model"].str.startswith(BASELINE_PREFIX).map({True: "yes", False: ""}),
        note=frame["reason"].fillna(""),
    )
    meanings = {column.name: description(column) for column in GAMES_TABLES["persona_results"].schema or ()}
    print_rows(GamesView(), frame, output, (), {**meanings, **_PLAYER_TOLD})


def _of_scenarios(frame: pd.DataFrame, leagues: Sequence[str], scenarios: Sequence[str]) -> pd.DataFrame:
    """The rows of the latest version of each scenario that is meant."""
    of_leagues = fitting(sorted(frame["league"].unique()), leagues, "--league")
    frame = frame[frame["league"].isin(of_leagues)]
    known = sorted((frame["league"] + "/" + frame["scenario"]).unique())
    chosen = fitting(known, [one if "/" in one else f"*/{one}" for one in scenarios], "--scenario")
    frame = frame[(frame["league"] + "/" + frame["scenario"]).isin(chosen)]
    return latest_versions(frame)


def _of_metric(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    if metric == EVERY_METRIC:
        return frame
    known = frame["metric"].unique()
    if len(known) and metric not in known:
        raise ConfigError(f"--metric {metric}: allowed: {EVERY_METRIC}, {nearest(metric, known)}")
    return frame[frame["metric"] == metric]
