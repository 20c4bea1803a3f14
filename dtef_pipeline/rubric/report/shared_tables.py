"""Tables of the family that are shown as they are published: champions, agreement of judges, drift. Columns that a table lacks are left out."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pandas as pd

from dtef_pipeline.report.isolated import inline, missing, wrapping_name
from dtef_pipeline.report.markup import (
    Column,
    as_is,
    dollars,
    estimate,
    fold,
    named,
    note,
    p_value,
    percent,
    section,
    signed,
    table,
    text,
    whole,
    with_intervals,
)
from dtef_pipeline.report.stored_rows import StoredRows
from dtef_pipeline.statistics.ranks import ranks

_CHAMPIONS_HOW = (
    "Of each dimension that analysts grade from 1 to 10, the model with the best mean grade over the latest graded run of each blueprint, "
    "among those that were graded in at least 5 blueprints. Grades are opinions of one language model on others: a champion by a few tenths "
    "is none."
)
_AGREEMENT_HOW = (
    "How far judges agree on the same criteria of the same responses: Krippendorff's alpha with the interval metric. 1 is full agreement, 0 "
    "what chance makes, below 0 is worse than chance. From 0.8 on conclusions may rest on the judges, from 0.667 on tentative ones. "
    "Intervals draw whole prompts anew. That judges agree does not show that they are right: human labels do."
)
_CHAMPION_COLUMNS = (
    Column("dimension", "Dimension", text),
    Column("model", "Champion", named),
    Column("mean", "Mean grade", estimate, "1 to 10, higher is better"),
    Column("n_blueprints", "Blueprints", whole),
    Column("second", "Next best", named),
    Column("second_mean", "Its mean", estimate),
    Column("reason", "Why there is none", note),
)
_AGREEMENT_COLUMNS = (
    Column("cut", "By", text),
    Column("value", "Of", named),
    Column("scale", "Classes", whole, "How many classes judges chose from"),
    Column("alpha", "Alpha", as_is, "1 is agreement, 0 chance; 95 % interval beneath"),
    Column("reading", "Reading", text),
    Column("n_units", "Judged twice", whole, "Criteria of responses with two judgements or more"),
    Column("n_values", "Judgements", whole),
    Column("n_clusters", "Prompts", whole),
    Column("reason", "Note", note),
)
_JUDGES_COLUMNS = (
    Column("judge", "Judge", named),
    Column("n", "Judgements", whole, "Planned"),
    Column("n_scored", "With a class", whole),
    Column("unreadable", "Unreadable", percent, "Share of replies without a class"),
    Column("n_failed", "Failed", whole, "The call failed for good, or a budget was reached"),
    Column("partial", "Missing alone", percent, "Share of judgements that are missing where another judge answered"),
    Column("mean", "Mean", estimate, "Mean class as a number, 0-1, before should_not is turned round"),
    Column("calls", "Replies", whole),
    Column("cost_usd", "US dollars", dollars),
)
_SELF_COLUMNS = (
    Column("judge", "Judge", named),
    Column("model", "Model", named),
    Column("maker", "Maker of both", text),
    Column(
        "gamma", "Favour", as_is, "Score given to the own maker beyond what other judges give, -1 to 1; 95 % interval beneath"
    ),
    Column("p_adjusted", "p (adjusted)", p_value),
    Column("n", "Judgements", whole),
    Column("n_prompts", "Prompts", whole),
    Column("reason", "Note", note),
)
_SHARE_COLUMNS = (
    Column("cut", "By", text),
    Column("value", "Of", named),
    Column("scale", "Classes", whole, "How many classes judges chose from"),
    Column("answers", "Answers", percent, "Share of the variance between criteria of responses: what is to be measured"),
    Column("judges", "Judges", percent, "Share between judges of the same text"),
    Column("repeats", "Repeats", percent, "Share between repeats of one judge"),
    Column("n", "Judgements", whole),
    Column("reason", "Note", note),
)
_LABELLED_COLUMNS = (
    Column("blueprint", "Blueprint", named),
    Column("model", "Model", named),
    Column("judged", "By judges", estimate),
    Column("corrected", "Corrected", as_is, "By the labels of people; 95 % interval beneath"),
    Column(
        "power",
        "Weight of judges",
        percent,
        "What they count for on unlabelled prompts: 0 % not at all, 100 % in full, less their bias",
    ),
    Column("n_prompts_labelled", "Prompts labelled", whole),
    Column("n_prompts", "Prompts", whole),
    Column("prompts_needed", "Prompts needed", whole, "To label for an interval 0.06 wide on these very prompts"),
    Column("reason", "Note", note),
)
_KNOWN_COLUMNS = (
    Column("judge", "Judge", named),
    Column("said", "People said", estimate, "Class as a number"),
    Column("n", "Judgements", whole),
    Column("same", "Same class", percent),
    Column("near", "One class off at most", percent),
    Column("bias", "Bias", signed, "Above 0 the judge is too generous"),
    Column("note", "Note", note),
)
_BESIDE_AGREEMENT = (
    ("rubric_judges", "Judges", _JUDGES_COLUMNS),
    ("rubric_self_preference", "Judges on models of their own maker", _SELF_COLUMNS),
    ("rubric_variance_shares", "What the judgements differ by", _SHARE_COLUMNS),
    ("rubric_known_classes", "Judges against people's labels", _KNOWN_COLUMNS),
    ("rubric_corrected", "Scores corrected by people's labels", _LABELLED_COLUMNS),
)
"""Tables that stand beneath the agreement where there are any."""
_SHOWN_ENDS = (
    ("alpha", "low", "high"),
    ("gamma", "low", "high"),
    ("corrected", "corrected_low", "corrected_high"),
)
_FIRST_TO_BE_SHOWN = {"overall": 0, "judges": 1, "criterion": 2, "language": 3, "blueprint": 4}


def champions_section(rows: StoredRows) -> str:
    found = rows.frame("rubric_champions")
    if not {"dimension", "model", "mean"} <= set(found) or not len(found):
        made = missing(
            "No model was graded yet",
            "a collection `analyst` in the models file sums up blueprints and grades models at `dtef rubric run`",
        )
        return section("champions", "Champions", _CHAMPIONS_HOW, made)
    body = table(
        _named(_best_two(found), ("model", "second")),
        _CHAMPION_COLUMNS,
        caption="Champion of each dimension",
        row_head="dimension",
        data=found,
    )
    return section("champions", "Champions", _CHAMPIONS_HOW, body)


def _best_two(found: pd.DataFrame) -> pd.DataFrame:
    """One row per dimension: its champion and the next; where no model is eligible, why the best of them is not."""
    rows = []
    for dimension, own in found.groupby("dimension", sort=True):
        rank = own["rank"] if "rank" in own else pd.Series(ranks(own["mean"]), own.index)
        eligible = own.assign(rank=rank)[rank.notna()].sort_values(["rank", "model"]).to_dict("records")
        row: dict[str, object] = {"dimension": dimension, "model": None, "second": None, "reason": ""}
        for names, one in zip((("model", "mean"), ("second", "second_mean")), eligible, strict=False):
            row |= {
                names[0]: one["model"],
                names[1]: one["mean"],
                **({} if names[0] == "second" else {"n_blueprints": one.get("n_blueprints")}),
            }
        if not eligible:
            best = own.sort_values("mean", ascending=False).to_dict("records")[0]
            row["reason"] = f"{best['model']}, the best, is {best.get('reason') or 'not eligible'}"
        rows.append(row)
    return pd.DataFrame(rows)


def agreement_part(rows: StoredRows, blueprint: str | None = None) -> str:
    """The table of agreement as markup: every cut of all judgements, or one blueprint alone."""
    found = rows.frame("rubric_agreement", {} if blueprint is None else {"cut": "blueprint", "value": blueprint})
    if not len(found):
        what = "No agreement yet" if blueprint is None else "No agreement of judges on this blueprint"
        return missing(what, "`dtef rubric board --refresh` makes rubric_agreement from the judgements of two judges or more")
    if blueprint is not None:
        found = found.drop(columns=["cut", "value"])
    elif {"cut", "value"} <= set(found):
        found = found.sort_values(
            ["cut", "value"], key=lambda column: column.map(_FIRST_TO_BE_SHOWN).fillna(9) if column.name == "cut" else column
        )
    return _as_published(found, _AGREEMENT_COLUMNS, "Agreement of judges")


def agreement_section(rows: StoredRows) -> str:
    beside = ((title, columns, _with_whole(rows.frame(name))) for name, title, columns in _BESIDE_AGREEMENT)
    parts = [
        fold(escape(title), _as_published(found, columns, title), is_open=True)
        for title, columns, found in beside
        if len(found)
    ]
    return section("agreement", "Agreement", _AGREEMENT_HOW, agreement_part(rows) + "".join(parts))


def _with_whole(found: pd.DataFrame) -> pd.DataFrame:
    """A row of no blueprint is of all of them together."""
    return found.assign(blueprint=found["blueprint"].fillna("all blueprints")) if "blueprint" in found else found


def _as_published(found: pd.DataFrame, columns: Sequence[Column], caption: str) -> str:
    """The known columns; of a table without any of them, all."""
    known = [column for column in columns if column.name in found and _says_anything(found[column.name], column)]
    if "scale" in found and found["scale"].nunique() < 2:
        known = [column for column in known if column.name != "scale"]
    known = known or [Column(str(name), str(name), text) for name in found]
    names = [column.name for column in known if column.shown is named]
    shown = with_intervals(_named(found, names), [ends for ends in _SHOWN_ENDS if {*ends} <= set(found)])
    shown = shown.assign(
        **{
            column.name: shown[column.name].map(estimate)
            for column in known
            if column.shown is as_is and not _is_markup(shown[column.name])
        }
    )
    return table(shown, known, caption=caption, data=found)


def _says_anything(values: pd.Series, column: Column) -> bool:
    return bool(values.notna().any())


def _is_markup(values: pd.Series) -> bool:
    return any(isinstance(value, str) for value in values)


def _named(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The frame with names as markup; of a list of names, each."""
    return frame.assign(**{name: frame[name].map(_whose) for name in columns if name in frame})


def _whose(value: object) -> str:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return wrapping_name(value)
    return ", ".join(inline(one) for one in value)
