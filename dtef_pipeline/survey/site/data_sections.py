"""The data behind the numbers: rounds, statuses of predictions, reasons for unreadable responses, and quarantine."""

from __future__ import annotations

from collections.abc import Iterator

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.site.content import Column, Section, Table, convert_to_rows
from dtef_pipeline.site.number_text import show
from dtef_pipeline.site.sentences import write_sentence
from dtef_pipeline.survey.observations import REASONS, describe_n
from dtef_pipeline.survey.scoring.metrics import CREDITS
from dtef_pipeline.survey.site.contents import GUIDES, SENTENCES, SurveyContents
from dtef_pipeline.tables import STATUSES
from dtef_pipeline.text.number_words import format_count


def data_sections(contents: SurveyContents) -> Iterator[Section]:
    """Yield the sections of the page on data."""
    if has_table(contents.connection, "survey_responses"):
        yield _build_rounds_section(contents)
    yield _build_statuses_section(contents)
    if has_table(contents.connection, "survey_quarantine"):
        yield _build_quarantine_section(contents)
    if has_table(contents.connection, "survey_findings"):
        yield _build_findings_section(contents)


_ROUND_COLUMNS = (
    Column("round", "Round"),
    Column("segments", "Segments", "count", always=True),
    Column("questions", "Questions", "count", always=True),
    Column("pairs", "Pairs", "count", "Pairs of segment and question"),
    Column("median_n", "Median respondents", "count"),
    Column("unknown_n", "Pairs of unknown size", "count", "Without ceiling, skill and corrected errors", more=True),
    Column("circular", "Circular pairs", "count", "The question defines the segment; boards leave the pair out", more=True),
)


def _build_rounds_section(contents: SurveyContents) -> Section:
    frame = contents.query_frame("""
        SELECT round, count(DISTINCT segment) AS segments, count(DISTINCT question_id) AS questions, count(*) AS pairs,
            median(n) AS median_n, count(*) FILTER (n IS NULL) AS unknown_n, count(*) FILTER (circular) AS circular
        FROM survey_responses GROUP BY round ORDER BY round""")
    counts = {f"n_{name}": int(frame[name].sum()) for name in ("questions", "pairs")}
    n_segments = int(frame["segments"].max()) if len(frame) else 0
    answer = write_sentence(SENTENCES, "rounds", n_rounds=len(frame), n_segments=n_segments, **counts)
    guide = " ".join(f"{line[0].upper()}{line[1:]}." for line in describe_n(contents.connection, list(frame["round"])))
    table = Table("Rounds of the survey", _ROUND_COLUMNS, convert_to_rows(frame))
    return Section("rounds", "questions that people answered", [table], answer, guide)


def _build_statuses_section(contents: SurveyContents) -> Section:
    counts = ", ".join(f"count(*) FILTER (status = '{status}') AS {status}" for status in STATUSES)
    frame = contents.query_frame(
        f"SELECT model_variant AS model, count(*) AS predictions, {counts} FROM scores GROUP BY 1 ORDER BY 1"
    )
    meanings = {credit.status: credit.reason for credit in CREDITS}
    columns = [Column("model", "Model", "model"), Column("predictions", "Predictions", "count")]
    columns += [Column("ok", "Read", "count", always=True)]
    columns += [
        Column(status, status.replace("_", " ").capitalize(), "count", meanings[status])
        for status in STATUSES
        if status != "ok" and frame[status].any()
    ]
    statuses = Table(
        "Predictions by status, all snapshots",
        columns,
        convert_to_rows(frame, model=lambda variant: contents.names.get(variant, variant)),
    )
    total, read = int(frame["predictions"].sum()), int(frame["ok"].sum())
    answer = f"{show(read / total, 'percent')} of {format_count(total, 'prediction')} could be read." if total else ""
    reasons = contents.query_frame(
        "SELECT replace(status, '_', ' ') AS status, reason, count(*) AS predictions FROM scores WHERE status <> 'ok' GROUP BY ALL "
        "ORDER BY predictions DESC, status, reason NULLS LAST LIMIT 50"
    )
    columns = [Column("reason", "Reason", "long"), Column("status", "Status", always=True), columns[1]]
    caption = "Why predictions could not be read, the most frequent first"
    blocks = [statuses, Table(caption, columns, convert_to_rows(reasons), first=10)]
    return Section("statuses", "outcomes of predictions", blocks, answer, describe_policy())


def describe_policy() -> str:
    """Return how each status counts in the means, according to the policy."""
    return write_sentence(GUIDES, "policy", credits=CREDITS)


def _build_quarantine_section(contents: SurveyContents) -> Section:
    frame = contents.query_frame(
        "SELECT reason, round, count(*) AS rows FROM survey_quarantine GROUP BY ALL ORDER BY round, reason"
    )
    columns = [Column("reason", "Reason", "long"), Column("round", "Round"), Column("rows", "Rows", "count", always=True)]
    table = Table("Rows left out, and why", columns, convert_to_rows(frame, reason=lambda code: REASONS.get(code, code)))
    n = int(frame["rows"].sum())
    answer = f"Left out before any request to a model: {format_count(n, 'row')} of the files." if n else ""
    return Section("quarantine", "quarantine", [table], answer)


def _build_findings_section(contents: SurveyContents) -> Section:
    frame = contents.query_frame(
        "SELECT message, string_agg(DISTINCT round, ', ' ORDER BY round) AS rounds, any_value(level) AS level FROM survey_findings "
        "GROUP BY message ORDER BY message"
    )
    columns = [Column("message", "Finding", "long"), Column("rounds", "Rounds"), Column("level", "Kind")]
    return Section(
        "findings", "findings about the files", [Table("Findings on reading the rounds", columns, convert_to_rows(frame))]
    )
