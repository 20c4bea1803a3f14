"""The records of a store of votes as JSON lines: their fields and allowed values.

Ids that are hashes are checked, so that no line can have the id of other content.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, astuple, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from dtef_pipeline.asking.request import AskingRun
from dtef_pipeline.documents import Part, format_in_one_line, format_value
from dtef_pipeline.errors import BallotError
from dtef_pipeline.identity import digest
from dtef_pipeline.preference.votes import (
    ID_IN_WORDS,
    LONGEST_JUSTIFICATION,
    Choice,
    Confidence,
    PairedResponse,
    ReviewerKind,
    Side,
    Vote,
    VotePair,
    is_id,
    make_paired_response,
    read_ballot,
)

LINE_SCHEMA = 1
BLINDING_VERSION = 2
"""Version of the rules that hid names when a pair was made. 2: also hides the models' exact names, however short, and more names of makers."""
BALLOT_KIND = "ballot"
"""The kind of a submitted vote that no store has accepted yet."""
LONGEST_JUDGE_ID = 2_000
"""Maximum length of a judge's id, in characters: it contains the model with all settings."""
_REVIEWER_ID_FORM = f"{ID_IN_WORDS}; of a judge {LONGEST_JUDGE_ID:,}"
_FIRST_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_IN_WORDS = "a time from 1970 on with its zone, such as 2026-01-31T12:00:00.000000+00:00"
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode

Record = dict[str, Any]
"""One row of the store: the fields of its kind, times as `datetime` in UTC."""


class RunManifest(NamedTuple):
    """The run whose responses were paired."""

    family: str
    snapshot: str
    code_version: str
    """Hash of the software that made the pairs."""
    config_hash: str
    """Hash of its models and settings at that time."""

    @property
    def manifest_id(self) -> str:
        return digest("run manifest", *self)


def _require_text(value: str) -> str:
    if "\0" in value:
        raise ValueError(f"got {format_value(value)}; allowed: a text without the character NUL")
    return value


def _require_reason(value: str) -> str:
    if not value.strip():
        raise ValueError(f"got {format_value(value)}; allowed: a text that is not blank")
    return value


def _require_judge_id(value: Any) -> Any:
    if not is_id(value, LONGEST_JUDGE_ID):
        raise ValueError(f"got {format_value(value)}; allowed: {_REVIEWER_ID_FORM}")
    return value


def _read_time(value: Any) -> datetime:
    """Return the time in UTC. Raises ValueError for text without a valid time and zone."""
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        if time.tzinfo and time.astimezone(UTC) >= _FIRST_TIME:
            return time.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"got {format_value(value)}; allowed: {_TIME_IN_WORDS}")


_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
_Text = Annotated[str, AfterValidator(_require_text)]
_Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
_Time = Annotated[datetime, BeforeValidator(_read_time)]
_AnyId = Annotated[str, BeforeValidator(_require_judge_id)]


class _ManifestFields(Part):
    manifest_id: _Hash
    family: _Text
    snapshot: _Text
    code_version: _Text
    config_hash: _Text


class _ResponseFields(Part):
    response_id: _Hash
    family: _Text
    item_id: _Text
    player: _Text
    draw: _Count
    snapshot: _Text
    prompt: _Text
    text: _Text
    names: list[_Text]
    request_keys: list[_Text]
    manifest_id: _Hash | None


class _RunFields(Part):
    run_id: _Hash
    code_version: _Text
    config_hash: _Text


class _RequestFields(Part):
    request_id: _Hash
    response_id: _Hash
    request_key: _Text
    run_id: _Hash


class _PairFields(Part):
    pair_id: _Hash
    family: _Text
    item_id: _Text
    draw: _Count
    left_id: _Hash
    right_id: _Hash
    replaced: _Count
    blinding: _Count = 1
    made_at: _Time | None


class _ReviewerFields(Part):
    reviewer_id: _AnyId
    reviewer_kind: ReviewerKind
    consent: bool
    pseudonymous: bool
    said_at: _Time | None


class _VoteFields(Part):
    vote_id: _Hash
    pair_id: _Hash
    reviewer_id: _AnyId
    reviewer_kind: ReviewerKind
    choice: Choice
    shown_as_a: Side
    confidence: Confidence | None
    justification: Annotated[_Text, Field(max_length=LONGEST_JUSTIFICATION)]
    voted_at: _Time | None


class _VoidFields(Part):
    void_id: _Hash
    vote_id: _Hash
    admin: _Text
    reason: Annotated[_Text, AfterValidator(_require_reason)]
    voided_at: _Time


_RECORD_MODELS: Mapping[str, type[Part]] = {
    "manifest": _ManifestFields,
    "response": _ResponseFields,
    "run": _RunFields,
    "request": _RequestFields,
    "pair": _PairFields,
    "reviewer": _ReviewerFields,
    "vote": _VoteFields,
    "void": _VoidFields,
}
RECORD_FIELDS: Mapping[str, tuple[str, ...]] = {kind: tuple(model.model_fields) for kind, model in _RECORD_MODELS.items()}
"""The fields of each kind, the key first."""
_FIRST_BLINDING = ("blinding", 1)
"""Omitted from lines, so that older lines are unchanged."""


def get_key_field(kind: str) -> str:
    """Return the key field of a kind of records."""
    return RECORD_FIELDS[kind][0]


def record_line(kind: str, record: Record) -> str:
    """Return a record as canonical JSON in one line: keys sorted, no spaces, times in UTC to the microsecond."""
    values = {
        name: value.isoformat(timespec="microseconds") if isinstance(value, datetime) else value
        for name, value in record.items()
        if (name, value) != _FIRST_BLINDING
    }
    return _encoded({"kind": kind, "schema": LINE_SCHEMA, **values})


def read_record(values: object) -> tuple[str, Record]:
    """Return the kind and the record of a parsed line; for a ballot its fields.

    Raises BallotError with the found and allowed values.
    """
    if not isinstance(values, dict):
        raise BallotError(f"got {format_value(values)}; allowed: one JSON object a line")
    kind, schema = values.get("kind"), values.get("schema")
    if kind not in (*RECORD_FIELDS, BALLOT_KIND):
        raise BallotError(f"kind: got {format_value(kind)}; allowed: {', '.join((*RECORD_FIELDS, BALLOT_KIND))}")
    if isinstance(schema, bool) or schema != LINE_SCHEMA:
        raise BallotError(f"schema: got {format_value(schema)}; allowed: {LINE_SCHEMA}")
    fields = {name: value for name, value in values.items() if name not in ("kind", "schema")}
    if kind == BALLOT_KIND:
        return BALLOT_KIND, asdict(read_ballot(fields))
    try:
        record = _RECORD_MODELS[kind].model_validate(fields).model_dump()
    except ValidationError as error:
        raise BallotError(format_in_one_line(error, _RECORD_MODELS[kind])) from None
    if record.get("reviewer_kind") == "person" and not is_id(record["reviewer_id"]):
        raise BallotError(f"reviewer_id: got {format_value(record['reviewer_id'])}; allowed: {ID_IN_WORDS}")
    if kind == "pair" and record["left_id"] >= record["right_id"]:
        raise BallotError(
            f"left_id: got {record['left_id']}; allowed: the lower of the two ids of responses, {record['right_id']}"
        )
    if kind in _IDS and record[get_key_field(kind)] != (expected := _IDS[kind](record)):
        raise BallotError(
            f"{get_key_field(kind)}: got {record[get_key_field(kind)]}; allowed: the hash of the other fields, {expected}"
        )
    return kind, record


_OF_RESPONSE = ("family", "item_id", "player", "draw", "snapshot", "prompt", "text")
_OF_PAIR = ("pair_id", "family", "item_id", "draw", "left_id", "right_id")


def build_response_record(response: PairedResponse, manifest_id: str | None) -> Record:
    lists = {"names": list(response.names), "request_keys": list(response.request_keys)}
    texts = {name: getattr(response, name) for name in ("response_id", *_OF_RESPONSE)}
    return {**texts, **lists, "manifest_id": manifest_id}


def build_response(record: Record) -> PairedResponse:
    """Return the response of a record, with the id computed from its fields."""
    texts = {name: record[name] for name in _OF_RESPONSE}
    return make_paired_response(**texts, names=tuple(record["names"]), request_keys=tuple(record["request_keys"]))


def run_record(run: AskingRun) -> Record:
    return {"run_id": run.run_id, **run._asdict()}


def request_record(response_id: str, request_key: str, run_id: str) -> Record:
    """Return the record of which run made a response's request."""
    return {
        "request_id": _request_id(response_id, request_key),
        "response_id": response_id,
        "request_key": request_key,
        "run_id": run_id,
    }


def _request_id(response_id: str, request_key: str) -> str:
    return digest("request behind", response_id, request_key)


def pair_record(pair: VotePair, replaced: int, made_at: datetime | None) -> Record:
    names = dict(zip(_OF_PAIR, astuple(pair), strict=True))
    return {**names, "replaced": replaced, "blinding": BLINDING_VERSION, "made_at": made_at}


def pair_of(record: Mapping[str, Any]) -> VotePair:
    return VotePair(*(record[name] for name in _OF_PAIR))


def vote_of(record: Record) -> Vote:
    choice: Choice = record["choice"]
    side: Side = record["shown_as_a"]
    details = (record["confidence"], record["justification"], record["voted_at"], record["reviewer_kind"])
    return Vote(record["pair_id"], record["reviewer_id"], choice, *details, side)


def void_id(vote_id: str) -> str:
    """Return the id of a vote's void, of which there is at most one."""
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
"""Return the expected id of a record, for kinds whose id is a hash of the line. Pair ids depend on a salt that no file contains."""


PSEUDONYM_PREFIX = "reviewer-"
_HIDDEN_TIMES = ("said_at", "voted_at", "voided_at")


@dataclass(frozen=True, slots=True)
class ExportNames:
    """The pseudonyms of one export. They cannot link two exports, and identify reviewers only with the salt."""

    key: bytes

    def make_pseudonym(self, reviewer_id: str) -> str:
        """Return the reviewer's pseudonym: reviewer- and 24 hexadecimal digits."""
        return PSEUDONYM_PREFIX + self._hash("reviewer", reviewer_id)[:24]

    def vote(self, vote_id: str) -> str:
        """Return the id of a vote of such a reviewer: 32 hexadecimal digits."""
        return self._hash("vote", vote_id)[:32]

    def hide_names(self, kind: str, record: Record) -> Record:
        """Return a record, vote or void of such a reviewer with pseudonyms, and with times reduced to days (UTC)."""
        public_record = dict(record)
        if "reviewer_id" in record:
            public_record["reviewer_id"] = self.make_pseudonym(record["reviewer_id"])
        if "vote_id" in record:
            public_record["vote_id"] = self.vote(record["vote_id"])
        if kind == "void":
            public_record["void_id"] = void_id(public_record["vote_id"])
        if kind == "reviewer":
            public_record["pseudonymous"] = True
        for name in _HIDDEN_TIMES:
            if isinstance(time := public_record.get(name), datetime):
                public_record[name] = time.replace(hour=0, minute=0, second=0, microsecond=0)
        return public_record

    def _hash(self, *parts: str) -> str:
        return hmac.new(self.key, "\n".join(parts).encode(), "sha256").hexdigest()


def hash_export_contents(records: Mapping[str, Iterable[Record]]) -> str:
    """Return 64 hexadecimal digits that identify the reviewers' data in an export."""
    hasher = hashlib.sha256()
    for kind in ("reviewer", "vote", "void"):
        for record in records.get(kind, ()):
            hasher.update(f"{record_line(kind, record)}\n".encode())
    return hasher.hexdigest()


def export_names(contents: str, salt: str) -> ExportNames:
    """Return the names of the export of these contents: equal for equal contents, else different."""
    return ExportNames(hmac.new(salt.encode(), contents.encode(), "sha256").digest())


def is_shown(reviewer: Record | None) -> bool:
    """Return whether exports keep the id: by consent, or because it is already a pseudonym, so that imports export unchanged."""
    return reviewer is not None and bool(reviewer["consent"] or reviewer["pseudonymous"])
