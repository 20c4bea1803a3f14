"""The sensor `drift_webhook`: posts verdicts on drift to the URL in DTEF_WEBHOOK when they change."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from assets.stage.family_drift import describe_verdict, load_drift_section
from assets.stage.resources import Store
from dtef_pipeline.drift.verdict_text import has_shared_shift
from resources.json_posts import post_once, require_address

_TIMEOUT_S = 10.0
_MAX_LINES = 10
"""Series that the text describes."""
_FIELDS = (
    *("family", "model", "model_variant", "setting", "latest_snapshot", "verdict", "shared_verdict"),
    *("shift", "shift_low", "shift_high", "first_snapshot", "changes"),
)


@dg.sensor(
    minimum_interval_seconds=300,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Posts new verdicts on drift of all families to the URL in DTEF_WEBHOOK, and those that are over. The panel's key "
    "`drift.notify` says which. A tick fails if the receiver does not accept the message; the next one sends it again.",
)
def drift_webhook(context: dg.SensorEvaluationContext, store: Store) -> dg.SensorResult | dg.SkipReason:
    """The cursor holds the verdicts that were sent last."""
    if (url := store.settings.webhook) is None:
        return dg.SkipReason("DTEF_WEBHOOK is not set")
    require_address("DTEF_WEBHOOK", url)
    notify, previous = load_drift_section(store.settings).notify, json.loads(context.cursor or "{}")
    rows = store.warehouse.rows("drift").to_pylist()
    verdicts = {_get_series(row): verdict for row in rows if (verdict := _format_news(row, notify))}
    news = [row for row in rows if verdicts.get(_get_series(row)) != previous.get(_get_series(row))]
    if news:
        post_once(url, build_message(news), _TIMEOUT_S)
    reason = f"sent the verdicts of {len(news)} series" if news else "no new verdicts"
    return dg.SensorResult(skip_reason=reason, cursor=json.dumps(verdicts))


def build_message(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows of `drift` as one JSON document. Scores are fractions."""
    series = [{name: row[name] for name in _FIELDS} for row in rows]
    names = [f"{row['family']}, {row['model']}, {row['setting']}" for row in rows]
    lines = [describe_verdict(row, name) for row, name in zip(rows, names[:_MAX_LINES], strict=False)]
    remainder = [f"and {len(rows) - _MAX_LINES} more series"] if len(rows) > _MAX_LINES else []
    return {"text": "\n".join([*lines, *remainder]), "series": series}


def _get_series(row: Mapping[str, Any]) -> str:
    return f"{row['family']}: {row['model_variant']}, {row['setting']}"


def _format_news(row: Mapping[str, Any], notify: Sequence[str]) -> str:
    """Return the news on a series, or an empty text. A shared shift of all models is sent whatever the choice of verdicts."""
    shared = "shared" if has_shared_shift(row) or row["shared_verdict"] in notify else ""
    return " ".join(filter(None, [row["verdict"] if row["verdict"] in notify else "", shared]))
