"""What traces look like in answers: of games an episode with its turns, elsewhere a response and how it was scored."""

from __future__ import annotations

from datetime import datetime

from dtef_pipeline.api.answer_schemas import AnswerBody, row_of
from dtef_pipeline.games.tables import EPISODE_TURNS, EPISODES
from dtef_pipeline.qa.tables import QA_JUDGEMENTS, QA_SCORES
from dtef_pipeline.rubric.tables import RUBRIC_JUDGEMENTS, RUBRIC_POINTS
from dtef_pipeline.survey.tables import SCORES


class _TraceOfRun(AnswerBody):
    trace_id: str
    run_id: str


class SpokenMessage(AnswerBody):
    """A message of a conversation."""

    role: str
    """system, user or assistant."""
    text: str


class TurnOfGame(AnswerBody):
    """A text of a model in an episode, the opponent's too."""

    model_config = row_of(EPISODE_TURNS, never_null=("episode_id", "seat", "turn", "attempt"))


class TraceOfGame(_TraceOfRun):
    """A whole episode: a game as one player played it."""

    model_config = row_of(EPISODES, never_null=("episode_id", "item_id", "status"))

    opening: list[SpokenMessage]
    """The messages before the first text of the player; none: another seat moves first, or the table does not have them any more."""
    turns: list[TurnOfGame]
    """In the order of play."""


class _ResponseTold(_TraceOfRun):
    model: str
    model_variant: str
    """Model string plus every sampling parameter."""
    temperature: float | None
    """null: not set."""
    draw: int
    """Repeated sample of the same prompt, from 0."""
    snapshot: str
    prompt_id: str | None
    """Hash of all that the model was sent."""
    status: str
    """answered or ok: there is a response; empty: it is blank; error, missing or budget: there is none, see `reason`."""
    text: str | None
    """The response as it was served; null: there is none."""
    reason: str | None
    """Why there is no response."""
    finish_reason: str | None
    """Why the response ended, as the provider says: stop, length, ..."""
    served_model: str | None
    """The model that the provider says it served."""
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    """null: not known."""
    latency_s: float | None
    """Seconds that the call took; null: not known, or there was none."""
    attempts: int | None
    """Calls sent until it was answered or given up."""
    answered_at: datetime | None
    """null: no model was asked."""


class PredictedQuestion(AnswerBody):
    """A question that the response answers: what was read of it, and its score."""

    model_config = row_of(
        SCORES,
        ("question_id", "condition", "context_level", "status", "reason", "metric", "score", "predicted"),
        never_null=("question_id", "condition", "context_level"),
    )

    prompt_id: str | None
    """Hash of all that the model was sent, and of the target."""


class TraceOfSurvey(_ResponseTold):
    """A response to a prompt of a survey, which may ask several questions."""

    questions: list[PredictedQuestion]


class ScoreOfItem(AnswerBody):
    """What one metric says of the response to an item."""

    model_config = row_of(
        QA_SCORES, ("metric", "measured_by", "status", "value", "score", "reason"), never_null=("metric", "status")
    )


class JudgementOfItem(AnswerBody):
    """What a judge said of the response to an item."""

    model_config = row_of(
        QA_JUDGEMENTS, ("evaluator", "judge_model", "score", "reason", "explanation"), never_null=("evaluator",)
    )


class AnsweredItem(AnswerBody):
    """An item that the response answers."""

    item_id: str
    condition: str
    """How it was asked."""
    scores: list[ScoreOfItem]
    judgements: list[JudgementOfItem]


class TraceOfQa(_ResponseTold):
    """A response to questions with expected answers."""

    items: list[AnsweredItem]


class PointOfRubric(AnswerBody):
    """A criterion of the response: what its judges agree on, or what its function found."""

    model_config = row_of(
        RUBRIC_POINTS,
        ("block", "path", "position", "kind", "weight", "score", "reason", "explanation"),
        never_null=("block", "position", "kind"),
    )


class VerdictOfRubric(AnswerBody):
    """What one judge said of a criterion of the response."""

    model_config = row_of(
        RUBRIC_JUDGEMENTS,
        ("block", "path", "position", "judge", "judge_draw", "class", "score", "reason", "reflection"),
        never_null=("block", "position", "judge", "judge_draw"),
    )


class TraceOfRubric(_ResponseTold):
    """A response to a prompt of a blueprint."""

    prompt: str
    """Id of the prompt, unique within its blueprint."""
    system_index: int | None
    """Place of the system prompt in the list of the prompt's, from 0."""
    transcript: list[SpokenMessage] | None
    """The whole conversation as it was sent and answered."""
    points: list[PointOfRubric]
    """None where other judges have judged since: see `remark`."""
    judgements: list[VerdictOfRubric]
    """Likewise."""
    remark: str | None
    """Why there are no points: other judges have judged the response since. null: its own judges' verdicts are there."""


TraceBody = TraceOfGame | TraceOfSurvey | TraceOfQa | TraceOfRubric
"""By the family of the run."""
