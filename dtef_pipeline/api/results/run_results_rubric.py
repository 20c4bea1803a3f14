"""Results of a run of rubrics: a blueprint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from dtef_pipeline.api.answer_schemas import convert_to_json
from dtef_pipeline.api.results.family_results import Counts, FamilyResults, Row, open_tables
from dtef_pipeline.api.results.result_routes import RunResponse
from dtef_pipeline.api.results.run_context import OutcomeCounts, format_other_answers
from dtef_pipeline.asking.episodes import play
from dtef_pipeline.asking.models import resolve_known_selector
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.judging.consensus import USUAL_SCALE
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.judging.prompts import APPROACHES
from dtef_pipeline.rubric.board import board
from dtef_pipeline.rubric.episodes import Candidates, choose_judges, iterate_judgings, iterate_scripts
from dtef_pipeline.rubric.scoring import MODEL_LEVEL
from dtef_pipeline.rubric.tables import RUBRIC_RESPONSE, RUBRIC_SCORES
from dtef_pipeline.text.number_words import format_count

_ANALYSTS_TABLES = ("rubric_summaries", "rubric_extractions")
_NO_INTERVAL = "no interval is computed for this part of the score"


class RubricResults(FamilyResults):
    """A blueprint. The cost of embedders is known only for the whole store."""

    status = "status"
    answer_keys = ("blueprint", *RUBRIC_RESPONSE, "snapshot")
    trace_columns = answer_keys
    extra_tables = ("rubric_prompts", "rubric_blueprints", "rubric_runs", "rubric_points")
    board = "rubric_board"
    ends, known = ("low", "high"), "n_scored"
    board_columns = ("n_planned", "n_responses")
    shared_members = {"direction": "higher"}
    traced_tables = {"scores": "rubric_points", "judgements": "rubric_judgements"}

    @cached_property
    def models(self) -> set[str]:
        """The models that the manifest names; a LiteLLM string is replaced by the model of the models file that uses it."""
        selectors = [str(value) for value in self.config.get("models", ())]
        return self.run.names([*selectors, *(resolve_known_selector(selector, self.run.models) for selector in selectors)])

    @cached_property
    def other_judges(self) -> str | None:
        """Describe the other judges that judged the responses last; None: the run's own judges did, or there are no judgements.

        Another run of the same snapshot replaces the stored judgements. If the manifest names no judges, the run's own are those of the
        blueprint, among the models known at present; if these are no longer known, the stored judgements count as the run's own.
        """
        draws = dict.fromkeys((judge.name for judge in self.judges or ()), self._judge_draws)
        rows = self.run.rows("rubric_judgements", ["judge", "judge_draw"]).group_by(["judge", "judge_draw"]).aggregate([])
        counts = Counter(rows["judge"].to_pylist())
        if not draws or not counts:
            return None
        if counts != draws:
            return (
                f"judged by other judges: the stored judgements are by {_format_judges(counts)}, not by {_format_judges(draws)}"
            )
        # The judgements are the run's own again, but nothing has been scored since others judged.
        lists = self.run.rows("rubric_runs", ["judges"])["judges"].to_pylist()
        scorers = {name for names in lists for name in names if name.partition("(")[0] in APPROACHES}
        if scorers and scorers != set(draws):
            return f"judged by other judges: the scores are by {', '.join(sorted(scorers))}, not by {_format_judges(draws)}"
        return None

    @cached_property
    def judges(self) -> tuple[JudgeConfig, ...] | None:
        """The judges of the plan; None if they are no longer known."""
        config = self.run.stage_config("rubric_judgements")
        heads = self.run.rows("rubric_blueprints", ["judges"])["judges"].to_pylist()
        named, scale = (heads[0] or ()) if heads else (), config.get("scale", USUAL_SCALE)
        try:
            return choose_judges(config.get("judges", ()), named, self.run.models, scale)
        except ConfigError:
            return None

    @property
    def _judge_draws(self) -> int:
        return int(self.run.stage_config("rubric_judgements").get("judge_draws", 1))

    def select_rows(self, table: str, columns: Sequence[str] | None = None) -> Any:
        """Select the run's rows: whole tables of analysts, and no judgements if others have judged since."""
        if table in _ANALYSTS_TABLES:
            return self.run.rows(table, columns)
        rows = super().select_rows(table, columns)
        return rows.slice(0, 0) if table == "rubric_judgements" and self.other_judges else rows

    def counts(self) -> dict[Hashable, OutcomeCounts]:
        """Count by model. `totals` is read from the model rows of `rubric_scores`; 0 if other judges have judged since."""
        totals = Counter[Hashable]()
        for row in [] if self.other_judges else self._read_model_rows("n_responses_scored"):
            totals[self.setting_of(row)] += row["n_responses_scored"]
        return {key: outcome._replace(scored=totals[key]) for key, outcome in super().counts().items()}

    def find_scored_names(self) -> set[tuple[Any, ...]]:
        return set()

    def _read_model_rows(self, column: str) -> list[Row]:
        rows = self.run.rows("rubric_scores", ["level", "model", column]).to_pylist()
        return [row for row in rows if row["level"] == MODEL_LEVEL and row["model"] in self.models]

    def count_planned(self) -> dict[Hashable, int] | None:
        """Count the planned responses; None if prompts are not made yet, or a model is no longer known."""
        prompts = self.run.rows("rubric_prompts")
        if not len(prompts):
            return None
        try:
            candidates = Candidates(self.run.models, self.config.get("models", ()))
        except ConfigError:
            return None
        variants = [spec.name for _, temperatures in iterate_scripts(prompts) for spec in candidates.resolve_at(temperatures)]
        return {(name,): number * self.draws for name, number in Counter(variants).items()}

    def read_means(self, counts: Counts) -> Iterator[Mapping[Any, Any]]:
        """Read the hybrid score and its parts, as in `dtef rubric board --by blueprint`."""
        rows = self.run.rows("rubric_scores", [name for name in RUBRIC_SCORES.names if name != "reasons"])
        if not len(rows):
            return
        with open_tables(rows_of_run=rows) as connection:
            frame = connection.execute("FROM rows_of_run").df()
        records = board(frame, [self.run.snapshot], {}, "blueprint").to_dict("records")
        reasons = {
            row["model"]: ", ".join(f"{reason}: {format_count(n, 'response')}" for reason, n in row["reasons"] or ())
            for row in self._read_model_rows("reasons")
        }
        additions = self.count_other_answers()
        for row in records:
            if row["model"] in self.models:
                gap = int(row["n_responses"] - row["n_responses_scored"])
                words = f"{gap:,} of {format_count(int(row['n_responses']), 'response')} without a score" if gap else None
                remarks = (words, format_other_answers(additions[self.setting_of(row)], "response"))
                yield from (part | {"remarks": remarks} for part in self._read_parts(row, reasons))

    def _read_parts(self, row: dict[Any, Any], reasons: Mapping[str, str]) -> Iterator[dict[Any, Any]]:
        """Read a row for the score and for each part of it, without numbers if others have judged since."""
        counts = {"n_responses": int(row["n_responses_scored"]), "n_requested": row["n_planned"]}
        if self.other_judges:
            counts |= {"n_scored": 0, "n_responses": 0}
        for part in ("score", "coverage", "similarity"):
            ends = {} if part == "score" and not self.other_judges else dict.fromkeys(self.ends)
            score = None if self.other_judges else row[part]
            reason = self.other_judges or _find_gap_reason(row, part, reasons)
            yield row | counts | ends | {"metric": part, "score": score, "reason": reason}

    def request_keys(self) -> set[str]:
        """Return the request keys; if others have judged since, including those of the run's own judgements, whose rows were replaced."""
        keys = super().request_keys()
        if not self.other_judges:
            return keys
        tables = [self.run.rows(name) for name in ("rubric_responses", "rubric_criteria", "rubric_prompts")]
        episodes = list(iterate_judgings(tables[0], tables[1], tables[2], self.judges or (), self._judge_draws))
        outcomes = play(episodes, lambda requests: {}, self.run.response_finder())
        return keys | {response.request_key for outcome in outcomes for response in outcome.responses}

    def trace_id(self, row: Mapping[str, Any]) -> str:
        """Return a hash of the response's key."""
        return digest("response of a rubric", *(row[name] for name in self.answer_keys))

    def build_trace(self, answers: Sequence[Row]) -> Row:
        """Build the response with its conversation, its points and the judges' verdicts."""
        (row,) = answers
        members = {"status": row["status"], "text": row["text"], "reason": row["error"], "remark": self.other_judges}
        members |= {name: convert_to_json(row[name]) for name in ("prompt", "system_index", "transcript")}
        members |= {member: [] for member in self.traced_tables} if self.other_judges else self.list_related_members(answers)
        return RunResponse.select_columns({**row, "prompt_id": row["conversation_hash"]}) | members


def _find_gap_reason(row: Mapping[Any, Any], part: str, reasons: Mapping[str, str]) -> str | None:
    """Say why there is no value or no interval. `reasons`: for models whose responses have no score."""
    if convert_to_json(row[part]) is None:
        return reasons.get(row["model"]) or f"there is no {part}"
    return row["note"] if part == "score" else _NO_INTERVAL


def _format_judges(judges: Mapping[str, int]) -> str:
    return ", ".join(
        name if draws == 1 else f"{name} in {format_count(draws, 'draw')}" for name, draws in sorted(judges.items())
    )
