"""The tables of anchors: judged answers that the judge is shown again every night, so that its drift is told apart from that of models."""

from __future__ import annotations

import pyarrow as pa

from dtef_pipeline.qa.tables import OF_ONE_RESPONSE, QA_JUDGEMENTS
from dtef_pipeline.tables import EVIDENCE, RULE, field

_ANCHOR = field("anchor", pa.string(), "Hash of the question, what is expected and the response, as the judge is shown them")
_OF_JUDGE = tuple(QA_JUDGEMENTS.field(name) for name in ("judge_model", "judge_variant", "evaluator"))
_KEPT_OF_JUDGEMENT = ("score", "reason", "raw", "request_keys", "prompt_tokens", "completion_tokens", "cost_usd")
_NIGHT_OF_ANCHOR = field("snapshot", pa.string(), "Night in which the judge was shown it again")

QA_ANCHOR_ITEMS = pa.schema(
    [
        _ANCHOR,
        *OF_ONE_RESPONSE,
        field("text", pa.string(), "Question as the judge is shown it"),
        field("reference", pa.string(), "Expected answer as the judge is shown it"),
        field("response", pa.string(), "Response as the judge is shown it"),
        field("evaluators", pa.list_(pa.string()), "Sides that the judge looks at; none: those of its settings"),
        field("score", pa.float64(), "Mean score of the judge when it was chosen, 0-1: higher is better"),
        field("seed", pa.int64(), "Seed of the choice"),
    ]
)
"""One row per anchor: a judged response that stays as it is, whatever becomes of its item."""

QA_ANCHORS = pa.schema(
    [
        _NIGHT_OF_ANCHOR,
        _ANCHOR,
        *(one for one in OF_ONE_RESPONSE if one.name not in ("temperature", "snapshot")),
        *_OF_JUDGE,
        *(QA_JUDGEMENTS.field(name) for name in _KEPT_OF_JUDGEMENT),
    ]
)
"""One row per night, anchor and evaluator."""

QA_JUDGE_DRIFT = pa.schema(
    [
        *_OF_JUDGE,
        field("n_anchors", pa.int64(), "Anchors that the judge was shown in any night"),
        field("latest_snapshot", pa.string(), "Latest night"),
        field("n_snapshots", pa.int64(), "Nights that are compared"),
        field("n_items", pa.int64(), "Anchors with a score in every night"),
        *RULE,
        *EVIDENCE,
    ]
)
"""One row per judge and evaluator: whether what it says of anchors has moved."""
