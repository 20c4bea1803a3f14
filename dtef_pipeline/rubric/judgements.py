"""The requests to judges about the responses of a blueprint, the rows of their judgements, and the points of responses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import Models, resolve_known_selector
from dtef_pipeline.asking.request import Request, Response
from dtef_pipeline.judging.consensus import CLASS_SCALES, CONSENSUS_COLUMNS, USUAL_SCALE, compute_consensus
from dtef_pipeline.judging.judgement import build_first_request, build_next_request, resolve_judgement
from dtef_pipeline.judging.judges import JudgeConfig, default_judges, parse_judges
from dtef_pipeline.judging.prompts import HOLISTIC, Case, Turn, list_order
from dtef_pipeline.rubric.blueprint.model import SHOULD_NOT, TEXT_KIND
from dtef_pipeline.rubric.conversations import OK, sum_response_usage
from dtef_pipeline.rubric.functions import FunctionScore, ReadyFunction
from dtef_pipeline.rubric.levels import CRITERION_KEYS, RESPONSE_KEYS
from dtef_pipeline.rubric.tables import RUBRIC_JUDGEMENTS, RUBRIC_POINTS
from dtef_pipeline.text.plain import strip_thinking
from dtef_pipeline.text.well_formed import replace_surrogates

_RESPONSE_KEYS = ("prompt", "model", "model_variant", "temperature", "system_index", "draw", "snapshot")


@dataclass(slots=True)
class JudgingEpisode:
    """An episode that yields one judgement."""

    response: Mapping[str, Any]
    """The columns that name the judged response."""
    criterion: Mapping[str, Any]
    """The row of `rubric_criteria`."""
    case: Case
    judge: JudgeConfig
    draw: int
    _first_request: Request | None = None

    def next(self, history: Sequence[Response]) -> Request | None:
        """Return the first request, then one for a readable reply if needed, or None at the end."""
        if self._first_request is None:
            self._first_request = build_first_request(self.case, self.judge, self.draw, self.response["snapshot"])
        return build_next_request(self._first_request, history, self.judge.scale) if history else self._first_request


def make_judgement_stand_in(episode: JudgingEpisode, _: Request, text: str) -> str:
    """Return a readable reply with the text as its reflection."""
    middle = list(episode.judge.scale.numbers)[episode.judge.scale.size // 2]
    return f"<reflection>{text}</reflection>\n<classification>{middle}</classification>"


def choose_judges(
    options: Sequence[str], file_judges: Sequence[str], models: Models, scale: int = USUAL_SCALE
) -> tuple[JudgeConfig, ...]:
    """Return the judges of a blueprint: `options`, or else `file_judges`, or else the default judges.

    `options` and `file_judges`: each `APPROACH=MODEL`; a litellm string selects the model of the models file with that string, if any. `scale`:
    number of classes to choose from, 5 or 10. Raises ConfigError if there is no judge.
    """
    parts = [selector.partition("=") for selector in options or file_judges]
    selectors = [f"{approach}{sign}{resolve_known_selector(model, models)}" for approach, sign, model in parts]
    judges = parse_judges(selectors, models) if selectors else default_judges(models)
    return tuple(replace(judge, scale=CLASS_SCALES[scale]) for judge in judges)


def count_judged_criteria(responses: pa.Table, criteria: pa.Table) -> int:
    """Count the judgements by one judge in one draw: one per criterion in words and response with a text.

    Tables: `rubric_responses` with `prompt` and `status`, `rubric_criteria` with `prompt` and `kind`, of one blueprint.
    """
    criterion_counts = Counter(criteria.filter(pc.equal(criteria["kind"], TEXT_KIND))["prompt"].to_pylist())
    response_counts = Counter(responses.filter(pc.equal(responses["status"], OK))["prompt"].to_pylist())
    return sum(times * criterion_counts[prompt] for prompt, times in response_counts.items())


def iterate_judgings(
    responses: pa.Table, criteria: pa.Table, prompts: pa.Table, judges: Sequence[JudgeConfig], draws: int
) -> Iterator[JudgingEpisode]:
    """Yield the judgements of all responses with a text: each criterion in words by each judge, `draws` times.

    Tables: `rubric_responses`, `rubric_criteria` and `rubric_prompts` of one blueprint.
    """
    turns = {
        row["prompt"]: tuple(Turn(message["role"], message["text"]) for message in row["messages"])
        for row in prompts.select(["prompt", "messages"]).to_pylist()
    }
    by_prompt: dict[str, list[dict[str, Any]]] = {}
    for row in criteria.filter(pc.equal(criteria["kind"], TEXT_KIND)).to_pylist():
        by_prompt.setdefault(row["prompt"], []).append(row)
    answers = responses.filter(pc.equal(responses["status"], OK))
    texts = answers["text"].to_pylist()
    for text, named in zip(texts, answers.select(list(_RESPONSE_KEYS)).to_pylist(), strict=True):
        prompt_criteria = by_prompt.get(named["prompt"], [])
        criterion_texts = tuple(row["text"] for row in prompt_criteria)
        for row in prompt_criteria:
            case = Case(text, row["text"], turns[named["prompt"]], criterion_texts)
            for judge in judges:
                for draw in range(draws):
                    yield JudgingEpisode(named, row, case, judge, draw)


def build_rubric_judgement_rows(
    blueprint: str, episodes: Sequence[JudgingEpisode], outcomes: Sequence[EpisodeResult]
) -> pa.Table:
    """Return the rows of `rubric_judgements`, in the order of the episodes."""
    rows = [
        {
            "blueprint": blueprint,
            **episode.response,
            **{name: episode.criterion[name] for name in ("block", "path", "position", "criterion_id")},
            **read_judgement(episode, outcome),
        }
        for episode, outcome in zip(episodes, outcomes, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=RUBRIC_JUDGEMENTS)


def read_judgement(episode: JudgingEpisode, outcome: EpisodeResult) -> dict[str, Any]:
    """Return the columns of `rubric_judgements` on the judge, its judgement and the calls."""
    case, judge = episode.case, episode.judge
    judgement = resolve_judgement(outcome.outcomes, judge.scale)
    return {
        "judge": judge.name,
        "approach": judge.approach,
        "judge_model": judge.model.name,
        "judge_variant": judge.model.variant,
        "judge_draw": episode.draw,
        "scale": judge.scale.size,
        "class": judgement.name,
        "score": judgement.score,
        "reason": judgement.reason,
        "reflection": judgement.reflection,
        "attempts": judgement.attempts,
        "list_order": list_order(case.criterion, case.criteria) if judge.approach == HOLISTIC else None,
        "raw": list(judgement.raws),
        "request_keys": list(judgement.request_keys),
        **sum_response_usage(outcome.responses),
        "error": outcome.failure.message if outcome.failure else None,
    }


NOT_JUDGED = "not judged"
"""Why a point without judgements has no score: the judging stage has not run since the response or the criterion was added."""
_KEY = (*RESPONSE_KEYS, *CRITERION_KEYS)
_OF_CRITERIA = ("criterion_id", "kind", "weight", "source")
Prepare = Callable[[str, Any], ReadyFunction]
"""Makes a function ready for any number of responses, given its name and its argument."""


def build_point_rows(responses: pa.Table, criteria: pa.Table, judgements: pa.Table, prepare: Prepare) -> pa.Table:
    """Return the rows of `rubric_points`: one per criterion of each response that has a text, sorted by the keys of both.

    Tables: `rubric_responses`, `rubric_criteria` and `rubric_judgements` of one blueprint and snapshot. Judgements of deleted criteria or
    responses are ignored.
    """
    answers = responses.filter(pc.equal(responses["status"], OK))
    named_criteria = criteria.select(["prompt", *CRITERION_KEYS, *_OF_CRITERIA])
    plan = answers.select(list(RESPONSE_KEYS)).join(named_criteria, "prompt", join_type="inner")
    judged_points = _build_judged_points(plan.filter(pc.equal(plan["kind"], TEXT_KIND)), judgements)
    function_points = _compute_function_points(answers, criteria, prepare)
    rows = pa.concat_tables([judged_points, function_points])
    place = ["prompt", "model", "model_variant", "temperature", "system_index", "draw", "block", "path", "position"]
    return rows.take(pc.sort_indices(rows.select(place), [(name, "ascending") for name in place]))


def _build_judged_points(plan: pa.Table, judgements: pa.Table) -> pa.Table:
    is_inverted = pc.equal(judgements["block"], SHOULD_NOT)
    consensus = compute_consensus(judgements.append_column("inverted", is_inverted), [*_KEY, "criterion_id"])
    # A join takes no null for a value; paths and temperatures may be null.
    left, right = _add_key_code(plan), _add_key_code(consensus)
    names = [column.name for column in CONSENSUS_COLUMNS]
    index = pc.index_in(left["code"], value_set=right["code"].combine_chunks())
    matches = right.select(names).take(index)
    missing = pc.is_null(index)
    columns = {name: matches[name] for name in names}
    columns["reason"] = pc.if_else(missing, NOT_JUDGED, matches["reason"])
    columns["low"], columns["high"] = pc.coalesce(matches["low"], 0.0), pc.coalesce(matches["high"], 1.0)
    columns["inverted"] = pc.equal(plan["block"], SHOULD_NOT)
    columns["partial"] = pc.coalesce(matches["partial"], False)
    columns["labelled"] = pa.repeat(False, len(plan))
    for name in ("n_judges", "n_answered"):
        columns[name] = pc.coalesce(matches[name], 0)
    all_columns = {name: plan[name] for name in plan.column_names} | columns
    empty = pa.nulls(len(plan))
    return pa.table([all_columns.get(field.name, empty).cast(field.type) for field in RUBRIC_POINTS], schema=RUBRIC_POINTS)


def _compute_function_points(answers: pa.Table, criteria: pa.Table, prepare: Prepare) -> pa.Table:
    by_prompt: dict[str, list[tuple[dict[str, Any], ReadyFunction]]] = {}
    for row in criteria.filter(pc.not_equal(criteria["kind"], TEXT_KIND)).to_pylist():
        argument = None if row["args"] is None else json.loads(row["args"])
        by_prompt.setdefault(row["prompt"], []).append((row, prepare(row["fn"], argument)))
    texts = answers.filter(pc.is_in(answers["prompt"], pa.array(list(by_prompt), pa.string())))
    keys = texts.select(list(RESPONSE_KEYS)).to_pylist()
    rows = []
    for key, text, transcript in zip(keys, texts["text"].to_pylist(), texts["transcript"].to_pylist(), strict=True):
        messages = [{"role": message["role"], "content": _strip_message_thinking(message)} for message in transcript]
        context = {"messages": messages, "modelId": key["model"]}
        rows += [{**key, **_make_point_row(row, ready(text, context))} for row, ready in by_prompt[key["prompt"]]]
    return pa.Table.from_pylist(rows, schema=RUBRIC_POINTS)


def _strip_message_thinking(message: Mapping[str, str]) -> str:
    return strip_thinking(message["text"]).strip() if message["role"] == "assistant" else message["text"]


def _make_point_row(criterion: Mapping[str, Any], result: FunctionScore) -> dict[str, Any]:
    is_inverted = criterion["block"] == SHOULD_NOT
    score = result.score if result.score is None or not is_inverted else 1 - result.score
    low, high = (score, score) if score is not None else (0.0, 1.0)
    return {
        **{name: criterion[name] for name in (*CRITERION_KEYS, *_OF_CRITERIA)},
        "score": score,
        "low": low,
        "high": high,
        "n_judges": 0,
        "n_answered": 0,
        "partial": False,
        "inverted": is_inverted,
        "reason": result.reason,
        "explanation": replace_surrogates(result.explanation),
        "labelled": False,
    }


def _add_key_code(rows: pa.Table) -> pa.Table:
    names: Sequence[str] = (*_KEY, "criterion_id")
    texts = [pc.coalesce(pc.cast(rows[name], pa.string()), "\x00") for name in names]
    return rows.append_column("code", pc.binary_join_element_wise(*texts, "\x1f"))
