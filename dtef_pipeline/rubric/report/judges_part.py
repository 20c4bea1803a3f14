"""The judges of a blueprint: what each gave, what it left open, where they differ, and how far they agree."""

from __future__ import annotations

from html import escape

import pandas as pd

from dtef_pipeline.report.isolated import missing, wrapping_name
from dtef_pipeline.report.markup import Column, dollars, estimate, named, note, percent, section, table, whole
from dtef_pipeline.report.stored_rows import StoredRows
from dtef_pipeline.rubric.report.blueprint_run import BlueprintRun
from dtef_pipeline.rubric.report.shared_tables import agreement_part
from dtef_pipeline.rubric.report.verdicts import criteria_counted, criterion_words

_JUDGES_HOW = (
    "Every text criterion of every response is put to each judge. A judgement without a class is in no mean: the reply could not be read "
    "when it was asked for once more, or there was none. Krippendorff's alpha says how far judges agree: 1 fully, 0 as by chance."
)
_WIDE_SPREAD = 0.3
"""Mean standard deviation of the judgements of a criterion from which on it is listed."""
_MOST_LISTED = 20
_JUDGE_COLUMNS = (
    Column("judge", "Judge", named),
    Column("n", "Judgements", whole),
    Column("with_class", "With a class", whole),
    Column("unread", "Without", percent, "Share of judgements without a class"),
    Column("why", "Why", note),
    Column("again", "Asked twice", whole),
    Column("mean", "Mean", estimate, "Mean of its classes as numbers, 0-1, before should_not is turned round"),
    Column("cost_usd", "US dollars", dollars),
)
_SPREAD_COLUMNS = (
    Column("prompt", "Prompt", named),
    Column("criterion", "Criterion", named),
    Column("spread", "Spread", estimate, "Mean standard deviation of the judgements of one response, 0-0.5"),
    Column("n", "Responses", whole),
)


def judges_section(rows: StoredRows, run: BlueprintRun) -> str:
    table_of_judges = _judges(rows, run)
    if not table_of_judges:
        made = missing(
            "No judgements in this run", "`dtef rubric run` makes rubric_judgements where a blueprint has criteria in words"
        )
        return section("judges", "Judges", _JUDGES_HOW, made)
    body = table_of_judges + "<h3>Agreement</h3>" + agreement_part(rows, run.id) + _disputed(rows, run)
    return section("judges", "Judges", _JUDGES_HOW, body)


def _judges(rows: StoredRows, run: BlueprintRun) -> str:
    there = rows.columns("rubric_judgements")
    if not {"judge", "class", "score", "reason"} <= there or run.snapshot is None:
        return ""
    again = "count(*) FILTER (attempts > 1)" if "attempts" in there else "NULL"
    cost = "sum(cost_usd)" if "cost_usd" in there else "NULL"
    query = (
        f"(SELECT blueprint, snapshot, judge, reason, count(*) AS n, count(class) AS with_class, sum(score)::DOUBLE AS total, "
        f"{again}::BIGINT AS again, round({cost}, 9)::DOUBLE AS cost_usd FROM rubric_judgements GROUP BY ALL)"
    )
    wanted = ("judge", "reason", "n", "with_class", "total", "again", "cost_usd")
    found = pd.DataFrame(rows.rows(query, wanted, {"blueprint": run.id, "snapshot": run.snapshot}, ("judge", "reason")))
    if not len(found):
        return ""
    sums = found.groupby("judge", sort=True)[["n", "with_class", "total", "again", "cost_usd"]].sum(min_count=1).reset_index()
    lacking = found[found["reason"].notna()]
    why = {
        judge: "; ".join(f"{reason} ({n:,})" for reason, n in zip(own["reason"], own["n"], strict=True))
        for judge, own in lacking.groupby("judge")
    }
    frame = sums.assign(
        unread=1 - sums["with_class"] / sums["n"],
        mean=(sums["total"] / sums["with_class"]).where(sums["with_class"] > 0),
        why=[why.get(judge, "") for judge in sums["judge"]],
        judge=sums["judge"].map(wrapping_name),
    )
    data = frame.assign(judge=sums["judge"]).drop(columns="total")
    return table(frame, _JUDGE_COLUMNS, caption="Judges", row_head="judge", data=data)


def _disputed(rows: StoredRows, run: BlueprintRun) -> str:
    """The criteria on which judges differ widely: by the standard deviation of a response's judgements, mean over responses."""
    there = rows.columns("rubric_judgements")
    place = ("prompt", "block", "path", "position")
    one = ("blueprint", "snapshot", *place, "model_variant", "system_index", "draw")
    if not {*one, "score"} <= there:
        return ""
    keys = ", ".join([*one, *(["judge_draw"] if "judge_draw" in there else [])])
    query = (
        f"(SELECT {', '.join(one[:6])}, round(avg(spread), 9)::DOUBLE AS spread, count(spread) AS n FROM (SELECT {keys}, "
        f"CASE WHEN count(score) > 1 THEN stddev_pop(score) END AS spread FROM rubric_judgements GROUP BY {keys}) GROUP BY ALL)"
    )
    found = rows.rows(query, (*place, "spread", "n"), {"blueprint": run.id, "snapshot": run.snapshot}, place)
    wide = [row for row in found if row["spread"] is not None and row["spread"] > _WIDE_SPREAD]
    if not wide:
        return f'<p class="count">On no criterion do the judgements differ by a mean standard deviation above {_WIDE_SPREAD:g}.</p>'
    words = {
        (row["prompt"], row["block"], row["path"], row["position"]): criterion_words(row)
        for prompt in {row["prompt"] for row in wide}
        for row in run.criteria.of(prompt)
    }
    widest = sorted(wide, key=lambda row: -row["spread"])[:_MOST_LISTED]
    shown = pd.DataFrame(
        [
            {
                "prompt": wrapping_name(row["prompt"]),
                "criterion": f'<span dir="auto">{escape(words.get(tuple(row[key] for key in place), ""))}</span>',
                "spread": row["spread"],
                "n": row["n"],
            }
            for row in widest
        ]
    )
    told = criteria_counted(len(wide))
    more = f"; the {_MOST_LISTED} widest are shown" if len(wide) > _MOST_LISTED else ""
    heading = (
        f'<h3>Where judges differ</h3><p class="count">{told} with a mean standard deviation above {_WIDE_SPREAD:g}{more}.</p>'
    )
    return heading + table(shown, _SPREAD_COLUMNS, caption="Criteria on which judges differ", data=pd.DataFrame(widest))
