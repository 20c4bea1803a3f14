"""The chapters of the survey family in the report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files

import duckdb
import pandas as pd

from dtef_pipeline.report.drift import drift, partition_checks, reliability
from dtef_pipeline.report.leaderboard import comparisons, leaderboard
from dtef_pipeline.report.markup import Group, paragraph
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.preference_chapter import preference_chapters
from dtef_pipeline.survey.boards.responsiveness import context_shown
from dtef_pipeline.survey.boards.shared_pairs import on_shared_pairs
from dtef_pipeline.survey.design_effects import about_n
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.experiments import Experiment
from dtef_pipeline.survey.report.attributes import attributes, consistency, metrics
from dtef_pipeline.survey.report.context import context
from dtef_pipeline.survey.report.experiment_chapter import experiments
from dtef_pipeline.survey.report.gap_chapter import gaps
from dtef_pipeline.survey.report.groups import asked_alike, asked_like
from dtef_pipeline.survey.report.heatmap import HEAT_STYLE, heat_map_section, respondents
from dtef_pipeline.survey.report.leaderboard import SURVEY_BOARD
from dtef_pipeline.survey.report.methodology import methodology
from dtef_pipeline.survey.report.pairs import pairs
from dtef_pipeline.survey.report.quality import costs, quality
from dtef_pipeline.survey.report.questions import questions
from dtef_pipeline.survey.report.tables import Boards, boards, published, published_drift
from dtef_pipeline.survey.report.terms import NAMES
from dtef_pipeline.survey.survey_paired import SURVEY_PAIRED


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
