"""Experiments: for each one whose conditions were asked, the comparison that `dtef board --experiment` makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import duckdb

from dtef_pipeline.asking.models import COMPUTED_SQL, Models, ModelSpec
from dtef_pipeline.asking.snapshot_order import among, snapshot_order
from dtef_pipeline.asking.variants import spec_of
from dtef_pipeline.report.markup import (
    Column,
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
    with_intervals,
)
from dtef_pipeline.statistics.differences import MARGIN
from dtef_pipeline.survey.boards.experiments import asked_everywhere, compared, paired_cells
from dtef_pipeline.survey.boards.meanings import EXPERIMENT
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.experiments import Asked, Experiment, each_asked_once

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
