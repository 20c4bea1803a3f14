"""The roll-up of a family's drift, and the checks of its verdicts, defined once for every family."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.stage.checks import asset_check
from assets.stage.drift_checks import build_drift_result, count_verdicts, read_drift
from assets.stage.panel_drift import load_drift_section, panel_drift
from assets.stage.partitions import markdown, roll_up
from assets.stage.resources import Store
from assets.stage.table_publishing import require_made
from dtef_pipeline.drift.judge_verdicts import judge_drift
from dtef_pipeline.drift.models import ModelDrift, compute_model_drift
from dtef_pipeline.drift.rule import build_rule_table
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import build_headline, sort_key_of_verdict
from dtef_pipeline.site.chart_images import render_markdown_image
from dtef_pipeline.site.drift_page import build_series_chart

_SHIFT_SHOWN = ("n_snapshots", "shift", "shift_low", "shift_high", "first_snapshot")
_VERDICTS_SHOWN = ("verdict", "shared_verdict", "model", "setting", *_SHIFT_SHOWN, "net_shift")
_RULE_SHOWN = ("partition", "model", "setting", "lowest_snapshot", "highest_snapshot", "lowest", "highest", "is_largest_gap")
_JUDGES_PREVIEWED = ("verdict", "judge", "evaluator", *_SHIFT_SHOWN)
_MOST_CHARTS = 12


@dataclass(frozen=True)
class FamilyDrift:
    """The settings and description of one family's drift."""

    subject: Subject
    code_version: str
    details: str
    """Further sentences of the description, specific to the family."""
    scores: tuple[str, str, str]
    """The table of scores, the noun for a partition, and the command that makes the table."""
    group: str = ""
    """Its group of assets; empty: the family's name."""
    dependencies: Sequence[str] = ()
    """The assets that it follows; empty: the table of scores."""
    freshness: dg.FreshnessPolicy | None = None

    @property
    def name(self) -> str:
        return self.subject.family

    @property
    def description(self) -> str:
        return f"""Whether scores of the same items changed between snapshots, in the part `{self.name}` of four tables.

`drift` has the verdict on each model: `drift` where the documented rule flags it and there is strong evidence however often one looks, `watch`
where only the rule does; `shared_verdict` says whether the scores of all models changed together. `drift_series` is the timeline behind it.
`drift_rule` has the result of the documented rule for each partition: a gap of 0.05 and 10 % between the lowest and the highest snapshot, at
temperature 0. `judge_drift` has judges that scored stored answers again. {self.details} The panel's section `drift` has the settings."""


def build_drift_assets(family: FamilyDrift) -> tuple[dg.AssetsDefinition, dg.AssetChecksDefinition]:
    """The asset `FAMILY_drift` and its check `FAMILY_no_drift`."""
    name, subject = family.name, family.subject
    settings = {**roll_up("drift", code_version=family.code_version), "group_name": family.group or name}
    deps = [dg.AssetKey(key) for key in family.dependencies or family.scores[:1]]

    @dg.asset(name=f"{name}_drift", deps=deps, description=family.description, freshness_policy=family.freshness, **settings)
    def asset(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
        require_made(store, *family.scores)
        options = panel_drift(store.settings, store.warehouse)
        rules = store.warehouse.query(
            lambda connection: build_rule_table(connection, subject), only=subject.rule_tables or subject.reads
        )
        result = store.warehouse.query(lambda connection: compute_model_drift(connection, subject, options), only=subject.reads)
        anchors = store.warehouse.read_or_empty(subject.anchors.table) if subject.anchors else pa.table({})
        result, judges = result.subtract_judge_shifts(subject, anchors, options), judge_drift(subject, anchors, options)
        tables = {"drift": result.checks, "drift_series": result.series, "drift_rule": rules, "judge_drift": judges}
        for table, part in tables.items():
            store.warehouse.write(table, part, family=name)
        store.warehouse.refresh_database()
        metadata = {
            "dagster/row_count": len(result.checks),
            **{f"{table}_rows": len(part) for table, part in list(tables.items())[1:]},
            **_build_metadata(subject, rules, result, judges),
        }
        return dg.MaterializeResult(metadata=metadata)

    @asset_check(asset=asset, name=f"{name}_no_drift")
    def no_drift(store: Store) -> dg.AssetCheckResult:
        """Fails for a model with the verdict `drift` and warns of `watch`, unless the panel's `severity` sets other levels."""
        rows = read_drift(store, name)
        return build_drift_result(rows, len(rows), load_drift_section(store.settings).severity, subject)

    return asset, no_drift


def _build_metadata(subject: Subject, rules: pa.Table, drift: ModelDrift, judges: pa.Table) -> dict[str, Any]:
    """Return the metadata of a run: verdicts, the worst first, with timelines; rows flagged by the rule, the largest gap first; judges."""
    checks = drift.checks
    ranked = pa.Table.from_pylist(sorted(checks.to_pylist(), key=sort_key_of_verdict), checks.schema)
    flags = rules.filter(pc.equal(rules["flagged"], True)).sort_by([("gap", "descending")])
    first = ranked.slice(0, _MOST_CHARTS).to_pandas()
    keys = ["model_variant", "setting"]
    series = drift.series.to_pandas().merge(first[keys], on=keys)
    return {
        "headline": build_headline(checks, subject),
        **count_verdicts(checks),
        "models": markdown(ranked, _VERDICTS_SHOWN, n=30),
        "flagged": len(flags),
        "documented": markdown(flags, _RULE_SHOWN, n=15),
        **({"judges": markdown(judges, _JUDGES_PREVIEWED, n=20)} if len(judges) else {}),
        **({"timeline": dg.MetadataValue.md(render_markdown_image(build_series_chart(series)))} if len(series) else {}),
    }
