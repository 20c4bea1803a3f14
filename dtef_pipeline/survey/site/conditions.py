"""Comparison of each condition with the usual one, on the pairs that a model has in both."""

from __future__ import annotations

from dtef_pipeline.site.content import Block, Column, Section, Table, convert_to_rows
from dtef_pipeline.statistics.differences import MARGIN
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.conditions import compare_conditions
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.survey_labels import format_condition
from dtef_pipeline.text.quantity_words import format_count

_CONDITION_COLUMNS = (
    Column("model", "Model", "model"),
    Column("verdict", "Verdict", always=True),
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
    "adjusted over the rows of one context level (Holm). Other sampling settings, such as the temperature, make another model, which is "
    "compared on the leaderboard."
)


def build_conditions_section(contents: SurveyContents) -> Section:
    """Return a table for each condition of models other than the usual one."""
    blocks: list[Block] = []
    counts: dict[str, int] = {}
    usual, options = _choose_usual(contents), SurveyBoardOptions(metric=contents.metric)
    for condition in sorted({way.condition for way in contents.ways} - {usual}):
        frame = compare_conditions(contents.connection, usual, condition, options)
        rows = frame[frame["difference"].notna()]
        if len(rows):
            rows = rows.assign(model=rows["model_variant"].map(contents.names).fillna(rows["model_variant"]))
            for verdict in rows["verdict"]:
                counts[verdict] = counts.get(verdict, 0) + 1
            caption = f"{format_condition(condition)}, against {format_condition(usual)}"
            blocks.append(Table(caption, _CONDITION_COLUMNS, convert_to_rows(rows)))
    verdict_counts = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    answer = (
        f"{format_count(sum(counts.values()), 'comparison')} with “{format_condition(usual)}”: {verdict_counts}."
        if counts
        else ""
    )
    return Section("conditions", "Ways of asking", blocks, answer, _HOW_TO_READ_CONDITIONS)


def _choose_usual(contents: SurveyContents) -> str:
    """Return the condition for comparison: that of a run without options, or of the first leaderboard."""
    plain = BlueprintOptions().condition
    return plain if plain in {way.condition for way in contents.ways} else contents.main.condition
