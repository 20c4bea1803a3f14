"""Comparison of each condition with the usual one, on the pairs that a model has in both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pandas as pd

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.asking.snapshot_order import among, snapshot_order
from dtef_pipeline.asking.variants import parse_variant
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.site.content import Block, Column, Section, Table, convert_to_rows
from dtef_pipeline.statistics.differences import MARGIN
from dtef_pipeline.survey.blueprint.options import BlueprintOptions, ContextLevel
from dtef_pipeline.survey.boards.conditions import compare_conditions
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.experiments import ConditionModel
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.survey_labels import format_condition
from dtef_pipeline.text.quantity_words import format_count

_CONDITION_COLUMNS = (
    Column("model", "Model", "model"),
    Column("decision", "Decision", always=True),
    Column(
        "difference",
        "Difference",
        "signed",
        "Mean score minus that of the usual condition, with its 95% interval",
        ends=("low", "high"),
    ),
    Column("score", "Score", "score"),
    Column("context_level", "Context", "text"),
    Column("p_adjusted", "p (adjusted)", "p", more=True),
    Column("n_pairs", "Pairs", "count", more=True),
    Column("parse_rate", "Read", "percent", more=True),
    Column("prompt_tokens", "Prompt tokens", "count", more=True),
    Column("completion_tokens", "Completion tokens", "count", more=True),
    Column("cost_usd", "Cost", "dollars", more=True),
    Column("note", "Note", "note"),
)
_HOW_TO_READ_CONDITIONS = (
    "Each condition is compared with the usual one, on the pairs that a model has in both, in one snapshot. “better” and “worse”: the "
    f"difference is significant. “equivalent”: its 90% interval lies between -{MARGIN:g} and +{MARGIN:g}. “undecided”: neither. p is "
    "adjusted over the rows of one context level (Holm). Experiments that change sampling, such as the temperature, count as other "
    "models; `dtef board --experiment` compares them."
)


def build_conditions_section(contents: SurveyContents) -> Section:
    """Return a table for each condition of models other than the usual one."""
    blocks: list[Block] = []
    counts: dict[str, int] = {}
    usual = _choose_usual(contents)
    for condition in sorted({way.condition for way in contents.ways} - {usual}):
        frame = _compare_conditions(contents, usual, condition)
        rows = frame[frame["difference"].notna()] if len(frame) else frame
        if len(rows):
            for decision in rows["decision"]:
                counts[decision] = counts.get(decision, 0) + 1
            caption = f"{format_condition(condition)}, against {format_condition(usual)}"
            blocks.append(Table(caption, _CONDITION_COLUMNS, convert_to_rows(rows)))
    decision_counts = ", ".join(f"{number} {decision}" for decision, number in counts.items())
    answer = (
        f"{format_count(sum(counts.values()), 'comparison')} with “{format_condition(usual)}”: {decision_counts}."
        if counts
        else ""
    )
    return Section("conditions", "Ways of asking", blocks, answer, _HOW_TO_READ_CONDITIONS)


def _choose_usual(contents: SurveyContents) -> str:
    """Return the condition for comparison: that of a run without options, or of the first leaderboard."""
    plain = BlueprintOptions().condition
    return plain if plain in {way.condition for way in contents.ways} else contents.main.condition


def _compare_conditions(contents: SurveyContents, usual: str, condition: str) -> pd.DataFrame:
    """Return the comparison in the latest snapshot in which a model was asked in both conditions."""
    rows = contents.connection.execute(
        f"SELECT DISTINCT snapshot, model_variant, context_level FROM scores WHERE NOT {COMPUTED_SQL} AND condition = ? "
        "INTERSECT SELECT DISTINCT snapshot, model_variant, context_level FROM scores WHERE condition = ?",
        [usual, condition],
    ).df()
    if not len(rows):
        return pd.DataFrame()
    snapshot = among(snapshot_order(contents.connection), set(rows["snapshot"]))[-1]
    condition_models = list(_iterate_models(contents, rows[rows["snapshot"] == snapshot], (usual, condition)))
    return (
        compare_conditions(contents.connection, condition_models, SurveyBoardOptions(metric=contents.metric, snapshot=snapshot))
        if condition_models
        else pd.DataFrame()
    )


def _iterate_models(contents: SurveyContents, rows: pd.DataFrame, conditions: tuple[str, str]) -> Iterator[ConditionModel]:
    """Yield every model in both conditions. A condition with an unshipped system prompt cannot be parsed from its name and is left out."""
    for variant, model_rows in rows.groupby("model_variant", sort=True):
        levels = sorted(model_rows["context_level"], key=lambda level: ContextLevel(level).order)
        name = contents.names.get(str(variant), str(variant))
        spec = parse_variant(name, str(variant))
        if spec is None:
            continue
        with suppress(ConfigError):
            yield from [ConditionModel(name, c, BlueprintOptions.parse_condition(c, levels), spec) for c in conditions]
