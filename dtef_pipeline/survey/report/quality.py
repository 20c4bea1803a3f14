"""What the numbers stand on: the survey as read, what was set aside, what has no score, and what it cost."""

from __future__ import annotations

from html import escape

import duckdb
import pandas as pd

from dtef_pipeline.asking.snapshot_order import place_sql, snapshot_order
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.report.markup import (
    UNKNOWN_COST_COLUMNS,
    Column,
    dollars,
    named,
    paragraph,
    percent,
    section,
    shortened,
    table,
    text,
    whole,
)
from dtef_pipeline.report.terminal import named_apart
from dtef_pipeline.survey.boards.linked import questionnaires, why_linked
from dtef_pipeline.survey.quarantine import REASONS
from dtef_pipeline.survey.report.pairs import examples
from dtef_pipeline.survey.scoring.policy import CREDITS
from dtef_pipeline.tables import STATUSES
from dtef_pipeline.text.counted import counted

_HOW_TO_READ_QUALITY = (
    "What was read of each round, what was set aside before anything was asked and why, and which predictions have a score. "
)


def _counts() -> str:
    """What each status counts in the means, in words, from the policy itself."""
    scored = "; ".join(f"{credit.status.replace('_', ' ')} {credit.score:g}" for credit in CREDITS if credit.score is not None)
    left_out = ", ".join(credit.status for credit in CREDITS if credit.score is None)
    return (
        f"A prediction that could be read (ok) counts what the metric says. A response that could not be read counts what the published policy "
        f"gives it: {scored}. Where there is no answer at all ({left_out}) nothing is counted: such a prediction is left out of every mean. "
        f"The column Parsed only of the leaderboard is of ok alone."
    )


def quality(connection: duckdb.DuckDBPyConnection) -> str:
    parts = [_rounds(connection), batteries(connection), _statuses(connection), examples(connection), _quarantine(connection)]
    return section("data-quality", "Data quality", _HOW_TO_READ_QUALITY + _counts(), "".join(parts))


def _rounds(connection: duckdb.DuckDBPyConnection) -> str:
    if not has_table(connection, "survey_responses"):
        return ""
    kept = connection.execute(
        "SELECT round, count(DISTINCT segment) AS segments, count(DISTINCT question_id) AS questions, count(*) AS pairs, min(n) AS smallest_n, "
        "median(n) AS median_n, count(*) FILTER (n IS NULL) AS unknown_n, "
        "avg((n_source = 'question')::INT) AS own_n, count(*) FILTER (circular) AS circular "
        "FROM survey_responses GROUP BY 1 ORDER BY 1"
    ).df()
    columns = [
        Column("round", "Round", text),
        Column("segments", "Segments", whole),
        Column("questions", "Questions", whole),
        Column("pairs", "Pairs", whole),
        Column("smallest_n", "Smallest n", whole),
        Column("median_n", "Median n", whole),
        Column("unknown_n", "Pairs of unknown n", whole, "Without ceiling, skill and corrected errors"),
        Column("own_n", "Pairs with their own n", percent, "The others take the size of their segment"),
        Column("circular", "Circular pairs", whole, "The question defines the segment: left out of all boards here"),
    ]
    return "<h3>Survey</h3>" + table(kept, columns, caption="What was read", row_head="round")


def _statuses(connection: duckdb.DuckDBPyConnection) -> str:
    counts = ", ".join(f"count(*) FILTER (status = '{status}') AS {status}" for status in STATUSES)
    frame = connection.execute(
        f"SELECT model, model_variant, count(*) AS predictions, {counts} FROM scores GROUP BY 1, 2 ORDER BY 1, 2"
    ).df()
    frame = named_apart(frame)[
        ["model", "model_variant", "predictions", *(status for status in STATUSES if status == "ok" or frame[status].sum())]
    ]
    reasons = {credit.status: credit.reason for credit in CREDITS}
    columns = [
        Column("model", "Model", text),
        Column("predictions", "Predictions", whole),
        *(Column(status, status.replace("_", " "), whole, reasons.get(status, "")) for status in STATUSES),
    ]
    return (
        "<h3>Predictions by status</h3>"
        + table(frame, columns, caption="Statuses, all snapshots", row_head="model", data=frame)
        + _unscored(connection)
    )


def _unscored(connection: duckdb.DuckDBPyConnection, most: int = 50) -> str:
    """Why predictions are not `ok`, most frequent first."""
    frame = connection.execute(
        "SELECT status, reason, count(*) AS predictions FROM scores WHERE status <> 'ok' GROUP BY ALL "
        f"ORDER BY predictions DESC, status, reason NULLS LAST LIMIT {most}"
    ).df()
    if not len(frame):
        return paragraph("Every prediction could be read.")
    frame["status"] = frame["status"].str.replace("_", " ")
    columns = [Column("status", "Status", text), Column("reason", "Reason", text), Column("predictions", "Predictions", whole)]
    return table(
        frame, columns, caption="Why predictions are not ok: no response, or none that could be read (most frequent first)"
    )


def _quarantine(connection: duckdb.DuckDBPyConnection) -> str:
    if not has_table(connection, "survey_quarantine"):
        return ""
    aside = connection.execute("SELECT round, reason, count(*) AS rows FROM survey_quarantine GROUP BY ALL ORDER BY ALL").df()
    aside["meaning"] = [REASONS.get(reason, "") for reason in aside["reason"]]
    columns = [
        Column("round", "Round", text),
        Column("reason", "Reason", text),
        Column("meaning", "Meaning", text),
        Column("rows", "Rows", whole),
    ]
    return "<h3>Quarantine</h3>" + table(aside, columns, caption="What was set aside")


def costs(connection: duckdb.DuckDBPyConnection) -> str:
    """The section, from the `costs` table where there is one."""
    how = "Requests to language models and what they cost; baselines ask no model. Responses without a known price are not in the dollars."
    frame = _costs(connection) if has_table(connection, "costs") else pd.DataFrame()
    columns = [
        Column("model", "Model", text),
        Column("snapshot", "Snapshot", text),
        *(Column(name, name.replace("_", " ").capitalize(), whole) for name in ("answered", "failed", "budget_stopped")),
        *(Column(name, name.replace("_", " ").capitalize(), whole) for name in ("prompt_tokens", "completion_tokens")),
        Column("cost_usd", "US dollars", dollars),
        Column("unpriced", "Unpriced", whole),
        *UNKNOWN_COST_COLUMNS,
    ]
    body = (
        table(frame, columns, caption="Costs by model and snapshot", row_head="model")
        if len(frame)
        else paragraph("Nothing was paid for.")
    )
    return section("costs", "Costs", how, body)


def _costs(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    sums = ", ".join(
        f"sum({name}) AS {name}"
        for name in ("answered", "failed", "budget_stopped", "prompt_tokens", "completion_tokens", "cost_usd", "unpriced")
    )
    sums = ", ".join([sums, *(f"sum({column.name}) AS {column.name}" for column in UNKNOWN_COST_COLUMNS)])
    place = place_sql(snapshot_order(connection))
    return connection.execute(
        f"""
        SELECT model, snapshot, {sums} FROM costs WHERE family = 'survey' GROUP BY model, snapshot
        ORDER BY model, {place} NULLS FIRST, snapshot
        """
    ).df()


_CHARACTERS_SHOWN = 100
"""Characters of a question that are shown; the download has all."""


def batteries(connection: duckdb.DuckDBPyConnection) -> str:
    """Markup of the batteries of two and more different questions, linked over rounds, with the number of the others."""
    if not has_table(connection, "survey_responses"):
        return ""
    asked = questionnaires(connection)
    different = asked.groupby("cluster")["same_item"].nunique()
    several = different[different > 1].sort_values(ascending=False, kind="stable")
    found = (
        f"{counted(asked['same_item'].nunique(), 'different question')} of {counted(asked['round'].nunique(), 'round')} make "
        f"{counted(len(different), 'battery')}: {len(several)} of two and more different questions, "
        f"{len(different) - len(several)} of a single one."
    )
    intro = f"<h3>Batteries</h3>{paragraph(_HOW_TO_READ_BATTERIES)}{paragraph(found)}"
    if not len(several):
        return intro
    shown = [_row(number, asked[asked["cluster"] == cluster]) for number, cluster in enumerate(several.index, 1)]
    of_cluster = pd.DataFrame(shown, index=several.index, columns=["battery", "why"])
    data = asked.drop(columns="battery").join(of_cluster, on="cluster", how="inner")
    columns = [
        Column("battery", "Battery", whole),
        Column("different", "Questions", whole, "Different questions; the same one asked in several rounds counts once"),
        Column("rounds", "Rounds", text),
        Column("why", "Together because", text),
        Column("texts", "Texts", named),
    ]
    return intro + table(
        pd.DataFrame(shown),
        columns,
        caption="Batteries of two and more questions",
        row_head="battery",
        data=data[["battery", "round", "question_id", "question_text", "why", "cluster"]].rename(
            columns={"cluster": "linked_battery"}
        ),
    )


_HOW_TO_READ_BATTERIES = (
    "Questions that were asked as one block, or again in other rounds, say much the same about a model, so intervals count them as one "
    "battery. docs/batteries.md explains the rule that finds them and how to correct it."
)


def _row(number: int, own: pd.DataFrame) -> dict[str, object]:
    items = own.drop_duplicates("same_item")
    texts = "".join(
        f"<li>{escape(shortened(' '.join(question.split()), _CHARACTERS_SHOWN))}</li>" for question in items["question_text"]
    )
    return {
        "battery": number,
        "different": len(items),
        "rounds": ", ".join(dict.fromkeys(own["round"])),
        "why": why_linked(own),
        "texts": f"<ul>{texts}</ul>",
    }
