"""The requests for a run's segments, their rows of `predictions`, and the rows of baselines, which need no request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from itertools import islice
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.models import COMPUTED, Models, ModelSpec
from dtef_pipeline.asking.request import Failure, parse_variant
from dtef_pipeline.asking.request_list import (
    PROMPT_COLUMNS,
    RequestList,
    SharedResponse,
    count_distinct_requests,
    same_texts,
    sources,
)
from dtef_pipeline.errors import DtefError
from dtef_pipeline.family.stage import Forecast
from dtef_pipeline.identity import digest, request_keys, split_partition_key
from dtef_pipeline.keys import MODEL
from dtef_pipeline.survey.baselines.baselines import (
    COLUMNS,
    NEIGHBOUR_BASELINES,
    PREVIOUS_COLUMNS,
    Previous,
    RoundAnswers,
    load_previous_answers,
)
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL, PREVIOUS_ROUND, UNIFORM
from dtef_pipeline.survey.changes import SAME_SURVEY
from dtef_pipeline.survey.identity import SPACE, make_round_order
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.predictions import (
    CALLS,
    build_baseline_rows,
    has_duplicates,
    list_options_in_prompt_order,
    select_prompts,
    usual_reply_tokens,
)
from dtef_pipeline.survey.question_draw import DRAW_ORDERS
from dtef_pipeline.survey.settings import SurveySettings
from dtef_pipeline.survey.tables import PREDICTIONS
from resources.responses.store import ModelInStore
from resources.warehouse import Warehouse

Stored = Callable[[Sequence[str]], pa.Table]
"""The stored responses to request keys."""
Read = Callable[[str, str, Sequence[str] | None], pa.Table]
"""Returns the rows of a table, given its name, the partition and the columns; None: all."""
InStore = Callable[[str], Iterable[ModelInStore]]
"""The models with stored responses in a snapshot."""

_OVERVIEW = (*KEYS.cell, "prompt_id", "reading")
_DRAW_COLUMNS = (KEYS.item, *DRAW_ORDERS)
# The columns of `survey_responses` that choose the prompts; baselines need more.
_CHOSEN_BY = (*_DRAW_COLUMNS, "duplicate_of")
# Identifies a prompt's subject in every condition: limits select by it.
_SHARED_BY_CONDITIONS = (*KEYS.pair, "context_level")


def resolve_asked_models(settings: SurveySettings, models: Models) -> tuple[ModelSpec, ...]:
    """Return the models of the settings, plus two reference baselines unless the run rebuilds from the store without named models.

    Raises ConfigError for an unknown model.
    """
    references = [] if settings.from_store and not settings.models else [UNIFORM, POPULATION_MARGINAL]
    return models.resolve([*references, *settings.models])


def select_language_models(models: Iterable[ModelSpec]) -> tuple[ModelSpec, ...]:
    """Return the models that need requests; the others are computed."""
    return tuple(model for model in models if not model.is_computed)


class Prompts(NamedTuple):
    """The prompts of a partition."""

    survey: pa.Table
    """Its `survey_responses`; without baselines only the columns that choose the prompts."""
    blueprints: pa.Table
    """All blueprints, with all or only the requested columns."""
    chosen: pa.Table
    """The blueprints that the settings select."""


class Predictor:
    """State shared by the partitions of a run: models, the prompts of models with limits, and answers of other rounds and segments."""

    def __init__(
        self,
        warehouse: Warehouse,
        settings: SurveySettings,
        models: Sequence[ModelSpec],
        lookup: Stored,
        model_lookup: InStore = lambda snapshot: (),
        keys: Sequence[str] = (),
        read: Read | None = None,
        *,
        is_dry: bool = False,
    ) -> None:
        """`keys`: the partitions of the run, over which limits apply; `model_lookup`: used if tables cannot be read.

        `read`: reads the tables made so far, by default from the warehouse; `is_dry`: an estimate, which shows no progress.
        """
        self.warehouse, self.settings, self.models = warehouse, settings, models
        self.language_models = select_language_models(models)
        self._read_table = read
        self._stored, self._in_store, self._keys = lookup, cache(model_lookup), keys
        self._limited: dict[str, pa.Array] = {}
        self._rounds: dict[str, RoundAnswers] = {}
        self._previous = PreviousRound(self.warehouse)
        self.expected: dict[str, int] = {}
        """Requests of the whole run by model name, answered before or not."""
        self.sizes: dict[str, int] = {}
        """The same by partition."""
        if settings.limits or (self.language_models and not is_dry):
            self._prepare_limits()

    def _prepare_limits(self) -> None:
        """Choose the prompts of limited models, and count requests. Skips partitions that cannot be read.

        A limited model gets the prompts with the smallest hashes, so always the same ones, and about the same questions in each condition,
        because conditions are compared on what they share.
        """
        tables: dict[str, pa.Table] = {}
        twins: dict[str, tuple[str, ...]] = {}
        for key in self._keys:
            with suppress(DtefError):
                prompts = self.prompts(key, _OVERVIEW)
                tables[key] = prompts.chosen
                if has_duplicates(prompts.survey):
                    twins |= same_texts(self._read("blueprints", key, PROMPT_COLUMNS), list_options_in_prompt_order)
        if not tables:
            return
        chosen_prompts = pa.concat_tables(tables.values())
        self._limited = choose_limited_prompts(chosen_prompts, self.settings.limits)
        for model in self.language_models:
            prompt_ids = set(self._select_prompts(chosen_prompts, model)["prompt_id"].to_pylist())
            shared = self._find_shared_responses(prompt_ids, model, twins)
            if n_requests := count_distinct_requests(prompt_ids, self.settings.draws, shared):
                self.expected[model.name] = self.expected.get(model.name, 0) + n_requests
        self.sizes = {key: self.size(table) for key, table in tables.items()}

    def size(self, prompts: pa.Table) -> int:
        """Return the number of language models' rows for these prompts."""
        return sum(len(self._select_prompts(prompts, model)) for model in self.language_models) * self.settings.draws

    def _find_shared_responses(
        self, prompt_ids: Iterable[str], model: ModelSpec, twins: Mapping[str, Sequence[str]]
    ) -> dict[str, SharedResponse]:
        return sources(prompt_ids, twins, model.variant, self.settings.draws, self.settings.snapshot, self._find_known_keys)

    def _find_known_keys(self, keys: Sequence[str]) -> set[str]:
        return set(self._stored(keys)["request_key"].to_pylist())

    def asks(self, prompts: Prompts) -> tuple[pa.Table | None, RequestList]:
        """Return the rows of language models whose responses are requested or replayed, or None without any, and their requests."""
        tables, requests = [], []
        twins = same_texts(prompts.blueprints, list_options_in_prompt_order) if has_duplicates(prompts.survey) else {}
        for model in self.language_models:
            if not len(selection := self._select_prompts(prompts.chosen, model)):
                continue
            reuse = self._find_shared_responses(selection["prompt_id"].to_pylist(), model, twins) if twins else {}
            rows, model_requests = CALLS.plan_calls(selection, model, self.settings.draws, self.settings.snapshot, reuse)
            tables.append(rows)
            requests.append(model_requests)
        return pa.concat_tables(tables) if tables else None, RequestList(requests)

    def compute_baselines(self, key: str, prompts: Prompts) -> list[pa.Table]:
        """Return the rows of baselines, which need no request."""
        baselines = [model for model in self.models if model.is_computed]
        draws = self.settings.draws
        return [
            self._compute_baseline(key, self._select_prompts(prompts.chosen, baseline), prompts.survey, baseline, draws)
            for baseline in baselines
        ]

    def _compute_baseline(self, key: str, prompts: pa.Table, survey: pa.Table, model: ModelSpec, draws: int) -> pa.Table:
        previous = self._previous.answers(*split_partition_key(key)) if model.model == PREVIOUS_ROUND else {}
        answers = self._answers(key) if model.model in NEIGHBOUR_BASELINES else None
        return build_baseline_rows(prompts, survey, model, draws, self.settings.snapshot, previous, answers)

    def _select_prompts(self, prompts: pa.Table, model: ModelSpec) -> pa.Table:
        """Return the model's prompts, up to its limit."""
        if model.name in self._limited:
            prompts = prompts.filter(pc.is_in(prompts["prompt_id"], self._limited[model.name]))
        return prompts

    def merge_rows(self, key: str, new: pa.Table, blueprints: pa.Table) -> tuple[pa.Table, int]:
        """Return the partition's predictions in this snapshot, and the number of removed rows.

        Predictions are new rows and valid earlier ones. Rows are removed if their prompt has changed; their responses stay in the response
        store.
        """
        partition = {**SPACE.levels(key), "snapshot": self.settings.snapshot}
        existing = self.warehouse.read_earlier("predictions", **partition)
        if existing is None or self.settings.from_store:
            rows = self.warehouse.rows("scores", columns=["prompt_id"], **partition) if existing is None else existing
            restored_rows = self._restore(key, blueprints, rows["prompt_id"].to_pylist())
            existing = restored_rows if existing is None else CALLS.merge_rows(existing, restored_rows, blueprints)
        stands = pc.is_in(existing["prompt_id"], blueprints["prompt_id"].combine_chunks())
        n_superseded = pc.sum(pc.cast(pc.invert(stands), pa.int64())).as_py() or 0
        return CALLS.merge_rows(existing, new, blueprints), n_superseded

    def _restore(self, key: str, prompts: pa.Table, known_prompts: Sequence[str]) -> pa.Table:
        """Return the rows from the response store: of all models with responses, and of the baselines among the round's scores.

        `known_prompts`: prompt ids of the partition's other rows. Baselines answer these and those with a stored response, or all prompts
        if there are neither.
        """
        survey, snapshot = self._read("survey_responses", key), self.settings.snapshot
        twins = same_texts(prompts, list_options_in_prompt_order) if has_duplicates(survey) else {}
        tables = [PREDICTIONS.empty_table()]
        for entry in self._in_store(snapshot):
            if (model := parse_variant(entry.name, entry.variant)) is None:
                self.warehouse.warn(f"{key}: not restored, because this is not a model string: {entry.variant}")
                continue
            batch = self._choose_smallest_sample(prompts, survey, model) if twins else prompts
            reuse = sources(batch["prompt_id"].to_pylist(), twins, model.variant, entry.draws, snapshot, self._find_known_keys)
            rows, requests = CALLS.plan_calls(batch, model, entry.draws, snapshot, reuse)
            rows = CALLS.settle_rows(rows, self._stored(requests.keys), {})
            tables.append(rows.filter(pc.not_equal(rows["call_status"], "error")))
        if prompt_ids := {*known_prompts, *pa.concat_tables(tables)["prompt_id"].to_pylist()}:
            prompts = prompts.filter(pc.is_in(prompts["prompt_id"], pa.array(prompt_ids, pa.string())))
        baselines = self._find_scored_baselines(split_partition_key(key)[0])
        return pa.concat_tables([*tables, *(self._compute_baseline(key, prompts, survey, *baseline) for baseline in baselines)])

    def _choose_smallest_sample(self, prompts: pa.Table, survey: pa.Table, model: ModelSpec) -> pa.Table:
        """Return the prompts of the smallest sample with all that have a response; a duplicate's response also serves other prompts."""
        keys = request_keys(prompts["prompt_id"].to_pylist(), model.variant, 0, self.settings.snapshot)
        mask = pc.is_in(pa.array(keys, pa.string()), pa.array(self._find_known_keys(keys), pa.string()))
        items, bounds = prompts.filter(mask)[KEYS.item].combine_chunks(), pc.scalar(True)
        for order in DRAW_ORDERS:
            last = pc.max(survey.filter(pc.is_in(survey[KEYS.item], items))[order])
            bounds = bounds & pc.less_equal(pc.field(order), last)
        return prompts.filter(pc.is_in(prompts[KEYS.item], survey.filter(bounds)[KEYS.item].combine_chunks()))

    def _find_scored_baselines(self, round_id: str) -> list[tuple[ModelSpec, int]]:
        """Return the scored baselines of the round and snapshot, else the two references, with draws; no response store has them."""
        rows = self.warehouse.rows("scores", columns=[*MODEL, "snapshot", "draw"], round=round_id)
        has_snapshot = pc.equal(rows["snapshot"], self.settings.snapshot)
        rows = rows.filter(pc.and_(has_snapshot, pc.starts_with(rows["model_variant"], COMPUTED)))
        last = rows.group_by(list(MODEL)).aggregate([("draw", "max")]).select([*MODEL, "draw_max"])
        variants = [*zip(*last.to_pydict().values(), strict=True)] or [
            (name, name, 0) for name in (UNIFORM, POPULATION_MARGINAL)
        ]
        baselines = [(parse_variant(name, variant), draw + 1) for name, variant, draw in variants]
        return [(spec, draws) for spec, draws in baselines if spec is not None]

    def prompts(self, key: str, columns: Sequence[str] | None = None) -> Prompts:
        """Return the partition's prompts. `columns`: those of the blueprints, if no baseline is computed; by default all.

        Raises ConfigError for a condition or level without prompts.
        """
        settings = self.settings
        is_computing = columns is None and any(model.is_computed for model in self.models)
        survey = self._read("survey_responses", key, None if is_computing else _CHOSEN_BY)
        blueprints = self._read("blueprints", key, columns)
        selection = select_prompts(
            blueprints, survey, conditions=settings.conditions, context_levels=settings.context_levels, sample=settings.sample
        )
        return Prompts(survey, blueprints, selection)

    def _read(self, table: str, key: str, columns: Sequence[str] | None = None) -> pa.Table:
        if self._read_table is not None:
            return self._read_table(table, key, columns)
        round_id, segment = split_partition_key(key)
        return self.warehouse.read(table, columns=columns, round=round_id, segment=segment)

    def _answers(self, key: str) -> RoundAnswers:
        """Return the answers of the segments of the partition's round, read once per run."""
        round_id, _ = split_partition_key(key)
        if round_id not in self._rounds:
            rows = self.warehouse.rows("survey_responses", columns=COLUMNS, round=round_id)
            self._rounds[round_id] = RoundAnswers.build_arrays(rows)
        return self._rounds[round_id]


def choose_limited_prompts(prompts: pa.Table, limits: Mapping[str, int]) -> dict[str, pa.Array]:
    """Return the prompt ids of models with limits, by model name."""
    if not limits:
        return {}
    rows = [row for row in prompts.to_pylist() if not (row["reading"] or {}).get("place")]
    rows.sort(key=lambda row: digest("limit", *(row[name] for name in _SHARED_BY_CONDITIONS)))
    condition_prompts: dict[str, dict[str, None]] = {}
    for row in rows:
        condition_prompts.setdefault(row["condition"], {})[row["prompt_id"]] = None
    return {
        name: pa.array([prompt for group in condition_prompts.values() for prompt in islice(group, limit)], pa.string())
        for name, limit in limits.items()
    }


class SegmentPredictions:
    """The requests of one partition, for `CallPlan`. It holds the prompts from the requests until the rows are merged."""

    def __init__(self, predictor: Predictor, key: str) -> None:
        self.predictor, self.key = predictor, key
        self.superseded = 0
        """Earlier rows that went, because their prompt has changed since."""
        self._asks: tuple[pa.Table | None, RequestList] = None, RequestList()

    @cached_property
    def prompts(self) -> Prompts:
        return self.predictor.prompts(self.key)

    def requests(self) -> RequestList:
        if self.predictor.language_models:
            self._asks = self.predictor.asks(self.prompts)
        return self._asks[1]

    def keys(self) -> list[str]:
        return self._asks[1].keys

    def foresee(self) -> dict[str, Forecast]:
        """Return the assumed replies to the requests."""
        rows, _ = self._asks
        if rows is None:
            return {}
        usual, is_single = usual_reply_tokens(self.prompts.chosen), len(self.predictor.settings.conditions) == 1
        columns = (rows[name].to_pylist() for name in ("request_key", "condition", "prompt_id"))
        return {
            key: Forecast(f" {condition}", usual[condition, prompt], "" if is_single else f", {condition}")
            for key, condition, prompt in zip(*columns, strict=True)
        }

    def rows(self, responses: pa.Table, failures: Mapping[str, Failure]) -> Mapping[str, pa.Table]:
        calls, _ = self._asks
        tables = self.predictor.compute_baselines(self.key, self.prompts)
        if calls is not None:
            tables.append(CALLS.settle_rows(calls, responses, failures))
        return {"predictions": pa.concat_tables(tables).combine_chunks() if tables else PREDICTIONS.empty_table()}

    def merge_with_stored(self, new: Mapping[str, pa.Table]) -> Mapping[str, pa.Table]:
        rows, self.superseded = self.predictor.merge_rows(self.key, new["predictions"], self.prompts.blueprints)
        self._asks = None, RequestList()
        del self.prompts
        return {"predictions": rows}


class PreviousRound:
    """Each segment's answers in earlier rounds. A run over many rounds reads each round once per segment."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._read: dict[tuple[str, str], tuple[list[str], Previous]] = {}
        """By (series, segment): the rounds read so far, and the latest answers in them."""

    def answers(self, round_id: str, segment: str) -> Previous:
        """Return the segment's latest answer to each question in earlier rounds of the round's series."""
        place = make_round_order(round_id)
        series = place[0]
        earlier = [name for name in self._rounds if make_round_order(name)[0] == series and make_round_order(name) < place]
        # A copy of the round would predict it from itself.
        earlier = [name for name in earlier if {round_id, name} not in self._copies]
        read, answers = self._read.get((series, segment), ([], {}))
        if earlier[: len(read)] != read:  # the run returned to an earlier round
            read, answers = [], {}
        for previous in earlier[len(read) :]:
            rows = self._warehouse.rows("survey_responses", columns=PREVIOUS_COLUMNS, round=previous, segment=segment)
            answers = {**answers, **load_previous_answers(rows, round_id)}
        self._read[series, segment] = (earlier, answers)
        return answers

    @cached_property
    def _rounds(self) -> list[str]:
        return self._warehouse.values("survey_responses", "round")

    @cached_property
    def _copies(self) -> list[set[str]]:
        """Pairs of rounds that ingest found to be the same survey."""
        findings = self._warehouse.rows("survey_findings", columns=["round", "code", "items"]).to_pylist()
        return [{row["round"], copy_id} for row in findings if row["code"] == SAME_SURVEY for copy_id in row["items"]]
