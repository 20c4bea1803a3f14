"""Scores of a part's responses: formulas read texts; the results of judges and tests are in their own tables."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.snapshot_order import order_in
from dtef_pipeline.boards.item_board import encode_columns, select_latest_rows
from dtef_pipeline.boards.mean_columns import PASSED_METRIC, RIGHT_METRIC
from dtef_pipeline.judging.code_checks import PASSED_CHECK, UNDECIDED_CHECKS
from dtef_pipeline.qa.item_prompts import find_original_letter, find_shown_letter
from dtef_pipeline.qa.judging.arbiter import (
    ARBITER_VERSION,
    BLANK_ANSWER,
    JUDGE_SNAPSHOT,
    NOT_IN_SAMPLE,
    RATIONALE,
    SKIPPED_BUDGET,
    SKIPPED_SAMPLE,
    compute_arbiter_score,
    describe_over_budget,
)
from dtef_pipeline.qa.judging.judgement_rows import JUDGE_SCORER, VERBATIM_SCORER
from dtef_pipeline.qa.model import (
    CITES_NOTHING,
    OK_STATUS,
    UNPARSEABLE_STATUS,
    ItemError,
    ItemScore,
    Scorer,
    ScoreResponse,
    ScorerSettings,
    WrittenResponse,
)
from dtef_pipeline.qa.program import CODE_SCORER, CODE_VERSION
from dtef_pipeline.qa.scorers import find_lexicon_name, find_scorer
from dtef_pipeline.qa.socioscope.yes_no import YesNoRationale, add_judged_rationale, is_waiting_for_judge
from dtef_pipeline.qa.tables import QA_RESPONSE_KEY, QA_SCORES, RESPONSE_COLUMNS
from dtef_pipeline.qa.transcripts.citation_reply import CitedReply, read_cited

_FROM_RESPONSES = [*RESPONSE_COLUMNS, "prompt_id", "request_key", "answered_at"]
_OF_THE_ITEM = ("type", "cluster", "truth_id")
ANSWERED_CALL = "answered"
"""Status of a call with a response."""
_FILTERED = "content_filter"


class Measure(NamedTuple):
    """A metric, its scorer, and how it was measured."""

    scorer: str
    scorer_version: int
    metric: str
    measured_by: str
    """How the score was measured, such as `exact_choice 1`; scores that differ in it are never averaged together."""
    lexicon: str | None = None


ResponseKey = tuple[str, str, str, int]
"""Key of one response of a part's snapshot: item, condition, model variant and draw."""
ScoreOf = Callable[[ResponseKey, WrittenResponse], Sequence[tuple[Measure, ItemScore]]]
"""Returns the scores of a response, one per metric."""
_PlacedScore = tuple[int, Measure, ItemScore]
"""The place of a response in its table, and a score of it."""


def score_rows(
    responses: pa.Table,
    items: pa.Table,
    list_scores: ScoreOf,
    measures: Mapping[str, Sequence[Measure]],
    left_out: Callable[[ResponseKey, Measure], bool] = lambda key, measure: False,
) -> pa.Table:
    """Return one row per response, scorer and metric, in the order of the responses.

    `responses`: rows of `qa_responses`; `items`: rows of `qa_items`, one for each response. `measures`: the measures by item, for calls
    without a response: they get the status of the call instead of a score, unless `left_out` says that the judge's sample omits them.
    """
    results: list[_PlacedScore] = []
    columns = (responses[name].to_pylist() for name in ("call_status", "response", "finish_reason", "error"))
    calls = zip(list_response_keys(responses), *columns, strict=True)
    for place, (key, status, text, reason, error) in enumerate(calls):
        if (fallback := _score_without_response(status, reason, error)) is None:
            results += [(place, *scored) for scored in list_scores(key, WrittenResponse(text, reason))]
        else:
            scores = ((measure, NOT_IN_SAMPLE if left_out(key, measure) else fallback) for measure in measures[key[0]])
            results += [(place, *scored) for scored in scores]
    return _build_score_table(responses, items, results)


def _score_without_response(status: str, reason: str | None, error: str | None) -> ItemScore | None:
    """Return the score of a call that failed or was filtered, or None if there is a response."""
    if status != ANSWERED_CALL:
        return ItemScore(status, reason=error)
    if reason == _FILTERED:
        return ItemScore("refused", reason="the provider's content filter stopped the response")
    return None


def _build_score_table(responses: pa.Table, items: pa.Table, results: Sequence[_PlacedScore]) -> pa.Table:
    rows = responses.select(_FROM_RESPONSES).take(pa.array([place for place, _, _ in results], pa.int64()))
    columns: dict[str, Any] = {name: rows[name] for name in rows.column_names}
    place = pc.index_in(rows["item_id"], value_set=items["item_id"].combine_chunks())
    columns |= {name: items[name].take(place) for name in _OF_THE_ITEM}
    measures, scores = [measure for _, measure, _ in results], [score for _, _, score in results]
    columns |= {name: [getattr(measure, name) for measure in measures] for name in Measure._fields}
    columns |= {name: [getattr(score, name) for score in scores] for name in ("status", "value", "score", "read_by", "reason")}
    details = partial(json.dumps, ensure_ascii=False, sort_keys=True, default=str)
    columns["flags"] = [list(score.flags) for score in scores]
    columns["detail"] = [details(score.details) if score.details else None for score in scores]
    arrays = [
        column.cast(entry.type) if isinstance(column := columns[entry.name], pa.ChunkedArray) else pa.array(column, entry.type)
        for entry in QA_SCORES
    ]
    return pa.table(arrays, schema=QA_SCORES)


_CODED_TEXTS = (
    *(
        "suite",
        "part",
        "item_id",
        "condition",
        "metric",
        "measured_by",
        "model",
        "model_variant",
        "snapshot",
        "cluster",
        "type",
    ),
)
QA_BOARD_COLUMNS = (*_CODED_TEXTS, "draw", "status", "value", "score", "cites_nothing")
"""Columns of `qa_scores` that boards read, and `cites_nothing`: whether a response has no score because it has no quotations."""
_BOARD_SERIES = ("suite", "part", "condition", "metric", "measured_by", "model_variant")


def load_qa_scores(connection: duckdb.DuckDBPyConnection, columns: Sequence[str] = QA_BOARD_COLUMNS) -> pa.Table:
    """Return the rows of `qa_scores` in a fixed order; columns with repeated values are dictionaries. `connection` has the table."""
    text = {name: f"{name}::VARCHAR AS {name}" for name in _CODED_TEXTS}
    text |= {name: f"coalesce({name}, '')::VARCHAR AS {name}" for name in ("condition", "metric", "measured_by")}
    expressions = {**text, "cluster": "coalesce(nullif(cluster, ''), item_id)::VARCHAR AS cluster"}
    expressions["cites_nothing"] = f"coalesce(reason = '{CITES_NOTHING}', false) AS cites_nothing"
    named = ", ".join(expressions.get(name, name) for name in columns)
    order = ", ".join((*_BOARD_SERIES, "snapshot", "item_id", "draw"))
    return encode_columns(connection.sql(f"SELECT {named} FROM qa_scores ORDER BY {order}").to_arrow_table(), _CODED_TEXTS)


def load_latest_scores(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return the rows of one snapshot for each part, condition, metric, `measured_by` and model variant (see `select_latest_rows`), with
    the columns QA_BOARD_COLUMNS.

    `connection` has `qa_scores`.
    """
    order = order_in(connection, "qa_scores")
    return encode_columns(select_latest_rows(connection, load_qa_scores(connection), _BOARD_SERIES, order), _CODED_TEXTS)


VERBATIM_VERSION = 1
GRADED_METRIC, JUDGED_METRIC, EXISTENCE, EXISTENCE_RELAXED = "score", "judged", "existence", "existence_relaxed"
"""Further metrics: the share of the expected answer that is given; judges' scores; the share of quotations found in their source, exactly
or apart from case, marks and white space."""
EXISTENCE_METRICS = (EXISTENCE, EXISTENCE_RELAXED)
_METRIC_OF = {"exact_choice": RIGHT_METRIC, "numeric": RIGHT_METRIC}


class ScoringItem(NamedTuple):
    """The data needed to score responses to an item under a condition, as the model saw it."""

    scorers: tuple[str, ...]
    reference: str
    options: tuple[str, ...] = ()
    order: tuple[int, ...] | None = None
    """Places in the file's order of the options as shown; None: the file's order."""


class JudgeRecord(NamedTuple):
    """A judge with judgements on responses of a part."""

    variant: str = ""
    snapshot: str = ""
    """See the columns `judge_variant` and `judge_snapshot`."""
    evaluators: tuple[str, ...] = ()
    """Its evaluators: each is a metric, in addition to their mean."""

    @property
    def scorer_text(self) -> str:
        """The judge in the form of `measured_by`."""
        label = self.snapshot if self.snapshot != JUDGE_SNAPSHOT else ""
        return ", ".join(filter(None, (f"{JUDGE_SCORER} {ARBITER_VERSION}", self.variant, "+".join(self.evaluators), label)))

    def measures(self) -> list[Measure]:
        """Return the judge's measures: the mean of its evaluators, and each of them."""
        return [self.measure(metric) for metric in (JUDGED_METRIC, *self.evaluators)]

    def measure(self, metric: str = JUDGED_METRIC) -> Measure:
        return Measure(JUDGE_SCORER, ARBITER_VERSION, metric, self.scorer_text)

    def select_rows(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the judge's rows among those of a response."""
        return [row for row in rows if (row["judge_variant"], row["judge_snapshot"]) == (self.variant, self.snapshot)]


_NO_JUDGE = JudgeRecord()


@dataclass(slots=True)
class PartScoring:
    """The scoring of one part and snapshot's responses."""

    items: Mapping[tuple[str, str], ScoringItem]
    """Keyed by item and condition."""
    registry: Mapping[str, Scorer]
    settings: ScorerSettings = field(default_factory=ScorerSettings)
    judgements: Mapping[ResponseKey, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    executions: Mapping[ResponseKey, Mapping[str, Any]] = field(default_factory=dict)
    citations: Mapping[ResponseKey, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    cites: bool = False
    """Whether responses are JSON with an answer and citations; only the answer is scored."""
    judges: Sequence[JudgeRecord] = ()
    """Judges with judgements on the part, the latest first."""
    executed_at: Sequence[str] = ("",)
    """Levels of the sandbox at which the part's programs ran. Each also has the responses that needed no run."""
    _prepared_scorers: dict[tuple[str, str, str], ScoreResponse | ItemScore] = field(default_factory=dict)
    _results: dict[tuple[str, str, str | None, str | None], list[tuple[Measure, ItemScore]]] = field(default_factory=dict)

    def compute_scores_of(self, key: ResponseKey, response: WrittenResponse) -> list[tuple[Measure, ItemScore]]:
        """Return all scores of a response, one per metric."""
        item, condition = key[:2]
        pairs = [(entry, self._add_rationale(key, score)) for entry, score in self._score_by_formula(item, condition, response)]
        names = self.items[item, condition].scorers
        if JUDGE_SCORER in names:
            pairs += self._score_by_judge(key, response)
        if CODE_SCORER in names:
            pairs += self._score_by_tests(key)
        if VERBATIM_SCORER in names:
            pairs += self._score_by_quotations(key)
        return pairs

    def measures(self) -> dict[str, list[Measure]]:
        """Return the measures by item, for calls without a response."""
        by_item: dict[str, dict[str, Measure]] = defaultdict(dict)
        for (item, _), question in self.items.items():
            for name in question.scorers:
                for measure in self._list_measures_of(name):
                    by_item[item][f"{measure.metric} {measure.scorer} {measure.measured_by}"] = measure
            if not by_item[item]:
                by_item[item][""] = _NO_SCORER
        return {item: list(measures.values()) for item, measures in by_item.items()}

    def is_outside_sample(self, key: ResponseKey, measure: Measure) -> bool:
        """Return whether the sample of a measure's judge omits a response."""
        judge = next((record for record in self.judges if record.scorer_text == measure.measured_by), None)
        rows = judge.select_rows(self.judgements.get(key, ())) if judge else ()
        return bool(rows) and all(row["reason"] == SKIPPED_SAMPLE for row in rows)

    def _list_measures_of(self, name: str) -> Iterator[Measure]:
        if name in self.registry:
            yield self._measure(name)
        elif name == VERBATIM_SCORER:
            yield from _OF_QUOTATIONS.values()
        elif name == CODE_SCORER:
            yield from map(_measure_at, self.executed_at)
        elif name == JUDGE_SCORER:
            yield from (measure for judge in self.judges or (_NO_JUDGE,) for measure in judge.measures())

    def _measure(self, name: str) -> Measure:
        version, metric = self.registry[name].version, _METRIC_OF.get(name, GRADED_METRIC)
        if metric == RIGHT_METRIC:
            return Measure(name, version, metric, f"{name} {version}")
        return Measure(name, version, metric, self._describe_grading(), find_lexicon_name(self.registry[name], self.settings))

    def _describe_grading(self) -> str:
        """Return one `measured_by` for all scorers chosen by type, because items of several types share a mean."""
        graders = [scorer for name, scorer in self.registry.items() if name not in _METRIC_OF]
        lexicons = sorted({lexicon for grader in graders if (lexicon := find_lexicon_name(grader, self.settings))})
        reader = next((judge.scorer_text for judge in self.judges if RATIONALE in judge.evaluators), None)
        parts = [f"by type {max(grader.version for grader in graders)}", *(f"lexicon {lexicon}" for lexicon in lexicons)]
        return ", ".join([*parts, *([f"reasons by {reader}"] if reader else [])])

    def _score_by_formula(self, item: str, condition: str, response: WrittenResponse) -> list[tuple[Measure, ItemScore]]:
        key = (item, condition, response.text, response.finish_reason)
        if key not in self._results:
            self._results[key] = list(self._read(item, condition, response))
        return self._results[key]

    def _read(self, item: str, condition: str, response: WrittenResponse) -> Iterator[tuple[Measure, ItemScore]]:
        question = self.items[item, condition]
        if not any(True for name in question.scorers for _ in self._list_measures_of(name)):
            named = f": {', '.join(question.scorers)}" if question.scorers else ""
            yield _NO_SCORER, ItemScore("no_scorer", reason=f"this type of question has no scorer{named}")
        reply = read_cited(response.text) if self.cites else CitedReply(response.text or "")
        answer = replace(response, text=reply.answer) if self.cites else response
        for name in question.scorers:
            if name in self.registry:
                ready = self._prepare_scorer(item, condition, name)
                with_reasons = self.cites and name == YesNoRationale.name
                source = replace(answer, text=reply.answer_with_reasons) if with_reasons else answer
                score = ready if isinstance(ready, ItemScore) else ready(source)
                yield self._measure(name), restore_file_letter(add_reply_flags(score, reply), question)

    def _add_rationale(self, key: ResponseKey, score: ItemScore) -> ItemScore:
        """Add the judge's score of the reasons to a score that waits for it."""
        if not is_waiting_for_judge(score):
            return score
        row = next((judgement for judgement in self.judgements.get(key, ()) if judgement["evaluator"] == RATIONALE), None)
        if row is None:
            return score
        if row["reason"] in (SKIPPED_SAMPLE, SKIPPED_BUDGET):
            cause = NOT_IN_SAMPLE.reason if row["reason"] == SKIPPED_SAMPLE else describe_over_budget(row.get("error"))
            return replace(score, status=row["reason"], reason=f"a judge reads the reasons, but has not judged these: {cause}")
        return add_judged_rationale(score, row["score"], row["reason"])

    def _prepare_scorer(self, item: str, condition: str, name: str) -> ScoreResponse | ItemScore:
        key = (item, condition, name)
        if key not in self._prepared_scorers:
            question, scorer = self.items[item, condition], self.registry[name]
            try:
                self._prepared_scorers[key] = scorer.prepare_item(question.reference, question.options, self.settings)
            except ItemError as error:
                self._prepared_scorers[key] = ItemScore("unscorable", reason=str(error))
        return self._prepared_scorers[key]

    def _score_by_judge(self, key: ResponseKey, response: WrittenResponse) -> Iterator[tuple[Measure, ItemScore]]:
        rows = self.judgements.get(key, ())
        judges = [judge for judge in self.judges if judge.select_rows(rows)]
        for judge in judges or self.judges[:1] or (_NO_JUDGE,):
            yield from _iterate_judge_scores(judge, judge.select_rows(rows), response)

    def _score_by_tests(self, key: ResponseKey) -> Iterator[tuple[Measure, ItemScore]]:
        row = self.executions.get(key)
        score = score_execution(row) if row else ItemScore("missing", reason="its code was not run")
        for level in self.executed_at:
            same_level = row is None or row["isolation"] in (None, level)
            yield _measure_at(level), score if same_level else ItemScore("missing", reason="its code was run at another level")

    def _score_by_quotations(self, key: ResponseKey) -> Iterator[tuple[Measure, ItemScore]]:
        rows = self.citations.get(key, ())
        for name, measure in _OF_QUOTATIONS.items():
            if rows:
                count = sum(bool(row[name]) for row in rows)
                details = {"found": count, "citations": len(rows)}
                yield measure, ItemScore(OK_STATUS, count / len(rows), None, (), details)
            else:
                yield measure, ItemScore("missing", details={"citations": 0}, reason=CITES_NOTHING)


def _iterate_judge_scores(
    judge: JudgeRecord, rows: Sequence[Mapping[str, Any]], response: WrittenResponse
) -> Iterator[tuple[Measure, ItemScore]]:
    """Yield one judge's scores of a response: the mean of its evaluators, and each of them."""
    scores = {row["evaluator"]: row["score"] for row in rows}
    reasons = {row["evaluator"]: row["reason"] for row in rows}
    errors = {row["evaluator"]: row["error"] for row in rows}
    if not rows:
        fallback = ItemScore("missing", reason="nobody judged it") if (response.text or "").strip() else BLANK_ANSWER
        yield from ((measure, fallback) for measure in judge.measures())
    elif all(reason == SKIPPED_SAMPLE for reason in reasons.values()):
        yield from ((measure, NOT_IN_SAMPLE) for measure in judge.measures())
    else:
        self_judged = any(row["self_judged"] for row in rows)
        yield judge.measure(), compute_arbiter_score(scores, reasons, self_judged=self_judged, errors=errors)
        for name, score in scores.items():
            yield judge.measure(name), compute_arbiter_score({name: score}, {name: reasons[name]}, errors=errors)


_OF_QUOTATIONS = {
    "exact": Measure(VERBATIM_SCORER, VERBATIM_VERSION, EXISTENCE, f"{VERBATIM_SCORER} {VERBATIM_VERSION}"),
    "relaxed": Measure(VERBATIM_SCORER, VERBATIM_VERSION, EXISTENCE_RELAXED, f"{VERBATIM_SCORER} {VERBATIM_VERSION}"),
}
_NO_SCORER = Measure("none", 0, GRADED_METRIC, "no scorer")


def add_reply_flags(score: ItemScore, reply: CitedReply) -> ItemScore:
    """Add the flags of the reply to the score of its answer; a reply without a readable answer is unparseable."""
    if reply.problem is not None and score.status in (OK_STATUS, UNPARSEABLE_STATUS):
        return ItemScore(UNPARSEABLE_STATUS, flags=reply.flags, reason=reply.problem)
    return replace(score, flags=(*score.flags, *reply.flags)) if reply.flags else score


def restore_file_letter(score: ItemScore, item: ScoringItem) -> ItemScore:
    """Add to the score the letter of the answer in the file, in addition to the displayed letter."""
    letter = score.details.get("letter")
    if item.order is None or not letter:
        return score
    return replace(score, details={**score.details, "file_letter": find_original_letter(letter, item.order)})


def score_execution(row: Mapping[str, Any]) -> ItemScore:
    """Return the score of a row of `qa_executions`: 1 if the tests passed, 0 if the program is at fault, else none."""
    own = {name: row[name] for name in ("verdict", "isolation", "python") if row[name]}
    if row["verdict"] in UNDECIDED_CHECKS:
        return ItemScore(row["verdict"], None, None, (), own, row["message"])
    return ItemScore(OK_STATUS, float(row["verdict"] == PASSED_CHECK), row["verdict"], (), own, row["message"])


def load_asked_items(items: pa.Table, prompts: pa.Table) -> dict[tuple[str, str], ScoringItem]:
    """Load the data needed to score responses, by item and condition. Tables: `qa_items` and `qa_prompts` of one part."""
    names = ("item_id", "scorers", "reference", "options")
    rows = {item: values for item, *values in zip(*(items[name].to_pylist() for name in names), strict=True)}
    cases = {}
    for row in prompts.select(["item_id", "condition", "option_order"]).to_pylist():
        scorers, reference, options = rows[row["item_id"]]
        if (order := row["option_order"]) is not None:
            reference, options = find_shown_letter(reference, order), [options[place] for place in order]
        places = None if order is None else tuple(order)
        cases[row["item_id"], row["condition"]] = ScoringItem(tuple(scorers), reference, tuple(options), places)
    return cases


def select_formulas(items: Iterable[ScoringItem]) -> dict[str, Scorer]:
    """Return by name the items' scorers that read responses by a formula."""
    names = dict.fromkeys(name for item in items for name in item.scorers)
    return {name: scorer for name in names if (scorer := find_scorer(name)) is not None}


def list_response_keys(rows: pa.Table) -> list[ResponseKey]:
    """Return the key of each row of a table of responses, judgements, executions or citations."""
    return list(zip(*(rows[name].to_pylist() for name in QA_RESPONSE_KEY), strict=True))


def group_by_response(rows: pa.Table) -> dict[ResponseKey, list[dict[str, Any]]]:
    """Group the rows of a table with several rows per response."""
    groups: dict[ResponseKey, list[dict[str, Any]]] = defaultdict(list)
    for key, row in zip(list_response_keys(rows), rows.to_pylist(), strict=True):
        groups[key].append(row)
    return groups


def list_judges(judgements: pa.Table) -> list[JudgeRecord]:
    """Return the judges of rows of `qa_judgements`, in the order of their first occurrence."""
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    names = ("judge_variant", "judge_snapshot", "evaluator")
    for variant, snapshot, evaluator in zip(*(judgements[name].to_pylist() for name in names), strict=True):
        groups[variant, snapshot].add(evaluator)
    return [JudgeRecord(*judge, tuple(sorted(evaluators))) for judge, evaluators in groups.items()]


def list_levels(executions: pa.Table) -> list[str]:
    """Return the levels of the sandbox in rows of `qa_executions`, sorted: several if a run was interrupted; only "": there are none."""
    return sorted(set(executions["isolation"].to_pylist()) - {None}) or [""]


def _measure_at(level: str) -> Measure:
    return Measure(CODE_SCORER, CODE_VERSION, PASSED_METRIC, ", ".join(filter(None, (f"{CODE_SCORER} {CODE_VERSION}", level))))
