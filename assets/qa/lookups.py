"""Stored look-ups of a server; each text is looked up only once."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from dtef_pipeline.identity import digest
from dtef_pipeline.qa.tables import QA_LOOKUPS, QA_SPACE
from dtef_pipeline.qa.transcripts.metadata import format_filter
from dtef_pipeline.qa.transcripts.remote import NOT_LOOKED_UP, RemoteRetriever, StoredLookUps, normalise_model_string
from dtef_pipeline.qa.transcripts.retriever import Retrieval, SourceText
from resources.json_posts import find_look_up_server
from resources.settings import Settings
from resources.warehouse import Warehouse

LOOK_UPS_AT_ONCE = 8
LOOK_UPS_BETWEEN_WRITINGS = 32
"""Number of look-ups between two writes, from which a killed run continues. If all of them fail, no more are made."""


class RetrievalServer(NamedTuple):
    """A retrieval server."""

    retriever: RemoteRetriever
    host: str
    """Scheme and host."""


def open_retrieval_server(settings: Settings) -> RetrievalServer:
    """Return the server that the environment names. Raises ConfigError if it names no server, or an invalid model."""
    server = find_look_up_server(settings)
    model = None if settings.socioscope_model is None else normalise_model_string(settings.socioscope_model)
    return RetrievalServer(RemoteRetriever(server.post, server.where, model), server.where)


class _LookUp(NamedTuple):
    """Key of a row of `qa_lookups` within its part."""

    lookup_id: str
    server: str


class LookUpCache:
    """Look-ups for a part; earlier successful ones are read from `qa_lookups`.

    Each server has its own rows. The last row of a text is from the latest configured server.
    """

    def __init__(self, warehouse: Warehouse, key: str) -> None:
        self._warehouse, self._at = warehouse, QA_SPACE.levels(key)

    @cached_property
    def _rows(self) -> dict[_LookUp, dict[str, Any]]:
        """Return stored look-ups, read only when needed. Unreadable ones are looked up again."""
        rows = self._warehouse.read_earlier("qa_lookups", **self._at)
        return {} if rows is None else {_LookUp(row["lookup_id"], row["server"]): row for row in rows.to_pylist()}

    def find_cached(self, texts: Sequence[str], k: int, where: Mapping[str, str | int]) -> StoredLookUps:
        """Return the results of the latest configured server for these texts; if it failed, also those of an earlier server. Makes no
        requests."""
        rows = defaultdict(list)
        for key, row in self._rows.items():
            rows[key.lookup_id].append(row)
        return StoredLookUps({text: _choose_last_success(rows[_hash_lookup(text, k, where)]) for text in texts})

    def list_expected(self, settings: Settings, texts: Sequence[str], k: int, where: Mapping[str, str | int]) -> StoredLookUps:
        """Return the results of `fetch_missing` without requests: none if the present server has no result yet, or failed.

        Without a server it equals `find_cached`. Raises ConfigError for an invalid address.
        """
        if settings.socioscope_url is None:
            return self.find_cached(texts, k, where)
        server = find_look_up_server(settings).where
        keys = {text: _LookUp(_hash_lookup(text, k, where), server) for text in texts}
        waiting = Retrieval(problem=NOT_LOOKED_UP)
        return StoredLookUps(
            {text: _parse_retrieval(self._rows[key]) if self._is_found(key) else waiting for text, key in keys.items()}
        )

    def fetch_missing(self, settings: Settings, texts: Sequence[str], k: int, where: Mapping[str, str | int]) -> StoredLookUps:
        """Return the results of `find_cached`, after requesting missing ones from the server.

        Raises ConfigError as `open_retrieval_server`.
        """
        server = open_retrieval_server(settings)
        lookups = {_LookUp(_hash_lookup(text, k, where), server.host): text for text in texts}
        self._write_from_now_on([key for key in lookups if self._is_found(key)])
        missing = [key for key in lookups if not self._is_found(key)]
        with ThreadPoolExecutor(LOOK_UPS_AT_ONCE) as pool:
            for start in range(0, len(missing), LOOK_UPS_BETWEEN_WRITINGS):
                keys = missing[start : start + LOOK_UPS_BETWEEN_WRITINGS]
                results = list(pool.map(lambda key: server.retriever.retrieve(lookups[key], k, where), keys))
                self._write_additional(keys, results)
                if len(keys) == LOOK_UPS_BETWEEN_WRITINGS and all(result.problem for result in results):
                    remaining = missing[start + LOOK_UPS_BETWEEN_WRITINGS :]
                    given_up = (
                        f"was not looked up: the {len(keys)} look-ups before it failed, the last with: {results[-1].problem}"
                    )
                    self._write_additional(remaining, [Retrieval(problem=given_up)] * len(remaining))
                    break
        return self.find_cached(texts, k, where)

    def _is_found(self, key: _LookUp) -> bool:
        row = self._rows.get(key)
        return row is not None and row["problem"] is None

    def _write_from_now_on(self, keys: Sequence[_LookUp]) -> None:
        """Write these look-ups after those of other servers for the same texts."""
        last = {key.lookup_id: key for key in self._rows}
        if behind := [key for key in keys if last[key.lookup_id] != key]:
            self._put_last({key: self._rows[key] for key in behind})

    def _write_additional(self, keys: Sequence[_LookUp], hits: Sequence[Retrieval]) -> None:
        """Write these look-ups in addition to the stored ones."""
        self._put_last(
            {key: {**self._at, **key._asdict(), **_serialize_retrieval(hit)} for key, hit in zip(keys, hits, strict=True)}
        )

    def _put_last(self, rows: Mapping[_LookUp, dict[str, Any]]) -> None:
        for key, row in rows.items():
            self._rows.pop(key, None)
            self._rows[key] = row
        table = pa.Table.from_pylist(list(self._rows.values()), schema=QA_LOOKUPS)
        self._warehouse.write("qa_lookups", table, **self._at)


def _hash_lookup(text: str, k: int, where: Mapping[str, str | int]) -> str:
    return digest("look-up", text, k, format_filter(where))


def _serialize_retrieval(retrieval: Retrieval) -> dict[str, Any]:
    sources = [
        {
            "doc_id": source.doc_id,
            "page_content": source.page_content,
            "metadata": json.dumps(dict(source.metadata), ensure_ascii=False, sort_keys=True),
        }
        for source in retrieval.sources
    ]
    return {"sources": sources, "problem": retrieval.problem}


def _choose_last_success(rows: Sequence[Mapping[str, Any]]) -> Retrieval:
    """Return the last look-up of one text; if it failed, the last successful one, with the problem."""
    if not rows:
        return Retrieval(problem=NOT_LOOKED_UP)
    last = _parse_retrieval(rows[-1])
    earlier = next((row for row in reversed(rows) if row["problem"] is None), None)
    if last.problem is None or earlier is None:
        return last
    return Retrieval(_parse_retrieval(earlier).sources, last.problem, is_earlier=True)


def _parse_retrieval(row: Mapping[str, Any]) -> Retrieval:
    sources = (SourceText(text["doc_id"], text["page_content"], json.loads(text["metadata"])) for text in row["sources"])
    return Retrieval(tuple(sources), row["problem"])
