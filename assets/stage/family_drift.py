"""The roll-up of a family's drift, and the checks of its verdicts, defined once for every family."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.stage.checks import asset_check
from assets.stage.partitions import markdown, roll_up
from assets.stage.resources import Store
from assets.stage.roll_up import require_scored
from dtef_pipeline.asking.models import Models
from dtef_pipeline.documents import read_document
from dtef_pipeline.drift.judge_verdicts import judge_drift
from dtef_pipeline.drift.models import ModelDrift, compute_model_drift
from dtef_pipeline.drift.rule import build_rule_table
from dtef_pipeline.drift.settings import (
    DRIFT_SECTION,
    DriftSettings,
    Severity,
    load_drift_settings,
    read_panel,
    require_known_names,
)
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import (
    NEWS,
    build_headline,
    describe_judges,
    describe_shared_shift,
    format_moved_items,
    format_series,
    format_shift,
    has_shared_shift,
    sort_key_of_verdict,
)
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS, FAMILIES, PANEL_KEYS
from dtef_pipeline.family.record import Family
from resources.model_catalog import load_known_models
from resources.settings import Settings, require_named_path
from resources.warehouse import Warehouse

Pairs = list[tuple[str, str]]
"""Names and variants of models."""


def panel_drift(settings: Settings, warehouse: Warehouse | None) -> DriftSettings:
    """Return the section, with defaults if it is missing. Without a `warehouse`, models with scores are ignored.

    Raises ConfigError if DTEF_PANEL names no file, or the section has a fault, or names a model that is neither a model nor a judge in any
    family's part of the panel, and has neither scores nor judged anchors.
    """
    drift = load_drift_section(settings)
    if settings.panel is not None and drift.names_models:
        models = load_known_models(settings, COMPUTED_MODELS)
        pairs, judges = (_resolve_known(models, selectors) for selectors in _read_selectors(settings.panel))
        if warehouse is not None:
            pairs += [pair for family in FAMILIES for pair in list_family_scored_models(warehouse, family)]
            judges += [pair for family in FAMILIES for pair in list_family_judges(warehouse, family)]
        require_known_names(read_panel(settings.panel), drift, pairs, judges)
    return drift


def load_drift_section(settings: Settings) -> DriftSettings:
    """Return the section, without checking the models that it names."""
    if settings.panel is None:
        return DriftSettings()
    require_named_path("DTEF_PANEL", settings.panel)
    return load_drift_settings(settings.panel)


def _read_selectors(path: Path) -> tuple[list[str], list[str]]:
    """Return the selectors of models and of judges in a panel file, of all families."""
    values = read_document(path, "panel file", [DRIFT_SECTION]).values
    sections = [part for part in (values, *(values.get(family.name) for family in FAMILIES)) if isinstance(part, dict)]
    models = [text for part in sections for text in _list_texts(part.get("models"))]
    # A single judge is in `judge`; several are in `judges`, APPROACH=MODEL each.
    judges = [text for part in sections for text in _list_texts([part.get("judge")])]
    return models, judges + [text.partition("=")[2] for part in sections for text in _list_texts(part.get("judges"))]


def _list_texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _resolve_known(models: Models, selectors: Iterable[str]) -> Pairs:
    """Return names and variants. Skips unresolvable selectors: the schedule that uses them reports them."""
    pairs: Pairs = []
    for selector in selectors:
        with suppress(ConfigError):
            pairs += [(spec.name, spec.variant) for spec in models.resolve([selector])]
    return pairs


def list_family_scored_models(warehouse: Warehouse, family: Family) -> Pairs:
    """Return names and variants of the models with scores in a family."""
    if not warehouse.values(family.scores_table, family.space.first):
        return []
    names = f"SELECT DISTINCT model, model_variant FROM {family.scores_table}"
    return warehouse.query(lambda connection: connection.execute(names).fetchall(), only=[family.scores_table])


def list_family_judges(warehouse: Warehouse, family: Family) -> Pairs:
    """Return names and variants of a family's judges of anchors: the judge's name, and its model's."""
    rows = warehouse.rows("anchors", columns=["judge", "judge_model", "judge_variant"], family=family.name).to_pylist()
    return sorted({(row[name], row["judge_variant"]) for row in rows for name in ("judge", "judge_model")})


Section = TypeVar("Section")


def load_panel_section(settings: Settings, load: Callable[[Path], Section | None]) -> Section | None:
    """Return what `load` reads from the panel file, or None without a panel file or section.

    Raises ConfigError if DTEF_PANEL names no file, the file has an unknown top-level key, or the section has a fault.
    """
    if settings.panel is None:
        return None
    require_named_path("DTEF_PANEL", settings.panel)
    read_document(settings.panel, "panel file", PANEL_KEYS).mapping((), PANEL_KEYS)
    return load(settings.panel)


_SHIFT_SHOWN = ("n_snapshots", "shift", "shift_low", "shift_high", "first_snapshot")
_VERDICTS_SHOWN = ("verdict", "shared_verdict", "model", "setting", *_SHIFT_SHOWN, "net_shift")
_RULE_SHOWN = ("partition", "model", "setting", "lowest_snapshot", "highest_snapshot", "lowest", "highest", "is_largest_gap")
_JUDGES_PREVIEWED = ("verdict", "judge", "evaluator", *_SHIFT_SHOWN)


def build_drift_assets(
    family: Family,
    subject: Subject,
    *,
    code_version: str,
    details: str = "",
    group: str = "",
    dependencies: Sequence[str] = (),
    freshness: dg.FreshnessPolicy | None = None,
) -> tuple[dg.AssetsDefinition, dg.AssetChecksDefinition]:
    """Return the asset `FAMILY_drift` and its check `FAMILY_has_no_drift`.

    `details`: further sentences of the description, specific to the family; `group`: of the assets, by default the family's name;
    `dependencies`: the assets that it follows, by default the table of scores.
    """
    name, settings = family.name, roll_up("drift", code_version=code_version, group=group or family.name)
    deps = [dg.AssetKey(key) for key in dependencies or (family.scores_table,)]
    description = f"""Whether scores of the same items changed between snapshots, as rows of the family `{name}` in four tables.

`drift` has the verdict on each model: `drift` where the documented rule flags it and there is strong evidence however often one looks, `watch`
where only the rule does; `shared_verdict` says whether the scores of all models changed together. `drift_series` is the timeline behind it.
`drift_rule` has the result of the documented rule for each partition: a gap of 0.05 and 10 % between the lowest and the highest snapshot, at
temperature 0. `judge_drift` has judges that scored anchors again. {details} The panel's section `drift` has the settings."""

    @dg.asset(name=f"{name}_drift", deps=deps, description=description, freshness_policy=freshness, **settings)
    def asset(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
        require_scored(store, family)
        options = panel_drift(store.settings, store.warehouse)
        rules = store.warehouse.query(
            lambda connection: build_rule_table(connection, subject), only=subject.rule_tables or subject.reads
        )
        result = store.warehouse.query(lambda connection: compute_model_drift(connection, subject, options), only=subject.reads)
        anchors = store.warehouse.read_or_empty("anchors", family=name)
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

    @asset_check(asset=asset, name=f"{name}_has_no_drift")
    def has_no_drift(store: Store) -> dg.AssetCheckResult:
        """Fails for a model with the verdict `drift` and warns of `watch`, unless the panel's `severity` sets other levels."""
        rows = store.warehouse.read("drift", family=name)
        return build_drift_result(rows, len(rows), load_drift_section(store.settings).severity, subject)

    return asset, has_no_drift


def _build_metadata(subject: Subject, rules: pa.Table, drift: ModelDrift, judges: pa.Table) -> dict[str, Any]:
    """Return the metadata of a run: verdicts, the worst first; rows flagged by the rule, the largest gap first; judges."""
    checks = drift.checks
    ranked = pa.Table.from_pylist(sorted(checks.to_pylist(), key=sort_key_of_verdict), checks.schema)
    flags = rules.filter(pc.equal(rules["flagged"], True)).sort_by([("gap", "descending")])
    return {
        "headline": build_headline(checks.to_pylist(), subject),
        **count_verdicts(checks),
        "models": markdown(ranked, _VERDICTS_SHOWN, n=30),
        "flagged": len(flags),
        "documented": markdown(flags, _RULE_SHOWN, n=15),
        **({"judges": markdown(judges, _JUDGES_PREVIEWED, n=20)} if len(judges) else {}),
    }


def count_verdicts(rows: pa.Table) -> dict[str, int]:
    """Return how many series have each verdict, as metadata."""
    counts = Counter(rows["verdict"].to_pylist())
    return {name: counts[verdict] for name, verdict in (("drift", "drift"), ("watch", "watch"), ("not_compared", None))}


def build_drift_result(rows: pa.Table, n_checked: int, severity: Severity, subject: Subject) -> dg.AssetCheckResult:
    """Return a check's result over rows with verdicts, of `n_checked` series. Its severity is that of the worst, which comes first."""
    series = rows.filter(
        pc.field("verdict").isin(["watch", "drift"]) | pc.field("shared_first_snapshot").is_valid()
    ).to_pylist()
    series.sort(key=sort_key_of_verdict)
    levels = {getattr(severity, word) for row in series for word in (row["verdict"], row["shared_verdict"]) if word in NEWS}
    levels -= {"OFF"}
    return dg.AssetCheckResult(
        passed=not levels,
        severity=dg.AssetCheckSeverity.ERROR if "ERROR" in levels else dg.AssetCheckSeverity.WARN,
        metadata={
            "checked": n_checked,
            "drift": sum(row["verdict"] == "drift" for row in series),
            "watch": sum(row["verdict"] == "watch" for row in series),
            "shared_shifts": sum(map(has_shared_shift, series)),
            "first": dg.MetadataValue.json([describe_verdict(row, format_series(row, subject.keys)) for row in series[:10]]),
        },
    )


def describe_verdict(row: Mapping[str, Any], series: str) -> str:
    """A verdict on a series: size, start, the judges' part, other changes, and the shared shift."""
    label = f"{row['verdict'] or 'not compared'}: {series}"
    shared = f"; {describe_shared_shift(row)}" if has_shared_shift(row) else ""
    judges = f"; {words}" if (words := describe_judges(row)) else ""
    if row["verdict"] != "drift":
        return f"{label}: {row['reason']}{judges}{shared}"
    size = format_shift(row["shift"])
    bounds = f" ({row['shift_low']:.4f} to {row['shift_high']:.4f})" if row["shift_low"] is not None else ""
    since = f" since {row['first_snapshot']}"
    changes = "".join(f"; {change['before']} -> {change['after']}" for change in row.get("changes") or ())
    items = format_moved_items((row["top_changes"] or ())[:3])
    notes = "".join(f"; {line}" for line in row["shift_notes"] or ())
    return f"{label}: {size}{bounds}{since}{judges}{notes}{changes}{f'; largest changes: {items}' if items else ''}{shared}"
