"""Bodies of traces in responses: for games an episode with its turns, otherwise a response and its scores."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dtef_pipeline.api.answer_schemas import AnswerBody, RowBody, describe_row
from dtef_pipeline.games.tables import EPISODE_TURNS, EPISODES
from dtef_pipeline.qa.tables import QA_JUDGEMENTS, QA_SCORES
from dtef_pipeline.rubric.tables import RUBRIC_JUDGEMENTS, RUBRIC_POINTS
from dtef_pipeline.survey.tables import SCORES
from dtef_pipeline.tables import CALL

_TRACED_COLUMNS = (
    *("model", "model_variant", "temperature", "draw", "snapshot", "prompt_id", "finish_reason", "served_model"),
    *("prompt_tokens", "completion_tokens", "cost_usd", "latency_s", "attempts", "answered_at"),
)


class _RunTrace(RowBody):
    trace_id: str
    run_id: str


class ConversationMessage(AnswerBody):
    """A message of a conversation."""

    role: str
    """system, user or assistant."""
    text: str


class GameTurn(RowBody):
    """A text of a model in an episode, opponents included."""

    model_config = describe_row(EPISODE_TURNS)


class GameTrace(_RunTrace):
    """A whole episode: a game as one player played it."""

    model_config = describe_row(EPISODES)

    opening: list[ConversationMessage]
    """Messages before the first text of the player; empty: another seat moves first, or the messages are no longer stored."""
    turns: list[GameTurn]
    """In the order of play."""


class RunResponse(_RunTrace):
    """A response of a model with its scores."""

    model_config = describe_row(pa.schema(CALL), _TRACED_COLUMNS)

    status: str
    """answered or ok: there is a response; empty: it is blank; error, missing or budget: there is none, see `reason`."""
    text: str | None
    """Text of the response; null: there is none."""
    reason: str | None
    """Why there is no response."""


class PredictedQuestion(RowBody):
    """A question that the response answers: the values read, and its score."""

    model_config = describe_row(
        SCORES,
        ("question_id", "condition", "context_level", "status", "reason", "metric", "score", "predicted"),
    )

    prompt_id: str | None
    """Hash of everything sent to the model, and of the target."""


class SurveyTrace(RunResponse):
    """A response to a prompt of a survey, which may ask several questions."""

    questions: list[PredictedQuestion]


class QaItemScore(RowBody):
    """The score of the response to an item on one metric."""

    model_config = describe_row(QA_SCORES, ("metric", "measured_by", "status", "value", "score", "reason"))


class QaItemJudgement(RowBody):
    """A judge's verdict on the response to an item."""

    model_config = describe_row(QA_JUDGEMENTS, ("evaluator", "judge_model", "score", "reason", "explanation"))


class AnsweredItem(AnswerBody):
    """An item that the response answers."""

    item_id: str
    condition: str
    """Condition of the request."""
    scores: list[QaItemScore]
    judgements: list[QaItemJudgement]


class QaTrace(RunResponse):
    """A response to questions with expected answers."""

    items: list[AnsweredItem]


class RubricPoint(RowBody):
    """A criterion of the response: the consensus of its judges, or the result of its function."""

    model_config = describe_row(
        RUBRIC_POINTS,
        ("block", "path", "position", "kind", "weight", "score", "reason", "explanation"),
    )


class RubricVerdict(RowBody):
    """One judge's verdict on a criterion of the response."""

    model_config = describe_row(
        RUBRIC_JUDGEMENTS,
        ("block", "path", "position", "judge", "judge_draw", "class", "score", "reason", "reflection"),
    )


class RubricTrace(RunResponse):
    """A response to a prompt of a blueprint."""

    prompt: str
    """Id of the prompt, unique within its blueprint."""
    system_index: int | None
    """Place of the system prompt in the prompt's list, from 0."""
    transcript: list[ConversationMessage] | None
    """The whole conversation, with requests and responses."""
    points: list[RubricPoint]
    """Null if other judges have judged since; see `remark`."""
    judgements: list[RubricVerdict]
    """Likewise."""
    remark: str | None
    """Why there are no points: other judges have judged the response since. Null: the verdicts of its own judges exist."""


class ItemTrace(RunResponse):
    """A response of another family."""

    scores: list[dict[str, Any]]
    """Its rows in the family's table of scores."""


TraceBody = GameTrace | SurveyTrace | QaTrace | RubricTrace | ItemTrace
"""By the family of the run."""
