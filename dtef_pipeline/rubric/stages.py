"""Stages of the rubric family that need only tables, settings and responses: responses, judgements, scores and summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.embeddings import identify_embedder
from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.errors import ConfigError, NameLeak
from dtef_pipeline.family.stage import (
    TAKEN_AWAY,
    Check,
    EpisodePlan,
    Inputs,
    Lengths,
    Replies,
    Stage,
    Tables,
    make_failure_check,
    make_uniqueness_check,
)
from dtef_pipeline.identity import digest
from dtef_pipeline.judging.consensus import CLASS_SCALES, USUAL_SCALE
from dtef_pipeline.judging.judgement import USUAL_JUDGEMENT_TOKENS
from dtef_pipeline.judging.judges import judge_hash
from dtef_pipeline.preference.pairing import MetricSource, PairedSource
from dtef_pipeline.rubric.analysts import (
    NAME_LEFT,
    OF_ANOTHER_REPORT,
    SummaryCase,
    SummaryEpisode,
    are_summaries_current,
    build_analyst_ids,
    build_not_asked_row,
    build_summary_material,
    build_summary_request,
    build_summary_rows,
    choose_analysts,
    prepare_case,
)
from dtef_pipeline.rubric.anonymise import ANALYST_IDS
from dtef_pipeline.rubric.blueprint.model import TEXT_KIND
from dtef_pipeline.rubric.episodes import (
    Candidates,
    Conversation,
    JudgingEpisode,
    build_response_rows,
    build_rubric_judgement_rows,
    choose_judges,
    choose_selectors,
    count_judged_criteria,
    iterate_judgings,
    iterate_scripts,
    make_judgement_stand_in,
    merge_responses,
)
from dtef_pipeline.rubric.scoring import (
    ScoringPolicy,
    choose_embedder,
    describe_counted,
    format_policy,
    run_hash,
    score_tables,
)
from dtef_pipeline.rubric.settings import RUBRIC_STAGE_SETTINGS, RubricSettings
from dtef_pipeline.rubric.tables import (
    RUBRIC_GRADES,
    RUBRIC_JUDGEMENTS,
    RUBRIC_POINT,
    RUBRIC_RESPONSE,
    RUBRIC_RUNS,
)

CHARACTERS_OF_A_TOKEN = 4
READ_BY_A_JUDGE = 0.95
"""Share of readable replies of a judge below which the check warns."""


def plan_responses(inputs: Inputs, settings: RubricSettings) -> EpisodePlan:
    """Plan the requests of a blueprint to the models."""
    file_models = inputs.read("rubric_blueprints", ["models"])["models"][0].as_py()
    codes = inputs.rows("rubric_findings", ["code"])["code"].to_pylist()
    candidates = Candidates(inputs.models, choose_selectors(settings.models, inputs.key, file_models, codes))
    prompt_scripts = list(iterate_scripts(inputs.read("rubric_prompts")))
    conversations = [
        Conversation(script, spec, draw, settings.snapshot)
        for script, temperatures in prompt_scripts
        for spec in candidates.resolve_at(temperatures)
        for draw in range(settings.draws)
    ]
    conversation_keys = [(script.prompt, script.system_index, script.conversation_hash) for script, _ in prompt_scripts]

    def rows(batch: Sequence[Conversation], outcomes: Sequence[EpisodeResult]) -> Tables:
        return {"rubric_responses": build_response_rows(inputs.key, batch, outcomes)}

    def written(new: Tables) -> Tables:
        rows = merge_responses(inputs.earlier("rubric_responses"), new["rubric_responses"], conversation_keys)
        return {"rubric_responses": rows}

    specs = list({conversation.model.variant: conversation.model for conversation in conversations}.values())
    expected = Counter(conversation.model.name for conversation in conversations)
    return EpisodePlan(specs, expected, len(conversations), lambda: conversations, rows, written)


RUBRIC_RESPONSES_STAGE = Stage(
    "rubric_responses",
    """What the models wrote: one row per (prompt, model, temperature, system prompt, draw) of a blueprint and snapshot.

    A conversation with turns that the model writes is requested turn by turn. Every turn is committed to the response store before the next
    request, so a rerun continues where a run stopped and requests nothing twice. A blank response has the status `empty` and is unscored; one
    that `max_tokens` cut off is scored and marked. A call that failed after all retries is a row with the status `error` and the message.""",
    plan_responses,
    after=("rubric_blueprints",),
    settings=RUBRIC_STAGE_SETTINGS["rubric_responses"],
    version="2",
    asks=True,
    checks=(
        make_uniqueness_check("rubric_responses", (*RUBRIC_RESPONSE, "snapshot")),
        make_failure_check("rubric_calls_succeed", "rubric_responses", "status", "conversations"),
    ),
    preview=("prompt", "model", "temperature", "system_index", "status", "text"),
    counted_columns=("status", "model", "truncated"),
    replies=Replies((Lengths("rubric_responses", replies="turns"),)),
    verb="ask",
)


def plan_judgements(inputs: Inputs, settings: RubricSettings) -> EpisodePlan | Tables:
    """Plan the requests to judges about the responses; return no rows if the blueprint has no criterion in words."""
    no_rows = RUBRIC_JUDGEMENTS.empty_table()
    kinds = inputs.read("rubric_criteria", ["prompt", "kind"])
    if TEXT_KIND not in kinds["kind"].to_pylist():
        return {"rubric_judgements": no_rows}
    file_judges = inputs.read("rubric_blueprints", ["judges"])["judges"][0].as_py()
    judges = choose_judges(settings.judges, file_judges, inputs.models, settings.scale)
    per_judge = count_judged_criteria(inputs.read("rubric_responses", ["prompt", "status"]), kinds) * settings.judge_draws

    def episodes() -> Iterator[JudgingEpisode]:
        responses, criteria, prompts = (inputs.read(name) for name in ("rubric_responses", "rubric_criteria", "rubric_prompts"))
        return iterate_judgings(responses, criteria, prompts, judges, settings.judge_draws)

    def rows(batch: Sequence[JudgingEpisode], outcomes: Sequence[EpisodeResult]) -> Tables:
        return {"rubric_judgements": build_rubric_judgement_rows(inputs.key, batch, outcomes) if batch else no_rows}

    specs = list({judge.model.variant: judge.model for judge in judges}.values())
    expected = {name: times * per_judge for name, times in Counter(judge.model.name for judge in judges).items()}
    return EpisodePlan(specs, expected, per_judge * len(judges), episodes, rows, stand_in=make_judgement_stand_in)


def _list_unreadable_judges(_: Inputs, rows: pa.Table) -> Iterator[str]:
    frame = rows.to_pandas()
    replies = frame[~frame["reason"].isin(["error", "budget"])]
    read = replies["class"].notna().groupby(replies["judge"]).mean()
    for judge, share in read[read < READ_BY_A_JUDGE].items():
        yield f"{judge}: {share:.1%} read"


RUBRIC_JUDGEMENTS_STAGE = Stage(
    "rubric_judgements",
    """Judgements: one row per (response, criterion in words, judge, draw) with the class, the judge's reflection and its raw replies.

    Each judgement is stored under its own request key and requested once, so only an edited criterion is judged again. An unreadable reply is
    requested once more; if that is unreadable, too, the judgement is null with a reason.""",
    plan_judgements,
    after=("rubric_responses",),
    settings=RUBRIC_STAGE_SETTINGS["rubric_judgements"],
    asks=True,
    checks=(
        make_uniqueness_check(
            "rubric_judgements", (*RUBRIC_RESPONSE, *RUBRIC_POINT[1:], "judge", "judge_variant", "judge_draw", "snapshot")
        ),
        Check(
            "rubric_judges_are_readable",
            "Warns of judges with more than 5 % unreadable replies, after a second request.",
            "rubric_judgements",
            ("judge", "class", "reason"),
            _list_unreadable_judges,
        ),
    ),
    preview=("prompt", "model", "judge", "class", "reason", "reflection"),
    counted_columns=("judge", "reason", "attempts"),
    replies=Replies((Lengths("rubric_judgements", "judge_variant", "len(request_keys)"),), USUAL_JUDGEMENT_TOKENS),
    verb="judge",
)


def score_blueprint(inputs: Inputs, settings: RubricSettings) -> Tables:
    """Return the scores of the responses to a blueprint, their similarities, and a row on how they were scored."""
    embedder = identify_embedder(choose_embedder(settings.embedder, inputs.models))
    policy = ScoringPolicy(settings.beta, settings.or_paths, settings.should_not_paths, embedder)
    responses, points = inputs.read("rubric_responses"), inputs.read("rubric_points")
    prompts, criteria = inputs.read("rubric_prompts"), inputs.read("rubric_criteria")
    scores = score_tables(responses, prompts, criteria, points, inputs.rows("rubric_embeddings"), policy)
    runs = _run_row(inputs, settings, policy, responses, points)
    return {**scores, "rubric_runs": runs}


def _run_row(
    inputs: Inputs, settings: RubricSettings, policy: ScoringPolicy, responses: pa.Table, points: pa.Table
) -> pa.Table:
    names = ["judge", "approach", "judge_variant", "scale"]
    judges = inputs.rows("rubric_judgements", names).group_by(names).aggregate([])
    judge_keys = set(zip(judges["approach"].to_pylist(), judges["judge_variant"].to_pylist(), strict=True))
    scale = CLASS_SCALES[pc.max(judges["scale"]).as_py() or USUAL_SCALE]  # a stage's rows are of one run, and so of one scale
    has_labels = bool(pc.any(points["labelled"]).as_py())
    notes = describe_counted(has_labels=has_labels, no_own_judge=settings.no_own_judge)
    judges_hash = judge_hash(judge_keys, scale)
    if notes:  # runs that count other judgements are not compared for drift
        judges_hash = digest(judges_hash, *notes)
    test = inputs.read("rubric_blueprints", ["test_hash"])["test_hash"][0].as_py()
    row = {
        "blueprint": inputs.key,
        "snapshot": settings.snapshot,
        "test_hash": test,
        "judge_hash": judges_hash,
        "policy_hash": policy.policy_hash,
        "run_hash": run_hash(test, judges_hash, policy.policy_hash),
        "judges": [*sorted(set(judges["judge"].to_pylist())), *notes],
        "policy": format_policy(policy),
        "embedder": policy.embedder,
        "answered_at": pc.max(responses["answered_at"]).as_py(),
    }
    return pa.Table.from_pylist([row], schema=RUBRIC_RUNS)


def _summarise_model_scores(tables: Tables) -> Mapping[str, Any]:
    rows = tables["rubric_scores"]
    models = rows.filter(pc.equal(rows["level"], "model")).sort_by([("hybrid", "descending")])
    columns = ["model", "hybrid", "coverage", "similarity", "n_responses_scored", "n_responses"]
    return {"run_hash": tables["rubric_runs"]["run_hash"][0].as_py(), "models": models.select(columns).slice(0, 15)}


def _list_scores_out_of_range(_: Inputs, rows: pa.Table) -> Iterator[str]:
    for name in ("coverage", "hybrid"):
        outside = pc.or_(pc.less(rows[name], -1e-12), pc.greater(rows[name], 1 + 1e-12))
        for row in rows.filter(pc.fill_null(outside, False)).to_pylist():
            yield f"{row['prompt']} {row['model']}: {name} {row[name]}"


RUBRIC_SCORES_STAGE = Stage(
    "rubric_scores",
    """Scores: one row per cell (a prompt, a model, a temperature, a system prompt), per variant and per model of a blueprint.

    `coverage` is the weighted share of the rubric that is met, `similarity` the closeness to the ideal answer, `hybrid` both combined with
    the weight beta; it is linear in beta, so `intercept` and `slope` give it for every other weight. The stage also writes `rubric_similarities`
    (any two responses to a prompt) and `rubric_runs` (the test, judges and policy of a snapshot). It makes no requests.""",
    score_blueprint,
    after=("rubric_points", "rubric_embeddings"),
    settings=RUBRIC_STAGE_SETTINGS["rubric_scores"],
    version="2",
    checks=(
        Check(
            "rubric_coverage_is_in_range",
            "Coverage and hybrid score are in 0 to 1, or null.",
            "rubric_scores",
            ("prompt", "model", "coverage", "hybrid"),
            _list_scores_out_of_range,
            blocking=True,
        ),
    ),
    metadata=_summarise_model_scores,
    extra_tables=("rubric_similarities", "rubric_runs"),
    verb="score",
)


def plan_summaries(inputs: Inputs, settings: RubricSettings) -> EpisodePlan | Tables:
    """Plan the requests to analysts about the responses to a blueprint, or return the rows if no request is needed."""
    analysts = choose_analysts(settings.analysts, inputs.models)
    if not analysts:
        return _keep_stored_summaries(inputs, settings)
    case = _prepare_case(inputs, settings)
    if isinstance(case, pa.Table):
        return _build_summary_tables(case)
    episodes = [SummaryEpisode(case, build_summary_request(case, analyst)) for analyst in analysts]

    def rows(batch: Sequence[SummaryEpisode], outcomes: Sequence[EpisodeResult]) -> Tables:
        return _build_summary_tables(*build_summary_rows(batch, outcomes))

    def written(new: Tables) -> Tables:
        return {**new, "analyst_ids": build_analyst_ids(case)}

    expected = Counter(analyst.name for analyst in analysts)
    return EpisodePlan(
        analysts,
        expected,
        len(episodes),
        lambda: episodes,
        rows,
        written,
        stand_in=lambda *_: None,
        longer_at_most=max(0, settings.report_characters - len(case.report.text)) / CHARACTERS_OF_A_TOKEN,
    )


def _build_summary_tables(summaries: pa.Table, grades: pa.Table | None = None) -> Tables:
    return {
        "rubric_summaries": summaries,
        "rubric_grades": RUBRIC_GRADES.empty_table() if grades is None else grades,
        "analyst_ids": ANALYST_IDS.empty_table(),
    }


def _prepare_case(inputs: Inputs, settings: RubricSettings) -> SummaryCase | pa.Table:
    """Return the material for analysts, or the row that says why no request is made."""
    build_row = partial(build_not_asked_row, inputs.key, settings.snapshot)
    responses, scores = inputs.read("rubric_responses"), inputs.read("rubric_scores")
    if responses["text"].null_count == len(responses):
        return build_row("no response to summarise")
    head, prompts, criteria = (inputs.read(name) for name in ("rubric_blueprints", "rubric_prompts", "rubric_criteria"))
    material = build_summary_material(head, prompts, criteria, responses, scores, settings.snapshot)
    try:
        return prepare_case(material, settings.report_characters)
    except NameLeak as error:
        return build_row(str(error), NAME_LEFT)
    except ConfigError as error:
        return build_row(str(error))


def _keep_stored_summaries(inputs: Inputs, settings: RubricSettings) -> Tables:
    """Return the stored summaries if all are of the same report, because they were paid for, or else the row of a run without an analyst."""
    default = _build_summary_tables(build_not_asked_row(inputs.key, settings.snapshot, "no analyst"))
    inputs.read("rubric_scores", ["level"])  # a snapshot that is not scored is an error all the same
    stored = {name: inputs.earlier(name).cast(rows.schema) for name, rows in default.items()}
    summaries = [row for row in stored["rubric_summaries"].to_pylist() if row["analyst"]]
    if not summaries:
        return default
    case = _prepare_case(inputs, settings)
    has_all = pc.count(stored["rubric_grades"]["grade"]).as_py() == sum(row["n_grades"] for row in summaries)
    if (
        has_all
        and isinstance(case, SummaryCase)
        and are_summaries_current(summaries, stored["analyst_ids"], case, inputs.models)
    ):
        return stored
    removed = {row["analyst"]: OF_ANOTHER_REPORT for row in summaries if row["findings"] or row["n_grades"]}
    for analyst, reason in removed.items():
        inputs.warn(f"no analyst is named, and the summary and grades by {analyst} were removed: {reason}")
    if removed:
        inputs.describe(**{TAKEN_AWAY: removed})
    return default


def _describe_summary(tables: Tables) -> Mapping[str, Any]:
    text = next((text for text in tables["rubric_summaries"]["text"].to_pylist() if text), None)
    grades = tables["rubric_grades"].select(["analyst", "model", "dimension", "grade", "reasoning"]).slice(0, 13)
    return {"grades": grades, **({"summary": text} if text else {})}


def _list_leaked_names(_: Inputs, rows: pa.Table) -> Iterator[str]:
    for row in rows.filter(pc.equal(rows["status"], NAME_LEFT)).to_pylist():
        yield f"{row['snapshot']}: {row['reason']}"


RUBRIC_SUMMARIES_STAGE = Stage(
    "rubric_summaries",
    """Summaries by analysts: one row per analyst of a blueprint and snapshot, with its findings on the responses as a text for people.

    Analysts see opaque ids for makers, models, system prompts and temperatures; `analyst_ids` maps them to names. Their grades of each model
    in 13 dimensions are in the table `rubric_grades`. A missing summary does not fail the run: `status` and `reason` say why. If no analyst is
    named, a stored summary is kept if it was made from the same report, and removed with a warning otherwise.""",
    plan_summaries,
    after=("rubric_scores",),
    settings=RUBRIC_STAGE_SETTINGS["rubric_summaries"],
    version="2",
    asks=True,
    checks=(
        make_uniqueness_check("rubric_summaries", ("analyst_variant", "snapshot")),
        Check(
            "rubric_summaries_contain_no_names",
            "Fails if a report to an analyst still contains the name of a maker, model or provider. Such a report is not sent.",
            "rubric_summaries",
            ("snapshot", "status", "reason"),
            _list_leaked_names,
            is_error=True,
        ),
    ),
    preview=("analyst", "status", "reason", "n_grades", "n_dropped", "share", "max_tokens"),
    metadata=_describe_summary,
    extra_tables=("rubric_grades", "analyst_ids"),
    replies=Replies(usual_tokens=None),
    is_idle=lambda settings, models: not choose_analysts(settings.analysts, models),
    verb="summarize",
)


def _make_metric(cut: str, partition: str, metric: str) -> MetricSource:
    return MetricSource(
        ("rubric_board", "rubric_responses"),
        f"""
        SELECT {partition} AS partition, model_variant AS player, 'higher' AS direction, {metric} AS metric,
               score AS value, low, high, n_responses_scored AS n
        FROM rubric_board JOIN (SELECT DISTINCT model, model_variant FROM rubric_responses) USING (model) WHERE cut = '{cut}'
        """,
    )


_RUBRIC_METRICS = (
    _make_metric("overall", "'all'", "'hybrid score'"),
    _make_metric("blueprint", "blueprint", "blueprint || ': hybrid score'"),
)
"""Boards of rubrics know models by name: two variants of one name share their score."""
RUBRIC_PAIRED = PairedSource(
    ("rubric_responses",),
    """
    SELECT blueprint AS first, '' AS second,
           blueprint || '/' || prompt || COALESCE(' [system ' || system_index || ']', '') AS item_id,
           model, served_model, model_variant AS player, draw, snapshot,
           [one FOR one IN transcript IF one.role <> 'assistant'] AS messages, text, request_keys
    FROM rubric_responses
    WHERE status = 'ok' AND text IS NOT NULL
    """,
    _RUBRIC_METRICS,
)
