"""What a run warns of beside its boards: responses that could not be read, and a snapshot that counts as earlier than others."""

from collections.abc import Iterator, Sequence

import duckdb

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.asking.snapshot_label import label_time
from dtef_pipeline.asking.snapshot_order import among, snapshot_order
from dtef_pipeline.boards.served import mixed_served
from dtef_pipeline.tables import ANSWERED, READ_ENOUGH
from dtef_pipeline.text.counted import counted

SAME_RESPONSE = ("prompt_id", "question_id", "context_level", "model_variant", "snapshot", "draw")
"""Columns by which rows of `scores` and `predictions` are of one response."""
_OF_MODELS = f"NOT {COMPUTED_SQL} AND list_contains($1, round) AND list_contains($2, model_variant)"


def run_warnings(
    connection: duckdb.DuckDBPyConnection, snapshot: str, rounds: Sequence[str], variants: Sequence[str]
) -> Iterator[str]:
    """A line for each thing to warn of; `connection` has `scores`, in the order of all snapshots (see `snapshot_order`)."""
    given = [list(rounds), list(variants)]
    yield from _unread(connection, snapshot, given)
    yield from mixed_served(connection, "predictions", snapshot)
    yield from _counts_as_earlier(connection, snapshot, given)


def _unread(connection: duckdb.DuckDBPyConnection, snapshot: str, given: list[list[str]]) -> Iterator[str]:
    """Models of which fewer than READ_ENOUGH of the responses could be read."""
    rows = connection.execute(
        "SELECT model, count(*) AS answered, count(*) FILTER (status <> 'ok') AS unread, mode(reason) FILTER (status <> 'ok') "
        f"FROM scores WHERE {_OF_MODELS} AND snapshot = $3 AND list_contains($4, status) "
        "GROUP BY model ORDER BY model",
        [*given, snapshot, list(ANSWERED)],
    ).fetchall()
    for model, answered, unread, reason in rows:
        if answered - unread >= READ_ENOUGH * answered:
            continue
        quoted = model.replace("'", "''")
        share, little = (
            ("none", ", so that its scores say little") if unread == answered else (f"only {answered - unread:,}", "")
        )
        texts = (
            f"SELECT DISTINCT reason, response FROM scores JOIN predictions USING ({', '.join(SAME_RESPONSE)}) "
            f"WHERE scores.model = '{quoted}' AND snapshot = '{snapshot}' AND status <> 'ok' LIMIT 20"
        )
        yield (
            f"{model}: {share} of {counted(answered, 'response')} could be read ({unread / answered:.1%} unread){little}; "
            f'most often: {reason}; see what it wrote: dtef sql "{texts}"'
        )


def _counts_as_earlier(connection: duckdb.DuckDBPyConnection, snapshot: str, given: list[list[str]]) -> Iterator[str]:
    """That another snapshot of these models counts as the later one, so that boards over all snapshots do not show this one."""
    answered = connection.execute(
        f"SELECT DISTINCT snapshot::VARCHAR FROM scores WHERE {_OF_MODELS} AND list_contains($3, status)",
        [*given, list(ANSWERED)],
    ).fetchall()
    order = among(snapshot_order(connection), [label for (label,) in answered])
    if snapshot not in order or order[-1] == snapshot:
        return
    counts_as = "the date that it begins with" if label_time(snapshot) else "the time of its first response"
    yield (
        f"snapshot {snapshot} counts as {counts_as}, which is before {order[-1]}: where both have a response, `dtef leaderboard` and the "
        f"report go on showing the later one; this one: `dtef leaderboard --snapshot {snapshot}`"
    )
