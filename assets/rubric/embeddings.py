"""Stage 4 of the rubric family: `rubric_embeddings`."""

from typing import Any

import dagster as dg
import pyarrow as pa
from pydantic import Field

from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.files import RUBRIC_BLUEPRINT
from assets.rubric.responses import rubric_responses
from assets.stage.asked import RolesConfig, models_of
from assets.stage.partitions import PartitionRun, stage
from assets.stage.provider_pools import provider_pools
from assets.stage.resources import Store
from assets.stage.shared_gateway import command_of
from assets.stage.versions import content_version
from dtef_pipeline.asking.embeddings import embedder_of
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.rubric.policy import OFFLINE_EMBEDDER
from dtef_pipeline.rubric.score_rows import chosen_embedder, texts_to_embed
from dtef_pipeline.rubric.space import RUBRIC_SPACE
from dtef_pipeline.rubric.tables import RUBRIC_EMBEDDINGS
from resources.gateway.embedder import Embedded, embed
from resources.gateway.progress import OnProgress


class EmbeddingsConfig(RolesConfig):
    """What embeds, and what is embedded."""

    embedder: str = Field(default=OFFLINE_EMBEDDER, description="Model that embeds texts: by name, or as a litellm string.")
    every_prompt: bool | None = Field(
        default=None,
        description="Embed responses to prompts without an ideal answer too, for the matrix of similarities; none: where that is free.",
    )


@dg.asset(
    deps=[rubric_responses],
    **{**stage(RUBRIC_BLUEPRINT, 4, "rubric_embeddings", code_version="1", kinds={"litellm", "parquet"}), **RUBRIC_GROUP},
)
def rubric_embeddings(context: dg.AssetExecutionContext, config: EmbeddingsConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Vectors of ideal answers and responses: one row per text and embedder, however many responses have that text.

    A text is embedded once, whatever the snapshot. One that is longer than the embedder's window is embedded in windows, not cut. Where no
    text at all can be embedded the partition fails, so that no similarity is published as 0.
    """
    run = PartitionRun(context, store)
    spec = chosen_embedder(config.embedder, models_of(store))
    budgets = config.budgets_of([spec])
    command = command_of(context.run)
    with (
        provider_pools(context.instance, context.run, [spec], context.log.info),
        store.open_gateway(context.log.info, {}, config.budget, budgets, command, config.budgets_of_roles) as (
            gateway,
            progress,
            _,
        ),
    ):

        def embedded(texts: list[str], known: int, tell: OnProgress) -> Embedded:
            return embed(texts, spec, gateway, known=known, on_progress=tell)

        for key in run.keys:
            with run.attempt(key), store.writing("rubric_embeddings", [key]):
                run.done(key, *_embed(store, config, spec, key, embedded, progress))
    return run.result()


def _embed(store: Store, config: EmbeddingsConfig, spec: ModelSpec, key: str, embedded: Any, progress: OnProgress) -> Any:
    """The metadata of the partition and the version of its rows."""
    at = RUBRIC_SPACE.levels(key)
    house, embedder = store.warehouse, embedder_of(spec)
    responses = house.read("rubric_responses", **at, snapshot=config.snapshot)
    prompts = house.read("rubric_prompts", **at)
    every = spec.is_local if config.every_prompt is None else config.every_prompt
    wanted = texts_to_embed(responses, prompts, every_prompt=every)
    earlier = house.read_earlier("rubric_embeddings", **at)
    rows = RUBRIC_EMBEDDINGS.empty_table() if earlier is None else earlier
    owners = zip(rows["embedder"].to_pylist(), rows["text_hash"].to_pylist(), strict=True)
    there = {hashed for owner, hashed in owners if owner == embedder}
    missing = [text for hashed, text in wanted.items() if hashed not in there]
    found = embedded(missing, len(wanted) - len(missing), progress) if missing else None
    if found is not None:
        new = found.vectors.add_column(0, RUBRIC_EMBEDDINGS.field("blueprint"), pa.repeat(key, len(found.vectors)))
        rows = pa.concat_tables([rows, new.cast(RUBRIC_EMBEDDINGS)]).sort_by(
            [("embedder", "ascending"), ("text_hash", "ascending")]
        )
    house.write("rubric_embeddings", rows, **at)
    failures = {} if found is None else found.failures
    metadata = {
        "dagster/row_count": len(rows),
        "embedder": embedder,
        "texts": len(wanted),
        "embedded_now": 0 if found is None else len(found.vectors),
        "failed": len(failures),
        **({"cost_usd": found.usage.cost_usd} if found is not None else {}),
        "first_failures": dg.MetadataValue.json([one.message for one in failures.values()][:5]),
    }
    return metadata, content_version(rows)
