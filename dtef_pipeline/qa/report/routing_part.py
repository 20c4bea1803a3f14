"""Routing policies on the pages of the qa family: what a policy that chooses a model for each item would have made of stored scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.policies.front import pareto_plot
from dtef_pipeline.qa.policies.outcomes import scored_outcomes
from dtef_pipeline.qa.policies.replay import replay_policies
from dtef_pipeline.qa.policies.stream import OutcomeStream, items_drawn, outcome_stream
from dtef_pipeline.qa.report.boards_part import boards_of
from dtef_pipeline.qa.result_tables import OF_ONE_BOARD
from dtef_pipeline.report.isolated import inline
from dtef_pipeline.report.markup import Column, as_is, dollars, figure, note, paragraph, section, table, text, with_intervals
from dtef_pipeline.report.page import Chapter
from dtef_pipeline.report.stored_rows import StoredRows
from dtef_pipeline.text.counted import counted

PAGE_REPLAYS, REPLAY_SEED, MOST_REPLAYED_ITEMS, MOST_REPLAYED_SUITES = 20, 0, 500, 4
"""Orders of the items that each policy is replayed in, the seed of all that is drawn (that of the command), and the bounds of the work, so that
the page is written in seconds."""
_ASKED_SHARE = 0.9
"""Of the items of the model with the most: a model with a score and a cost on fewer is no choice of the policies."""
_NO_COSTS = (
    "Routing policies are not replayed: that takes two models or more with scores and costs on the same items, and a cost above $0; what runs "
    "locally costs nothing."
)
_ROUTING_HOW = (
    "What a policy would have reached that chooses a model for each item, replayed on stored scores and costs; no model is asked. Regret: score "
    "lost against the best model of each item, summed over the items; lower is better. Intervals: where 95 % of the replays lie, each in a "
    f"random order of the items. The first board of a suite is replayed, {PAGE_REPLAYS} times with seed {REPLAY_SEED}, on at most "
    f"{counted(MOST_REPLAYED_ITEMS, 'item')}, drawn with that seed, of at most {counted(MOST_REPLAYED_SUITES, 'suite')}. "
    "Policies learn as they go, so more items "
    "make a better mean: the command dtef qa replay-policies replays all."
)
_POLICY_TABLE = (
    Column("policy", "Policy", text),
    Column("quality", "Quality", as_is, "Mean score of the chosen answers, 0-1, higher is better; 95 % of the replays beneath"),
    Column("cost_usd", "US dollars", dollars, "Of all items together, mean over the replays"),
    Column("regret", "Regret", as_is, "Score lost against the best model of each item, summed; 95 % of the replays beneath"),
    Column(
        "front", "Beaten", text, "Whether another policy, not counting the oracle, is as good for less, or better for as much"
    ),
    Column("note", "Note", note),
)
_POLICY_DATA = ["policy", "n_items", "n_left_out", "n_seeds", "seed", "quality", "quality_low", "quality_high", "cost_usd",
                "cost_low", "cost_high", "regret", "regret_low", "regret_high", "on_front"]  # fmt: skip


class RoutedSuite(NamedTuple):
    """The first board of a suite on which policies have something to choose from."""

    heading: str
    """Markup."""
    suite: str
    stream: OutcomeStream
    n_all: int
    """Items that the stream is drawn from."""


def routing_chapters(rows: StoredRows, connection: duckdb.DuckDBPyConnection, latest: pa.Table) -> list[Chapter]:
    """The chapter; none where no suite has two models with scores and costs on the same items. `latest`: rows of `latest_scores`."""
    found, more = _routed(rows, connection, latest)
    if not found:
        return []
    beyond = (
        paragraph(f"{counted(more, 'further suite')} not replayed here; the command dtef qa replay-policies does it.")
        if more
        else ""
    )
    body = "".join(map(_replayed, found)) + beyond
    return [
        Chapter("routing", "Routing policies replayed", section("routing", "Routing policies replayed", _ROUTING_HOW, body))
    ]


def without_routing(rows: StoredRows) -> str:
    """Why the page has no chapter on policies, as markup; nothing where nobody was asked yet."""
    return paragraph(_NO_COSTS) if rows.has("qa_responses") else ""


def _routed(rows: StoredRows, connection: duckdb.DuckDBPyConnection, latest: pa.Table) -> tuple[list[RoutedSuite], int]:
    """The suites that are replayed, and how many more there may be."""
    boards = rows.frame("qa_board")
    if not len(boards) or not {"cost_usd", "latency_s"} <= rows.columns("qa_responses") or not rows.has("qa_items"):
        return [], 0
    found: list[RoutedSuite] = []
    suites = [(str(suite), own) for suite, own in boards.groupby("suite", sort=True) if own["model_variant"].nunique() > 1]
    for at, (suite, own) in enumerate(suites):
        if len(found) == MOST_REPLAYED_SUITES:
            return found, len(suites) - at
        board = next(boards_of(own))
        where = {name: str(board.rows[name].iloc[0]) for name in OF_ONE_BOARD}
        if stream := paid_stream(scored_outcomes(connection, latest, where)):
            drawn = items_drawn(stream, MOST_REPLAYED_ITEMS, seed=REPLAY_SEED)
            found.append(RoutedSuite(board.heading, suite, drawn, len(stream.scores)))
    return found, 0


def paid_stream(outcomes: pa.Table) -> OutcomeStream | None:
    """The items on which all models have a score and a cost, but for models that have fewer than 9 of 10 of the most. `outcomes`: of
    `scored_outcomes`. None: there are no two such models, or none of them cost anything."""
    known = outcomes.filter(pc.and_(pc.is_valid(outcomes["score"]), pc.is_valid(outcomes["cost_usd"])))
    if not len(known):
        return None
    asked = known.group_by("model").aggregate([("item_id", "count_distinct")]).to_pydict()
    most = max(asked["item_id_count_distinct"])
    kept = [name for name, n in zip(asked["model"], asked["item_id_count_distinct"], strict=True) if n >= _ASKED_SHARE * most]
    try:
        stream = outcome_stream(known.filter(pc.is_in(known["model"], pa.array(kept))), categories=["cluster"])
    except ConfigError:
        return None
    return stream if np.any(stream.costs > 0) else None


def _replayed(one: RoutedSuite) -> str:
    results = replay_policies(one.stream, seeds=PAGE_REPLAYS, seed=REPLAY_SEED).results
    frame = results.to_pandas().sort_values("quality", ascending=False, kind="stable", ignore_index=True)
    drawn = f"{len(one.stream.scores):,} of " if len(one.stream.scores) < one.n_all else ""
    left = one.stream.left_out
    told = f"{drawn}{counted(one.n_all, 'item')}, {counted(len(one.stream.models), 'model')}"
    told += f"; {counted(left, 'item')} without a score and a cost of each left out" if left else ""
    shown = with_intervals(frame, [(name, f"{name}_low", f"{name}_high") for name in ("quality", "regret")])
    shown = shown.assign(front=[_beaten(row) for row in frame.to_dict("records")])
    rows = table(shown, _POLICY_TABLE, caption=f"Policies on {one.suite}", row_head="policy", data=frame[_POLICY_DATA])
    plot = figure(
        pareto_plot(results, standalone=False),
        f"Quality against cost on {one.suite}: no other policy beats those on the line in both",
    )
    return f"<h3>{inline(one.suite)}: {one.heading}</h3>{paragraph(told + '.')}{rows}{plot}"


def _beaten(row: dict[Any, Any]) -> str:
    return {True: "no", False: "yes"}.get(row["on_front"], "knows the scores" if row["policy"] == "oracle" else "")
