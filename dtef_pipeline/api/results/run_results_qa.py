"""Results of a run of the qa family: a part of a suite."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.api.results.family_results import Counts, FamilyResults, count_different_items, is_in, open_tables
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.judging.arbiter import SKIPPED_SAMPLE
from dtef_pipeline.qa.model import NULL_STATUSES, UNPARSEABLE_STATUS
from dtef_pipeline.qa.prompt_rows import AskSettings
from dtef_pipeline.qa.scoring import load_qa_scores
from dtef_pipeline.qa.stages import select_condition_prompts
from dtef_pipeline.qa.suites import compute_qa_results
from dtef_pipeline.qa.transcripts.corpus import parse_filter
from dtef_pipeline.text.number_words import format_count

_METRIC_KEYS = ("model_variant", "condition", "metric", "measured_by")
_SCORE_COLUMNS = (
    *("suite", "part", "item_id", "condition", "metric", "measured_by", "model", "model_variant", "snapshot", "draw"),
    *("cluster", "type", "status", "value", "score", "reason"),
)
_CALL_STATUSES = ("error", "budget")
_STATUS_WORDS = {
    "missing": "with nothing to score",
    "skipped_sample": "not in the sample for judging",
    "skipped_budget": "because the budget for judging was used up",
}
"""Plain words for statuses with unclear names."""
_PROMPT_SETTINGS = ("template", "few_shot", "few_shot_as", "order", "retriever", "k")


class QaResults(FamilyResults):
    """A part of a suite."""

    answer_keys = ("item_id", "condition", "model_variant", "draw")
    choice_columns = ("model", "draw", "condition", "item_id")
    extra_tables = ("qa_prompts", "qa_items", "qa_documents")
    board = "qa_board"
    board_columns = ("condition", "measured_by", "interval_kind", "parse_rate")
    shared_members = {"direction": "higher"}
    traced_tables = {"scores": "qa_scores", "judgements": "qa_judgements"}

    def select_rows(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Select the rows of the plan's condition and items."""
        rows, prompts = super().select_rows(table, columns), self.prompts
        rows = rows.filter(is_in(rows["condition"], set(prompts["condition"].to_pylist())))
        return rows.filter(is_in(rows["item_id"], set(prompts["item_id"].to_pylist())))

    @cached_property
    def prompts(self) -> pa.Table:
        """Return `item_id` and `condition` of the plan's prompts; empty if they are not made, or the settings no longer fit the part."""
        run, config = self.run, self.config
        prompts, types = run.rows("qa_prompts", ["item_id", "condition"]), run.rows("qa_items", ["type"])
        about_documents = bool(len(run.rows("qa_documents", ["doc_id"])))
        try:
            options = {name: config[name] for name in _PROMPT_SETTINGS if name in config}
            setup = AskSettings(**options, filter=parse_filter(config.get("filter", [])))
            condition = setup.condition(types["type"].to_pylist(), about_documents=about_documents)
        except ConfigError:
            return prompts.slice(0, 0)
        return select_condition_prompts(prompts, condition, config.get("limit"))

    def count_planned(self) -> dict[Hashable, int] | None:
        if not len(self.prompts):
            return None
        count = len(self.prompts) * self.draws
        return {(name,): number * count for name, number in self.run.variants(self.config.get("models", ())).items()}

    def read_means(self, counts: Counts) -> Iterator[Mapping[Any, Any]]:
        """Read the means as in `dtef qa board --by part`."""
        rows = self.select_rows("qa_scores", _SCORE_COLUMNS)
        if not len(rows):
            return
        with open_tables(qa_scores=rows) as connection:
            frame = compute_qa_results(load_qa_scores(connection))
        # A random sample leaves out items that the metric is not to be measured of.
        left_out = pc.and_(pc.equal(rows["status"].cast(pa.string()), SKIPPED_SAMPLE), pc.is_null(rows["score"]))
        item_counts = count_different_items(rows.filter(pc.invert(left_out)), _METRIC_KEYS, "item_id")
        for row in frame.to_dict("records"):
            n = item_counts.get(tuple(row[name] for name in _METRIC_KEYS))
            yield row | {"n_requested": n, "reason": row["note"], "remarks": _describe_unread(row)}


def _describe_unread(row: Mapping[Any, Any]) -> list[str]:
    """Describe the unreadable answers, which count 0, and those without a score."""
    unread, total = int(row[f"n_{UNPARSEABLE_STATUS}"]), format_count(int(row["n_total"]), "response")
    counts = {status: int(row[f"n_{status}"]) for status in NULL_STATUSES if status not in _CALL_STATUSES}
    reasons = [
        f"{number:,} {_STATUS_WORDS.get(status, status.replace('_', ' '))}" for status, number in counts.items() if number
    ]
    remarks = []
    if unread:
        remarks.append(f"{unread:,} of {total} could not be read and {'counts' if unread == 1 else 'count'} 0")
    if reasons:
        remarks.append(f"{sum(counts.values()):,} of {total} without a score: {', '.join(reasons)}")
    return remarks
