"""The assets that Dagster loads, of all families or of one: a command starts runs of one, and does not wait for the others' modules."""

import warnings
from types import ModuleType
from typing import Any, NamedTuple

import dagster as dg

# Single-run backfills make a round one run. Dagster warns that they are beta at every asset that has one, when the asset is imported.
warnings.filterwarnings("ignore", category=dg.BetaWarning)


class _Loaded(NamedTuple):
    modules: list[ModuleType]
    """Those with its assets and their checks."""
    files: list[dg.AssetSpec]
    """What it reads and does not make."""
    checks: list[ModuleType]
    """Modules with checks alone."""


def _survey() -> _Loaded:
    from assets.survey import (
        aggregate,
        blueprint,
        boards,
        drift,
        ingest,
        landing,
        model_drift,
        predict,
        report,
        score,
    )
    from assets.survey.rounds import survey_files

    modules = [ingest, blueprint, predict, score, aggregate, drift, boards, model_drift, report]
    return _Loaded(modules, [survey_files], [landing])


def _rubric() -> _Loaded:
    from assets.rubric import (
        anchors,
        blueprints,
        boards,
        corrected,
        drift,
        embeddings,
        judgements,
        points,
        report,
        responses,
        roll_ups,
        scores,
        summaries,
    )
    from assets.rubric.files import rubric_files

    modules = [blueprints, responses, judgements, embeddings, points, scores, summaries]
    return _Loaded([*modules, boards, roll_ups, drift, corrected, anchors, report], [rubric_files], [])


def _qa() -> _Loaded:
    from assets.qa import anchors, boards, drift, executions, items, judgements, prompts, report, responses, roll_ups, scores
    from assets.qa.files import qa_files

    modules = [items, prompts, responses, judgements, executions, scores, boards, roll_ups, drift, anchors, report]
    return _Loaded(modules, [qa_files], [])


def _games() -> _Loaded:
    from assets.games import decisions, drift, episodes, items, prompts, report, results, scores

    return _Loaded([items, prompts, episodes, scores, results, decisions, drift, report], [], [])


def _preference() -> _Loaded:
    from assets.preference import score_checks, stored_votes, voted_scores

    return _Loaded([stored_votes, voted_scores, score_checks], [], [])


_LOADED_BY = {"survey": _survey, "rubric": _rubric, "qa": _qa, "games": _games, "preference": _preference}
EVERY_FAMILY = tuple(_LOADED_BY)


def assets_of(*families: str) -> dict[str, Any]:
    """What `dg.Definitions` takes of these families, and what their assets run with."""
    # Here once more, as filters may have been put back since this module was imported.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        from assets.survey.store import SurveyStore

        parts = [_LOADED_BY[family]() for family in families]
    modules = [module for part in parts for module in part.modules]
    return {
        "assets": [*(spec for part in parts for spec in part.files), *dg.load_assets_from_modules(modules)],
        "asset_checks": dg.load_asset_checks_from_modules([*modules, *(module for part in parts for module in part.checks)]),
        "resources": {"store": SurveyStore()},
        # One process per run: a stage is seconds of work, starting a process for it would cost more.
        "executor": dg.in_process_executor,
    }
