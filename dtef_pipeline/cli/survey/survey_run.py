"""`dtef run`, its estimate, and the roll-ups of surveys."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd

from assets.stage.partitions import require_snapshot
from assets.survey.nightly import load_checked_panel, with_blueprints
from dtef_pipeline.asking.models import COMPUTED_SQL, Models
from dtef_pipeline.asking.snapshot_order import among, parse_name_time, snapshot_order
from dtef_pipeline.boards.cells import has_table, policy_sql
from dtef_pipeline.boards.item_board import list_mixed_served
from dtef_pipeline.boards.reliability import detectable_difference
from dtef_pipeline.cli.families import load_stages
from dtef_pipeline.cli.family_run import AfterRun, FamilyRun, RunContextOfCommand, RunSelection, Steps
from dtef_pipeline.cli.stage_runs import StageRuns, check_settings, name_of_asked
from dtef_pipeline.cli.survey.survey_board import print_survey_board
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.cli.warehouse_access import NothingToShowError, query_rounds
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.family.run_settings import build_option_settings
from dtef_pipeline.family.stage import Stage
from dtef_pipeline.identity import partition_key
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.survey.answer_scales.batteries import load_question_clusters
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.question_draw import (
    Components,
    compute_difference_deviations,
    compute_expected_degrees,
    compute_expected_error,
    describe_draw,
    estimate_variance_components,
)
from dtef_pipeline.survey.settings import SurveySettings, build_survey_run_config
from dtef_pipeline.tables import ANSWERED, READ_ENOUGH
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.number_words import format_count, list_first_names
from resources.failures import is_full
from resources.gateway.progress import keep_terminal
from resources.model_catalog import load_known_models
from resources.settings import Settings
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.engine.dry_run import DryRun


SOME_MODEL_SILENT = 4
"""Exit code: a language model of the run has no response at all, because its calls failed."""
_UNKNOWN_LENGTHS_NAMED = 5


def survey_settings(values: Mapping[str, Any]) -> SurveySettings:
    """Return the settings that options give, with model names resolved and conditions spelled in full. `limits`: MODEL=N each.

    Raises ConfigError for conflicting options, and for an unknown model or condition.
    """
    models, options = load_known_models(Settings.read_environment(), COMPUTED_MODELS), dict(values)
    limits, rounds = options.pop("limits", ()), options.get("rounds")
    if not rounds:
        raise ConfigError("no round: name one with --round (`dtef list` lists them)")
    options["rounds"] = list(dict.fromkeys(rounds))
    settings = _select_from_options(options, models)
    return settings.model_copy(update={"limits": _parse_limits(limits, settings.models, models)})


def _select_from_options(values: Mapping[str, Any], models: Models) -> SurveySettings:
    """Return the options' settings. With `from_store` only named models and conditions; else baselines and context level 0 are defaults."""
    usual = {"models": [], "conditions": []} if values.get("from_store") else {"context_levels": ["0"]}
    settings = build_option_settings(SurveySettings, {**usual, **values})
    levels = list(dict.fromkeys(settings.context_levels or ["0"])) if settings.conditions else []
    conditions = (BlueprintOptions.parse_condition(text, levels).condition for text in settings.conditions)
    names = [spec.name for spec in models.resolve(settings.models)]
    named = {"models": names, "conditions": list(dict.fromkeys(conditions)), "context_levels": levels}
    return settings.model_copy(update=named)


def _parse_limits(texts: tuple[str, ...], names: Collection[str], models: Models) -> dict[str, int]:
    limits = {}
    for text in texts:
        model, _, limit = text.rpartition("=")
        if not model or not (limit.isascii() and limit.isdigit()):
            raise ConfigError(f"--limit {text!r} is not of the form MODEL=N, such as gpt-4.1-mini=100")
        if (name := name_of_asked(model, names, models)) is None:
            raise ConfigError(f"--limit {model}: not a model of this run; its models: {list_nearest(model, names)}")
        limits[name] = int(limit)
    return limits


def partition_keys(warehouse: Warehouse, rounds: Iterable[str], segments: Sequence[str]) -> list[str]:
    """Return the partitions of the rounds, or of the given segments. Raises ConfigError if a round or segment does not exist."""
    by_round = {round_id: warehouse.values("survey_responses", "segment", round=round_id) for round_id in rounds}
    for round_id, names in by_round.items():
        if not names:
            is_without_room = warehouse.is_local and is_full(warehouse.root)
            full = f"; the disk of {warehouse.root} is full: make room first" if is_without_room else ""
            ingested = ", ".join(warehouse.values("survey_responses", "round")) or "none"
            raise ConfigError(f"round {round_id} is not ingested; ingested: {ingested}; `dtef add PATH` ingests it{full}")
    known_segments = sorted({segment for names in by_round.values() for segment in names})
    if absent := [segment for segment in segments if segment not in known_segments]:
        raise ConfigError(
            f"no segment {', '.join(absent)} in {', '.join(by_round)}; segments: {list_nearest(absent[0], known_segments)}"
        )
    selection = segments or known_segments
    return [partition_key(round_id, one) for round_id, names in by_round.items() for one in names if one in selection]


_TABLES_OF_PAIRS = ("survey_responses", "reference_scores", "scores")
_SERIES_OF_SCORES = ["setting", "model_variant"]
_LEAST_READ = 0.5
"""Minimum parse rate at which a model's scores predict differences: unreadable responses all have the same score."""


class _Spread(NamedTuple):
    """Variance components and their source."""

    score: Components
    difference: Components
    source: str


def question_lines(warehouse: Warehouse, settings: SurveySettings) -> Iterator[str]:
    """Yield lines for each round, and for all if there are several. Yields none if surveys cannot be read; another step reports that."""
    tables = [name for name in _TABLES_OF_PAIRS if warehouse.values(name, "round")]
    if not tables:
        return

    def read(connection: duckdb.DuckDBPyConnection) -> tuple[pd.DataFrame, _Spread | None]:
        clusters = load_question_clusters(connection)
        return _add_batteries(_read_pairs(connection, settings), clusters), _estimate_spread(connection, settings, clusters)

    try:
        pairs, spread = warehouse.query(read, only=tables, first=())
    except WarehouseError:
        return
    for round_id, group in pairs.groupby("round", sort=False):
        yield from _describe_questions(str(round_id), group, settings, spread)
    if len(settings.rounds) > 1:
        yield from _describe_questions(
            f"{' and '.join(settings.rounds)} together (a question counts in each of its rounds)", pairs, settings, spread
        )


def _describe_questions(name: str, pairs: pd.DataFrame, settings: SurveySettings, spread: _Spread | None) -> Iterator[str]:
    frame = pairs.assign(draw_order=np.where(pairs["is_sampled"], pairs["draw_order"], np.inf))
    questions = frame.groupby("question", sort=False, as_index=False).agg(
        draw_order=("draw_order", "min"), is_target=("is_target", "any"), cluster=("cluster", "first")
    )
    yield f"{name}: {describe_draw(questions, settings.sample.questions)}"
    targets = frame[frame["is_target"]]
    is_drawn = frame["draw_order"] < (settings.sample.questions or np.inf)
    sample, n_circular = frame[is_drawn & frame["is_target"]], int((is_drawn & ~frame["is_target"]).sum())
    total_text = f" of {len(targets):,}" if len(sample) < len(targets) else ""
    circular = f", and {format_count(n_circular, 'circular pair')}, which boards leave out" if n_circular else ""
    yield f"  {len(sample):,}{total_text} {'pair' if len(targets) == 1 else 'pairs'} of segment and question{circular}"
    if spread and sample["cluster"].nunique() >= MIN_CLUSTERS:
        score, difference = (compute_expected_error(component, sample) for component in (spread.score, spread.difference))
        gap = detectable_difference(difference, compute_expected_degrees(sample))
        yield f"  expected standard error: {score:.3f} of a score, {difference:.3f} of a difference of two models ({spread.source})"
        yield f"  smallest difference that is detected with 80 % power: {gap:.3f}"


def _read_pairs(connection: duckdb.DuckDBPyConnection, settings: SurveySettings) -> pd.DataFrame:
    """Return one row per pair of the chosen rounds and segments: `round`, `question_id`, `draw_order`, `is_target`, `is_sampled`."""
    counts = SurveyBoardOptions(segments=tuple(settings.segments)).respondents_sql or "true"
    return connection.execute(
        f"""SELECT {", ".join(KEYS.shared_item)}, draw_order, NOT circular AS is_target, segment_order < $3 AS is_sampled
            FROM survey_responses WHERE list_contains($1, round) AND (len($2) = 0 OR list_contains($2, segment)) AND {counts}
            ORDER BY list_position($1, round), draw_order""",
        [settings.rounds, settings.segments, settings.sample.segments or 2**31 - 1],
    ).df()


def _estimate_spread(connection: duckdb.DuckDBPyConnection, settings: SurveySettings, clusters: pd.DataFrame) -> _Spread | None:
    """Return the spread of language models' scores under these settings, else of baselines, or None if these have too few batteries."""
    baselines = _add_batteries(_read_baselines(connection, settings), clusters)
    score, difference = _average_components(baselines.assign(score=baselines["typical"])), _average_components(baselines)
    if score is None or difference is None:
        return None
    scores = _add_batteries(_read_model_scores(connection, settings), clusters)
    components, differences = _average_components(scores), _average_components(compute_difference_deviations(scores))
    source = "from stored scores" if components else "from scores of baselines"
    source_note = "" if bool(components) == bool(differences) else ", the difference from those of baselines"
    return _Spread(components or score, differences or difference, source + source_note)


def _read_baselines(connection: duckdb.DuckDBPyConnection, settings: SurveySettings) -> pd.DataFrame:
    """Return the leave-one-out marginal's score of each pair as `typical`, and its lead over the uniform baseline as `score`."""
    metric = SurveyBoardOptions().metric
    return connection.execute(
        f"""SELECT {", ".join(KEYS.pair)}, '' AS setting, '' AS model_variant,
                   coalesce(r.leave_one_out_score.{metric}, r.population_score.{metric}) AS typical, typical - uniform_score.{metric} AS score
            FROM reference_scores r JOIN survey_responses USING ({", ".join(KEYS.pair)})
            WHERE list_contains($1, round) AND NOT circular AND typical IS NOT NULL""",
        [settings.rounds],
    ).df()


def _read_model_scores(connection: duckdb.DuckDBPyConnection, settings: SurveySettings) -> pd.DataFrame:
    """Return models' mean scores by pair under the chosen conditions and context levels, for models with enough readable responses."""
    if not has_table(connection, "scores"):
        return pd.DataFrame(columns=[*KEYS.pair, *_SERIES_OF_SCORES, "score"])
    score = policy_sql(SurveyBoardOptions())
    return connection.execute(
        f"""SELECT {", ".join(KEYS.pair)}, condition || ' ' || context_level AS setting, model_variant, avg({score}) AS score FROM scores
            WHERE list_contains($1, round) AND list_contains($2, condition) AND list_contains($3, context_level)
                AND NOT {COMPUTED_SQL} AND NOT {KEYS.left_out}
            GROUP BY {", ".join(KEYS.pair)}, setting, model_variant HAVING avg({score}) IS NOT NULL
            QUALIFY avg(avg((status = 'ok')::DOUBLE)) OVER (PARTITION BY setting, model_variant) >= {_LEAST_READ}""",
        [settings.rounds, settings.conditions, settings.context_levels],
    ).df()


def _average_components(scores: pd.DataFrame) -> Components | None:
    """Return the mean of the models' variance components, or None if no model has enough batteries and several scores of a question."""
    series = [
        group
        for _, group in scores.groupby(_SERIES_OF_SCORES)
        if group["cluster"].nunique() >= MIN_CLUSTERS and group["question"].duplicated().any()
    ]
    return Components(*np.mean([estimate_variance_components(group) for group in series], axis=0)) if series else None


def _add_batteries(rows: pd.DataFrame, clusters: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with `cluster`, and with `question`, which joins round and id."""
    frame = rows.merge(clusters, on=list(KEYS.shared_item))
    return frame.assign(question=frame["round"] + "/" + frame["question_id"])


def _choose(context: RunContextOfCommand) -> RunSelection:
    options = context.options
    keys = partition_keys(context.warehouse, options.rounds, options.segments)
    require_snapshot(context.warehouse, "predictions", SPACE, keys, options.snapshot)
    specs = context.models.resolve(options.models)
    return RunSelection(keys, {spec.name for spec in specs}, specs)


def _steps(context: RunContextOfCommand, keys: Sequence[str], stages: Sequence[Stage]) -> Steps:
    """Return the stages and their partitions.

    If files are read again and no condition is given, later stages run only for partitions with prompts.
    """
    is_ingest = context.flags.first == "ingest"
    later = with_blueprints(context.warehouse, keys) if is_ingest and not context.options.conditions else keys
    return [*([(stages[0], keys)] if is_ingest else []), *((stage, later) for stage in stages[1:])]


def _refuse(context: RunContextOfCommand, selection: RunSelection) -> None:
    """Raise ConfigError for a fault in files and addresses that stages and roll-ups need later."""
    load_checked_panel(context.environment, check_settings(context.environment), context.warehouse)


def _introduce(context: RunContextOfCommand, selection: RunSelection) -> Iterator[str]:
    yield f"models: {', '.join(model.name for model in selection.specs) or 'those of the response store'}"
    yield from question_lines(context.warehouse, context.options)


def _list_variants(context: RunContextOfCommand) -> list[str]:
    """Return the variants of the models that the run calls: none if it reads the response store."""
    options = context.options
    return [] if options.from_store else [model.variant for model in context.models.resolve(options.models)]


def _after(context: RunContextOfCommand, _: Sequence[str], running: StageRuns) -> AfterRun:
    """Print the board of the run, and return its warnings."""
    options, warnings, is_silent = context.options, list[str](), False
    if not options.from_store and context.warehouse.values("scores", "round"):
        variants = _list_variants(context)
        counts, is_silent, warnings = query_rounds(
            context.warehouse,
            lambda connection: summarize_scores(connection, options.snapshot, options.rounds, variants),
            ["scores", "predictions"],
            options.rounds,
        )
        say(f"predictions of these models in snapshot {options.snapshot}, all runs so far: {counts}\n")
        _print_board(context)
    if context.flags.no_roll_ups:
        say("no roll-ups: `dtef board --refresh` or the next run updates boards, costs, drift of models and the report")
    superseded = _warn_of_superseded(running.outcome.superseded)
    return AfterRun((*warnings, *superseded), exit_code=SOME_MODEL_SILENT if is_silent else 0)


def _print_board(context: RunContextOfCommand) -> None:
    options = context.options
    board_options = SurveyBoardOptions(
        metric=options.metric,
        rounds=tuple(options.rounds),
        context_levels=tuple(options.context_levels),
        snapshot=options.snapshot,
        segments=tuple(options.segments),
        questions=options.questions,
        sample_segments=options.sample_segments,
    )
    with keep_terminal(), suppress(NothingToShowError):
        print_survey_board(context.warehouse, "overall", board_options)


def summarize_scores(
    connection: duckdb.DuckDBPyConnection, snapshot: str, rounds: Sequence[str], variants: Sequence[str]
) -> tuple[str, bool, list[str]]:
    """Return the models' counts by status, whether a language model has no response at all, and warnings.

    `connection` has `scores`, in the order of all snapshots (see `snapshot_order`), and `predictions`.
    """
    parameters = [list(rounds), list(variants), snapshot]
    rows = connection.execute(
        "SELECT status, count(*) FROM scores WHERE list_contains($1, round) AND list_contains($2, model_variant) AND snapshot = $3 "
        "GROUP BY 1 ORDER BY 1",
        parameters,
    ).fetchall()
    silent = connection.execute(
        f"SELECT model FROM predictions WHERE {_OF_MODELS} AND snapshot = $3 "
        "GROUP BY model HAVING bool_or(call_status = 'error') AND NOT bool_or(call_status = 'answered')",
        parameters,
    ).fetchall()
    warnings = [
        *_describe_unread(connection, parameters),
        *list_mixed_served(connection, "predictions", snapshot),
        *_describe_order_problem(connection, parameters),
    ]
    return ", ".join(f"{count:,} {status}" for status, count in rows), bool(silent), [f"warning: {line}" for line in warnings]


_SAME_RESPONSE = ("prompt_id", "question_id", "context_level", "model_variant", "snapshot", "draw")
"""Columns that identify a response in `scores` and `predictions`."""
_OF_MODELS = f"NOT {COMPUTED_SQL} AND list_contains($1, round) AND list_contains($2, model_variant)"


def _describe_unread(connection: duckdb.DuckDBPyConnection, parameters: Sequence[Any]) -> Iterator[str]:
    """Yield a line per model with less than READ_ENOUGH of its responses readable."""
    rows = connection.execute(
        "SELECT model, count(*) AS answered, count(*) FILTER (status <> 'ok') AS unread, mode(reason) FILTER (status <> 'ok') "
        f"FROM scores WHERE {_OF_MODELS} AND snapshot = $3 AND list_contains($4, status) GROUP BY model ORDER BY model",
        [*parameters, list(ANSWERED)],
    ).fetchall()
    for model, n_answered, unread, reason in rows:
        if n_answered - unread >= READ_ENOUGH * n_answered:
            continue
        quoted = model.replace("'", "''")
        share = "none" if unread == n_answered else f"only {n_answered - unread:,}"
        little = ", so its scores are unreliable" if unread == n_answered else ""
        texts = (
            f"SELECT DISTINCT reason, response FROM scores JOIN predictions USING ({', '.join(_SAME_RESPONSE)}) "
            f"WHERE scores.model = '{quoted}' AND snapshot = '{parameters[2]}' AND status <> 'ok' LIMIT 20"
        )
        yield (
            f"{model}: {share} of {format_count(n_answered, 'response')} could be read ({unread / n_answered:.1%} unread){little}; "
            f'most often: {reason}; its responses: dtef sql "{texts}"'
        )


def _describe_order_problem(connection: duckdb.DuckDBPyConnection, parameters: Sequence[Any]) -> Iterator[str]:
    """Yield a warning if another snapshot of these models counts as later, so that boards over all snapshots do not show this one."""
    rounds, variants, snapshot = parameters
    rows = connection.execute(
        f"SELECT DISTINCT snapshot::VARCHAR FROM scores WHERE {_OF_MODELS} AND list_contains($3, status)",
        [rounds, variants, list(ANSWERED)],
    ).fetchall()
    order = among(snapshot_order(connection), [label for (label,) in rows])
    if snapshot not in order or order[-1] == snapshot:
        return
    counts_as = "the date that it begins with" if parse_name_time(snapshot) else "the time of its first response"
    yield (
        f"snapshot {snapshot} counts as {counts_as}, which is before {order[-1]}: where both have a response, `dtef board` and the "
        f"report show the later one; `dtef board --snapshot {snapshot}` shows this one"
    )


def _warn_of_superseded(number: int) -> Iterator[str]:
    if number:
        yield (
            f"warning: {format_count(number, 'earlier prediction')} answered prompts that have changed and are no longer "
            "in the tables; the raw responses stay in the response store, and the earlier options restore them"
        )


def _describe_assumptions(plan: DryRun) -> Iterator[str]:
    if plan.foreseen:
        names = list_first_names(list(plan.foreseen), _UNKNOWN_LENGTHS_NAMED, "; ")
        yield (
            f"There are no responses of {names} yet: their length is estimated from the answer format, without reasoning. "
            "Later estimates use the mean length of stored responses."
        )


SURVEY_RUN = FamilyRun(
    "survey",
    "partition",
    partial(load_stages, "survey", "SURVEY_STAGES"),
    survey_settings,
    _choose,
    _steps,
    _refuse,
    config=lambda options, stages: build_survey_run_config(options),
    introduce=_introduce,
    roll_up=lambda context, running: running.roll_up(context.warehouse, context.options.metric),
    after=_after,
    sized_by=("predictions", "language-model prediction"),
    failure_columns=("call_status", "error"),
    failed_variants=_list_variants,
    assumes=_describe_assumptions,
)
