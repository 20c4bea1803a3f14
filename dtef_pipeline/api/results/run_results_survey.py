"""Results of a run of surveys: a segment of a round."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.api.answer_schemas import convert_to_json
from dtef_pipeline.api.results.family_results import (
    Counts,
    FamilyResults,
    Row,
    count_different_items,
    is_in,
)
from dtef_pipeline.api.results.run_context import Unit, format_other_answers
from dtef_pipeline.asking.models import COMPUTED
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.survey.boards.board_rows import BOARD_SOURCES, compute_board
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.question_draw import DRAW_ORDERS, EVERYTHING, Sample
from dtef_pipeline.text.number_words import format_count

_TOO_FEW = f"no interval: fewer than {MIN_CLUSTERS} batteries of questions"
_UNREAD_IN_WORDS = {
    "unparseable": "could not be read",
    "wrong_length": "had another number of options",
    "refused": "declined to answer",
}
_MISSING = "missing"
"""The status of a call to which there is no answer, though none failed."""


class SurveyResults(FamilyResults):
    """A segment of a round."""

    unit = Unit("prediction", "given")
    answer_keys = ("question_id", "condition", "context_level", "model_variant", "draw")
    setting_columns = ("model", "condition", "context_level")
    choice_columns = ("model", "draw", *KEYS.asked, KEYS.item)
    extra_tables = ("reference_scores", "survey_responses", "blueprints")
    board = "segment_results"
    known = "n_pairs"
    board_columns = ("condition", "context_level", "parse_rate")
    shared_members = {"direction": "higher"}

    def select_rows(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Select the rows of the plan's conditions, context levels and questions."""
        return self._filter_drawn(self._filter_settings(super().select_rows(table, columns)))

    def _filter_settings(self, rows: pa.Table) -> pa.Table:
        for column, values in (("condition", "conditions"), ("context_level", "context_levels")):
            choices = self.config.get(values)
            rows = rows.filter(is_in(rows[column], set(choices))) if choices else rows
        return rows

    def _filter_drawn(self, rows: pa.Table) -> pa.Table:
        sample = Sample(self.config.get("questions"), self.config.get("sample_segments"))
        if sample == EVERYTHING:
            return rows
        questions = sample.select_questions(self.run.rows("survey_responses", ["question_id", *DRAW_ORDERS]))
        return rows.filter(is_in(rows["question_id"], set(questions.to_pylist())))

    @cached_property
    def silent(self) -> list[Row]:
        """Return the predictions that a computed model could not make, such as one from a missing previous round; `error` says why."""
        rows = self.select_rows("predictions", (*self.setting_columns, "model_variant", "call_status", "error"))
        is_silent = pc.equal(rows["call_status"].cast(pa.string()), _MISSING)
        predictions: list[Row] = rows.filter(
            pc.and_(is_silent, pc.starts_with(rows["model_variant"].cast(pa.string()), COMPUTED))
        ).to_pylist()
        return predictions

    def read_outcome_rows(self) -> list[Row]:
        """Read the outcomes; a computed model without data has no planned predictions."""
        silent = set(map(self.setting_of, self.silent))
        return [
            row for row in super().read_outcome_rows() if row["call_status"] != _MISSING or self.setting_of(row) not in silent
        ]

    def count_planned(self) -> dict[Hashable, int] | None:
        """Count the planned predictions: 0 if no question is drawn; None if the prompts are not made yet."""
        blueprints = self._filter_settings(self.run.rows("blueprints", [KEYS.item, *KEYS.asked]))
        if not len(blueprints):
            return None
        every, sample = (
            Counter(zip(rows["condition"].to_pylist(), rows["context_level"].to_pylist(), strict=True))
            for rows in (blueprints, self._filter_drawn(blueprints))
        )
        variants, silent = self.run.variants(self.config.get("models", ())), Counter(map(self.setting_of, self.silent))
        totals = {(name, *key): sample[key] * times * self.draws for name, times in variants.items() for key in every}
        return {key: number - silent[key] for key, number in totals.items()}

    def read_means(self, counts: Counts) -> Iterator[Mapping[Any, Any]]:
        """Read the mean scores of the segment, as in `dtef board --by segment --snapshot`."""
        if not len(self.run.rows("scores", ["model"])):
            return
        round_id, segment = SPACE.split(self.run.run.key)
        options = SurveyBoardOptions(rounds=(round_id,), segments=(segment,), snapshot=self.run.snapshot)
        frame = self.run.house.query(
            lambda connection: compute_board(connection, "segment", options), only=BOARD_SOURCES, first=[round_id]
        )
        rows = frame[
            frame["model"].isin(self.models)
            & frame["condition"].isin(self.config.get("conditions") or frame["condition"])
            & frame["context_level"].isin(self.config.get("context_levels") or frame["context_level"])
        ]
        question_counts = count_different_items(self._read_scored(KEYS.item), self.setting_columns, KEYS.item)
        additions, statuses = self.count_other_answers(), defaultdict[Any, Counter[str]](Counter)
        for row in self._read_scored("status").to_pylist():
            statuses[self.setting_of(row)][row["status"]] += 1
        silent = {self.setting_of(row): row["error"] for row in self.silent}
        for row in rows.to_dict("records"):
            key = self.setting_of(row)
            remarks = (_describe_unread_answers(statuses[key]), format_other_answers(additions[key], self.unit.noun))
            reason = _TOO_FEW if convert_to_json(row["score_low"]) is None else None
            if convert_to_json(row["score"]) is None:
                reason = silent.get(key) or "no prediction for the segment has a score"
            members = {"metric": options.metric, "n_requested": question_counts.get(key), "reason": reason, "remarks": remarks}
            yield row | members

    def _read_scored(self, *columns: str) -> pa.Table:
        """Read columns of the scores, without questions that define the segment itself."""
        rows = self.run.rows("scores", [*self.setting_columns, *columns, str(KEYS.left_out)])
        return rows.filter(pc.invert(rows[KEYS.left_out]))


def _describe_unread_answers(statuses: Counter[str]) -> str | None:
    """Describe predictions with the score of an unreadable answer."""
    unread = [f"{statuses[name]:,} {words}" for name, words in _UNREAD_IN_WORDS.items() if statuses[name]]
    return f"of {format_count(statuses.total(), 'prediction')} {', '.join(unread)}" if unread else None
