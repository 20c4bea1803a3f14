"""Tables of the family that are shown as they are published: champions, agreement of judges, drift. Columns that a table lacks are left out."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dtef_pipeline.report.markup import (
    Column,
    as_is,
    estimate,
    long_text,
    named,
    note,
    p_value,
    percent,
    section,
    table,
    text,
    whole,
    with_intervals,
)
from dtef_pipeline.rubric.report.marks import inline, missing, wrapping_name
from dtef_pipeline.rubric.report.stored import RubricRows

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
_DRIFT_HOW = (
    "Whether a model still scores as it did on the same test, by the same judges: only variants at temperature 0, and only runs of one run "
    "label, are compared. The documented rule flags a gap between the lowest and the highest run of at least 0.05 and 10 %. Net of judges: "
    "stored answers are judged again each night, and where these move too, it is the judge that has drifted and not the model."
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
    Column("by", "By", text),
    Column("level", "By", text),
    Column("scope", "Of", text),
    Column("blueprint", "Blueprint", named),
    Column("snapshot", "Run", text),
    Column("group", "Group", named),
    Column("judge", "Judge", named),
    Column("judges", "Judges", named),
    Column("judge_a", "Judge", named),
    Column("judge_b", "Other judge", named),
    Column("other_judge", "Other judge", named),
    Column("kind", "Kind", text),
    Column("language", "Language", text),
    Column("alpha", "Alpha", as_is, "1 is agreement, 0 chance; 95 % interval beneath"),
    Column("reading", "Reading", text),
    Column("n_units", "Judged twice", whole, "Criteria of responses with two judgements or more"),
    Column("n_values", "Judgements", whole),
    Column("n_clusters", "Prompts", whole),
    Column("n_prompts", "Prompts", whole),
    Column("reason", "Note", note),
)
_DRIFT_COLUMNS = (
    Column("blueprint", "Blueprint", named),
    Column("model", "Model", named),
    Column("model_variant", "Variant", named),
    Column("verdict", "Verdict", text),
    Column("net_verdict", "Net of judges", text),
    Column("judge_verdict", "Judges", text),
    Column("whose", "Whose drift", text),
    Column("flagged", "Rule", text),
    Column("shift", "Shift", as_is, "Mean paired change of the hybrid score; 95 % interval beneath"),
    Column("judge_shift", "Shift of the judges", as_is, "On stored answers that were judged again"),
    Column("net_shift", "Shift net of judges", as_is),
    Column("lowest", "Lowest", estimate),
    Column("lowest_snapshot", "in", text),
    Column("highest", "Highest", estimate),
    Column("highest_snapshot", "in", text),
    Column("gap", "Gap", estimate),
    Column("relative_gap", "Relative gap", percent),
    Column("hours", "Hours", whole),
    Column("n_snapshots", "Runs", whole),
    Column("n_items", "Prompts", whole),
    Column("p", "p", p_value),
    Column("investigate", "Compare these runs", text),
    Column("reason", "Reason", long_text),
)
_ENDS = (
    ("alpha", "low", "high"),
    ("alpha", "alpha_low", "alpha_high"),
    ("shift", "shift_low", "shift_high"),
    ("judge_shift", "judge_shift_low", "judge_shift_high"),
    ("net_shift", "net_shift_low", "net_shift_high"),
)


def champions_section(rows: RubricRows) -> str:
    found = rows.frame("rubric_champions")
    if not {"dimension", "model", "mean"} <= set(found):
        made = missing(
            "No champions yet", "`dtef rubric run` with an analyst makes rubric_champions from the grades of summaries"
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
        rank = own["rank"] if "rank" in own else own["mean"].rank(ascending=False)
        eligible = own[rank.notna()].assign(rank=rank).sort_values(["rank", "model"]).to_dict("records")
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


def agreement_part(rows: RubricRows, blueprint: str | None = None, snapshot: str | None = None) -> str:
    """The table of agreement as markup: of all blueprints, or of one alone."""
    where = {"blueprint": blueprint, **({"snapshot": snapshot} if snapshot else {})} if blueprint is not None else {}
    found = (
        rows.frame("rubric_agreement", where)
        if not where or "blueprint" in rows.columns("rubric_agreement")
        else pd.DataFrame()
    )
    if not len(found):
        what = "No agreement yet" if blueprint is None else "No agreement of judges on this blueprint"
        return missing(what, "`dtef rollup` makes rubric_agreement from the judgements of two judges or more")
    if blueprint is not None:
        found = found.drop(columns=["blueprint", "snapshot"], errors="ignore")
    return _as_published(found, _AGREEMENT_COLUMNS, "Agreement of judges")


def agreement_section(rows: RubricRows) -> str:
    return section("agreement", "Agreement", _AGREEMENT_HOW, agreement_part(rows))


def drift_section(rows: RubricRows) -> str:
    found = rows.frame("rubric_drift")
    if not len(found):
        made = missing(
            "No drift to show", "`dtef rollup` makes rubric_drift from two runs or more of a blueprint under one run label"
        )
        return section("drift", "Drift", _DRIFT_HOW, made)
    return section("drift", "Drift", _DRIFT_HOW, _as_published(found, _DRIFT_COLUMNS, "Verdict on each model and blueprint"))


def _as_published(found: pd.DataFrame, columns: Sequence[Column], caption: str) -> str:
    """The known columns; of a table without any of them, all."""
    known = [column for column in columns if column.name in found and found[column.name].notna().any()]
    known = known or [Column(str(name), str(name), text) for name in found]
    names = [column.name for column in known if column.shown is named]
    shown = with_intervals(_named(found, names), [ends for ends in _ENDS if {*ends} <= set(found)])
    shown = shown.assign(
        **{
            column.name: shown[column.name].map(estimate)
            for column in known
            if column.shown is as_is and not _is_markup(shown[column.name])
        }
    )
    return table(shown, known, caption=caption, data=found)


def _is_markup(values: pd.Series) -> bool:
    return any(isinstance(value, str) for value in values)


def _named(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The frame with names as markup; of a list of names, each."""
    return frame.assign(**{name: frame[name].map(_whose) for name in columns if name in frame})


def _whose(value: object) -> str:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return wrapping_name(value)
    return ", ".join(inline(one) for one in value)
