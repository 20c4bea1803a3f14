"""What the commands that take `--family` do with `--family games`: each is the function of the command's name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dtef_pipeline.cli import games_board, games_report
from dtef_pipeline.cli.left_out import reads_tables
from dtef_pipeline.cli.spent_by_role import COUNTED_USAGE, spent_by
from dtef_pipeline.cli.view_table import print_rows
from dtef_pipeline.cli.written_report import folder_given
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.games.metrics import EXPECTED_RETURN
from dtef_pipeline.games.report.pages import GAMES_PAGES_FOLDER
from dtef_pipeline.games.tables import EPISODE_TURNS
from dtef_pipeline.survey.boards.meanings import COST_COLUMNS
from dtef_pipeline.tables import description
from resources.table_reader import TableReader

_GAMES_COSTS_BY = ("role", "scenario", "persona", "model")
_GAMES_SPENT = """
    SELECT 'candidate' AS role, league, scenario, persona, model, model_variant,
        count(DISTINCT request_key) AS answered, count(DISTINCT request_key) AS calls,
        sum(prompt_tokens)::BIGINT AS prompt_tokens, sum(completion_tokens)::BIGINT AS completion_tokens,
        sum(cost_usd) AS cost_usd, count(*) FILTER (cost_usd IS NULL) AS unpriced
    FROM episode_turns WHERE call_status = 'answered' GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True, slots=True)
class GamesSpentView:
    """How the costs of games are shown."""

    columns: tuple[str, ...] = (*_GAMES_COSTS_BY, "model_variant", *COUNTED_USAGE, "cost")
    kept: tuple[str, ...] = ("scenario", "model", "model_variant", "cost")
    first_out: tuple[str, ...] = ("prompt_tokens", "completion_tokens", "calls")
    estimate: str = ""
    notes: str = "note"
    who: tuple[str, ...] = ("model",)


def leaderboard(by: str, output: str) -> None:
    """`by` has one choice: overall."""
    games_board.show((), (), EXPECTED_RETURN, False, output)


@reads_tables
def costs(reader: TableReader, by: Sequence[str], output: str) -> None:
    frame: pd.DataFrame = reader.query(lambda made: made.sql(_GAMES_SPENT).df(), only=["episode_turns"])
    if not len(frame):
        raise WarehouseError("nothing to show: no model was asked; `dtef games run --player MODEL` asks")
    frame = spent_by(frame, by or _GAMES_COSTS_BY, output)
    meanings = {column.name: description(column) for column in EPISODE_TURNS}
    print_rows(GamesSpentView(), frame, output, (), {**meanings, "cost": COST_COLUMNS["cost"]})


def drift(by: str, since: Sequence[str], fail_on: str | None, output: str) -> None:
    raise ConfigError("--family games: drift of games is not watched yet; allowed: survey, rubric, qa")


def report(out: Path) -> None:
    games_report.report(folder_given(out, GAMES_PAGES_FOLDER))
