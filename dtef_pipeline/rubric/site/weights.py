"""The effect of the weight of similarity on the leaderboard, and the differences between the runs behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from dtef_pipeline.rubric.board import MIN_BLUEPRINTS, TEST_TAG
from dtef_pipeline.rubric.hybrid import ScoringPolicy, compute_hybrid_at, find_crossing
from dtef_pipeline.rubric.run_comparison import describe_unlike_runs, select_averaged_runs
from dtef_pipeline.rubric.site.rubric_rows import RubricRows
from dtef_pipeline.site.content import Fold, Section, TemplateBlock, convert_to_rows, is_unknown
from dtef_pipeline.text.quantity_words import format_count

_WEIGHT_HOW = (
    "If a prompt has criteria and an ideal answer, the score is beta times similarity plus 1 - beta times coverage. At 0 only coverage "
    "counts, at 1 only similarity. A prompt with only one of the two is scored by it at every weight, and a similarity below 0 counts as "
    "0, so the scores at 0 and 1 differ from the mean coverage and similarity of the leaderboard. Its intervals are for the weight of "
    "the runs."
)
_EDGE = 1e-9
"""Weights or scores that differ by less are equal."""
_BETA = r"^beta=[^,]*, "


class PlaceChange(NamedTuple):
    """Two models that have the same score at one weight and change places there."""

    beta: float
    """Weight of the similarity, above 0 and below 1."""
    rises: str
    """The model that is better above it."""
    falls: str
    place: int
    """The place of both at this weight, from 1."""


def build_weight_section(rows: RubricRows) -> Section:
    """Return a slider for the weight of similarity that ranks the models again. Empty if no score uses similarity."""
    models = [model for model in _build_lines(rows) if not is_unknown(model["intercept"])]
    usual = ScoringPolicy().beta
    if not any(abs(model["slope"]) > _EDGE for model in models):
        return Section("weight", "Weight of similarity", [])
    models.sort(key=lambda model: (not model["ranked"], -_compute_at(model, usual), model["model"]))
    items = [{**model, "scores": [_compute_at(model, beta) for beta in (usual, 0.0, 1.0)]} for model in models]
    part = Fold("Rank models at another weight", [TemplateBlock("rubric/weight.html.j2", {"models": items, "usual": usual})])
    return Section(
        "weight",
        "Weight of similarity",
        [part],
        _summarize_changes(find_place_changes(models), sum(model["ranked"] for model in models)),
        _WEIGHT_HOW,
    )


def _build_lines(rows: RubricRows) -> list[dict[str, Any]]:
    """Return each model's score as a line: `intercept`, `slope`, and whether it is `ranked`."""
    return [
        {
            "model": str(row["model"]),
            "intercept": row["intercept"],
            "slope": row["slope"],
            "ranked": row["n_scored"] >= MIN_BLUEPRINTS,
        }
        for row in convert_to_rows(rows.cut("overall"))
    ]


def _compute_at(model: Mapping[str, Any], beta: float) -> float:
    return float(compute_hybrid_at(model["intercept"], model["slope"], beta))


def find_place_changes(models: Sequence[Mapping[str, Any]]) -> list[PlaceChange]:
    """Return all changes of places among ranked models, by weight. `models`: with `model`, `intercept`, `slope` and `ranked`."""
    ranked = [model for model in models if model["ranked"] and not is_unknown(model["intercept"])]
    intercept, slope = (np.array([model[name] for model in ranked], dtype=np.float64) for name in ("intercept", "slope"))
    changes = []
    for first, second in combinations(ranked, 2):
        beta = find_crossing((first["intercept"], first["slope"]), (second["intercept"], second["slope"]))
        if beta is None or not _EDGE < beta < 1 - _EDGE:
            continue
        rises, falls = (first, second) if first["slope"] > second["slope"] else (second, first)
        ahead = compute_hybrid_at(intercept, slope, beta) > _compute_at(first, beta) + _EDGE
        changes.append(PlaceChange(beta, rises["model"], falls["model"], int(ahead.sum()) + 1))
    return sorted(changes)


def _summarize_changes(changes: Sequence[PlaceChange], n_ranked: int) -> str:
    if n_ranked < 2:
        return ""
    if not changes:
        return "No two ranked models change places at any weight."
    first = [f"from {change.beta:.2f} on {change.rises} ranks above {change.falls}" for change in changes if change.place == 1]
    leader = f"the first place changes: {'; '.join(first)}" if first else "the first place stays"
    return f"Between 0 and 1 ranked models change places {format_count(len(changes), 'time')}; {leader}."


def build_alike_section(rows: RubricRows) -> Section:
    """Describe differences in judges, scale or policy between runs; empty if none."""
    runs = rows.rows.frame("rubric_runs")
    warnings: list[str] = []
    if len(rows.scores) and {"judges", "judge_hash", "policy"} <= set(runs):
        board_runs = select_averaged_runs(rows.scores, runs, rows.order)
        board_runs = board_runs[~board_runs["blueprint"].isin(rows.tags.get(TEST_TAG, []))]
        # Beta is on the slider, and no reason for a warning.
        warnings = list(describe_unlike_runs(board_runs.assign(policy=board_runs["policy"].str.replace(_BETA, "", regex=True))))
    return Section(
        "unlike", "Runs with other judges or policies", [], " ".join(f"{line[:1].upper()}{line[1:]}." for line in warnings)
    )
