"""The records that a store of votes is made of, as they stand in JSON lines: which fields there are, and what each may hold.

Everything that was made by hash is checked by it, so that no line can stand for something else than it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dtef_pipeline.asking.asking_run import AskingRun
from dtef_pipeline.errors import BallotError
from dtef_pipeline.identity import digest
from dtef_pipeline.preference.ballots import BALLOT_FIELDS, LONGEST_ID, is_id, read_ballot
from dtef_pipeline.preference.votes import (
    CHOICES,
    LONGEST_JUSTIFICATION,
    MOST_CONFIDENT,
    REVIEWER_KINDS,
    Choice,
    PairedResponse,
    Side,
    Vote,
    VotePair,
    make_paired_response,
)
from dtef_pipeline.text.quantity_words import format_count
from dtef_pipeline.text.well_formed import replace_surrogates

LINE_SCHEMA = 1
BLINDING_VERSION = 2
"""Of the rules by which names were hidden when a pair was made. 2: the very names of the two models, however short, and more of makers."""
BALLOT_KIND = "ballot"
"""The kind of a line that a reviewer hands in: a vote that no store has taken yet."""
LONGEST_JUDGE_ID = 2_000
"""Characters of the id of a judge: that of its model, with all settings."""
_MOST_COUNTED = 2**31 - 1
_FIRST_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_HASH = re.compile(r"[0-9a-f]{32}")
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode

Record = dict[str, Any]
"""One row of the store: the fields of its kind, times as `datetime` in UTC."""


class RunManifest(NamedTuple):
    """What is known of the run whose responses were paired."""

    family: str
    snapshot: str
    code_version: str
    """Of the software that made the pairs."""
    config_hash: str
    """Of the models and settings that the software was set up with then."""

    @property
    def manifest_id(self) -> str:
        return digest("run manifest", *self)


class _Field(NamedTuple):
    allowed: str
    takes: Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and (value.isascii() or replace_surrogates(value) == value) and "\0" not in value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_COUNTED


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _allow_null(field: _Field) -> _Field:
    return _Field(f"{field.allowed}, or null", lambda value: value is None or field.takes(value))


def _allow_values(*choices: str) -> _Field:
    return _Field(", ".join(choices), lambda value: isinstance(value, str) and value in choices)


_A_HASH = _Field("32 hexadecimal digits", lambda value: isinstance(value, str) and _HASH.fullmatch(value) is not None)
_A_TEXT = _Field("a text", _is_text)
_A_COUNT = _Field("a whole number from 0 on", _is_whole)
_SEVERAL_TEXTS = _Field("a list of texts", _is_text_list)
_A_FLAG = _Field("true or false", lambda value: isinstance(value, bool))
_A_TIME = _Field(
    "a time from 1970 on with its zone, such as 2026-01-31T12:00:00.000000+00:00",
    lambda value: isinstance(value, datetime) and value >= _FIRST_TIME,
)
_AN_ID = _Field(
    f"a text of 1 to {format_count(LONGEST_ID, 'printable character')}; of a judge {LONGEST_JUDGE_ID:,}",
    lambda value: is_id(value, LONGEST_JUDGE_ID),
)
_A_REASON = _Field("a text that is not blank", lambda value: _is_text(value) and bool(value.strip()))
_A_CONFIDENCE = _Field(
    f"a whole number from 1 to {MOST_CONFIDENT}", lambda value: _is_whole(value) and 1 <= value <= MOST_CONFIDENT
)
_A_JUSTIFICATION = _Field(
    f"a text of at most {format_count(LONGEST_JUSTIFICATION, 'character')}",
    lambda value: _is_text(value) and len(value) <= LONGEST_JUSTIFICATION,
)
_A_KIND = _allow_values(*REVIEWER_KINDS)

RECORD_FIELDS: Mapping[str, Mapping[str, _Field]] = {
    "manifest": {
        "manifest_id": _A_HASH,
        "family": _A_TEXT,
        "snapshot": _A_TEXT,
        "code_version": _A_TEXT,
        "config_hash": _A_TEXT,
    },
    "response": {
        "response_id": _A_HASH,
        "family": _A_TEXT,
        "item_id": _A_TEXT,
        "player": _A_TEXT,
        "draw": _A_COUNT,
        "snapshot": _A_TEXT,
        "prompt": _A_TEXT,
        "text": _A_TEXT,
        "names": _SEVERAL_TEXTS,
        "request_keys": _SEVERAL_TEXTS,
        "manifest_id": _allow_null(_A_HASH),
    },
    "run": {"run_id": _A_HASH, "code_version": _A_TEXT, "config_hash": _A_TEXT},
    "request": {"request_id": _A_HASH, "response_id": _A_HASH, "request_key": _A_TEXT, "run_id": _A_HASH},
    "pair": {
        "pair_id": _A_HASH,
        "family": _A_TEXT,
        "item_id": _A_TEXT,
        "draw": _A_COUNT,
        "left_id": _A_HASH,
        "right_id": _A_HASH,
        "replaced": _A_COUNT,
        "blinding": _A_COUNT,
        "made_at": _allow_null(_A_TIME),
    },
    "reviewer": {
        "reviewer_id": _AN_ID,
        "reviewer_kind": _A_KIND,
        "consent": _A_FLAG,
        "pseudonymous": _A_FLAG,
        "said_at": _allow_null(_A_TIME),
    },
    "vote": {
        "vote_id": _A_HASH,
        "pair_id": _A_HASH,
        "reviewer_id": _AN_ID,
        "reviewer_kind": _A_KIND,
        "choice": _allow_values(*CHOICES),
        "shown_as_a": _allow_values("left", "right"),
        "confidence": _allow_null(_A_CONFIDENCE),
        "justification": _A_JUSTIFICATION,
        "voted_at": _allow_null(_A_TIME),
    },
    "void": {"void_id": _A_HASH, "vote_id": _A_HASH, "admin": _A_TEXT, "reason": _A_REASON, "voided_at": _A_TIME},
}
"""The fields of each kind, first the one that it is known by."""
_FIRST_BLINDING = ("blinding", 1)
"""Left out of lines: those of before it was noted are the same."""
_TIMES = frozenset({"made_at", "said_at", "voted_at", "voided_at"})


def get_key_field(kind: str) -> str:
    """The field that records of a kind are known by."""
    return next(iter(RECORD_FIELDS[kind]))


def record_line(kind: str, record: Record) -> str:
    """A record as canonical JSON in one line: keys sorted, no spaces, times in UTC to the microsecond."""
    values = {
        name: value.isoformat(timespec="microseconds") if isinstance(value, datetime) else value
        for name, value in record.items()
        if (name, value) != _FIRST_BLINDING
    }
    return _encoded({"kind": kind, "schema": LINE_SCHEMA, **values})


def parse_line(line: bytes | str) -> object:
    """The JSON of a line. Raises BallotError where an object has a key twice, of which no reading would be right; ValueError for no JSON."""
    return json.loads(line, object_pairs_hook=_refuse_duplicate_keys)


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in values if names.count(name) > 1)
        raise BallotError(f"got the key {_shorten(twice)} more than once; allowed: each key once")
    return values


def read_record(values: object) -> tuple[str, Record]:
    """The kind and the record of a parsed line; of a ballot, the fields of the ballot.

    Raises BallotError: what arrived, what is allowed.
    """
    if not isinstance(values, dict):
        raise BallotError(f"got {_shorten(values)}; allowed: one JSON object a line")
    kind, schema = values.get("kind"), values.get("schema")
    if kind not in (*RECORD_FIELDS, BALLOT_KIND):
        raise BallotError(f"kind: got {_shorten(kind)}; allowed: {', '.join((*RECORD_FIELDS, BALLOT_KIND))}")
    if isinstance(schema, bool) or schema != LINE_SCHEMA:
        raise BallotError(f"schema: got {_shorten(schema)}; allowed: {LINE_SCHEMA}")
    fields = {name: value for name, value in values.items() if name not in ("kind", "schema")}
    if kind == BALLOT_KIND:
        ballot = read_ballot(fields)
        return BALLOT_KIND, {name: getattr(ballot, name) for name in BALLOT_FIELDS}
    record = _validate_record(RECORD_FIELDS[kind], fields)
    if record.get("reviewer_kind") == "person" and not is_id(record["reviewer_id"]):
        raise BallotError(f"reviewer_id: got {_shorten(record['reviewer_id'])}; allowed: {_AN_ID.allowed}")
    if kind == "pair" and record["left_id"] >= record["right_id"]:
        raise BallotError(
            f"left_id: got {record['left_id']}; allowed: the lower of the two ids of responses, {record['right_id']}"
        )
    if kind in _IDS and record[get_key_field(kind)] != (expected := _IDS[kind](record)):
        raise BallotError(
            f"{get_key_field(kind)}: got {record[get_key_field(kind)]}; allowed: the hash of the other fields, {expected}"
        )
    return kind, record


def _validate_record(fields: Mapping[str, _Field], values: Mapping[str, Any]) -> Record:
    if "blinding" in fields:
        values = dict([_FIRST_BLINDING]) | dict(values)
    if values.keys() != fields.keys():
        unknown = sorted(map(str, values.keys() - fields.keys()))
        missing = [name for name in fields if name not in values]
        problem = f"unknown field {_shorten(unknown[0])}" if unknown else f"{missing[0]} is missing"
        raise BallotError(f"{problem}; allowed: {', '.join(fields)}")
    record = {}
    for name, field in fields.items():
        value = _parse_time(values[name]) if name in _TIMES else values[name]
        if not field.takes(value):
            raise BallotError(f"{name}: got {_shorten(values[name])}; allowed: {field.allowed}")
        record[name] = value
    return record


def _parse_time(value: object) -> object:
    """A time in UTC, of a text that is one and names its zone; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        time = datetime.fromisoformat(value)
        return time.astimezone(UTC) if time.tzinfo else value
    except (ValueError, OverflowError):
        return value


def _shorten(value: object) -> str:
    # As JSON spells them: null, true.
    is_word = value is None or isinstance(value, bool)
    text = json.dumps(value) if is_word else repr(value[:80] if isinstance(value, str) else value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def build_response_record(response: PairedResponse, manifest_id: str | None) -> Record:
    fields = ("response_id", "family", "item_id", "player", "draw", "snapshot", "prompt", "text")
    return {name: getattr(response, name) for name in fields} | {
        "names": list(response.names),
        "request_keys": list(response.request_keys),
        "manifest_id": manifest_id,
    }


def build_response(record: Record) -> PairedResponse:
    """The response of a record, under the id that its fields have."""
    return make_paired_response(
        record["family"],
        record["item_id"],
        record["player"],
        record["text"],
        prompt=record["prompt"],
        draw=record["draw"],
        snapshot=record["snapshot"],
        names=tuple(record["names"]),
        request_keys=tuple(record["request_keys"]),
    )


def run_record(run: AskingRun) -> Record:
    return {"run_id": run.run_id, **run._asdict()}


def request_record(response_id: str, request_key: str, run_id: str) -> Record:
    """By which run a request behind a response was made."""
    return {
        "request_id": _request_id(response_id, request_key),
        "response_id": response_id,
        "request_key": request_key,
        "run_id": run_id,
    }


def _request_id(response_id: str, request_key: str) -> str:
    return digest("request behind", response_id, request_key)


def pair_record(pair: VotePair, replaced: int, made_at: datetime | None, blinding: int = BLINDING_VERSION) -> Record:
    return {
        "pair_id": pair.pair_id,
        "family": pair.family,
        "item_id": pair.item_id,
        "draw": pair.draw,
        "left_id": pair.left,
        "right_id": pair.right,
        "replaced": replaced,
        "blinding": blinding,
        "made_at": made_at,
    }


def pair_of(record: Mapping[str, Any]) -> VotePair:
    return VotePair(*(record[name] for name in ("pair_id", "family", "item_id", "draw", "left_id", "right_id")))


def vote_of(record: Record) -> Vote:
    choice: Choice = record["choice"]
    side: Side = record["shown_as_a"]
    details = (record["confidence"], record["justification"], record["voted_at"], record["reviewer_kind"])
    return Vote(record["pair_id"], record["reviewer_id"], choice, *details, side)


def void_id(vote_id: str) -> str:
    """A vote is voided once."""
    return digest("void", vote_id)


_IDS: Mapping[str, Callable[[Record], str]] = {
    "manifest": lambda record: (
        RunManifest(record["family"], record["snapshot"], record["code_version"], record["config_hash"]).manifest_id
    ),
    "response": lambda record: build_response(record).response_id,
    "run": lambda record: AskingRun(record["code_version"], record["config_hash"]).run_id,
    "request": lambda record: _request_id(record["response_id"], record["request_key"]),
    "void": lambda record: void_id(record["vote_id"]),
}
"""The id that a record has to have, of the kinds whose id is a hash of what the line says. Ids of pairs are keyed by a salt that no file has."""
