"""The content of the site: the families with something to show, their models, and the tables over all families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.drift.verdict_tables import DRIFT
from dtef_pipeline.report.row_reader import StoredRow, StoredRows
from dtef_pipeline.report.terminal import rename_variant_rows, rename_variants
from dtef_pipeline.site.content import Link, Section
from dtef_pipeline.site.family_content import BoardRow, FamilyContent, FamilySite, RankedBoard
from dtef_pipeline.site.paths import board_page, build_model_address
from dtef_pipeline.text.natural_order import natural_order


@dataclass(frozen=True)
class FamilyEntry:
    """A family on the site."""

    site: FamilySite
    content: FamilyContent
    partition_titles: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.site.family

    @property
    def link(self) -> Link:
        return Link(self.site.title, board_page(self.name))

    @property
    def board(self) -> RankedBoard | None:
        """The leaderboard for the front page."""
        return self.content.boards[0] if self.content.boards else None

    def name_board(self, board: RankedBoard | None) -> str:
        """The family and one of its leaderboards, where that has a title."""
        return f"{self.site.title} · {board.title}" if board and board.title else self.site.title

    def name_section(self, section: Section) -> Section:
        """A section of the family on a page over all families."""
        return replace(section, id=f"{self.name}-{section.id}", title=f"{self.site.title}: {section.title}")

    def find_board_row(self, model: str) -> BoardRow | None:
        """Return a model's row of the first leaderboard that has it."""
        return next((row for board in self.content.boards for row in board.rows if row.model == model), None)

    def part_title(self, part: str) -> str:
        """Return the title of a partition or of a first-level value."""
        return self.site.title_partition(self.partition_titles, part)


class SiteContents:
    """All data of the pages. Tables over all families are read once; the models of each family's rows are named apart."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, families: Sequence[FamilySite]) -> None:
        self.rows = StoredRows(connection)
        self.families = [
            FamilyEntry(site, site.read(connection), site.read_partition_titles(connection))
            for site in choose_shown_sites(connection, families)
        ]
        self._tables: dict[tuple[str, str], pd.DataFrame] = {}

    @cached_property
    def model_paths(self) -> Mapping[str, str]:
        """The page of each model, by its name; references have none."""
        rows = (row for family in self.families for board in family.content.boards for row in board.rows)
        names = sorted({row.model for row in rows if not row.is_reference}, key=natural_order)
        return {name: build_model_address(name) for name in names}

    def table(self, name: str, family: FamilyEntry) -> pd.DataFrame:
        """Return a family's rows of a table over all families, models with several variants named by variant. Empty without the table."""
        frame = self._read_rows(name, family.name)
        if "setting" in frame and len(frame):
            frame = frame.assign(setting=frame["setting"].map(family.site.describe_watched_setting))
        return rename_variants(frame) if len(frame) and {"model", "model_variant"} <= set(frame) else frame

    def costs(self, model: str = "") -> pd.DataFrame:
        """The costs of all families, with the `title` of each: of all models, or of one."""
        frames = []
        for family in self.families:
            if len(frame := self.table("costs", family)):
                variant = family.content.variants.get(model, model)
                rows = frame[(frame["model"] == model) | (frame["model_variant"] == variant)] if model else frame
                frames.append(rows.assign(title=family.site.title))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def comparisons(self, family: str) -> pd.DataFrame:
        """Return the comparisons of a family's models on items that are a fair test."""
        rows = self._read_rows("comparisons", family)
        return rows[rows["targets"].ne("all")] if len(rows) else rows

    def _read_rows(self, name: str, family: str) -> pd.DataFrame:
        if (name, family) not in self._tables:
            self._tables[name, family] = self.rows.frame(name, {"family": family})
        return self._tables[name, family]

    @cached_property
    def drift(self) -> Mapping[str, pa.Table]:
        """The verdicts on each family's series, with the setting in words."""
        tables = {}
        for family in self.families:
            table = self.rows.table("drift", DRIFT.names, {"family": family.name}, ("model_variant", "setting"))
            settings, describe = table["setting"].to_pylist(), family.site.describe_watched_setting
            words = pa.array([None if setting is None else describe(setting) for setting in settings], pa.string())
            tables[family.name] = table.set_column(table.schema.get_field_index("setting"), "setting", words)
        return tables

    @cached_property
    def drift_rows(self) -> Mapping[str, Sequence[StoredRow]]:
        """The rows of `drift`; a model with several variants is named by its variant."""
        return {name: rename_variant_rows(table.to_pylist()) if len(table) else [] for name, table in self.drift.items()}

    @cached_property
    def latencies(self) -> Mapping[str, Mapping[str, float]]:
        """Median seconds per response, by family and model; without models that have no timed call."""
        return {family.name: self._query_latencies(family) for family in self.families}

    def _query_latencies(self, family: FamilyEntry) -> Mapping[str, float]:
        table = family.site.responses
        if "latency_s" not in self.rows.columns(table):
            return {}
        aliases = [(name, alias) for name in self.model_paths for alias in {name, family.content.variants.get(name, name)}]
        query = f"""
            WITH timed AS (SELECT model, model_variant, latency_s FROM {table} WHERE latency_s > 0),
            aliases AS (SELECT unnest(?::VARCHAR[]) AS name, unnest(?::VARCHAR[]) AS alias),
            named AS (SELECT DISTINCT name, model, model_variant FROM (SELECT DISTINCT model, model_variant FROM timed)
                JOIN aliases ON alias = model OR alias = model_variant)
            SELECT name, median(latency_s) FROM timed JOIN named USING (model, model_variant) GROUP BY name"""
        return dict(
            self.rows.connection.execute(query, [[name for name, _ in aliases], [alias for _, alias in aliases]]).fetchall()
        )

    @cached_property
    def navigation(self) -> list[Link]:
        """The links at the top of every page."""
        pages = [("Models", "models/index.html"), ("Compare", "compare.html"), ("Drift", "drift.html")]
        pages += [("Data", "data.html"), ("Method", "method.html")]
        return [*(family.link for family in self.families), *(Link(*page) for page in pages)]


def choose_shown_sites(connection: duckdb.DuckDBPyConnection, families: Sequence[FamilySite]) -> list[FamilySite]:
    """Return the families that have something to show."""
    rows = StoredRows(connection)

    def has_rows(table: str) -> bool:
        return rows.has(table) and bool(connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall())

    return [site for site in families if has_rows(site.scored)]
