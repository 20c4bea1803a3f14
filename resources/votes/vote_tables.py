"""The tables of preference votes, in the database of the response store, and their creation.

The tables are append-only: a correction is another row.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from dtef_pipeline.preference.pair_verdicts import parse_request_keys
from dtef_pipeline.preference.vote_records import RECORD_FIELDS, Record
from dtef_pipeline.text.well_formed import replace_surrogates
from resources.responses.database import ResponseDatabase, chunks, find_schema_version, refuse_earlier_schema

VOTE_SCHEMA_VERSION = 4
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
"""The start of times; also the stored time of a reviewer without a recorded consent."""
_ROWS_AT_ONCE = 20_000

vote_metadata = sa.MetaData()
_Text, _Hash, _Time = sa.Text, sa.String(32), sa.BigInteger


def _make_key_column(name: str) -> sa.Column[Any]:
    return sa.Column(name, _Hash, primary_key=True)


def _make_text_columns(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, _Text, nullable=False) for name in names]


vote_versions = sa.Table("preference_store", vote_metadata, sa.Column("schema_version", sa.Integer, primary_key=True))
project = sa.Table(
    "preference_project",
    vote_metadata,
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    *_make_text_columns("salt"),
)
manifests = sa.Table(
    "preference_manifests",
    vote_metadata,
    _make_key_column("manifest_id"),
    *_make_text_columns("family", "snapshot", "code_version", "config_hash"),
)
paired_responses = sa.Table(
    "preference_responses",
    vote_metadata,
    _make_key_column("response_id"),
    *_make_text_columns("family", "item_id", "player"),
    sa.Column("draw", sa.Integer, nullable=False),
    # `names` and `request_keys` are JSON lists.
    *_make_text_columns("snapshot", "prompt", "text", "names", "request_keys"),
    sa.Column("manifest_id", _Hash, sa.ForeignKey(manifests.c.manifest_id)),
)
paired_requests = sa.Table(
    "preference_requests",
    vote_metadata,
    sa.Column("response_id", _Hash, sa.ForeignKey(paired_responses.c.response_id), primary_key=True),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("request_key", _Text, nullable=False),
)
# The runs that requested paired responses, also in other stores; empty for older responses.
paired_runs = sa.Table(
    "preference_runs", vote_metadata, _make_key_column("run_id"), *_make_text_columns("code_version", "config_hash")
)
run_requests = sa.Table(
    "preference_run_requests",
    vote_metadata,
    _make_key_column("request_id"),
    sa.Column("response_id", _Hash, sa.ForeignKey(paired_responses.c.response_id), nullable=False),
    *_make_text_columns("request_key"),
    sa.Column("run_id", _Hash, sa.ForeignKey(paired_runs.c.run_id), nullable=False),
    sa.UniqueConstraint("response_id", "request_key"),
)
pairs = sa.Table(
    "preference_pairs",
    vote_metadata,
    _make_key_column("pair_id"),
    *_make_text_columns("family", "item_id"),
    sa.Column("draw", sa.Integer, nullable=False),
    sa.Column("left_id", _Hash, sa.ForeignKey(paired_responses.c.response_id), nullable=False),
    sa.Column("right_id", _Hash, sa.ForeignKey(paired_responses.c.response_id), nullable=False),
    sa.Column("replaced", sa.Integer, nullable=False),
    sa.Column("blinding", sa.Integer, nullable=False),
    sa.Column("made_at", _Time),
)
# Pair ids depend on a key, so that two of them could have the same responses; this index prevents it.
sa.Index("preference_pairs_of_two", pairs.c.left_id, pairs.c.right_id, unique=True)
# Recorded consent of reviewers with its time; the last entry holds.
reviewers = sa.Table(
    "preference_reviewers",
    vote_metadata,
    sa.Column("reviewer_id", _Text, primary_key=True),
    sa.Column("said_at", _Time, primary_key=True, autoincrement=False),
    *_make_text_columns("reviewer_kind"),
    sa.Column("consent", sa.Boolean, nullable=False),
    sa.Column("pseudonymous", sa.Boolean, nullable=False),
)
votes = sa.Table(
    "preference_votes",
    vote_metadata,
    _make_key_column("vote_id"),
    sa.Column("pair_id", _Hash, sa.ForeignKey(pairs.c.pair_id), nullable=False),
    *_make_text_columns("reviewer_id", "reviewer_kind", "choice", "shown_as_a"),
    sa.Column("confidence", sa.Integer),
    *_make_text_columns("justification"),
    sa.Column("voted_at", _Time),
    sa.UniqueConstraint("pair_id", "reviewer_id"),
)
# An index for the check before each vote whether a judge has voted under the id.
sa.Index("preference_votes_of_one", votes.c.reviewer_id, votes.c.reviewer_kind)
# The requests of a judge behind its vote: the texts in the order shown, then swapped.
judging_requests = sa.Table(
    "preference_judging_requests",
    vote_metadata,
    sa.Column("vote_id", _Hash, sa.ForeignKey(votes.c.vote_id), primary_key=True),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("request_key", _Text, nullable=False),
)
voids = sa.Table(
    "preference_voids",
    vote_metadata,
    _make_key_column("void_id"),
    sa.Column("vote_id", _Hash, sa.ForeignKey(votes.c.vote_id), nullable=False, unique=True),
    *_make_text_columns("admin", "reason"),
    sa.Column("voided_at", _Time, nullable=False),
)
actions = sa.Table(
    "preference_actions",
    vote_metadata,
    sa.Column("place", sa.Integer, primary_key=True),
    *_make_text_columns("who"),
    sa.Column("done_at", _Time, nullable=False),
    # `before` and `after` are JSON objects.
    *_make_text_columns("what", "before", "after"),
)
LEFT_SIDE = paired_responses.alias("of_left")
RIGHT_SIDE = paired_responses.alias("of_right")
SIDE_TEXTS = (
    LEFT_SIDE.c.text.label("left_text"),
    RIGHT_SIDE.c.text.label("right_text"),
    LEFT_SIDE.c.player.label("left_player"),
    RIGHT_SIDE.c.player.label("right_player"),
    LEFT_SIDE.c.names.label("left_names"),
    RIGHT_SIDE.c.names.label("right_names"),
)
"""The texts, and the players who wrote them with their names as JSON."""
TABLE_OF_KIND: Mapping[str, sa.Table] = {
    "manifest": manifests,
    "response": paired_responses,
    "run": paired_runs,
    "request": run_requests,
    "pair": pairs,
    "reviewer": reviewers,
    "vote": votes,
    "void": voids,
}
"""Tables by kind, each after those that it refers to."""
_KEPT_AS_JSON = frozenset({"names", "request_keys"})
_TIMES_KEPT = frozenset({"made_at", "said_at", "voted_at", "voided_at"})


def join_sides(statement: sa.Select[Any]) -> sa.Select[Any]:
    """Return a statement on pairs, joined with the left and the right response of each."""
    return statement.join(LEFT_SIDE, LEFT_SIDE.c.response_id == pairs.c.left_id).join(
        RIGHT_SIDE, RIGHT_SIDE.c.response_id == pairs.c.right_id
    )


def query_listed_rows(
    connection: sa.Connection, database: ResponseDatabase, statement: sa.Select[Any], values: Iterable[str]
) -> Iterator[sa.RowMapping]:
    """Yield the rows of a statement on `database.key_query`, for any number of values."""
    for chunk in chunks(sorted(values)):
        yield from connection.execute(statement, database.keys(chunk)).mappings()


def make_vote_tables(database: ResponseDatabase) -> str:
    """Return the project's salt, after creating missing tables and salt.

    Raises StoreError if code of another version wrote them.
    """
    salt = database.read(_find_salt)
    return salt if salt is not None else database.write(_make_salt, exclusive=True)


def _find_salt(connection: sa.Connection) -> str | None:
    """Return the salt, or None without tables."""
    version = find_schema_version(connection, vote_versions, VOTE_SCHEMA_VERSION, "the votes were")
    advice = "write them to a file with that one's `dtef export votes`, and read it into a new store with `dtef import votes`"
    refuse_earlier_schema(version, VOTE_SCHEMA_VERSION, "the votes were", advice)
    return None if version is None else connection.scalar(sa.select(project.c.salt))


def _make_salt(connection: sa.Connection) -> str:
    """Create tables and salt. A second process waits for the first."""
    if (earlier := _find_salt(connection)) is not None:
        return earlier
    vote_metadata.create_all(connection)
    connection.execute(sa.insert(vote_versions).values(schema_version=VOTE_SCHEMA_VERSION))
    salt = secrets.token_hex(32)
    connection.execute(sa.insert(project).values(place=1, salt=salt))
    return salt


def microseconds(time: datetime) -> int:
    """Return microseconds since 1970 UTC: exact and the same in every engine."""
    return (time - BEGINNING) // timedelta(microseconds=1)


def convert_time(value: int) -> datetime:
    """Return the time stored as microseconds."""
    return BEGINNING + timedelta(microseconds=value)


def decode_time(value: int | None) -> datetime | None:
    return None if value is None else convert_time(value)


def encode_row(record: Record) -> dict[str, Any]:
    """Return a record as stored in its table."""
    row = dict(record)
    for name, value in record.items():
        if isinstance(value, datetime):
            row[name] = microseconds(value)
        elif name == "said_at":
            row[name] = microseconds(value or BEGINNING)
        elif name in _KEPT_AS_JSON:
            row[name] = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return row


def record_of(kind: str, row: Mapping[str, Any] | sa.RowMapping) -> Record:
    """Return the record of a stored row."""
    record = {}
    for name in RECORD_FIELDS[kind]:
        value = row[name]
        if name in _TIMES_KEPT:
            value = None if name == "said_at" and value == 0 else decode_time(value)
        record[name] = json.loads(value) if name in _KEPT_AS_JSON else value
    return record


def add_rows(connection: sa.Connection, database: ResponseDatabase, kind: str, records: Sequence[Record]) -> int:
    """Add records and return how many are new; existing ones are left unchanged."""
    n_added = _add(connection, database, TABLE_OF_KIND[kind], [encode_row(record) for record in records])
    if kind == "response":
        requests = [
            {"response_id": record["response_id"], "place": place, "request_key": key}
            for record in records
            for place, key in enumerate(record["request_keys"])
        ]
        _add(connection, database, paired_requests, requests)
    if kind == "vote":
        links = [
            {"vote_id": record["vote_id"], "place": place, "request_key": key}
            for record in records
            if record["reviewer_kind"] == "judge"
            for place, key in enumerate(parse_request_keys(record["justification"]))
        ]
        _add(connection, database, judging_requests, links)
    return n_added


def _add(connection: sa.Connection, database: ResponseDatabase, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> int:
    statement = database.insert(table).on_conflict_do_nothing()
    n_added = 0
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        chunk = list(rows[start : start + _ROWS_AT_ONCE])
        n_added += connection.execute(statement, chunk, execution_options={"preserve_rowcount": True}).rowcount
    return n_added


def record_action(connection: sa.Connection, user: str, now: datetime, kind: str, before: object, after: object) -> None:
    """Add a row for an administrator's action, in the transaction of the action."""
    states = [json.dumps(state, ensure_ascii=False, sort_keys=True, default=_format_time) for state in (before, after)]
    row = {"who": replace_surrogates(user), "done_at": microseconds(now), "what": kind, "before": states[0], "after": states[1]}
    connection.execute(sa.insert(actions).values(**row))


def _format_time(value: object) -> str:
    """Return a time in ISO format, and other values without a JSON form as text."""
    return value.isoformat() if isinstance(value, datetime) else str(value)


def find_noted_action(connection: sa.Connection, user: str, now: datetime, kind: str) -> dict[str, Any] | None:
    """Return the result of an action at this time, as stored by `record_action`, or None."""
    row = actions.c
    query = sa.select(row.after).where(row.who == replace_surrogates(user), row.done_at == microseconds(now), row.what == kind)
    text = connection.scalar(query.order_by(row.place.desc()).limit(1))
    return None if text is None else dict(json.loads(text))


def choose_latest_reviewers(reviewer_rows: Iterable[Record]) -> dict[str, Record]:
    """Return the latest record of each reviewer."""
    return {
        record["reviewer_id"]: record for record in sorted(reviewer_rows, key=lambda record: record["said_at"] or BEGINNING)
    }
