"""Boards of the qa family on its pages: models ranked in each suite, or in one part of it, and bars by subject or transcript."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pandas as pd

from dtef_pipeline.qa.site.item_entries import METRICS_FIRST
from dtef_pipeline.qa.tables import OF_ONE_BOARD
from dtef_pipeline.report.bars import Bar, bars
from dtef_pipeline.report.isolated import inline, missing, wrapping_name
from dtef_pipeline.report.markup import (
    UNKNOWN_COST_COLUMNS,
    Column,
    as_is,
    dollars,
    estimate,
    figure,
    fold,
    is_unknown,
    name_with_notes,
    named,
    note,
    p_value,
    paragraph,
    percent,
    section,
    table,
    text,
    three,
    whole,
    with_intervals,
)
from dtef_pipeline.report.stored_rows import StoredRows

_BOARDS_HOW = (
    "Models ranked by their mean score in each suite, 0-1, higher is better, with 95 % intervals. Micro is the mean over items, macro the mean "
    "of their means over clusters of items, which are subjects or transcripts. A response that cannot be read counts 0; one that has no score "
    "for another reason is left out of the mean and counted. What was asked in another way, or measured by something else, stands on a board "
    "of its own."
)
_BARS_HOW = (
    "The mean score of each subject or transcript, 0-1, higher is better, for each model of a board. Under each bar stands the number of items "
    "that it rests on, and its 95 % interval lies over it. What has no score has no bar, and is named beneath."
)
MADE_BY_RUN = "`dtef qa run` makes it, and `dtef qa board --refresh`"
MOST_BAR_FIGURES = 60
"""Figures of bars on one page; no reader looks at more, and they would weigh megabytes."""
_OF_BOARD = ("condition", "metric", "measured_by")
_BOARD_ENDS = (("score", "score_low", "score_high"), ("macro_score", "macro_low", "macro_high"))
_BOARD_TABLE = (
    Column("rank", "Rank", whole),
    Column("who", "Model", named),
    Column("score", "Micro", as_is, "Mean score over items, 0-1; 95 % interval beneath"),
    Column(
        "macro_score",
        "Macro",
        as_is,
        "Mean over clusters (subjects or transcripts) of their mean over items; 95 % interval beneath",
    ),
    Column("ranks", "Ranks", named, "The ranks it may truly have: those of models that tests do not tell apart"),
    Column("n_items", "Items", whole, "Items with a scored response"),
    Column("n_clusters", "Clusters", whole, "Subjects or transcripts with a scored response"),
    Column("n_total", "Responses", whole),
    Column("n_scored", "Scored", whole),
    Column(
        "n_failed",
        "Without a score",
        whole,
        "Responses for which a judge, a sandbox or a call failed, or that nothing scores",
    ),
    Column("n_uncited", "Cite nothing", whole, "Responses without a quotation, and so without a score"),
    Column("n_skipped", "Skipped", whole, "Responses that were not judged: not in the sample, or over the budget"),
    Column("coverage", "Coverage", percent, "Share of the items that were to be scored that the model has a score for"),
    Column(
        "n_sampled_out",
        "Left out",
        whole,
        "Items that the random sample of judged responses leaves out: neither scored nor missing",
    ),
    Column("parse_rate", "Read", percent, "Share of the scored responses that could be read"),
    Column("score_given_parsed", "Of those read", estimate, "Mean over items of the responses that could be read alone"),
    Column("runs", "Snapshots", named),
    Column("note", "Note", note),
)


class SuiteBoard(NamedTuple):
    """The rows of one board, and what it is called: words about the way of asking, the metric and what it was measured by."""

    heading: str
    """Markup."""
    metric: str
    rows: pd.DataFrame


def boards_of(found: pd.DataFrame) -> Iterator[SuiteBoard]:
    """The boards of one suite or part, those of the metrics that matter most first."""
    if not len(found):
        return
    known = [name for name in _OF_BOARD if name in found]
    groups = [(key, own) for key, own in found.fillna(dict.fromkeys(known, "")).groupby(known, sort=True, dropna=False)]
    for key, own in sorted(groups, key=lambda one: _place(dict(zip(known, one[0], strict=True)))):
        about = dict(zip(known, map(str, key), strict=True))
        metric = about.get("metric", "")
        by = (
            f' <span class="count">measured by {inline(about["measured_by"].removeprefix("by "))}</span>'
            if about.get("measured_by")
            else ""
        )
        asked = f", asked as {inline(about['condition'])}" if about.get("condition") else ""
        yield SuiteBoard(f"{inline(metric.replace('_', ' '))}{asked}{by}", metric, own)


def _place(about: dict[str, Any]) -> tuple[int, str, str, str]:
    metric, condition, by = (str(about.get(name, "")) for name in ("metric", "condition", "measured_by"))
    first = METRICS_FIRST.index(metric) if metric in METRICS_FIRST else len(METRICS_FIRST)
    return first, metric, condition, by


def boards_section(rows: StoredRows) -> str:
    """The section of all suites."""
    found = rows.frame("qa_board", {"cut": "overall"})
    if not len(found) or not set(OF_ONE_BOARD) <= set(found):
        return section("boards", "Boards", _BOARDS_HOW, missing("No boards yet", MADE_BY_RUN))
    return section("boards", "Boards", _BOARDS_HOW, "".join(_suite(suite, own) for suite, own in _by_suite(found)))


def _by_suite(found: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return [(str(suite), own) for suite, own in found.groupby("suite", sort=True)]


def _suite(suite: str, found: pd.DataFrame) -> str:
    told = [] if "exposure" not in found else [str(words) for words in found["exposure"].dropna().unique() if words]
    exposure = "".join(f'<p class="flagged">{inline(words[:1].upper() + words[1:])}.</p>' for words in told)
    return f"<h3>{inline(suite)}</h3>{exposure}{folded_boards(found, suite)}"


def folded_boards(found: pd.DataFrame, name: str) -> str:
    """The boards of a suite or part, each in a part that opens; the first is open."""
    return "".join(
        fold(board.heading, board_table(board.rows, f"{name}, {board.metric}"), is_open=at == 0)
        for at, board in enumerate(boards_of(found))
    )


def part_board_section(rows: StoredRows, suite: str, part: str) -> str:
    """The section of one part's boards."""
    found = rows.frame("qa_board", {"cut": "part", "suite": suite, "part": part})
    body = folded_boards(found, part) if len(found) else missing("No board of this part yet", MADE_BY_RUN)
    return section("board", "Board", _BOARDS_HOW.replace("in each suite", "in this part"), body)


def board_table(found: pd.DataFrame, caption: str) -> str:
    by = [name for name in ("rank", "model", "model_variant") if name in found]
    found = found.sort_values(by, na_position="last", kind="stable", ignore_index=True)
    shown = with_intervals(found, [one for one in _BOARD_ENDS if {*one} <= set(found)])
    shown = shown.assign(who=_named_apart(found), ranks=[_rank_range(row) for row in found.to_dict("records")])
    shown = shown.assign(runs=[_snapshots(row) for row in found.to_dict("records")])
    columns = [column for column in _BOARD_TABLE if _says_something(column.name, found)]
    return table(
        shown, columns, caption=f"Board: {caption}", row_head="who", data=found.drop(columns="exposure", errors="ignore")
    )


def _says_something(name: str, found: pd.DataFrame) -> bool:
    """Whether a column is worth its room: not what counts nothing, nor a mean over clusters of which each is one item."""
    if name in ("n_failed", "n_uncited", "n_skipped", "n_sampled_out"):
        return name in found and bool(found[name].fillna(0).any())
    return name not in ("macro_score", "n_clusters") or bool((found["n_clusters"] != found["n_items"]).any())


def _named_apart(found: pd.DataFrame) -> list[str]:
    """The models as markup; where two variants have one name, with the variant beneath."""
    several = set(found["model"][found["model"].duplicated(keep=False)])
    pairs = zip(found["model"], found["model_variant"], strict=True)
    return [name_with_notes(model, [variant] if model in several else []) for model, variant in pairs]


def _rank_range(row: dict[Any, Any]) -> str:
    low, high = row.get("rank_low"), row.get("rank_high")
    return "" if is_unknown(low) or is_unknown(high) else f"{low:.0f} to {high:.0f}" if low != high else f"{low:.0f}"


def _snapshots(row: dict[Any, Any]) -> str:
    held = row.get("snapshots")
    return "" if held is None or is_unknown(held) else ", ".join(inline(one) for one in held)


def bars_section(rows: StoredRows) -> str:
    """Bars by subject or transcript, of every suite that has several."""
    parts = []
    left = MOST_BAR_FIGURES
    for suite, noun, found in _by_cluster(rows):
        drawn = [fold(heading, markup, is_open=at == 0) for at, (heading, markup) in enumerate(_figures(found, noun))]
        parts.append(f"<h3>{inline(suite)}, by {noun}</h3>" + "".join(drawn[:left]) + _more(len(drawn) - left))
        left = max(0, left - len(drawn))
    body = "".join(parts) or missing(
        "No bars", "they are drawn of suites with several subjects or transcripts, after `dtef qa run`"
    )
    return section("bars", "By subject and transcript", _BARS_HOW, body)


def _more(hidden: int) -> str:
    return paragraph(f"{hidden} more figures are not drawn; the table qa_board has their numbers.") if hidden > 0 else ""


def _by_cluster(rows: StoredRows) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Of each suite with several subjects or transcripts its rows, what these are called, and in `place` the name of each."""
    clusters, parts = (rows.frame("qa_board", {"cut": cut}) for cut in ("cluster", "part"))
    held = dict(_by_suite(clusters)) if len(clusters) else {}
    of_parts = dict(_by_suite(parts)) if len(parts) else {}
    for suite in sorted({*held, *of_parts}):
        names = set(of_parts[suite]["part"]) if suite in of_parts else set()
        own = held.get(suite)
        if own is not None and len(set(own["cluster"])) > 1:
            yield suite, "subject" if set(own["cluster"]) <= names else "transcript", own.assign(place=own["cluster"])
        elif len(names) > 1:
            yield suite, "part", of_parts[suite].assign(place=of_parts[suite]["part"])


def _figures(found: pd.DataFrame, noun: str) -> Iterator[tuple[str, str]]:
    """Heading and figure of each board and model."""
    for board in boards_of(found):
        every = sorted(board.rows["place"].unique())
        models = {str(variant): own for variant, own in board.rows.groupby("model_variant", sort=True)}
        for variant in sorted(models, key=lambda one: -models[one]["score"].fillna(-1.0).mean()):
            own = models[variant]
            model = str(own["model"].iloc[0])
            title = f"{board.metric.replace('_', ' ')} of {model} by {noun}"
            drawing = bars(place_bars(own, every), title, standalone=False)
            yield f"{inline(model)}: {board.heading}", figure(drawing, f"{title} ({variant}), with the items behind each bar")


def place_bars(own: pd.DataFrame, every: Sequence[str]) -> list[Bar]:
    """A bar for each of the places (column `place`) in their order; without a row, without a value."""
    known = {row["place"]: row for row in own.to_dict("records")}
    return [_bar(str(name), known.get(name)) for name in every]


def _bar(name: str, row: dict[Any, Any] | None) -> Bar:
    if row is None:
        return Bar(name, None, 0)
    value, low, high = (None if is_unknown(row.get(end)) else float(row[end]) for end in ("score", "score_low", "score_high"))
    return Bar(name, value, int(row["n_items"]), low, high)


_OF_SUITE, _IN_PART = Column("suite", "Suite", named), Column("part", "Part", named)
_BOARD_WAY = (
    Column("condition", "Asked as", named),
    Column("metric", "Metric", text),
    Column("measured_by", "Measured by", named),
)
_BY_MODEL, _WITH_NOTE = Column("model", "Model", named), Column("note", "Note", note)


def _warned(value: Any) -> str:
    return "look into it" if value is True or value == 1 else ""


class PublishedPart(NamedTuple):
    """A section that shows one table."""

    anchor: str
    title: str
    how: str
    table: str
    columns: Sequence[Column]
    ends: tuple[str, str, str]
    """The estimate with the ends of its interval."""
    none: str
    """Where there are no rows: what is missing."""
    made_by: str = MADE_BY_RUN


PASS_RATES = PublishedPart(
    "pass-at-k",
    "pass@k",
    "The chance that of k programs for an item one or more pass its tests, 0-1, as a mean over items with a 95 % interval over items. Items "
    "with fewer scored draws than k are left out.",
    "qa_pass_at_k",
    (
        _OF_SUITE,
        _IN_PART,
        Column("k", "k", whole),
        _BY_MODEL,
        Column("pass_at_k", "pass@k", as_is, "95 % interval beneath"),
        Column("n_items", "Items", whole),
        Column("n_too_few", "Too few draws", whole, "Items with fewer scored draws than k"),
        *_BOARD_WAY,
        _WITH_NOTE,
    ),
    ("pass_at_k", "pass_low", "pass_high"),
    "No programs yet",
    "`dtef qa run --part 'humaneval/*' --model MODEL --draws 10` asks for some and runs them",
)
COMPARED_PAIRS = PublishedPart(
    "comparisons",
    "Comparisons",
    "Every two models of a board on the items that both have a score for, the better one first: the difference of their means with a 95 % "
    "interval, and p of the t test by whole subjects or transcripts, adjusted over all pairs of the board (Holm).",
    "comparisons",
    (
        _OF_SUITE,
        *_BOARD_WAY[:2],
        _BY_MODEL,
        Column("other_model", "Compared with", named),
        Column("verdict", "Verdict", text),
        Column("difference", "Difference", as_is, "Mean score less that of the other model; 95 % interval beneath"),
        Column("p_adjusted", "p (adjusted)", p_value),
        Column("score", "Score", estimate),
        Column("other_score", "Of the other", estimate),
        Column("n_items", "Items", whole),
        Column("n_clusters", "Clusters", whole, "Subjects or transcripts; of fewer than 5, or of none, items"),
        _BOARD_WAY[2],
        _WITH_NOTE,
    ),
    ("difference", "low", "high"),
    "Nothing to compare",
    "`dtef qa run --model A --model B` asks two models the same items",
)
CHECKED_SCORES = PublishedPart(
    "validity",
    "Validity",
    "Whether scores rest on something besides the answer. Position bias: how far a model's mean moves when the options are shown in another "
    "order. Judge against numeric: how often a judge and the number in the answer disagree. Self-judged: judgements of a model by one of the "
    "same maker. Judge failures: judgements that failed. Length and semantic: whether longer answers get better scores.",
    "qa_validity",
    (
        Column("check", "Check", text),
        _OF_SUITE,
        _BY_MODEL,
        Column("value", "Value", as_is, "A range of means, a share, or a rank correlation; 95 % interval beneath"),
        Column("warn", "Warning", _warned),
        Column("n", "Rests on", whole, "Items, judgements or responses"),
        *_BOARD_WAY,
        _WITH_NOTE,
    ),
    ("value", "low", "high"),
    "Nothing was checked",
    "`dtef qa run --order rotated-1` and judges make something to check",
)
PUBLISHED_PARTS = (PASS_RATES, COMPARED_PAIRS, CHECKED_SCORES)
_RETRIEVAL_HOW = (
    "How well the chunks were found that hold the evidence which items name, before any model was asked: means over items with such evidence, "
    "0-1, higher is better. A chunk is relevant when it holds a quote."
)
_RETRIEVAL_TABLE = (
    _OF_SUITE,
    _IN_PART,
    Column("condition", "Asked as", named),
    Column("k", "k", whole, "Chunks that were asked for"),
    Column("hit", "Hit", three, "Share of the items with a relevant chunk among the first k"),
    Column("recall", "Recall", three, "Share of the relevant chunks that are among the first k"),
    Column("precision", "Precision", three, "Share of the first k chunks that are relevant"),
    Column("mrr", "MRR", three, "Mean reciprocal rank of the first relevant chunk"),
    Column(
        "ndcg", "nDCG at 10", three, "How early relevant chunks stand among the first 10, as a share of the best order: 0-1"
    ),
    Column("n_items", "Items", whole, "Items that name a quote which stands in a chunk"),
    Column("n_left_out", "Left out", whole, "Items whose quotes stand in no chunk"),
)
_QUALITIES = ("hit", "recall", "precision", "mrr", "ndcg")
_PAID_HOW = (
    "What was paid for everything in these tables. Each call counts once, with what it cost when it was bought. Unpriced: answered ones whose "
    "price is unknown, which are in no sum."
)
_USED_COLUMNS = (
    Column("answered", "Answered", whole),
    Column("calls", "Calls", whole),
    Column("prompt_tokens", "Prompt tokens", whole),
    Column("completion_tokens", "Reply tokens", whole),
    Column("cost_usd", "US dollars", dollars),
    Column("unpriced", "Unpriced", whole),
    *UNKNOWN_COST_COLUMNS,
)
_COST_CUTS = (
    ("Costs by role", ("role",), (Column("role", "Role", text),)),
    ("Costs by evaluator", ("role", "evaluator"), (Column("role", "Role", text), Column("evaluator", "Evaluator", text))),
    ("Costs by model and suite", ("role", "model", "suite"), (Column("role", "Role", text), _BY_MODEL, _OF_SUITE)),
)


def published_section(rows: StoredRows, part: PublishedPart) -> str:
    """The section of one of the family's tables."""
    found = rows.frame(part.table, {"family": "qa"}).rename(columns={"first_level": "suite"})
    if not len(found):
        return section(part.anchor, part.title, part.how, missing(part.none, part.made_by))
    if "warn" in found:
        found = found.sort_values("warn", ascending=False, kind="stable", ignore_index=True)
    return section(part.anchor, part.title, part.how, as_published(found, part.columns, part.title, part.ends))


def as_published(found: pd.DataFrame, columns: Sequence[Column], caption: str, ends: tuple[str, str, str]) -> str:
    """The rows as a table; names of things, which are data, stand isolated."""
    data = found.drop(columns=[name for name in found if name == "exposure"])
    shown = with_intervals(found, [ends] if {*ends} <= set(found) else [], sign="+" if ends[0] == "difference" else "")
    words = found["check"].str.replace("_", " ") if "check" in found else None
    shown = shown.assign(**({} if words is None else {"check": words}))
    return table(isolated_names(shown, columns), columns, caption=caption, data=data)


def isolated_names(frame: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """The frame with the values of columns of names as markup."""
    names = [column.name for column in columns if column.shown is named and column.name in frame]
    shown = frame.assign(**{name: frame[name].map(wrapping_name) for name in names})
    return (
        shown.assign(measured_by=[f'<span class="by">{one}</span>' for one in shown["measured_by"]])
        if "measured_by" in names
        else shown
    )


def retrieval_section(rows: StoredRows, suite: str | None = None, part: str | None = None) -> str:
    """Means over items of how well chunks were found: of one part, or of all; empty where nothing is looked up at all."""
    where = {name: value for name, value in (("suite", suite), ("part", part)) if value is not None}
    found = rows.frame("qa_retrieval", where)
    if not len(found):
        nothing = missing(
            "Nothing was looked up",
            "suites with documents have chunks of them shown: `dtef qa add socioscope FILE --corpus DIR`",
        )
        return section("retrieval", "Retrieval", _RETRIEVAL_HOW, nothing)
    groups = found.groupby(["suite", "part", "condition", "k"], sort=True, dropna=False)
    means = groups[list(_QUALITIES)].mean().reset_index()
    known = groups["recall"].count().to_numpy()
    means = means.assign(n_items=known, n_left_out=groups.size().to_numpy() - known)
    shown = table(isolated_names(means, _RETRIEVAL_TABLE), _RETRIEVAL_TABLE, caption="Retrieval", data=means)
    return section("retrieval", "Retrieval", _RETRIEVAL_HOW, shown)


def costs_section(rows: StoredRows) -> str:
    """What candidates and judges cost: by role, by evaluator, by model and suite."""
    found = rows.frame("costs", {"family": "qa"}).rename(columns={"first_level": "suite", "purpose": "evaluator"})
    if not len(found):
        return section("costs", "Costs", _PAID_HOW, missing("No costs yet", MADE_BY_RUN))
    (_, first), *others = (
        (title, table(isolated_names(own, named_by), (*named_by, *_USED_COLUMNS), caption=title, data=own))
        for title, own, named_by in _cuts(found)
    )
    folded = "".join(fold(title, own, is_open=True) for title, own in others)
    return section("costs", "Costs", _PAID_HOW, first + folded)


def _cuts(found: pd.DataFrame) -> list[tuple[str, pd.DataFrame, Sequence[Column]]]:
    cuts = [(title, _summed(found, list(by)), columns) for title, by, columns in _COST_CUTS]
    return [cut for cut in cuts if len(cut[1])]  # without judges there are no evaluators


def _summed(found: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Costs added up, candidates before judges, the dearest first; of an unknown price alone, unknown."""
    whole_rows = found if "evaluator" not in by else found[[not is_unknown(one) for one in found["evaluator"]]]
    used = [column.name for column in _USED_COLUMNS]
    summed = whole_rows.groupby(by, sort=True, dropna=False)[used].sum(min_count=1).reset_index()
    return summed.sort_values(
        ["role", "cost_usd"], ascending=[True, False], na_position="last", kind="stable", ignore_index=True
    )
