"""Stages of the rubric family that read files, embed texts, or run functions and scripts.

Each blueprint file is a partition, with a note in the warehouse.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.stage_assets import build_file_source, stage_assets
from dtef_pipeline.asking.embeddings import identify_embedder
from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.errors import DtefError
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.stage import Check, EpisodePlan, Inputs, Replies, Stage, Tables, make_uniqueness_check
from dtef_pipeline.rubric.analysts import (
    FOR_KEY_POINTS,
    ExtractionEpisode,
    add_key_points,
    build_extraction_rows,
    choose_extracting_model,
    list_extractings,
    make_extraction_stand_in,
    read_extraction,
)
from dtef_pipeline.rubric.blueprint.blueprint_rows import build_blueprint_tables
from dtef_pipeline.rubric.blueprint.findings import is_left_out_for
from dtef_pipeline.rubric.blueprint.model import Blueprint, BlueprintFinding, ParsedBlueprint
from dtef_pipeline.rubric.blueprint.named_models import read_collections
from dtef_pipeline.rubric.blueprint.reading import read_blueprint
from dtef_pipeline.rubric.episodes import build_point_rows
from dtef_pipeline.rubric.functions import prepare_function
from dtef_pipeline.rubric.label_corrections import apply_labels
from dtef_pipeline.rubric.rubric_roll_ups import remove_own_judges
from dtef_pipeline.rubric.scoring import choose_embedder, select_texts_to_embed
from dtef_pipeline.rubric.settings import RUBRIC_STAGE_SETTINGS, RubricSettings
from dtef_pipeline.rubric.stages import (
    RUBRIC_JUDGEMENTS_STAGE,
    RUBRIC_RESPONSES_STAGE,
    RUBRIC_SCORES_STAGE,
    RUBRIC_SUMMARIES_STAGE,
)
from dtef_pipeline.rubric.tables import RUBRIC_EMBEDDINGS, RUBRIC_EXTRACTIONS, RUBRIC_POINT, RUBRIC_RESPONSE, RUBRIC_SPACE
from dtef_pipeline.text.number_words import format_count
from resources.gateway.embedder import EmbeddingResult
from resources.notes import BLUEPRINT_NOTES, RubricFile
from resources.plugin_functions import evaluating, load_plugin_functions

RUBRIC_BLUEPRINT = dg.DynamicPartitionsDefinition(name=RUBRIC_SPACE.name)
_RESERVED = "reserved-id"
"""The error about a whole file, of which no part can be left out."""

rubric_files = build_file_source(
    "rubric",
    RUBRIC_BLUEPRINT,
    """The file of each blueprint: one partition per file, observed when it is added (`dtef rubric add`) or when the sensor
    `new_blueprint` finds it changed. Its data version is a hash of the file and of the model collections that were given with it: if it
    differs from the one that `rubric_blueprints` was made from, that partition is stale.""",
)


def read(file: RubricFile) -> tuple[ParsedBlueprint, Blueprint]:
    """Return the file's contents. Raises DtefError, in one line, if it has errors and its broken parts may not be left out."""
    path = Path(file.path)
    if file.is_gone:
        raise DtefError(
            f"{path} no longer exists: add {file.blueprint} from another path with `dtef rubric add`, or remove it with {file.removal}"
        )
    collections = read_collections(Path(file.models_dir)) if file.models_dir else None
    result = read_blueprint(path, file.blueprint, collections, other_functions=load_plugin_functions())
    errors = [finding for finding in result.findings if is_left_out_for(finding.level, finding.code)]
    fatal_errors = [finding for finding in errors if finding.code == _RESERVED]
    if errors and (fatal_errors or not file.skip_broken):
        raise DtefError(_format_first_error(path, fatal_errors or errors))
    if result.blueprint is None or not result.blueprint.prompts:
        raise DtefError(_format_first_error(path, errors) if errors else f"{path}: it has no usable prompt")
    return result, result.blueprint


def _format_first_error(path: Path, errors: Sequence[BlueprintFinding]) -> str:
    """Return `safety/a.yml:12: prompt 3 should[0]: bad-point: ... (and 2 more errors)`."""
    first = errors[0]
    line = f":{first.line}" if first.line else ""
    place = f" {first.place}:" if first.place and not first.place.startswith("line ") else ""
    suffix = f" (and {format_count(len(errors) - 1, 'more error')})" if len(errors) > 1 else ""
    return f"{path}{line}:{place} {first.code}: {first.text}{suffix}"


SCORED_POINTS = 0.9
"""Share of a blueprint's points with a score below which the check warns."""


def plan_blueprint(inputs: Inputs, settings: RubricSettings) -> EpisodePlan | Tables:
    """Return the tables of a blueprint's file; with `extract_points`, plan requests for the key points of its ideal answers."""
    file = BLUEPRINT_NOTES.read(inputs.outside.warehouse, inputs.key)
    if file is None:
        raise DtefError(f"{inputs.key}: its file is unknown; add it with `dtef rubric add PATH`")
    result, blueprint = read(file)
    points: dict[str, tuple[str, ...]] = {}

    def rows(batch: Sequence[ExtractionEpisode], outcomes: Sequence[EpisodeResult]) -> Tables:
        points.update({call.prompt: read_extraction(outcome).points for call, outcome in zip(batch, outcomes, strict=True)})
        return {"rubric_extractions": build_extraction_rows(batch, outcomes)}

    def written(new: Tables) -> Tables:
        tables = build_blueprint_tables(result, add_key_points(blueprint, points), file.path)
        extractions = new["rubric_extractions"]
        is_kept = len(extractions) or len(inputs.rows("rubric_extractions"))
        return {**tables, **({"rubric_extractions": extractions} if is_kept else {})}

    if not settings.extract_points:
        return written({"rubric_extractions": RUBRIC_EXTRACTIONS.empty_table()})
    model = choose_extracting_model(settings.analysts, inputs.models)
    episodes = list_extractings(blueprint, model)
    specs = [model] if episodes else []
    expected = {model.name: len(episodes)}
    return EpisodePlan(specs, expected, len(episodes), lambda: episodes, rows, written, make_extraction_stand_in)


def _blueprint_metadata(tables: Tables) -> Mapping[str, Any]:
    head = tables["rubric_blueprints"].to_pylist()[0]
    findings = tables["rubric_findings"].select(["level", "code", "place", "text"]).slice(0, 20)
    columns = ["prompt", "block", "kind", "text", "fn", "weight"]
    extractions = tables.get("rubric_extractions")
    points = {} if extractions is None or not len(extractions) else {"key_points": pc.sum(extractions["n_points"]).as_py()}
    return {
        **{name: head[name] for name in ("title", "test_hash", "n_prompts", "n_criteria", "models")},
        "findings": findings,
        "criteria": tables["rubric_criteria"].select(columns).slice(0, 8),
        **points,
    }


def _list_dropped_parts(_: Inputs, rows: pa.Table) -> Iterator[str]:
    for row in rows.to_pylist():
        if is_left_out_for(row["level"], row["code"]):
            yield f"{row['place']}: {row['code']}"


RUBRIC_BLUEPRINTS_STAGE = Stage(
    "rubric_blueprints",
    """The contents of a blueprint's file: one row with its title, tags, models and the hash of its test.

    The stage also writes the tables `rubric_prompts` (what models are asked), `rubric_criteria` (what responses are judged by) and
    `rubric_findings` (faults and notes, with place and remedy). A file with errors fails its partition, unless it was added with
    `--skip-broken`, which leaves the broken parts out and counts them. With `extract_points` a model lists the key points of ideal answers
    without criteria (`rubric_extractions`), and these become criteria; otherwise the stage makes no requests.""",
    plan_blueprint,
    after=(rubric_files.key.to_user_string(),),
    settings=RUBRIC_STAGE_SETTINGS["rubric_blueprints"],
    version="2",
    asks=True,
    checks=(
        make_uniqueness_check("rubric_prompts", ("prompt",)),
        make_uniqueness_check("rubric_criteria", RUBRIC_POINT),
        Check(
            "rubric_parts_are_usable",
            "Warns of blueprints with broken parts that were left out (`--skip-broken`).",
            "rubric_findings",
            ("level", "code", "place"),
            _list_dropped_parts,
        ),
    ),
    versioned_tables=("rubric_prompts", "rubric_criteria", "rubric_findings"),
    metadata=_blueprint_metadata,
    extra_tables=("rubric_prompts", "rubric_criteria", "rubric_findings", "rubric_extractions"),
    replies=Replies(usual_tokens=250, name_suffix=FOR_KEY_POINTS),
    verb="ingest",
)


def embed_texts(inputs: Inputs, settings: RubricSettings) -> Tables:
    """Return the stored vectors, and new ones for other texts. Raises GatewayError if no text can be embedded."""
    spec = choose_embedder(settings.embedder, inputs.models)
    embedder = identify_embedder(spec)
    # Where embedding is free, the matrix of similarities also has responses to prompts without an ideal answer.
    texts = select_texts_to_embed(inputs.read("rubric_responses"), inputs.read("rubric_prompts"), every_prompt=spec.is_local)
    rows = inputs.earlier("rubric_embeddings")
    owners = zip(rows["embedder"].to_pylist(), rows["text_hash"].to_pylist(), strict=True)
    stored_hashes = {text_hash for owner, text_hash in owners if owner == embedder}
    missing = [text for text_hash, text in texts.items() if text_hash not in stored_hashes]
    inputs.describe(embedder=embedder, texts=len(texts))
    result: EmbeddingResult = inputs.embed(missing, spec, len(texts) - len(missing))
    return {"rubric_embeddings": _add_vectors(inputs, rows, result) if missing else rows}


def _add_vectors(inputs: Inputs, rows: pa.Table, batch: EmbeddingResult) -> pa.Table:
    vectors = batch.vectors
    new = vectors.add_column(0, RUBRIC_EMBEDDINGS.field("blueprint"), pa.repeat(inputs.key, len(vectors)))
    first = [failure.message for failure in batch.failures.values()][:5]
    inputs.describe(n_embedded=len(vectors), failed=len(batch.failures), first_failures=first, cost_usd=batch.usage.cost_usd)
    sort_keys = [("embedder", "ascending"), ("text_hash", "ascending")]
    return pa.concat_tables([rows, new.cast(RUBRIC_EMBEDDINGS)]).sort_by(sort_keys)


RUBRIC_EMBEDDINGS_STAGE = Stage(
    "rubric_embeddings",
    """Vectors of ideal answers and responses: one row per text and embedder, however many responses have that text.

    A text is embedded once, for all snapshots. A text that is longer than the embedder's window is embedded in windows, not cut. If no text
    can be embedded, the partition fails, so that no similarity is published as 0.""",
    embed_texts,
    after=("rubric_responses",),
    settings=RUBRIC_STAGE_SETTINGS["rubric_embeddings"],
    is_exclusive=True,
    verb="embed",
)


def score_points(inputs: Inputs, settings: RubricSettings) -> Tables:
    """Score how far each response meets each criterion."""
    prepare = inputs.enter("functions", lambda: evaluating(prepare_function))
    responses, criteria = inputs.read("rubric_responses"), inputs.read("rubric_criteria")
    judgements = inputs.rows("rubric_judgements")
    if settings.no_own_judge:
        judgements = remove_own_judges(judgements)
    rows = build_point_rows(responses, criteria, judgements, prepare)
    if settings.with_labels:
        rows = apply_labels(rows, responses, criteria, inputs.read("rubric_prompts"), inputs.rows("rubric_labels"))
    return {"rubric_points": rows}


def _compute_mean_points(tables: Tables) -> Mapping[str, Any]:
    rows = tables["rubric_points"]
    mean = pc.mean(rows["score"]).as_py()
    counts = {name: int(pc.sum(pc.cast(rows[name], pa.int64())).as_py() or 0) for name in ("partial", "labelled")}
    return {"scored": len(rows) - rows["score"].null_count, **counts, **({} if mean is None else {"mean": mean})}


def _find_impossible_points(_: Inputs, rows: pa.Table) -> Iterator[str]:
    wrong = pc.or_(pc.less(rows["score"], 0), pc.greater(rows["score"], 1))
    silent = pc.and_(pc.is_null(rows["score"]), pc.is_null(rows["reason"]))
    for row in rows.filter(pc.or_(pc.fill_null(wrong, False), silent)).to_pylist():
        yield f"{row['prompt']} {row['model']}: {row['score']}"


def _report_unscored_points(_: Inputs, rows: pa.Table) -> Iterator[str]:
    n_scored = len(rows) - rows["score"].null_count
    if n_scored < SCORED_POINTS * len(rows):
        yield f"{n_scored:,} of {len(rows):,} points have a score"


RUBRIC_POINTS_STAGE = Stage(
    "rubric_points",
    """How far each criterion is met: one row per (response, criterion), 0 to 1, inverted for should_not.

    The point of a criterion in words is the mean over the judges that answered; if some did not, `low` and `high` are its bounds for any
    missing judgement. Functions are computed here, scripts in a separate process. What cannot be scored is null with a reason, never 0. With
    `with_labels` a person's label replaces the judges' score (`labelled`, `judge_score`). This stage makes no requests.""",
    score_points,
    after=("rubric_judgements",),
    settings=RUBRIC_STAGE_SETTINGS["rubric_points"],
    version="2",
    checks=(
        make_uniqueness_check("rubric_points", (*RUBRIC_RESPONSE, *RUBRIC_POINT[1:], "snapshot")),
        Check(
            "rubric_points_have_reasons",
            "A score is in 0 to 1, and a point without a score has a reason.",
            "rubric_points",
            ("prompt", "model", "score", "reason"),
            _find_impossible_points,
            blocking=True,
        ),
        Check(
            "rubric_cells_are_complete",
            "Warns of blueprints with scores for fewer than 90 % of the points.",
            "rubric_points",
            ("score",),
            _report_unscored_points,
        ),
    ),
    preview=("prompt", "model", "block", "kind", "score", "n_answered", "n_judges", "reason"),
    counted_columns=("reason",),
    metadata=_compute_mean_points,
    verb="points",
)

RUBRIC_STAGES = (
    RUBRIC_BLUEPRINTS_STAGE,
    RUBRIC_RESPONSES_STAGE,
    RUBRIC_JUDGEMENTS_STAGE,
    RUBRIC_EMBEDDINGS_STAGE,
    RUBRIC_POINTS_STAGE,
    RUBRIC_SCORES_STAGE,
    RUBRIC_SUMMARIES_STAGE,
)
rubric_stage_assets = stage_assets(FAMILY_BY_NAME["rubric"], RUBRIC_STAGES)
