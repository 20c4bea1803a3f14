"""Hashes that identify prompts, requests and partitions, on which reruns, drift and resuming depend."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring
from typing import Protocol, TypeVar

# One shared encoder, since `json.dumps` creates a new one for every call with options.
canonical_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
"""Return a value as JSON in one line, with sorted keys and no spaces; equal values have the same text."""


def digest(*parts: object) -> str:
    """Return 32 hexadecimal digits of the SHA-256 of the parts as canonical JSON, which is unique per list of parts."""
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()[:32]


def prompt_id(
    system: str,
    user: str,
    item: str | Sequence[str],
    options: Sequence[str] | Sequence[Sequence[str]],
    *,
    response_schema: str | None = None,
    answer_tokens: int | None = None,
) -> str:
    """Return the hash of everything the model sees and of its item, or of a batch's items with their options."""
    limits = [response_schema, answer_tokens] if response_schema or answer_tokens else []
    return digest(system, user, item, options, *limits)


def compute_messages_id(
    messages: Iterable[tuple[str, str]], *, response_schema: str | None = None, answer_tokens: int | None = None
) -> str:
    """Return the prompt id of a conversation of (role, text) messages: the hash of everything the model sees.

    A single system and user text about a known item has its id from `prompt_id` instead.
    """
    limits = [response_schema, answer_tokens] if response_schema or answer_tokens else []
    return digest("messages", [list(message) for message in messages], *limits)


def compute_blueprint_hash(prompt_ids: Iterable[str]) -> str:
    """Return the hash of the sorted prompt ids of one partition."""
    return digest(*sorted(prompt_ids))


def request_key(prompt_id: str, model_variant: str, draw: int, snapshot: str) -> str:
    """Return the primary key of a response in the store."""
    return digest(prompt_id, model_variant, draw, snapshot)


def request_keys(prompt_ids: Iterable[str], model_variant: str, draw: int, snapshot: str) -> list[str]:
    """Return the `request_key` of each prompt, several times as fast because the common part is formatted once."""
    suffix = canonical_json([model_variant, draw, snapshot])[1:]
    sha256, text = hashlib.sha256, encode_basestring
    return [sha256(f"[{text(prompt)},{suffix}".encode()).hexdigest()[:32] for prompt in prompt_ids]


def normalize_text(text: str) -> str:
    """Return text for comparing wordings: composed, casefolded, with single spaces."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text)).strip().casefold()


def partition_key(first: str, second: str) -> str:
    """Return the key of a partition with two levels: `GD4/country:kenya`."""
    return f"{first}/{second}"


def split_partition_key(key: str) -> tuple[str, str]:
    """Return the two levels of a partition key; the second may contain slashes."""
    first, _, second = key.partition("/")
    return first, second


class _HasVersions(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def status(self) -> str: ...


_Versions = TypeVar("_Versions", bound=_HasVersions)


def select_versions_in_play(versions: Iterable[_Versions], first_status: str) -> dict[str, _Versions]:
    """Return, by id, the latest version beyond its first status, or the latest version if none is beyond it.

    A version in use stays in use while its successor is tested; the version that was retired last is not used again.
    """
    ordered_versions = sorted(versions, key=lambda version: (version.id, version.status != first_status, version.version))
    return {version.id: version for version in ordered_versions}
