"""`dtef games board`, and games' record for commands that take `--family`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd

from assets.games.game_catalog import load_known_persona_versions, load_known_scenarios
from dtef_pipeline.boards.named_boards import TableLayout
from dtef_pipeline.cli.families import CommandFamily, ExplainedColumns, filter_by_patterns, fitting_rows, require_rolled_up
from dtef_pipeline.cli.terminal import print_rows, whole_frame
from dtef_pipeline.cli.warehouse_access import NothingToShowError, reads_tables, warn_mixed
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.games.contract import DEFAULT_RATE, FORM_RATES, UNPARSED_RATE
from dtef_pipeline.games.game_pairs import (
    GAME_SELECTIONS,
    GAMES_NOTE,
    PLAYED_COVERAGE,
    UNPLAYED_NOTE,
    UNPLAYED_READS,
    add_game_coverage,
    add_unplayed_note,
    clear_unplayed_note,
    compute_shared_results,
    select_shown_versions,
    set_game_coverage,
    sort_players,
)
from dtef_pipeline.games.persona_results import (
    ALL_OPPONENTS,
    GAME_RESULTS_READS,
    compute_results_of,
    create_latest_scores,
    format_player_names,
)
from dtef_pipeline.games.personas import APPROVED, BASELINE_PREFIX, PERSONA_STATUS, list_persona_statuses, mark_unapproved
from dtef_pipeline.games.play_drift import GAMES_WATCHED, find_moved_baselines
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.number_words import list_first_names
from resources.settings import Settings
from resources.warehouse import Warehouse

EVERY_METRIC = "all"
GAME_BOARD_COLUMNS = {
    "player": "Player under test: baseline/NAME, a model, or PERSONA@MODEL",
    PERSONA_STATUS: "Present status of the player's persona: draft, approved or retired; empty without a persona",
    PLAYED_COVERAGE: "Share of the games (seed, seat and opponent) of all players shown that the player has, 0-1",
    "interval": "95 % interval of mean, over seeds",
    "baseline": "yes: a baseline, which costs nothing and always plays alike",
}


_GAMES_LAYOUT = TableLayout(
    (
        *("league", "scenario", "player", PERSONA_STATUS, "baseline", "opponent", "metric", "mean", "interval", "unit"),
        *("n_episodes", "n_clusters", PLAYED_COVERAGE, "snapshot", *FORM_RATES),
    ),
    ("scenario", "player", "snapshot", "mean", "interval"),
    ("league", "n_clusters", "unit", "baseline", PERSONA_STATUS, DEFAULT_RATE, UNPARSED_RATE),
    "mean",
    name_columns=("scenario", "player"),
)


@reads_tables
def show(
    warehouse: Warehouse,
    leagues: Sequence[str],
    scenarios: Sequence[str],
    models: Sequence[str],
    metric: str,
    by_opponent: bool,
    games: str,
    snapshot: str | None,
    output: str,
) -> None:
    require_rolled_up(warehouse, "games", "persona_results", "episode_scores")
    frame = _add_player_names(_filter_scenarios(_load_results(warehouse, snapshot), leagues, scenarios))
    frame = fitting_rows(frame, "player", models, "--player")
    selection, frame = frame, _select_games(warehouse, frame, games, snapshot)
    frame = frame[(frame["opponent"] == ALL_OPPONENTS) != by_opponent]
    frame = sort_players(_filter_metric(frame, metric))
    if not len(frame):
        raise NothingToShowError(
            "nothing to show: `dtef games run --player NAME` plays episodes"
            if games == GAME_SELECTIONS
            else "nothing to show: the players have no game in common; --player NAME selects fewer players"
        )
    personas = load_known_persona_versions(Settings.read_environment())
    frame = frame.assign(**{PERSONA_STATUS: list_persona_statuses(frame["persona"].tolist(), personas)})
    frame = frame.assign(
        baseline=frame["model"].str.startswith(BASELINE_PREFIX).map({True: "yes", False: ""}), note=_build_notes(frame)
    )
    lines = list(_describe_games(selection, frame, games))
    table = (frame.drop(columns=_find_uniform_columns(frame)) if output == "table" else frame).drop(
        columns=[GAMES_NOTE, UNPLAYED_NOTE]
    )
    player_columns = (*(["opponent"] if by_opponent else []), *(["metric"] if metric == EVERY_METRIC else []))
    print_rows(
        replace(_GAMES_LAYOUT, name_columns=(*_GAMES_LAYOUT.name_columns, *player_columns)), table, output, lines, "games"
    )
    if output == "table":
        warn_mixed(warehouse, "episode_turns", snapshot=snapshot)


def _load_results(warehouse: Warehouse, snapshot: str | None) -> pd.DataFrame:
    """Return `persona_results`, or compute it for one snapshot."""
    if snapshot is None:
        return whole_frame(warehouse.rows("persona_results"))
    if lacking := [name for name in GAME_RESULTS_READS if not warehouse.tables([name])]:
        raise WarehouseError(f"--snapshot: no {lacking[0]} in {warehouse.root}: `dtef games run` makes it")

    def compute_results(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
        rows = connection.sql("SELECT DISTINCT snapshot::VARCHAR FROM episode_scores ORDER BY 1").fetchall()
        snapshots = [name for (name,) in rows]
        if snapshot not in snapshots:
            raise ConfigError(f"nothing was played in snapshot {snapshot}; snapshots: {list_nearest(snapshot, snapshots)}")
        return compute_results_of(connection, create_latest_scores(connection, snapshot))

    return warehouse.query(compute_results, only=GAME_RESULTS_READS)


def _find_uniform_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns with equal values in all rows, for which a table has no room."""
    alike = {
        PLAYED_COVERAGE: not (frame[PLAYED_COVERAGE] < 1).any(),
        PERSONA_STATUS: frame[PERSONA_STATUS].isin(["", APPROVED]).all(),
        "snapshot": frame.loc[frame["baseline"] == "", "snapshot"].nunique() < 2,
    }
    return [name for name, is_alike in alike.items() if is_alike]


def _select_games(warehouse: Warehouse, frame: pd.DataFrame, games: str, snapshot: str | None) -> pd.DataFrame:
    """Return the rows with `coverage` and notes on games not played. `--games shared`: only games that all players have in common."""
    frame = _add_coverage(warehouse, frame, games, snapshot)
    if not warehouse.tables(UNPLAYED_READS):
        return clear_unplayed_note(frame)
    return warehouse.query(lambda connection: add_unplayed_note(connection, frame), only=UNPLAYED_READS)


def _add_coverage(warehouse: Warehouse, frame: pd.DataFrame, games: str, snapshot: str | None) -> pd.DataFrame:
    if lacking := [name for name in GAME_RESULTS_READS if not warehouse.tables([name])]:
        if games == GAME_SELECTIONS:
            return set_game_coverage(_add_player_names(frame), np.nan)
        raise WarehouseError(f"--games shared: no {lacking[0]} in {warehouse.root}: `dtef games run` makes it")

    def compute_results(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
        if games == GAME_SELECTIONS:
            return add_game_coverage(connection, frame, snapshot)
        return set_game_coverage(compute_shared_results(connection, frame, snapshot=snapshot), 1.0)

    return _add_player_names(warehouse.query(compute_results, only=GAME_RESULTS_READS))


def _describe_games(selection: pd.DataFrame, frame: pd.DataFrame, games: str) -> Iterator[str]:
    """Yield whether the players are compared on the same games, and whether games were not played."""
    if (frame[UNPLAYED_NOTE] != "").any():
        yield "a budget tends to end long episodes, so the mean of the others may be biased"
    if games == GAME_SELECTIONS:
        if (frame[PLAYED_COVERAGE] < 1).any():
            yield "the players have different games, so their ranks are not comparable: --games shared compares them on the same games"
        return
    yield "--games shared: only over games (seed, seat and opponent) that all players shown have in common"
    keys = ["league", "scenario"]
    pairs = set(frame[keys].itertuples(index=False, name=None))
    for league, scenario in sorted(set(selection[keys].itertuples(index=False, name=None)) - pairs):
        yield f"{league}/{scenario}: no row, as the players have no game in common there; --player NAME selects fewer players"


def _add_player_names(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(player=format_player_names(frame["persona"].tolist(), frame["model"].tolist()))


def _build_notes(frame: pd.DataFrame) -> list[str]:
    """Return the note of each row: why it has no interval, what was not played, and whether its persona is unapproved."""
    marks = [f"a {mark}" if mark else "" for mark in map(mark_unapproved, frame[PERSONA_STATUS])]
    parts = zip(frame["reason"].fillna(""), frame[UNPLAYED_NOTE], frame[GAMES_NOTE].fillna(""), marks, strict=True)
    return ["; ".join(filter(None, notes)) for notes in parts]


def _filter_scenarios(frame: pd.DataFrame, leagues: Sequence[str], scenarios: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the selected scenarios, one version of each."""
    frame = fitting_rows(frame, "league", leagues, "--league")
    ids = sorted((frame["league"] + "/" + frame["scenario"]).unique())
    selection = filter_by_patterns(ids, [pattern if "/" in pattern else f"*/{pattern}" for pattern in scenarios], "--scenario")
    frame = frame[(frame["league"] + "/" + frame["scenario"]).isin(selection)]
    return select_shown_versions(frame, load_known_scenarios(Settings.read_environment()))


def _filter_metric(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    if metric == EVERY_METRIC:
        return frame
    metrics = frame["metric"].unique()
    if len(metrics) and metric not in metrics:
        raise ConfigError(f"no metric {metric!r}; write {EVERY_METRIC}, or one of {list_nearest(metric, metrics)}")
    return frame[frame["metric"] == metric]


def _describe_moved_baselines(warehouse: Warehouse) -> list[str]:
    """Return a line on baselines whose scores changed, which shows that the games changed."""
    baselines = warehouse.query(lambda connection: list(find_moved_baselines(connection)), only=["episode_scores"])
    if not baselines:
        return []
    return [
        f"scores of baselines changed, so the games changed, and shifts are not due to models alone: {list_first_names(baselines, 3, '; ')}"
    ]


GAMES_COMMANDS = CommandFamily(
    "games",
    GAMES_WATCHED,
    show=show,
    drift_lines=_describe_moved_baselines,
    explained_columns={
        "games": ExplainedColumns("dtef_pipeline.cli.games.games_board.GAME_BOARD_COLUMNS", "persona_results"),
        "games/estimate": ExplainedColumns("dtef_pipeline.cli.games.games_run.LEAGUE_ESTIMATE"),
    },
)
