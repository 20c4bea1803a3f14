"""What follows from verdicts on models: the check that is as loud as they are, and the message to the webhook."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.stage.checks import verdict
from assets.stage.resources import Store
from dtef_pipeline.drift.notifications import copy_sent_verdicts, find_unsent, mark_sent, message
from dtef_pipeline.drift.settings import Severity
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_text import (
    NEWS,
    describe_judges,
    describe_night,
    format_moved_items,
    format_series,
    format_shift,
    is_night_shift,
    sort_key_of_verdict,
)


def count_verdicts(rows: pa.Table) -> dict[str, int]:
    """How many series have each verdict, as metadata."""
    counts = Counter(rows["verdict"].to_pylist())
    return {name: counts[verdict] for name, verdict in (("drift", "drift"), ("watch", "watch"), ("not_compared", None))}


def build_drift_result(rows: pa.Table, n_checked: int, severity: Severity, subject: Subject) -> dg.AssetCheckResult:
    """A check's result over rows with verdicts, of `n_checked` series in all: as loud as the worst of them, which stands first."""
    series = rows.filter(pc.field("verdict").isin(["watch", "drift"]) | pc.field("night_first_snapshot").is_valid()).to_pylist()
    series.sort(key=sort_key_of_verdict)
    levels = {getattr(severity, word) for row in series for word in (row["verdict"], row["night_verdict"]) if word in NEWS}
    levels -= {"OFF"}
    return dg.AssetCheckResult(
        passed=not levels,
        severity=dg.AssetCheckSeverity.ERROR if "ERROR" in levels else dg.AssetCheckSeverity.WARN,
        metadata={
            "checked": n_checked,
            "drift": sum(row["verdict"] == "drift" for row in series),
            "watch": sum(row["verdict"] == "watch" for row in series),
            "all_models_moved": sum(map(is_night_shift, series)),
            "first": dg.MetadataValue.json([_format_offender(row, subject) for row in series[:10]]),
        },
    )


def _format_offender(row: Mapping[str, Any], subject: Subject) -> str:
    """One offender: who, where, how much, since when, what the judges made of it, what changed besides, and what all models did."""
    who = f"{row['verdict']}: {format_series(row, subject.keys)}"
    night = f"; the night: {describe_night(row)}" if is_night_shift(row) else ""
    judges = f"; {words}" if (words := describe_judges(row)) else ""
    if row["verdict"] != "drift":
        return f"{who}: {row['reason']}{judges}{night}"
    size = format_shift(row["shift"])
    bounds = f" ({row['shift_low']:.4f} to {row['shift_high']:.4f})" if row["shift_low"] is not None else ""
    since = f" since {row['first_snapshot']}"
    changes = "".join(f"; {change['before']} -> {change['after']}" for change in row.get("changes") or ())
    items = format_moved_items((row["moved"] or ())[:3])
    about = "".join(f"; {line}" for line in row["about"] or ())
    return f"{who}: {size}{bounds}{since}{judges}{about}{changes}{f'; moved most: {items}' if items else ''}{night}"


def read_drift(store: Store, family: str) -> pa.Table:
    """The verdicts on a family's models."""
    return store.warehouse.read("drift", family=family)


def merge_sent_verdicts(store: Store, family: str, checks: pa.Table) -> pa.Table:
    """`checks` with the verdicts that were sent before, as the stored table has them.

    One that cannot be read is about to be replaced, and verdicts that were sent are sent again.
    """
    earlier = store.warehouse.read_earlier("drift", columns=["model_variant", "way", "sent", "night_sent"], family=family)
    return checks if earlier is None else copy_sent_verdicts(checks, earlier)


def send_verdicts(
    context: dg.AssetExecutionContext,
    store: Store,
    checks: pa.Table,
    subject: Subject,
    tell: Sequence[str],
    order: Sequence[str],
) -> str:
    """Send the new verdicts of a table that was written; what came of it, in words. Those that did not arrive are sent with the next table.

    `tell`: the verdicts to send; `order`: the labels of all snapshots in their order in time.
    """
    news, family = len(find_unsent(checks, tell)), subject.family
    if store.webhook is None:
        return "off: DTEF_WEBHOOK is not set"
    if not news:
        return "nothing new to send"
    if problem := store.webhook.send({"family": family, **message(checks, subject, tell, order=order)}):
        context.log.warning(f"webhook: {problem}; sent again with the next `{family}_drift`")
        return f"failed, and sent again the next time: {problem}"
    store.warehouse.write("drift", mark_sent(checks, tell), family=family)
    return f"sent the verdicts of {news} series"


def build_unsent_result(store: Store, subject: Subject, tell: Sequence[str]) -> dg.AssetCheckResult:
    """A check's result: warns while the webhook has not accepted a verdict of the table that was due to be sent."""
    rows = read_drift(store, subject.family)
    waiting = [] if store.webhook is None else find_unsent(rows, tell).to_pylist()
    return verdict(
        [f"{format_series(row, subject.keys)}: {row['verdict']}" for row in waiting],
        n_checked=len(rows),
        severity=dg.AssetCheckSeverity.WARN,
    )
