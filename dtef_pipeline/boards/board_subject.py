"""What a family provides to have its scores ranked, compared and summarized."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.keys import Keys
from dtef_pipeline.statistics.shared_noise import CORRELATION, OF_OBSERVED
from dtef_pipeline.text.number_words import format_plural

if TYPE_CHECKING:
    from dtef_pipeline.boards.cells import BoardOptions
    from dtef_pipeline.boards.intervals import Grid, Measures

Codes = npt.NDArray[np.int64]
Deviations = npt.NDArray[np.float32]


class Noise(Protocol):
    """How far the scores of cells deviate from their mean when their reference data are observed again."""

    @property
    def score(self) -> Deviations:
        """(cells, replicates), 0 on average, and 0 for unscored cells."""

    def select_cells(self, rows: Codes) -> Self:
        """Return the noise of some of the cells."""


@dataclass(frozen=True, slots=True, eq=False)
class BoardSubject:
    """A family's key columns, its metrics, and the other content of its boards. The examples are as in `Keys`.

    Names of count columns come from the keys: `n_blueprints` and `n_tasks`, if those are the second level of the space and the noun for an
    item.
    """

    keys: Keys
    metrics: tuple[str, ...]
    """Columns of `scores` that a board can rank by, 0-1."""
    distances: tuple[str, ...]
    """The metrics of which lower is better; their score is 1 - distance."""
    credits: Mapping[str, float | None]
    """The score of rows of each status other than `ok`, 0-1; None: means exclude the row."""
    corrected: tuple[str, ...]
    """Other columns of `scores` that come with each cell as their means, lower is better."""
    references: tuple[str, ...]
    """Columns of `reference_scores` that are structs with one score per metric."""
    typical: tuple[str, ...]
    """References. In estimates of the smallest detectable difference, the first one with a score takes the place of a second model."""
    facts: Mapping[str, str]
    """Other columns of `reference_scores` that come with each cell, and their SQL types."""
    size: Callable[[str], float]
    """Sort key of the first column of the setting."""
    observed_baselines: frozenset[str]
    """Models whose predictions are computed from observed answers, and so change with a new sample of people."""
    marginal: str
    """The model whose predictions contain the answers that they are scored against; it does not show how easy a cell is."""
    reference: str
    """The computed model that every language model is compared with."""
    ranked_from: int
    """Number of values of the space's second level in which a model needs a score to be ranked, or all if there are fewer."""
    reliability: pa.Schema
    """RELIABILITY: one row per series with repeated draws."""
    reference_remedy: str
    """Advice to users when reference scores are missing: `"load the suite again"`."""
    clusters: Callable[[duckdb.DuckDBPyConnection], pd.DataFrame]
    """Returns the clusters of items, given a connection to the tables: `cluster` of each `Keys.shared_item`. Equal items without a row are
    one cluster."""
    noise: Callable[[duckdb.DuckDBPyConnection, pd.DataFrame, BoardOptions], Any]
    """Returns the noise of the cells' scores, given a connection to the tables; None: unknown."""
    measures: Callable[[Grid], Measures]
    """Returns the further statistics of a board's rows, given the cells."""
    columns: tuple[str, ...]
    """Columns that intervals and measures add to a board, in order."""

    @property
    def parts(self) -> str:
        """The column that counts values of the space's second level: `n_blueprints`."""
        return f"n_{self.keys.space[1]}s"

    @property
    def items(self) -> str:
        """The column that counts distinct items: `n_tasks`."""
        return f"n_{format_plural(self.keys.noun)}"

    @property
    def independent(self) -> str:
        """The column that counts clusters: `n_topics`."""
        return f"n_{format_plural(self.keys.cluster_noun)}"

    def correlation(self, models: pd.Series) -> npt.NDArray[np.float64]:
        """Return (models,), the correlation of the noise of each model's scores between two items."""
        return np.where(models.isin(self.observed_baselines), OF_OBSERVED, CORRELATION)
