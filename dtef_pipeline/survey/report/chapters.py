"""The chapters of the survey family in the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

import duckdb
import pandas as pd

from dtef_pipeline.asking.models import COMPUTED_SQL, Models, ModelSpec
from dtef_pipeline.asking.snapshot_order import among, snapshot_order
from dtef_pipeline.asking.variants import spec_of
from dtef_pipeline.report.drift import drift, partition_checks, reliability
from dtef_pipeline.report.leaderboard import comparisons, leaderboard
from dtef_pipeline.report.markup import (
    Column,
    Group,
    as_is,
    dollars,
    estimate,
    fold,
    note,
    p_value,
    paragraph,
    percent,
    section,
    table,
    text,
    whole,
    with_interval,
    with_intervals,
)
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.preference_chapter import preference_chapters
from dtef_pipeline.statistics.differences import MARGIN
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE
from dtef_pipeline.survey.boards.experiments import asked_everywhere, compared, paired_cells
from dtef_pipeline.survey.boards.meanings import ENDS, EXPERIMENT
from dtef_pipeline.survey.boards.responsiveness import context_shown
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.boards.shared_pairs import on_shared_pairs
from dtef_pipeline.survey.design_effects import about_n
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.experiments import Asked, Experiment, each_asked_once
from dtef_pipeline.survey.report.attributes import (
    SURVEY_BOARD,
    Boards,
    attributes,
    boards,
    consistency,
    metrics,
    published,
    published_drift,
)
from dtef_pipeline.survey.report.context import context
from dtef_pipeline.survey.report.groups import asked_alike, asked_like
from dtef_pipeline.survey.report.heatmap import HEAT_STYLE, heat_map_section, respondents
from dtef_pipeline.survey.report.methodology import methodology
from dtef_pipeline.survey.report.pairs import pairs
from dtef_pipeline.survey.report.quality import costs, quality
from dtef_pipeline.survey.report.questions import questions
from dtef_pipeline.survey.report.terms import NAMES
from dtef_pipeline.survey.survey_paired import SURVEY_PAIRED
from dtef_pipeline.text.counted import counted


def _file(name: str) -> str:
    return files("dtef_pipeline.survey.report").joinpath(name).read_text(encoding="utf-8")


_PAIRS = "\n".join(map(_file, ("pair_parts.js", "pair_texts.js", "question_segments.js", "pairs.js")))
_HEAT_MAP = f"{HEAT_STYLE}\n{_file('heatmap.css')}"


def survey_report(connection: duckdb.DuckDBPyConnection, known: Sequence[Experiment] = ()) -> str:
    """The page, from a connection with the pipeline's views (`scores` at least). Equal tables give an equal page.

    `known`: the experiments that are shown where their conditions were asked. `left_out`: what is said of each file that could not be read,
    so that nobody takes the numbers for those of everything.
    """
    rounds = [name for (name,) in connection.execute("SELECT DISTINCT round FROM scores ORDER BY 1").fetchall()]
    found = boards(connection)
    metric = str(found["overall"]["metric"].iloc[0]) if len(found["overall"]) else "js"
    title = f"DTEF: {', '.join(rounds) or 'no round'}"
    about = [paragraph(f"{line[0].upper()}{line[1:]}.") for line in (about_n(connection, rounds) if rounds else [])]
    introduction = _introduction(metric) + "".join(about)
    return build_report(title, introduction, _chapters(connection, found, metric, known))


def _introduction(metric: str) -> str:
    named = "Jensen-Shannon similarities" if metric == "js" else f"similarities under {escape(metric)}"
    return f"<p>How well models predict the survey answers of demographic groups. Scores are {named} from 0 to 1, higher is better.</p>"


def _chapters(connection: duckdb.DuckDBPyConnection, found: Boards, metric: str, known: Sequence[Experiment]) -> list[Chapter]:
    """The chapters in the order of the page."""
    overall = found["overall"]
    responsiveness = published(connection, "responsiveness")
    segments = heat_map_section(found["segment"], overall, respondents(connection))
    return [
        Chapter("leaderboard", "Leaderboard", leaderboard(asked_alike(overall), SURVEY_BOARD)),
        Chapter("comparisons", "Comparisons", comparisons(_compared(connection, overall), NAMES)),
        Chapter("segments", "Segments", segments, style=_HEAT_MAP, script=_file("heatmap.js")),
        Chapter("pairs", "Pairs", pairs(connection), style=_file("pairs.css"), script=_PAIRS),
        Chapter("context", "Context", context(on_shared_pairs(connection, overall), responsiveness, context_shown(connection))),
        Chapter("experiments", "Experiments", experiments(connection, known)),
        Chapter("gaps", "Gaps", gaps(published(connection, "segment_gaps"))),
        Chapter("attributes", "Attributes", attributes(found["attribute"])),
        Chapter("metrics", "Metrics", metrics(found["metric"])),
        Chapter("consistency", "Consistency", consistency(found["consistency"])),
        Chapter("questions", "Questions", questions(connection, metric), style=_file("questions.css")),
        Chapter("reliability", "Reliability", reliability(published(connection, "reliability"), NAMES)),
        Chapter("drift", "Drift", drift(published_drift(connection), SUBJECT, partition_checks(connection, NAMES))),
        *preference_chapters(connection, "survey", SURVEY_PAIRED.metrics),
        Chapter("data-quality", "Data quality", quality(connection)),
        Chapter("costs", "Costs", costs(connection)),
        Chapter("methodology", "Methodology", methodology(metric)),
    ]


def _compared(connection: duckdb.DuckDBPyConnection, board: pd.DataFrame) -> list[tuple[Group, pd.DataFrame]]:
    """Each group of the board with its own rows of `comparisons`."""
    found = published(connection, "comparisons")
    return [(group, asked_like(group.rows, found)) for group in asked_alike(board)]


_HOW_TO_READ_GAPS = (
    "How far a model's score of a segment lies from that of the attribute's other segments on the same questions. A segment of few people "
    "scores low under any model: the expected score allows for that. Beneath a deviation stands its 95 % interval, by whole batteries of "
    f"questions and for other people. A segment is predicted worse or better where p, adjusted (Holm) over the model's attribute, "
    f"is below {SIGNIFICANCE:g}."
)
_MOST_GAPS = 40
_GAP_COLUMNS = [
    Column("segment", "Segment", text),
    Column("model", "Model", text),
    Column(
        "deviation", "Deviation", as_is, "Score less the expected score: below 0 the segment is predicted worse than the others"
    ),
    Column("p_adjusted", "p (Holm)", p_value),
    Column("verdict", "Verdict", text),
    Column("parsed_verdict", "Read", text, "Verdict by readable responses alone"),
    Column("score", "Score", estimate),
    Column("expected", "Expected", estimate, "Score of a segment of as many people that is predicted as well as the others"),
    Column("n", "Respondents", whole),
    Column("n_pairs", "Pairs", whole),
    Column("note", "Note", note),
]


def gaps(frame: pd.DataFrame) -> str:
    """The section, from the rows of `segment_gaps` (empty: there is no such table)."""
    groups = [fold(title, _group(rows), is_open=at == 0) for at, (title, rows) in enumerate(asked_alike(frame, richest=True))]
    return section("gaps", "Gaps between segments", _HOW_TO_READ_GAPS, "".join(groups) or paragraph("No gaps yet."))


def by_significance(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `segment_gaps` in the order of their adjusted p, smallest first, then the worst predicted first."""
    return rows.sort_values(["p_adjusted", "deviation", "attribute", "model"], kind="stable", na_position="last")


def _group(rows: pd.DataFrame) -> str:
    first = by_significance(rows).head(_MOST_GAPS)
    said = [
        f"{counted(int((rows['verdict'] == verdict).sum()), 'row')} {verdict}"
        for verdict in ("worse", "better", "not told apart")
    ]
    left = (
        f" Shown: the first {_MOST_GAPS} by adjusted p; `dtef board --by gaps --top 0` has all."
        if len(rows) > _MOST_GAPS
        else ""
    )
    shown = first.assign(deviation=with_interval(first, "deviation", ENDS["deviation"], sign="+"))
    return paragraph(f"Of {counted(len(rows), 'row')}: {', '.join(said)}.{left}") + table(
        shown, _GAP_COLUMNS, caption="Gaps by segment and model", row_head="segment", data=first
    )


_HOW_TO_READ_EXPERIMENTS = (
    "Ways of asking, compared on the pairs that a model was asked in all of them, each with the first one. “better” and “worse”: the "
    f"difference is more than chance. “equivalent”: it is surely smaller than {MARGIN:g}, for its 90 % interval, which is narrower "
    f"than the 95 % interval shown, lies between -{MARGIN:g} and +{MARGIN:g}. “undecided”: neither. Only one snapshot is compared: the one in "
    "which most pairs were asked in every condition; of several, the latest. Tokens and dollars are those of the pairs that are compared. "
    + "p is adjusted over the rows of one context level (Holm)."
)
_CONDITION_COLUMNS = [
    Column("model", "Model", text),
    Column("condition", "Condition", text),
    Column("decision", "Decision", text),
    Column("n_pairs", "Pairs", whole, EXPERIMENT["n_pairs"]),
    Column("score", "Score", estimate, EXPERIMENT["score"]),
    Column("difference", "Difference", as_is, "Mean score less that of the first condition, with its 95 % interval"),
    Column("p_adjusted", "p (adjusted)", p_value, "Over the rows of one context level"),
    Column("parse_rate", "Read", percent, "Share of the responses that could be read"),
    Column("prompt_tokens", "Prompt tokens", whole),
    Column("completion_tokens", "Completion tokens", whole),
    Column("cost_usd", "US dollars", dollars),
    Column("note", "Note", note),
    Column("parsed_note", "Read alone", note, "What readable responses alone say, where it is something else"),
]
_Said = set[tuple[str, str, str]]
"""Variant, condition and context level of what was asked in a snapshot."""
_Snapshot = tuple[str, _Said, list[ModelSpec]]


def experiments(connection: duckdb.DuckDBPyConnection, known: Sequence[Experiment]) -> str:
    """The section, from the scores and the experiments there are; one that no model was asked has no part in it."""
    snapshots = list(_snapshots(connection)) if known else []
    parts = [part for experiment in known if (part := _experiment_part(connection, experiment, snapshots))]
    body = "".join(parts) or paragraph("No experiment was asked. One is asked by: dtef run --experiment NAME --model MODEL.")
    return section("experiments", "Experiments", _HOW_TO_READ_EXPERIMENTS, body)


def _experiment_part(connection: duckdb.DuckDBPyConnection, experiment: Experiment, snapshots: Sequence[_Snapshot]) -> str:
    """Markup of one experiment, of the snapshot that has the largest comparison."""
    for snapshot, asked in _largest_first(connection, experiment, snapshots):
        frame = compared(connection, asked, SurveyBoardOptions(snapshot=snapshot))
        if len(frame):
            shown = with_intervals(frame, [("difference", "low", "high")], sign="+")
            caption = f"Each condition against {experiment.conditions[0].name}; snapshot {snapshot}"
            drawn = table(shown, _CONDITION_COLUMNS, caption=caption, row_head="model", data=frame)
            return fold(escape(experiment.name), paragraph(experiment.hypothesis.strip()) + drawn, is_open=True)
    return ""


def _largest_first(
    connection: duckdb.DuckDBPyConnection, experiment: Experiment, snapshots: Sequence[_Snapshot]
) -> list[tuple[str, list[Asked]]]:
    """The snapshots in which the experiment was asked, that with most cells to compare first; of equal ones the last."""
    found = [(snapshot, asked) for snapshot, said, specs in snapshots if (asked := _asked(experiment, specs, said))]
    if len(found) < 2:
        return found

    def compared_cells(one: tuple[str, list[Asked]]) -> int:
        return len(asked_everywhere(paired_cells(connection, one[1], SurveyBoardOptions(snapshot=one[0]))))

    return sorted(found, key=compared_cells, reverse=True)


def _snapshots(connection: duckdb.DuckDBPyConnection) -> Iterator[_Snapshot]:
    """What language models were asked in each snapshot, from the last backwards."""
    rows = connection.execute(
        f"SELECT DISTINCT snapshot, model, model_variant, condition, context_level FROM scores WHERE NOT {COMPUTED_SQL} ORDER BY ALL"
    ).df()
    for snapshot in among(snapshot_order(connection), set(rows["snapshot"]))[::-1]:
        own = rows[rows["snapshot"] == snapshot]
        said = set(zip(own["model_variant"], own["condition"], own["context_level"], strict=True))
        named = sorted(set(zip(own["model"], own["model_variant"], strict=True)), key=lambda one: ("@" in one[0], one))
        yield snapshot, said, [spec for one in named if (spec := spec_of(*one))]


def _asked(experiment: Experiment, specs: Sequence[ModelSpec], said: _Said) -> list[Asked]:
    """The models that were asked in two conditions or more, each in every condition; a model once, under its shortest name."""
    names = ((Models(specs={spec.name: spec}, collections={}), spec.name) for spec in specs)
    found: list[Asked] = []
    for asked in each_asked_once(experiment, names):
        there = [
            all((one.spec.variant, one.options.condition, level) in said for level in one.options.context_levels)
            for one in asked
        ]
        found += asked if sum(there) > 1 else ()
    return found
