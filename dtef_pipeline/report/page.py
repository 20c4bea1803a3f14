"""The report: one self-contained HTML page, no network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.aggregation.boards import MIN_SEGMENTS, BoardOptions, board
from dtef_pipeline.prediction.baselines import POPULATION_MARGINAL, UNIFORM
from dtef_pipeline.report.style import STYLE
from dtef_pipeline.report.text import named_apart, with_ranks
from dtef_pipeline.tables import DISTANCES, METRICS

Column = tuple[str, str, Callable[[Any], str]]
"""A column of the frame, its heading, and how its values are shown."""
Columns = list[Column]
_REFERENCES = (UNIFORM, POPULATION_MARGINAL)


def build_report(connection: duckdb.DuckDBPyConnection) -> str:
    """The page, from a connection with the pipeline's views (`scores` at least)."""
    rounds = [name for (name,) in connection.execute("SELECT DISTINCT round FROM scores ORDER BY 1").fetchall()]
    sections = [
        _section("Leaderboard", _LEADERBOARD_TEXT, _leaderboard(connection)),
        _section(
            "By attribute", "Mean score of each model over the segments of one demographic attribute.", _attributes(connection)
        ),
        _section("Under every metric", _METRIC_TEXT, _metrics(connection)),
        _section("Consistency over segments", _CONSISTENCY_TEXT, _consistency(connection)),
        _section("Drift", "The documented rule, over snapshots at temperature 0.", _drift(connection)),
        _section("Data quality", "What was set aside before anything was asked.", _quality(connection)),
    ]
    title = f"DTEF: {', '.join(map(escape, rounds)) or 'no round'}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><main><h1>{title}</h1><p>How well models predict the survey answers of demographic groups. "
        f"Scores are Jensen-Shannon similarities from 0 to 1, higher is better.</p>{''.join(sections)}</main></body></html>\n"
    )


_LEADERBOARD_TEXT = (
    "Mean score over all segments and questions, questions that define a segment left out. The line marks the population marginal: "
    "a model left of it does worse than answering for everybody alike. Coverage is the share of questions the model has a score for; "
    "models of different coverage are ranked by their advantage over the marginal on the questions both have. "
    f"A model without a score in {MIN_SEGMENTS} segments (or in all, if there are fewer) is shown without a rank."
)
_METRIC_TEXT = (
    "The same predictions under each metric, with ranks in brackets. A model that does well on one and badly on another gets the shape "
    f"right but misplaces mass, or the reverse. {' and '.join(DISTANCES)} are shown as 1 - distance."
)
_CONSISTENCY_TEXT = (
    "Standard deviation of a model's segment means: small is even. Part of it is sampling noise of small segments."
)


def _section(title: str, text: str, body: str) -> str:
    anchor = title.lower().replace(" ", "-")
    return f'<section id="{anchor}"><h2>{escape(title)}</h2><p>{escape(text)}</p>{body}</section>'


def _leaderboard(connection: duckdb.DuckDBPyConnection) -> str:
    frame = named_apart(board(connection, "overall", BoardOptions()))
    parts = []
    for title, rows in _asked_alike(frame):
        marginal = rows.loc[rows["model"] == POPULATION_MARGINAL, "score"]
        line = float(marginal.iloc[0]) if len(marginal) else None
        bars = rows.assign(
            bar=[_bar(score, line, name in _REFERENCES) for score, name in zip(rows["score"], rows["model"], strict=True)]
        )
        columns: Columns = [
            ("rank", "Rank", _whole),
            ("model", "Model", _text),
            ("bar", "", str),
            ("score", "Score", _four),
            ("vs_marginal", "vs marginal", _signed),
            ("n_pairs", "Pairs", _whole),
            ("coverage", "Coverage", _percent),
            ("parse_rate", "Parse rate", _percent),
        ]
        parts.append(f"<h3>{title}</h3>{_table(bars, columns)}")
    return "".join(parts) or "<p>No scores yet.</p>"


def _asked_alike(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each context level and condition, with a heading; ranks count within them."""
    several = len(set(frame["condition"])) > 1
    for (level, condition), rows in frame.groupby(["context_level", "condition"], sort=False):
        asked = f", asked as <code>{escape(str(condition))}</code>" if several else ""
        yield _context_title(str(level)) + asked, rows


def _asked_columns(frame: pd.DataFrame) -> Columns:
    """How it was asked: the context level, and the condition where there are several."""
    columns: Columns = [("context_level", "Context", _text)]
    return [*columns, ("condition", "Asked as", _text)] if len(set(frame["condition"])) > 1 else columns


def _context_title(level: str) -> str:
    if level == "0":
        return "Without context questions"
    return "With all context questions that fit" if level == "all" else f"With {escape(level)} context questions"


def _attributes(connection: duckdb.DuckDBPyConnection) -> str:
    frame = named_apart(board(connection, "attribute", BoardOptions()))
    parts = []
    for title, rows in _asked_alike(frame):
        wide = rows.pivot_table(index="model", columns="attribute", values="score", sort=True).reset_index()
        columns: Columns = [("model", "Model", _text)]
        columns += [(str(name), str(name), _four) for name in wide.columns if name != "model"]
        parts.append(f"<h3>{title}</h3>{_table(wide, columns)}")
    return "".join(parts)


def _metrics(connection: duckdb.DuckDBPyConnection) -> str:
    frame = named_apart(with_ranks(board(connection, "metric", BoardOptions())))
    columns: Columns = [("model", "Model", _text), *_asked_columns(frame)]
    return _table(frame, [*columns, *((metric, metric, _text) for metric in METRICS)])


def _consistency(connection: duckdb.DuckDBPyConnection) -> str:
    frame = named_apart(board(connection, "consistency", BoardOptions()))
    return _table(
        frame,
        [
            ("rank", "Rank", _whole),
            ("model", "Model", _text),
            *_asked_columns(frame),
            ("segment_sd", "SD of segment means", _four),
            ("lowest", "Lowest", _four),
            ("lowest_segment", "in", _text),
            ("highest", "Highest", _four),
            ("highest_segment", "in", _text),
            ("n_segments", "Segments", _whole),
        ],
    )


def _drift(connection: duckdb.DuckDBPyConnection) -> str:
    if not _has(connection, "drift_checks"):
        return "<p>No drift checks yet.</p>"
    frame = connection.execute("SELECT * FROM drift_checks WHERE flagged ORDER BY gap DESC").df()
    counts = connection.execute("SELECT count(*), count(gap), coalesce(sum(flagged::INT), 0) FROM drift_checks").fetchone() or (
        0,
        0,
        0,
    )
    said = f"<p>{counts[2]} flagged of {counts[1]} compared ({counts[0]} series in all).</p>"
    columns: Columns = [
        (name, title, _text)
        for name, title in [
            ("round", "Round"),
            ("segment", "Segment"),
            ("model", "Model"),
            ("condition", "Asked as"),
            ("reason", "What was compared"),
        ]
    ]
    return said + (_table(frame, columns) if len(frame) else "")


def _quality(connection: duckdb.DuckDBPyConnection) -> str:
    parts = []
    if _has(connection, "survey_responses"):
        kept = connection.execute(
            "SELECT round, count(DISTINCT segment) AS segments, count(DISTINCT question_id) AS questions, count(*) AS pairs, "
            "min(n) AS smallest_n, avg((n_source = 'question')::INT) AS own_n FROM survey_responses GROUP BY 1 ORDER BY 1"
        ).df()
        titles = [("segments", "Segments"), ("questions", "Questions"), ("pairs", "Pairs"), ("smallest_n", "Smallest n")]
        columns: Columns = [
            ("round", "Round", _text),
            *((n, t, _whole) for n, t in titles),
        ]
        parts.append(_table(kept, [*columns, ("own_n", "Pairs with their own n", _percent)]))
    if _has(connection, "survey_quarantine"):
        aside = connection.execute(
            "SELECT round, reason, count(*) AS rows FROM survey_quarantine GROUP BY ALL ORDER BY ALL"
        ).df()
        parts.append(
            "<h3>Quarantine</h3>"
            + _table(aside, [("round", "Round", _text), ("reason", "Reason", _text), ("rows", "Rows", _whole)])
        )
    return "".join(parts)


def _has(connection: duckdb.DuckDBPyConnection, view: str) -> bool:
    return bool(connection.execute("SELECT count(*) FROM duckdb_views() WHERE view_name = ?", [view]).fetchall()[0][0])


def _bar(score: Any, line: float | None, reference: bool) -> str:
    if pd.isna(score):
        return ""
    kind = "reference" if reference else "model"
    mark = f'<span class="line" style="left:{100 * line:.2f}%"></span>' if line is not None else ""
    return f'<span class="bar" aria-hidden="true"><span class="fill {kind}" style="width:{100 * float(score):.2f}%"></span>{mark}</span>'


def _table(frame: pd.DataFrame, columns: Sequence[Column]) -> str:
    if not len(frame):
        return "<p>Nothing.</p>"
    head = "".join(f'<th scope="col"{_kind(name, shown)}>{escape(title)}</th>' for name, title, shown in columns)
    rows = "".join(f"<tr>{''.join(_cells(row, columns))}</tr>" for row in frame.to_dict("records"))
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cells(row: dict[Any, Any], columns: Sequence[Column]) -> Iterable[str]:
    for name, _, shown in columns:
        yield f"<td{_kind(name, shown)}>{shown(row[name])}</td>"


def _kind(name: str, shown: Callable[[Any], str]) -> str:
    return ' class="text"' if shown is _text else (' class="wide"' if name == "bar" else "")


def _text(value: Any) -> str:
    return "–" if value is None or value != value else escape(str(value))


def _four(value: Any) -> str:
    return "–" if pd.isna(value) else f"{value:.4f}"


def _signed(value: Any) -> str:
    return "–" if pd.isna(value) else f"{value:+.4f}"


def _percent(value: Any) -> str:
    return "–" if pd.isna(value) else f"{value:.1%}"


def _whole(value: Any) -> str:
    return "–" if pd.isna(value) else f"{value:,.0f}"
