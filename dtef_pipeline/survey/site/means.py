"""Mean scores by segment and by question, in the way of asking of the first leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import pandas as pd

from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.pair_store import ANSWERS, PAIRS, Series

Axis = Literal["s", "q"]


class Spread(NamedTuple):
    """The models' scores of a segment or a question, over the pairs for which all of these models have a score."""

    mean: float
    best: str
    best_score: float
    worst: str
    worst_score: float
    leave_one_out: float
    """Score of the leave-one-out marginal; NaN: unknown."""
    ceiling: float
    n_pairs: int
    n_models: int

    @property
    def room(self) -> float:
        """The distance from the leave-one-out marginal to the ceiling."""
        return self.ceiling - self.leave_one_out


@dataclass(frozen=True)
class Means:
    """Means over pairs that define no segment, for language models or, if there are none, for baselines."""

    contents: SurveyContents
    series: Sequence[Series]

    @cached_property
    def main_series(self) -> list[int]:
        """The places of the averaged series."""
        places = [at for at, series in enumerate(self.series) if series.way == self.contents.main]
        return [at for at in places if not self.series[at].is_reference] or places

    @property
    def noun(self) -> str:
        return "baseline" if self.series[self.main_series[0]].is_reference else "model"

    @cached_property
    def scored_pairs_sql(self) -> str:
        """SQL of the scored pairs of these series: s, q, series, score, others, ceiling."""
        return f"""SELECT s, q, series, score, others, ceiling FROM {ANSWERS} JOIN {PAIRS} USING (s, q)
            WHERE score IS NOT NULL AND NOT circular AND list_contains({self.main_series}, series)"""

    def spreads(self, by: Axis) -> dict[int, Spread]:
        """Return spreads by the place of a segment or a question. A model with less than half of the pairs of another model is left out."""
        rows = self._query_frame(f"""
            WITH own AS ({self.scored_pairs_sql}),
            kept AS (
                SELECT {by}, series FROM own GROUP BY {by}, series QUALIFY 2 * count(*) >= max(count(*)) OVER (PARTITION BY {by})
            ), kept_models AS (SELECT {by}, count(*) AS models FROM kept GROUP BY ALL),
            compared AS (FROM own SEMI JOIN kept USING ({by}, series)),
            shared AS (
                SELECT s, q FROM compared JOIN kept_models USING ({by}) GROUP BY s, q, models HAVING count(*) = models
            )
            SELECT {by} AS place, series, avg(score) AS score, avg(others) AS others, avg(ceiling) AS ceiling, count(*) AS pairs
            FROM compared SEMI JOIN shared USING (s, q) GROUP BY ALL ORDER BY place, score DESC, series
            """)
        return {int(group["place"].iloc[0]): self._compute_spread(group) for _, group in rows.groupby("place", sort=False)}

    def _compute_spread(self, rows: pd.DataFrame) -> Spread:
        first, last = rows.iloc[0], rows.iloc[-1]
        best, worst = (self.series[int(row["series"])].name for row in (first, last))
        scores = (float(rows["score"].mean()), best, float(first["score"]), worst, float(last["score"]))
        return Spread(*scores, float(first["others"]), float(first["ceiling"]), int(first["pairs"]), len(rows))

    def leads(self, by: Axis) -> pd.DataFrame:
        """Return `place`, `series`, `lead` over the leave-one-out marginal, `score`, `pairs`; no rows if the marginal is unknown."""
        return self._query_frame(f"""
            SELECT {by} AS place, series, avg(score - others) AS lead, avg(score) AS score, count(*) AS pairs
            FROM ({self.scored_pairs_sql}) WHERE others IS NOT NULL GROUP BY ALL ORDER BY place, series
            """)

    @cached_property
    def pair_means(self) -> pd.DataFrame:
        """`s`, `q`, the mean `score` of the models, and `others`."""
        return self._query_frame(
            f"SELECT s, q, avg(score) AS score, any_value(others) AS others FROM ({self.scored_pairs_sql}) GROUP BY ALL ORDER BY ALL"
        )

    def _query_frame(self, sql: str) -> pd.DataFrame:
        frame: Any = self.contents.connection.execute(sql).df()
        return pd.DataFrame(frame)
