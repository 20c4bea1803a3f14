"""The content of the site: the families with something to show, their models, and the tables over all families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import duckdb
import pandas as pd

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.drift.verdict_tables import DRIFT
from dtef_pipeline.report.row_reader import StoredRow, StoredRows
from dtef_pipeline.report.terminal import rename_variant_rows, rename_variants
from dtef_pipeline.site.content import Link, Section, convert_to_rows
from dtef_pipeline.site.family_content import BoardRow, FamilyContent, FamilySite, RankedBoard
from dtef_pipeline.site.paths import (
    COMPARE_PAGE,
    DATA_PAGE,
    DRIFT_PAGE,
    METHOD_PAGE,
    MODELS_ADDRESS,
    board_page,
    build_model_address,
)
from dtef_pipeline.text.name_matching import natural_order


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

    def name_metric(self, metric: str) -> str:
        """Name a metric that votes are compared with: `Short letters: hybrid score` for `letters: hybrid score`."""
        part, colon, tail = metric.partition(": ")
        words = self.site.metric_words(metric)
        return f"{self.part_title(part)}: {tail}" if colon and words == metric else words


class SiteContents:
    """All data of the pages. Tables over all families are read once; the models of each family's rows are named apart."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, families: Sequence[FamilySite]) -> None:
        self.rows = StoredRows(connection)
        self.families = [
            FamilyEntry(site, site.read(connection), site.read_partition_titles(connection))
            for site in families
            if has_table(connection, site.scored) and connection.execute(f"SELECT 1 FROM {site.scored} LIMIT 1").fetchone()
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
        if (key := (name, family.name)) not in self._tables:
            frame = self.rows.frame(name, {"family": family.name})
            if "setting" in frame:
                frame = frame.assign(setting=frame["setting"].map(family.site.describe_watched_setting))
            self._tables[key] = rename_variants(frame) if len(frame) and {"model", "model_variant"} <= set(frame) else frame
        return self._tables[key]

    def costs(self, name: str = "") -> pd.DataFrame:
        """Return the costs of all families, with the `title` of each: of all models, or of the one with this name on the boards."""
        frames = []
        for family in self.families:
            if len(rows := self.rows.frame("costs", {"family": family.name})):
                called = map(partial(family.content.is_called, name), rows["model"], rows["model_variant"])
                frames.append((rows[list(called)] if name else rows).assign(title=family.site.title))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    @cached_property
    def comparisons(self) -> Mapping[str, Sequence[StoredRow]]:
        """The comparisons of each family's models on items that are a fair test."""
        frames = {family.name: self.rows.frame("comparisons", {"family": family.name}) for family in self.families}
        return {name: [row for row in convert_to_rows(frame) if row["targets"] != "all"] for name, frame in frames.items()}

    @cached_property
    def drift(self) -> Mapping[str, Sequence[StoredRow]]:
        """The verdicts on the series of each family, with settings in words; a model with several variants is named by its variant, and
        `plain_model` is its name without it."""
        verdicts = {}
        for family in self.families:
            describe = family.site.describe_watched_setting
            rows = self.rows.rows("drift", DRIFT.names, {"family": family.name}, ("model_variant", "setting"))
            words = [row["setting"] and describe(row["setting"]) for row in rows]
            rows = [{**row, "setting": text, "plain_model": row["model"]} for row, text in zip(rows, words, strict=True)]
            verdicts[family.name] = rename_variant_rows(rows)
        return verdicts

    @cached_property
    def latencies(self) -> Mapping[tuple[str, str], float]:
        """Median seconds per response, by family and model; without models that have no timed call."""
        latencies: dict[tuple[str, str], float] = {}
        for family in self.families:
            if "latency_s" not in self.rows.columns(family.site.responses):
                continue
            variants = {name: family.content.variants.get(name, name) for name in self.model_paths}
            query = f"""
                SELECT name, median(latency_s) FROM {family.site.responses}
                JOIN (SELECT unnest($1::VARCHAR[]) AS name, unnest($2::VARCHAR[]) AS variant)
                    ON name IN (model, model_variant) OR variant IN (model, model_variant)
                WHERE latency_s > 0 GROUP BY name"""
            medians = self.rows.connection.execute(query, [list(variants), list(variants.values())]).fetchall()
            latencies |= {(family.name, name): seconds for name, seconds in medians}
        return latencies

    @cached_property
    def navigation(self) -> list[Link]:
        """The links at the top of every page."""
        pages = [("Compare", COMPARE_PAGE), ("Drift", DRIFT_PAGE), ("Data", DATA_PAGE), ("Method", METHOD_PAGE)]
        models = [Link("Models", MODELS_ADDRESS)] if self.model_paths else []
        return [*(family.link for family in self.families), *models, *(Link(*page) for page in pages)]
