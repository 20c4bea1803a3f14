"""Scores over snapshots, with the drift rule's verdicts, and how far repeated draws agree."""

from __future__ import annotations

import duckdb
import pandas as pd

from dtef_pipeline.aggregation.cells import BoardOptions, has_table, policy_sql
from dtef_pipeline.report.charts import panel, score_domain
from dtef_pipeline.report.markup import (
    Column,
    as_is,
    four,
    note,
    paragraph,
    section,
    table,
    text,
    three,
    whole,
    with_intervals,
    without_lone_condition,
)
from dtef_pipeline.report.svg import drawing

_HOW = (
    "Mean score of each snapshot over the prompts that were scored in every snapshot of the series. The verdicts are those of the "
    "documented rule, which judges at temperature 0 alone; without one a movement may be sampling of the model."
)
_SERIES = "model, model_variant, context_level, condition"


def snapshot_means(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Mean score a snapshot of each series that has two snapshots or more; circular questions left out.

    Columns: model, model_variant, context_level, condition, snapshot, score (0-1), n_prompts: (segment, question, prompt) triples scored in
    every snapshot of the series, which the means are over.
    """
    connection.execute("SET threads = 1")
    return connection.execute(
        f"""
        WITH own AS (
            SELECT {_SERIES}, snapshot, round, segment, question_id, prompt_id, avg({policy_sql(BoardOptions().metric)}) AS score
            FROM scores WHERE NOT circular GROUP BY ALL HAVING count(score) > 0
        ), series AS (SELECT {_SERIES}, count(DISTINCT snapshot) AS snapshots FROM own GROUP BY ALL HAVING snapshots > 1)
        , held AS (
            SELECT {_SERIES}, round, segment, question_id, prompt_id FROM own JOIN series USING ({_SERIES})
            GROUP BY ALL HAVING count(*) = any_value(snapshots)
        )
        SELECT {_SERIES}, snapshot, avg(score) AS score, count(*) AS n_prompts
        FROM own SEMI JOIN held USING ({_SERIES}, round, segment, question_id, prompt_id)
        GROUP BY {_SERIES}, snapshot ORDER BY {_SERIES}, CASE snapshot WHEN 'base' THEN '' ELSE snapshot END
        """
    ).df()


def drift(connection: duckdb.DuckDBPyConnection) -> str:
    """The section: lines over snapshots, then the verdicts of `drift_checks` where there is such a table."""
    means = snapshot_means(connection)
    bounds = score_domain(means)
    lines = []
    for (_, level, condition), own in means.groupby(["model_variant", "context_level", "condition"], sort=True, observed=True):
        title = f"{own['model'].iloc[0]}, context {level}"
        rows = {str(row["snapshot"]): row for row in own.to_dict("records")}
        said = ", ".join(f"{snapshot}: {row['score']:.4f}" for snapshot, row in rows.items())
        count = f"{title}, asked as {condition}, {own['n_prompts'].iloc[0]} prompts; {said}"
        lines.append(drawing([panel(title, list(rows), rows, bounds, {})], 170, count, standalone=False))
    shown = f'<div class="panels">{"".join(lines)}</div>' if lines else paragraph("No series has two snapshots.")
    return section("drift", "Drift", _HOW, shown + _verdicts(connection))


def _verdicts(connection: duckdb.DuckDBPyConnection) -> str:
    if not has_table(connection, "drift_checks"):
        return paragraph("No drift checks yet.")
    frame = _flagged(connection)
    checked, compared, flagged = connection.execute(
        "SELECT count(*), count(gap), coalesce(sum(flagged::INT), 0) FROM drift_checks"
    ).fetchall()[0]
    said = paragraph(f"{flagged} flagged of {compared} compared ({checked} series in all).")
    said += _reasons(connection)
    titles = {"round": "Round", "segment": "Segment", "model": "Model", "condition": "Asked as", "reason": "What was compared"}
    return said + (
        table(frame, [Column(n, t, text) for n, t in titles.items()], caption="Flagged series") if len(frame) else ""
    )


def _reasons(connection: duckdb.DuckDBPyConnection) -> str:
    """Why series were not compared, where that was so."""
    frame = connection.execute(
        "SELECT reason, count(*) AS series FROM drift_checks WHERE gap IS NULL GROUP BY reason ORDER BY series DESC, reason LIMIT 20"
    ).df()
    columns = [Column("reason", "Why not compared", text), Column("series", "Series", whole)]
    return table(frame, columns, caption="Series that were not compared (most frequent reasons)") if len(frame) else ""


def _flagged(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    return connection.execute(
        "SELECT * FROM drift_checks WHERE flagged ORDER BY gap DESC, round, segment, model_variant, context_level, condition, prompt_set"
    ).df()


_RELIABILITY_HOW = (
    "From repeated draws of the same prompts: the share of the variance of single draws that is between prompts (1: draws agree), how far "
    "draws of one prompt differ, and the smallest differences that would be found in 80 % of cases."
)


def reliability(frame: pd.DataFrame) -> str:
    """The section, from the rows of `reliability` (empty: there is no such table)."""
    columns = [
        Column("model", "Model", text),
        Column("context_level", "Context", text),
        Column("condition", "Asked as", text),
        Column("icc", "Intraclass correlation", as_is),
        Column("within_sd", "SD within", four, "Standard deviation of the score between draws of one prompt"),
        Column("between_sd", "SD between", four, "Standard deviation of the prompts' true scores"),
        Column("rerun_detectable", "Detectable: rerun", four, "Difference of two reruns' means that is found in 80 % of cases"),
        Column(
            "model_detectable",
            "Detectable: models",
            four,
            "Difference of two models' means on as many questions that is found in 80 % of cases",
        ),
        Column("n_cells", "Pairs", whole),
        Column("n_draws", "Draws", whole),
        Column("note", "Note", note),
    ]
    shown = with_intervals(frame, [("icc", "low", "high")], shown=three, bounds=three)
    body = (
        table(shown, without_lone_condition(frame, columns), caption="Agreement of repeated draws", row_head="model")
        if len(frame)
        else paragraph("No repeated draws.")
    )
    return section("reliability", "Reliability", _RELIABILITY_HOW, body)
