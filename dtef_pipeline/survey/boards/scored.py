"""What of surveys is ranked and compared: their key columns, metrics and measures, and the options of their boards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.boards.scored import Scored
from dtef_pipeline.survey.attributes import NON_ANSWER_SQL
from dtef_pipeline.survey.baselines.names import (
    EMPIRICAL_BAYES,
    LEAVE_ONE_OUT,
    NEAREST_SEGMENTS,
    POPULATION_MARGINAL,
    SHUFFLED_SEGMENT,
)
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.boards.linked import question_clusters
from dtef_pipeline.survey.boards.noise import sampling_noise
from dtef_pipeline.survey.boards.schemas import RELIABILITY
from dtef_pipeline.survey.boards.skill import ADDED, measures
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.question_draw import Sample
from dtef_pipeline.survey.scoring.policy import CREDITS
from dtef_pipeline.survey.tables import CORRECTED, DISTANCES, METRICS

SCORED = Scored(
    keys=KEYS,
    metrics=METRICS,
    distances=DISTANCES,
    credits={credit.status: credit.score for credit in CREDITS},
    corrected=CORRECTED,
    references=("ceiling", "ceiling_low", "uniform", "others", "population"),
    typical=("others", "population"),
    facts={"n": "INTEGER", "gini": "DOUBLE"},
    size=lambda level: ContextLevel(level).order,
    of_observed=frozenset((POPULATION_MARGINAL, LEAVE_ONE_OUT, NEAREST_SEGMENTS, EMPIRICAL_BAYES, SHUFFLED_SEGMENT)),
    marginal=POPULATION_MARGINAL,
    reference=LEAVE_ONE_OUT,
    ranked_from=10,  # segments: weval methodology 5.3
    reliability=RELIABILITY,
    reference_again="ingest the round again",
    clusters=question_clusters,
    noise=sampling_noise,
    measures=measures,
    columns=ADDED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyBoardOptions(BoardOptions):
    """Which scores of surveys a board is made of: of these rounds, segments and context levels (none: all).

    Under one condition (None: under each). `questions`: only so many of each round, `sample_segments`:
    only so many segments of each, both as drawn; None: all. `non_answers`: also segments of
    people who gave no answer; those named in `segments` always count.
    """

    subject: Scored = SCORED
    metric: str = "js"
    rounds: tuple[str, ...] = ()
    context_levels: tuple[str, ...] = ()
    condition: str | None = None
    segments: tuple[str, ...] = ()
    questions: int | None = None
    sample_segments: int | None = None
    non_answers: bool = False

    @property
    def besides(self) -> str | None:
        return " AND ".join(filter(None, (self.of_answers, self.sample.pairs_sql))) or None

    @property
    def people(self) -> list[str]:
        """All segments of a round are of the same people. Where each question is asked of a few, two questions share them in equal segments."""
        return list(self.subject.keys.space[: 1 if self.sample_segments is None else 2])

    @property
    def sample(self) -> Sample:
        return Sample(self.questions, self.sample_segments)

    @property
    def of_answers(self) -> str | None:
        """SQL: the segments that are not of people who gave no answer; None: all count."""
        return None if self.non_answers or self.segments else f"NOT {NON_ANSWER_SQL}"

    @property
    def chosen(self) -> Mapping[str, Sequence[object]]:
        """The values of key columns that count, by column; none: all."""
        return {
            "round": self.rounds,
            "segment": self.segments,
            "context_level": self.context_levels,
            "condition": () if self.condition is None else (self.condition,),
        }
