"""The data behind the numbers: rounds, quarantine, statuses of responses, reasons for unreadable responses, and batteries."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pandas as pd

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.site.content import Column, Section, Table, convert_to_rows
from dtef_pipeline.site.number_text import show
from dtef_pipeline.survey.boards.question_links import explain_link, load_questionnaires
from dtef_pipeline.survey.design_effects import describe_n
from dtef_pipeline.survey.observations import REASONS
from dtef_pipeline.survey.scoring.policy import CREDITS
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.texts import shorten_middle
from dtef_pipeline.tables import STATUSES
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.shortening import shorten

_UNREAD_STATUSES = ("unparseable", "wrong_length", "refused")
_MAX_REASONS = 4
"""Per model."""
_LONGEST_EXAMPLE, _LONGEST_QUESTION = 400, 100


def data_sections(contents: SurveyContents) -> Iterator[Section]:
    """Yield the sections of the page on data."""
    connection = contents.connection
    if has_table(connection, "survey_responses"):
        yield _build_rounds_section(contents)
        yield _build_batteries_section(connection)
    yield _build_statuses_section(contents)
    if has_table(connection, "predictions"):
        yield _build_examples_section(contents)
    if has_table(connection, "survey_quarantine"):
        yield _build_quarantine_section(connection)
    if has_table(connection, "survey_findings"):
        yield _build_findings_section(connection)


_ROUND_COLUMNS = (
    Column("round", "Round"),
    Column("segments", "Segments", "count", always=True),
    Column("questions", "Questions", "count", always=True),
    Column("pairs", "Pairs", "count", "Pairs of segment and question"),
    Column("median_n", "Median respondents", "count"),
    Column("smallest_n", "Fewest respondents", "count", more=True),
    Column("unknown_n", "Pairs of unknown size", "count", "Without ceiling, skill and corrected errors", more=True),
    Column("own_n", "Pairs with their own size", "percent", "The others take the size of their segment", more=True),
    Column("circular", "Circular pairs", "count", "The question defines the segment; boards leave the pair out", more=True),
)


def _build_rounds_section(contents: SurveyContents) -> Section:
    frame = contents.connection.execute("""
        SELECT round, count(DISTINCT segment) AS segments, count(DISTINCT question_id) AS questions, count(*) AS pairs, min(n) AS smallest_n,
            median(n) AS median_n, count(*) FILTER (n IS NULL) AS unknown_n, avg((n_source = 'question')::INT) AS own_n,
            count(*) FILTER (circular) AS circular
        FROM survey_responses GROUP BY 1 ORDER BY 1""").df()
    answer = (
        f"{format_count(len(frame), 'round')} with {format_count(int(frame['questions'].sum()), 'question')} in up to "
        f"{format_count(int(frame['segments'].max()), 'segment')}: {format_count(int(frame['pairs'].sum()), 'pair')}."
        if len(frame)
        else ""
    )
    method = " ".join(f"{line[0].upper()}{line[1:]}." for line in describe_n(contents.connection, list(frame["round"])))
    return Section(
        "rounds",
        "questions that people answered",
        [Table("Rounds of the survey", _ROUND_COLUMNS, convert_to_rows(frame))],
        answer,
        method,
    )


def _build_statuses_section(contents: SurveyContents) -> Section:
    counts = ", ".join(f"count(*) FILTER (status = '{status}') AS {status}" for status in STATUSES)
    frame = contents.connection.execute(
        f"SELECT model_variant, count(*) AS predictions, {counts} FROM scores GROUP BY 1 ORDER BY 1"
    ).df()
    reasons = {credit.status: credit.reason for credit in CREDITS}
    columns = [Column("name", "Model", "model"), Column("predictions", "Predictions", "count")]
    columns += [
        Column(
            status,
            status.replace("_", " ").capitalize() if status != "ok" else "Read",
            "count",
            reasons.get(status, ""),
            always=status == "ok",
        )
        for status in STATUSES
        if status == "ok" or frame[status].sum()
    ]
    rows = [{**row, "name": contents.names.get(row["model_variant"], row["model_variant"])} for row in convert_to_rows(frame)]
    total, read = int(frame["predictions"].sum()), int(frame["ok"].sum())
    answer = f"{show(read / total, 'percent')} of {format_count(total, 'prediction')} could be read." if total else ""
    return Section(
        "statuses",
        "outcomes of predictions",
        [Table("Predictions by status, all snapshots", columns, rows), _build_reasons_table(contents)],
        answer,
        describe_policy(),
    )


def describe_policy() -> str:
    """Return how each status counts in the means, according to the policy."""
    scores = "; ".join(f"{credit.status.replace('_', ' ')} {credit.score:g}" for credit in CREDITS if credit.score is not None)
    left_out = ", ".join(credit.status for credit in CREDITS if credit.score is None)
    return (
        f"A readable prediction counts with its score, an unreadable one with a fixed score: {scores}. Predictions without any answer "
        f"({left_out}) are left out of every mean."
    )


def _build_reasons_table(contents: SurveyContents) -> Table:
    frame = contents.connection.execute(
        "SELECT status, reason, count(*) AS predictions FROM scores WHERE status <> 'ok' GROUP BY ALL "
        "ORDER BY predictions DESC, status, reason NULLS LAST LIMIT 50"
    ).df()
    frame["status"] = frame["status"].str.replace("_", " ")
    columns = [
        Column("reason", "Reason", "long"),
        Column("status", "Status", always=True),
        Column("predictions", "Predictions", "count"),
    ]
    return Table("Why predictions could not be read, the most frequent first", columns, convert_to_rows(frame), first=10)


def _build_examples_section(contents: SurveyContents) -> Section:
    cell = "round, segment, question_id, context_level, condition, model_variant, snapshot, draw"
    frame = contents.connection.execute(f"""
        WITH unread AS (
            SELECT {cell}, status, coalesce(reason, '') AS reason, question_order FROM scores WHERE status IN {_UNREAD_STATUSES}
        ), first AS (
            SELECT *, count(*) OVER kind AS times FROM unread
            WINDOW kind AS (PARTITION BY model_variant, status, reason)
            QUALIFY row_number() OVER (PARTITION BY model_variant, status, reason ORDER BY question_order, round, segment, snapshot, draw) = 1
        ), frequent AS (
            FROM first QUALIFY row_number() OVER (PARTITION BY model_variant ORDER BY times DESC, status, reason) <= {_MAX_REASONS}
        )
        SELECT frequent.*, response FROM frequent JOIN (SELECT {cell}, response FROM predictions) USING ({cell})
        ORDER BY model_variant, times DESC, status, reason LIMIT 100
        """).df()
    columns = [
        Column("name", "Model", "model"),
        Column("reason", "Reason", "long"),
        Column("times", "Times", "count"),
        Column("response", "Response", "long", "Text of the model; the middle of a long one is left out"),
        Column("pair", "Of", "long", more=True),
    ]
    rows = [
        {
            **row,
            "name": contents.names.get(row["model_variant"], row["model_variant"]),
            "reason": row["reason"] or row["status"].replace("_", " "),
            "response": shorten_middle(row["response"] or "(empty)", _LONGEST_EXAMPLE),
            "pair": _pair_link(contents, row),
        }
        for row in convert_to_rows(frame)
    ]
    return Section(
        "unread",
        "responses that could not be read",
        [Table("The most frequent reasons of each model, with an example", columns, rows, first=10)],
    )


def _pair_link(contents: SurveyContents, row: dict[str, object]) -> object:
    segment = contents.segments.get(str(row["segment"]))
    question = contents.questions.get((str(row["round"]), str(row["question_id"])))
    if segment is None or question is None:
        return f"{row['round']}, {row['segment']}, {row['question_id']}"
    return segment.link._replace(text=f"{segment.label}: {question.title}", href=segment.pair_page(question))


def _build_quarantine_section(connection: duckdb.DuckDBPyConnection) -> Section:
    frame = connection.execute("SELECT round, reason, count(*) AS rows FROM survey_quarantine GROUP BY ALL ORDER BY ALL").df()
    frame["meaning"] = [REASONS.get(reason, reason) for reason in frame["reason"]]
    columns = [Column("meaning", "Reason", "long"), Column("round", "Round"), Column("rows", "Rows", "count", always=True)]
    answer = (
        f"{format_count(rows := int(frame['rows'].sum()), 'row')} of the files {'was' if rows == 1 else 'were'} left out before any "
        "request to a model."
        if len(frame)
        else ""
    )
    return Section("quarantine", "quarantine", [Table("Rows left out, and why", columns, convert_to_rows(frame))], answer)


def _build_findings_section(connection: duckdb.DuckDBPyConnection) -> Section:
    frame = connection.execute(
        "SELECT message, string_agg(DISTINCT round, ', ' ORDER BY round) AS rounds, any_value(level) AS level, "
        "list_distinct(flatten(list(items))) AS items FROM survey_findings GROUP BY message ORDER BY message"
    ).df()
    rows = [{**row, "items": "; ".join(sorted(map(str, row["items"])))} for row in convert_to_rows(frame)]
    columns = [
        Column("message", "Finding", "long"),
        Column("rounds", "Rounds"),
        Column("level", "Kind"),
        Column("items", "About", "long", more=True),
    ]
    return Section("findings", "findings about the files", [Table("Findings on reading the rounds", columns, rows)])


def _build_batteries_section(connection: duckdb.DuckDBPyConnection) -> Section:
    """Return batteries of two or more different questions, linked over rounds, and the number of single questions."""
    questions = load_questionnaires(connection)
    different = questions.groupby("cluster")["same_item"].nunique()
    several = different[different > 1].sort_values(ascending=False, kind="stable")
    answer = (
        f"{format_count(questions['same_item'].nunique(), 'different question')} of {format_count(questions['round'].nunique(), 'round')} form "
        f"{format_count(len(different), 'battery')}: {len(several)} with several questions, "
        f"{len(different) - len(several)} with one."
    )
    rows = [_build_battery_row(questions[questions["cluster"] == cluster]) for cluster in several.index]
    columns = [
        Column("why", "Together because", "long"),
        Column(
            "different",
            "Questions",
            "count",
            "Different questions; the same one asked in several rounds counts once",
            always=True,
        ),
        Column("rounds", "Rounds"),
        Column("texts", "Texts", "long", more=True),
    ]
    method = (
        "Questions of one block, or repeated in other rounds, test a model in much the same way, so intervals count them as one battery. "
        "docs/explanation/batteries.md explains the rule that finds batteries and how to correct it."
    )
    return Section(
        "batteries",
        "batteries of questions",
        [Table("Batteries of two or more questions", columns, rows, first=15)],
        answer,
        method,
    )


def _build_battery_row(questions: pd.DataFrame) -> dict[str, object]:
    items = questions.drop_duplicates("same_item")
    texts = [shorten(" ".join(question.split()), _LONGEST_QUESTION) for question in items["question_text"]]
    return {
        "why": explain_link(questions),
        "different": len(items),
        "rounds": ", ".join(dict.fromkeys(questions["round"])),
        "texts": "\n".join(texts),
    }
