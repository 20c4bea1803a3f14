"""The roll-up of a family that says whether its models drift, and the checks of its verdicts: defined once, for every family."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from assets.stage.checks import asset_check
from assets.stage.drift_told import drift_result, send_verdicts, told_result, with_told
from assets.stage.panel_drift import drift_section, panel_drift
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published, require_made
from assets.stage.resources import Store
from assets.stage.watch_config import WatchConfig
from dtef_pipeline.drift.headline import headline
from dtef_pipeline.drift.models import ModelDrift
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import by_verdict

SHIFT_COLUMNS = ("n_snapshots", "shift", "shift_low", "shift_high", "first_snapshot")
"""Columns of a verdict that say how far a series moved, and since when."""
Judged = tuple[pa.Table, pa.Table]
"""Verdicts on models, net of what their judges did, and the verdict on each judge."""


@dataclass(frozen=True)
class FamilyDrift:
    """How the drift of one family is made and shown."""

    family: str
    code_version: str
    rows: str
    """What the table has a row for, as the first sentence of the description."""
    besides: str
    """What is peculiar to the family, as further sentences of the description."""
    subject: Subject
    scores: tuple[str, str, str]
    """The table of scores, its first partition's name, and the command that makes it."""
    reads: Sequence[str]
    rule: Callable[[duckdb.DuckDBPyConnection], pa.Table]
    """The documented rule on each series, from the tables `reads`."""
    watched: Callable[[duckdb.DuckDBPyConnection, WatchOptions], ModelDrift]
    rule_columns: Sequence[str]
    verdict_columns: Sequence[str]
    judged: Callable[[Store, pa.Table, WatchOptions], Judged] | None = None
    judge_columns: Sequence[str] = ()

    @property
    def verdicts(self) -> str:
        """The table of the verdicts."""
        return f"{self.family}_model_drift"

    @property
    def description(self) -> str:
        return f"""{self.rows}

The documented rule flags a gap of 0.05 and 10 % between the lowest and the highest snapshot, at temperature 0. Beside it stand
`{self.verdicts}`, the verdict by the project's evidence on each model (`drift` where the rule flags it and there is strong evidence however
often one looks, `watch` where the rule alone does), and its timeline `{self.family}_drift_series`. {self.besides} The panel's section `drift`
holds here too; a verdict that is new is sent to the webhook, if there is one."""


def define_drift(family: FamilyDrift) -> tuple[dg.AssetsDefinition, dg.AssetChecksDefinition, dg.AssetChecksDefinition]:
    """The asset `FAMILY_drift` and its checks, `FAMILY_no_drift` and `FAMILY_verdicts_were_told`."""
    name = family.family
    settings = {**roll_up(f"{name}_drift", code_version=family.code_version), "group_name": name}

    @dg.asset(name=f"{name}_drift", deps=[dg.AssetKey(family.scores[0])], description=family.description, **settings)
    def asset(context: dg.AssetExecutionContext, config: WatchConfig, store: Store) -> dg.MaterializeResult[Any]:
        require_made(store, *family.scores)
        drift = panel_drift(store.settings, store.warehouse)
        options = config.over(drift.options)
        ruled = store.warehouse.query(family.rule, only=family.reads)
        found = store.warehouse.query(lambda connection: family.watched(connection, options), only=family.reads)
        checks, judges = family.judged(store, found.checks, options) if family.judged else (found.checks, None)
        models = with_told(store, family.verdicts, checks, family.subject)
        tables = {f"{name}_drift": ruled, family.verdicts: models, f"{name}_drift_series": found.series}
        shown = _shown(family, ruled, models)
        if judges is not None:
            tables[f"{name}_judge_drift"] = judges
            shown["judges"] = markdown(judges, family.judge_columns, most=20)
        result = published(store, tables, **shown)
        sent = send_verdicts(context, store, family.verdicts, models, family.subject, drift.tell, found.order)
        return result._replace(metadata={**(result.metadata or {}), "webhook": sent})

    @asset_check(asset=asset, name=f"{name}_no_drift")
    def no_drift(store: Store) -> dg.AssetCheckResult:
        """Fails for a model that drifted by the project's evidence, warns of one to watch, unless the panel's `severity` says otherwise."""
        rows = store.warehouse.read(family.verdicts)
        return drift_result(rows, len(rows), drift_section(store.settings).severity, family.subject)

    @asset_check(asset=asset, name=f"{name}_verdicts_were_told")
    def told(store: Store) -> dg.AssetCheckResult:
        """Warns while the webhook has not accepted a verdict that was due to be sent; it is sent again with the next roll-up of drift."""
        return told_result(store, family.verdicts, family.subject, drift_section(store.settings).tell)

    return asset, no_drift, told


def _shown(family: FamilyDrift, ruled: pa.Table, models: pa.Table) -> dict[str, Any]:
    """The metadata of a run: rows that the rule flags, the largest gap first, and verdicts, the worst first."""
    ranked = pa.Table.from_pylist(sorted(models.to_pylist(), key=by_verdict(family.subject.keys)), models.schema)
    flagged = ruled.filter(pc.equal(ruled["flagged"], True)).sort_by([("gap", "descending")])
    return {
        "headline": headline(models, family.subject),
        "flagged": len(flagged),
        "documented": markdown(flagged, family.rule_columns, most=15),
        "models": markdown(ranked, family.verdict_columns, most=30),
    }
