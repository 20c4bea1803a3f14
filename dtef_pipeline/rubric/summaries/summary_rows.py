"""The material on a blueprint for an analyst, from the stages' tables, and the rows of its summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import Models, ModelSpec, resolve_known_selector
from dtef_pipeline.asking.request import Failure, Request, Response
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.aggregate import CELL_LEVEL
from dtef_pipeline.rubric.blueprint.model import SHOULD
from dtef_pipeline.rubric.conversations import OK, sum_response_usage
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_GRADES, RUBRIC_SUMMARIES
from dtef_pipeline.rubric.summaries.analyst_report import ReportedPrompt, ReportedResponse, SummaryMaterial, format_markdown
from dtef_pipeline.rubric.summaries.anonymise import Participant
from dtef_pipeline.rubric.summaries.summary import (
    STATUSES_WITHOUT_REQUEST,
    ExecutiveSummary,
    SummaryCase,
    build_further_summary_request,
    build_grades_table,
    build_summaries_table,
    build_summary_request,
    resolve_summary,
)
from dtef_pipeline.rubric.tables import RUBRIC_CELL

ANALYSTS = "analyst"
"""Collection in the models files with the default analysts."""


class MaterialTables(NamedTuple):
    """The tables of one blueprint and snapshot that a summary is built from."""

    blueprints: pa.Table
    """`rubric_blueprints`: its one row."""
    prompts: pa.Table
    criteria: pa.Table
    responses: pa.Table
    scores: pa.Table
    """`rubric_scores`, for coverage and similarity of cells."""


@dataclass(slots=True)
class SummaryEpisode:
    """An episode that yields the summary of one analyst."""

    case: SummaryCase
    analyst: ModelSpec
    _first_request: Request | None = None

    def next(self, history: Sequence[Response]) -> Request | None:
        """Return the first request, then one for missing blocks if needed, or None at the end."""
        if self._first_request is None:
            self._first_request = build_summary_request(self.case, self.analyst)
        return (
            build_further_summary_request(self.case, self._first_request, [r.text for r in history])
            if history
            else self._first_request
        )


def choose_analysts(named: Sequence[str], models: Models) -> tuple[ModelSpec, ...]:
    """Return the analysts in `named`, or else the members of the collection `analyst`, if any.

    `named`: names, collections and litellm strings, which select a model of the models file if one has that string. Raises ConfigError if a
    name is unknown or a model writes no text.
    """
    selectors = list(named) or ([ANALYSTS] if models.collections.get(ANALYSTS) else [])
    specs = models.resolve([resolve_known_selector(selector, models) for selector in selectors]) if selectors else ()
    for spec in specs:
        if spec.is_computed or spec.is_local:
            raise ConfigError(f"analyst {spec.name}: it writes no text; allowed: a language model")
    return tuple(specs)


def map_model_names(responses: pa.Table) -> dict[str, str]:
    """Map each model name in tables to its model string, or to itself if several names share the string."""
    pairs = responses.select(["model", "model_variant"]).group_by(["model", "model_variant"]).aggregate([]).to_pylist()
    strings = {
        row["model"]: _strip_settings(row["model_variant"]) for row in sorted(pairs, key=lambda row: row["model_variant"])
    }
    shared = list(strings.values())
    return {name: string if shared.count(string) == 1 else name for name, string in strings.items()}


def build_summary_material(tables: MaterialTables, snapshot: str) -> SummaryMaterial:
    """Return a blueprint in one snapshot, before names are hidden. Coverage and similarity of a response are those of its cell."""
    (head,) = tables.blueprints.to_pylist()
    named = map_model_names(tables.responses)
    systems = find_shared_systems(tables.prompts)
    strings = {_strip_settings(variant) for variant in pc.unique(tables.responses["model_variant"]).to_pylist()}
    served_models = pc.unique(tables.responses["served_model"]).to_pylist()
    by_prompt = _group_responses(tables._replace(responses=_filter_answering(tables.responses)), named, bool(systems))
    return SummaryMaterial(
        blueprint=head["blueprint"],
        snapshot=snapshot,
        test_hash=head["test_hash"],
        prompts=list_reported_prompts(tables.prompts, tables.criteria, by_prompt),
        systems=systems,
        model_aliases=tuple(sorted({*named, *strings, *(model for model in served_models if model)})),
        names={string: name for name, string in named.items()},
    )


def list_reported_prompts(
    prompts: pa.Table, criteria: pa.Table, by_prompt: Mapping[str, Sequence[ReportedResponse]]
) -> tuple[ReportedPrompt, ...]:
    """Return each prompt for the report, with the responses to it. Tables: `rubric_prompts` and `rubric_criteria` of one blueprint."""
    shows_system = not find_shared_systems(prompts)
    return tuple(
        _make_reported_prompt(row, criteria, by_prompt.get(row["prompt"], ()), shows_system) for row in prompts.to_pylist()
    )


def _filter_answering(responses: pa.Table) -> pa.Table:
    """Return the responses of models with an answer, because others are not graded; all if no model has one."""
    gave = pc.unique(responses.filter(pc.equal(responses["status"], OK))["model"])
    return responses.filter(pc.is_in(responses["model"], gave)) if len(gave) else responses


def build_not_asked_row(blueprint: str, snapshot: str, reason: str, status: str = STATUSES_WITHOUT_REQUEST) -> pa.Table:
    """Return the row of a blueprint without a request to an analyst."""
    row = {"blueprint": blueprint, "snapshot": snapshot, "status": status, "reason": reason}
    return pa.Table.from_pylist([row], schema=RUBRIC_SUMMARIES)


def build_summary_rows(episodes: Sequence[SummaryEpisode], outcomes: Sequence[EpisodeResult]) -> pa.Table:
    """Return the rows of `rubric_summaries` of one case, in the order of its analysts."""
    tables = [RUBRIC_SUMMARIES.empty_table()]
    for episode, outcome in zip(episodes, outcomes, strict=True):
        summary = _resolve_episode_summary(episode, outcome)
        (row,) = build_summaries_table(episode.case, {episode.analyst: summary}).to_pylist()
        row |= {"text": _format_summary_markdown(summary, episode.case.material.names), **sum_response_usage(outcome.responses)}
        tables.append(pa.Table.from_pylist([row], schema=RUBRIC_SUMMARIES))
    return pa.concat_tables(tables)


def build_grade_rows(episodes: Sequence[SummaryEpisode], outcomes: Sequence[EpisodeResult]) -> pa.Table:
    """Return the rows of `rubric_grades` of one case, with the models' names in tables."""
    tables = [RUBRIC_GRADES.empty_table()]
    for episode, outcome in zip(episodes, outcomes, strict=True):
        tables.append(
            build_grades_table(episode.case, {episode.analyst: _resolve_episode_summary(episode, outcome)}).cast(RUBRIC_GRADES)
        )
    return pa.concat_tables(tables)


def _resolve_episode_summary(episode: SummaryEpisode, outcome: EpisodeResult) -> ExecutiveSummary:
    outcomes: list[Response | Failure] = [*outcome.responses, *([outcome.failure] if outcome.failure else [])]
    return resolve_summary(episode.case, outcomes)


_HEADINGS = {
    "key_finding": "Key findings",
    "strength": "Strengths",
    "weakness": "Weaknesses",
    "pattern": "Patterns",
    "topic": "Topics",
}


def _format_summary_markdown(summary: ExecutiveSummary, names: Mapping[str, str]) -> str | None:
    sections = {
        heading: [format_markdown(finding.text, names) for finding in summary.reply.findings if finding.kind == kind]
        for kind, heading in _HEADINGS.items()
    }
    parts = [f"## {heading}\n\n" + "\n".join(f"- {text}" for text in texts) for heading, texts in sections.items() if texts]
    return "\n\n".join(parts) or None


def _strip_settings(variant: str) -> str:
    return variant.partition("[")[0]


def find_shared_systems(prompts: pa.Table) -> tuple[str | None, ...]:
    """Return the system prompts that all prompts share; none if there is no such list of two or more."""
    lists = {tuple(systems) for systems in prompts["systems"].to_pylist()}
    return next(iter(lists)) if len(lists) == 1 and len(next(iter(lists))) > 1 else ()


def _group_responses(tables: MaterialTables, named: Mapping[str, str], has_systems: bool) -> dict[str, list[ReportedResponse]]:
    """Return the responses by prompt. `has_systems`: all prompts share a list of system prompts, whose index identifies the variant."""
    cells = dict(_iterate_cell_rows(tables.scores))
    by_prompt: dict[str, list[ReportedResponse]] = {}
    columns = [*RUBRIC_CELL, "text", "status", "error"]
    for row in tables.responses.select(columns).to_pylist():
        cell = cells.get(tuple(row[name] for name in RUBRIC_CELL), {})
        participant = Participant(named[row["model"]], row["temperature"], row["system_index"] if has_systems else None)
        reasons = ", ".join(name for name, _ in cell.get("reasons") or ())
        by_prompt.setdefault(row["prompt"], []).append(
            ReportedResponse(
                participant,
                row["text"],
                cell.get("coverage"),
                cell.get("similarity"),
                None if row["status"] == OK and cell.get("coverage") is not None else row["error"] or reasons or row["status"],
            )
        )
    return by_prompt


def _iterate_cell_rows(scores: pa.Table) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    rows = scores.filter(pc.equal(scores["level"], CELL_LEVEL)).select([*RUBRIC_CELL, "coverage", "similarity", "reasons"])
    for row in rows.to_pylist():
        yield tuple(row[name] for name in RUBRIC_CELL), row


def _make_reported_prompt(
    row: Mapping[str, Any], criteria: pa.Table, responses: Sequence[ReportedResponse], shows_system: bool
) -> ReportedPrompt:
    criterion_rows = criteria.filter(pc.equal(criteria["prompt"], row["prompt"])).to_pylist()
    return ReportedPrompt(
        row["prompt"],
        _format_reported_conversation(row, shows_system),
        tuple(responses),
        row["ideal"],
        tuple(map(_format_reported_criterion, criterion_rows)),
    )


def _format_reported_conversation(row: Mapping[str, Any], shows_system: bool) -> str:
    role_texts = [("system", system) for system in row["systems"] if system] if shows_system else []
    role_texts += [
        (turn["role"], turn["text"] if turn["text"] is not None else "(a turn that the model writes)")
        for turn in row["messages"]
    ]
    return role_texts[0][1] if len(role_texts) == 1 else "\n\n".join(f"[{role}] {text}" for role, text in role_texts)


def _format_reported_criterion(row: Mapping[str, Any]) -> str:
    prefix = "" if row["block"] == SHOULD else "(not wanted) "
    return prefix + (row["text"] or f"{row['fn']}({row['args'] or ''})")


OF_ANOTHER_REPORT = "it was made from other responses, scores, criteria, model names or limits"
BY_NO_KNOWN_ANALYST = "the models file no longer has this analyst"
GRADES_LACKING = "some of its grades are no longer stored"
_HAS_WORDS = ("ok", "partial")
"""Statuses of summaries with findings or grades."""


class StoredSummaries(NamedTuple):
    """The tables of one blueprint and snapshot that a summary is stored in."""

    summaries: pa.Table
    """`rubric_summaries`."""
    grades: pa.Table
    """`rubric_grades`."""
    ids: pa.Table
    """`analyst_ids`."""


class RemainingSummaries(NamedTuple):
    """The rest of the stored summaries: each analyst's summary is stored unchanged or removed."""

    rows: StoredSummaries | None
    """The rows of the analysts that are kept; None: there are none."""
    removal_reasons: Mapping[str, str]
    """Why a summary is removed, by analyst whose findings or grades were read."""


def keep_summaries(tables: StoredSummaries, case: SummaryCase | None, models: Models) -> RemainingSummaries:
    """Return the stored summaries whose first request would be the same now. `case`: of the current report; None: remove all summaries."""
    rows = tables.summaries.filter(pc.is_valid(tables.summaries["analyst"]))
    stored_rows = rows.select(["analyst", "analyst_variant", "test_hash", "status", "request_keys", "n_grades"]).to_pylist()
    grade_counts = Counter(tables.grades.filter(pc.is_valid(tables.grades["grade"]))["analyst_variant"].to_pylist())
    same_names = case is not None and tables.ids.to_pylist() == build_analyst_ids(case).to_pylist()
    reasons = {
        variant: _explain_discarded_summary(row, case if same_names else None, models)
        or (GRADES_LACKING if grade_counts[variant] != row["n_grades"] else None)
        for row in stored_rows
        for variant in [row["analyst_variant"]]
    }
    removals = {
        row["analyst"]: reason
        for row in stored_rows
        if (reason := reasons[row["analyst_variant"]]) and row["status"] in _HAS_WORDS
    }
    variants = pa.array([variant for variant, reason in reasons.items() if reason is None], pa.string())
    if not len(variants):
        return RemainingSummaries(None, removals)
    parts = [table.filter(pc.is_in(table["analyst_variant"], variants)) for table in (rows, tables.grades)]
    # Parquet has a name of its own for the items of a list, by which rows would seem to be others.
    return RemainingSummaries(
        StoredSummaries(parts[0].cast(RUBRIC_SUMMARIES), parts[1].cast(RUBRIC_GRADES), tables.ids), removals
    )


def build_analyst_ids(case: SummaryCase) -> pa.Table:
    """Return `ANALYST_IDS` of a case, with the models' names in tables."""
    return case.ids.table(case.material.blueprint, case.material.snapshot, case.material.names)


def _explain_discarded_summary(row: Mapping[str, Any], case: SummaryCase | None, models: Models) -> str | None:
    """Return why a summary is removed, or None if it is kept."""
    try:
        analysts = choose_analysts([row["analyst"]], models)
    except ConfigError:
        return BY_NO_KNOWN_ANALYST
    if [analyst.variant for analyst in analysts] != [row["analyst_variant"]]:
        return BY_NO_KNOWN_ANALYST
    if case is None or case.material.test_hash != row["test_hash"]:
        return OF_ANOTHER_REPORT
    return None if row["request_keys"][:1] == [build_summary_request(case, analysts[0]).key] else OF_ANOTHER_REPORT
