"""Judges on the site: their agreement, whether they favour their own maker, champions by analysts' grades, and people's labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dtef_pipeline.rubric.blueprint.findings import FINDING_LEVELS
from dtef_pipeline.rubric.site.rubric_rows import RubricRows, judge_words
from dtef_pipeline.site.content import Block, Column, Estimate, Fold, Section, Table, convert_to_rows, is_unknown
from dtef_pipeline.site.number_text import show, show_with_interval
from dtef_pipeline.text.number_words import format_count, list_first_names

AGREEMENT_HOW = (
    "Krippendorff's alpha of the classes that judges chose for the same criterion of the same response: 1 is full agreement, 0 chance. "
    "An alpha of 0.8 or more supports conclusions, 0.667 or more tentative ones. Agreement does not show that judges are right."
)
_CHAMPIONS_HOW = (
    "Language models read all responses without names and graded them from 1 to 10. The champion of a dimension has the best mean grade "
    "among models with grades in at least 5 blueprints. Grades are opinions: a lead of a few tenths means nothing."
)
_CUT_WORDS = {"overall": "all", "judges": "pair of judges", "criterion": "kind of criterion"}
_CUT_ORDER = ("overall", "judges", "criterion", "language", "blueprint")
_AGREEMENT_COLUMNS = (
    Column("value", "Of"),
    Column("cut", "By"),
    Column("scale", "Classes", "count", "Number of classes that judges chose from"),
    Column("alpha", "Alpha", "number", "1 is agreement, 0 chance", ends=("low", "high")),
    Column("reading", "Reading", always=True),
    Column("n_units", "Judged twice", "count", "Criteria of responses with at least two judgements", more=True),
    Column("n_clusters", "Prompts", "count", more=True),
    Column("reason", "Note", "note"),
)
_SELF_COLUMNS = (
    Column("judge", "Judge"),
    Column("model", "Model", "model"),
    Column("maker", "Maker of both"),
    Column(
        "gamma",
        "Favour",
        "signed",
        "Points for models of the judge's maker beyond what other judges give, -1 to 1",
        ends=("low", "high"),
    ),
    Column("p_adjusted", "p (adjusted)", "p"),
    Column("n", "Judgements", "count", more=True),
    Column("n_prompts", "Prompts", "count", more=True),
    Column("reason", "Note", "note"),
)
_CHAMPION_COLUMNS = (
    Column("dimension", "Dimension"),
    Column("model", "Champion", "model"),
    Column("mean", "Mean grade", "number", "1 to 10, higher is better"),
    Column("second", "Next best", "model"),
    Column("second_mean", "Its mean", "number"),
    Column("n_blueprints", "Blueprints", "count", more=True),
    Column("reason", "Why there is no value", "note"),
)
_LABELLED_COLUMNS = (
    Column("model", "Model", "model"),
    Column("judge_score", "By judges", "score"),
    Column("corrected", "Corrected", "score", "By the labels of people", ends=("corrected_low", "corrected_high")),
    Column("n_prompts_labelled", "Prompts labelled", "count"),
    Column("prompts_needed", "Prompts needed", "count", "Prompts to label for an interval 0.06 wide on these prompts"),
    Column("power", "Weight of judges", "percent", "Weight of the judges on unlabelled prompts, bias removed", more=True),
    Column("reason", "Note", "note"),
)
_KNOWN_COLUMNS = (
    Column("judge", "Judge"),
    Column("human_class", "People's class", "number", "Class as a number, 0-1", always=True),
    Column("same_class", "Same class", "percent"),
    Column("within_one_class", "At most one class off", "percent"),
    Column("bias", "Bias", "signed", "Above 0 the judge is too generous"),
    Column("n", "Judgements", "count", more=True),
    Column("note", "Note", "note"),
)
_JUDGE_COLUMNS = (
    Column("judge", "Judge"),
    Column("n", "Judgements", "count", always=True),
    Column("unreadable", "Unreadable", "percent", "Share of judgements whose reply has no class"),
    Column("n_failed", "Failed", "count", "The call failed after all retries, or a budget was reached"),
    Column(
        "mean", "Mean", "number", "Mean class as a number, 0-1, before criteria that a response should not meet are reversed"
    ),
    Column(
        "partial",
        "Judged by others only",
        "percent",
        "Share of judgements that are missing although another judge answered",
        more=True,
    ),
    Column("calls", "Replies", "count", more=True),
    Column("cost_usd", "Cost", "dollars", more=True),
)
FINDING_COLUMNS = (
    Column("text", "What was found", "long"),
    Column("level", "Level", always=True),
    Column("place", "Place", "code"),
    Column("line", "Line", "count"),
    Column("code", "Kind", "code", more=True),
)


def judge_sections(rows: RubricRows) -> Iterator[Section]:
    """Yield the sections on judges below the leaderboard."""
    yield _build_agreement_section(rows)
    yield _build_self_preference_section(rows)
    yield _build_labels_section(rows)
    yield _build_champions_section(rows)


def _build_agreement_section(rows: RubricRows) -> Section:
    agreement = rows.rows.frame("rubric_agreement")
    if not len(agreement):
        return Section("agreement", "Do judges agree?", [])
    place = agreement["cut"].map({name: index for index, name in enumerate(_CUT_ORDER)}).fillna(len(_CUT_ORDER))
    sorted_rows = agreement.assign(place=place).sort_values(["place", "value", "scale"])
    table_rows = [_build_agreement_row(rows, record) for record in convert_to_rows(sorted_rows)]
    overall = [row for row in table_rows if row["cut"] == "all" and not is_unknown(row["alpha"])]
    on_scale = " on {scale:.0f} classes" if len(overall) > 1 else ""
    answer = " ".join(f"{format_agreement(row)}{on_scale.format(**row)}." for row in overall)
    return Section(
        "agreement",
        "Do judges agree?",
        [Table("Agreement of judges", _AGREEMENT_COLUMNS, table_rows, first=8)],
        answer,
        AGREEMENT_HOW,
    )


def format_agreement(row: dict[Any, Any]) -> str:
    """Format a row of `rubric_agreement` as `Judges agree with alpha 0.96 (0.93 to 0.98): reliable`."""
    alpha = show_with_interval(Estimate.from_row(row, "alpha", "low", "high"))
    return f"Judges agree with alpha {alpha}: {row['reading'] or 'no reading'}"


def _build_agreement_row(rows: RubricRows, row: dict[Any, Any]) -> dict[str, Any]:
    value: Any = row["value"]
    if row["cut"] == "blueprint" and value in rows.about:
        value = rows.link(value)
    elif row["cut"] == "judges":
        value = judge_words(value)
    elif row["cut"] == "criterion":
        value = value.replace("_", " ")
    return {**row, "value": value, "cut": _CUT_WORDS.get(row["cut"], row["cut"])}


def _build_self_preference_section(rows: RubricRows) -> Section:
    preferences = rows.rows.frame("rubric_self_preference")
    estimates = preferences[preferences["gamma"].notna()] if len(preferences) else preferences
    if not len(estimates):
        return Section("self-preference", "Do judges favour their own maker?", [])
    table_rows = convert_to_rows(estimates, judge=judge_words)
    favours = [f"{row['judge']} favours {row['maker']}" for row in table_rows if row.get("flagged") and row["judge"] != "all"]
    overall = next((Estimate.from_row(row, "gamma", "low", "high") for row in table_rows if row["judge"] == "all"), None)
    answer = f"All judges together: {show_with_interval(overall, 'signed')}. " if overall else ""
    answer += f"{list_first_names(favours, 3)}." if favours else "No judge is found to favour models of its maker."
    return Section(
        "self-preference",
        "Do judges favour their own maker?",
        [Table("Judges on models of their maker", _SELF_COLUMNS, table_rows)],
        answer,
    )


def _build_champions_section(rows: RubricRows) -> Section:
    champions = rows.rows.frame("rubric_champions")
    items = (
        [_build_champion_row(dimension, group) for dimension, group in champions.groupby("dimension", sort=True)]
        if len(champions)
        else []
    )
    wins = pd.Series([row["model"] for row in items if row["model"]], dtype=object).value_counts()
    answer = f"{wins.index[0]} is champion of {wins.iloc[0]} of {format_count(len(items), 'dimension')}." if len(wins) else ""
    block = Table("Champion of each dimension", _CHAMPION_COLUMNS, items, first=15)
    return Section("champions", "Champions by graded dimension", [block], answer, _CHAMPIONS_HOW if items else "")


def _build_champion_row(dimension: Any, group: pd.DataFrame) -> dict[str, Any]:
    """Return the champion and the next best model of a dimension; if no model is eligible, why the best is not."""
    eligible = convert_to_rows(group[group["rank"].notna()].sort_values(["rank", "model"]))
    best = eligible[0] if eligible else {}
    second = eligible[1] if len(eligible) > 1 else {}
    row = {
        "dimension": dimension,
        "model": best.get("model"),
        "second": second.get("model"),
        "mean": best.get("mean"),
        "second_mean": second.get("mean"),
        "n_blueprints": best.get("n_blueprints"),
    }
    if not eligible:
        first = convert_to_rows(group.sort_values("mean", ascending=False))[0]
        row["reason"] = f"{first['model']}, the best, is {first.get('reason') or 'not eligible'}"
    return row


def _build_labels_section(rows: RubricRows) -> Section:
    corrections, known_classes = rows.rows.frame("rubric_corrected"), rows.rows.frame("rubric_known_classes")
    overall = corrections[corrections["blueprint"].isna()] if len(corrections) else corrections
    table_rows = convert_to_rows(overall)
    moves = (overall["corrected"] - overall["judge_score"]).dropna() if len(overall) else pd.Series(dtype=float)
    answer = ""
    if len(moves):
        n, largest = int(overall["n_prompts_labelled"].max()), max(moves.tolist(), key=abs)
        answer = f"People's labels on {format_count(n, 'prompt')} change scores by {show(float(moves.mean()), 'signed')} on average, "
        answer += f"at most {show(largest, 'signed')}."
    blocks: list[Block] = [
        Table("Scores corrected by people's labels", _LABELLED_COLUMNS, table_rows),
        Fold(
            "Judges against people's labels, class by class",
            [Table("Judges against labels", _KNOWN_COLUMNS, convert_to_rows(known_classes, judge=judge_words))],
        ),
    ]
    return Section("labels", "Judges against people", blocks, answer)


def build_data_sections(rows: RubricRows) -> list[Section]:
    """Return the sections on files and their findings, and on the judges."""
    return [_read_section(rows), _build_judges_used_section(rows)]


def _read_section(rows: RubricRows) -> Section:
    findings = rows.rows.frame("rubric_findings")
    n_errors = int(findings.loc[findings["level"] == "error", "blueprint"].nunique()) if len(findings) else 0
    idle = [name for name in rows.about if name not in rows.runs]
    answer = f"{format_count(len(rows.about), 'blueprint')} read with {format_count(len(rows.prompts), 'prompt')}; "
    answer += f"{n_errors} had errors; these parts were left out"
    answer += f"; {len(idle)} {'was' if len(idle) == 1 else 'were'} not run." if idle else "."
    place = {level: index for index, level in enumerate(FINDING_LEVELS)}
    items = sorted(convert_to_rows(findings), key=lambda row: (place.get(row["level"], len(place)), row["blueprint"]))
    lines = [{**row, "blueprint": rows.link(row["blueprint"])} for row in items if row["blueprint"] in rows.about]
    columns = (Column("blueprint", "Blueprint"), *FINDING_COLUMNS)
    return Section(
        "findings", "what was read and left out", [Table("Findings in files of blueprints", columns, lines, first=10)], answer
    )


def _build_judges_used_section(rows: RubricRows) -> Section:
    judges = rows.rows.frame("rubric_judges")
    if not len(judges):
        return Section("judges", "judges", [])
    row = convert_to_rows(judges.sort_values("unreadable", ascending=False))[0]
    n, n_scored = int(judges["n"].sum()), int(judges["n_scored"].sum())
    answer = f"{format_count(len(judges), 'judge')} with {format_count(n, 'requested judgement')}; {n_scored:,} of them are readable."
    if row["unreadable"] > 0:
        share = show(row["unreadable"], "percent")
        answer += f" {judge_words(row['judge'])} has the largest share of replies without a class, {share}."
    return Section("judges", "judges", [Table("Judges", _JUDGE_COLUMNS, convert_to_rows(judges, judge=judge_words))], answer)
