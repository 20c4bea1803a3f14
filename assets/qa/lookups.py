"""Stored look-ups of a server, and stored vectors: each text is looked up and embedded only once."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.asking.embeddings import hash_text
from dtef_pipeline.asking.models import LOCAL_EMBEDDER
from dtef_pipeline.identity import digest
from dtef_pipeline.qa.tables import QA_LOOKUPS, QA_SPACE, QA_VECTORS
from dtef_pipeline.qa.transcripts.corpus import format_filter
from dtef_pipeline.qa.transcripts.retriever import (
    NOT_LOOKED_UP,
    RemoteRetriever,
    Retrieval,
    SourceText,
    StoredLookUps,
    normalise_model_string,
)
from resources.json_posts import find_look_up_server
from resources.settings import Settings
from resources.warehouse import Warehouse

LOOK_UPS_AT_ONCE = 8
LOOK_UPS_BETWEEN_WRITINGS = 32
"""Number of look-ups between two writes, from which a killed run continues. If all of them fail, no more are made."""


def open_retrieval_server(settings: Settings) -> RemoteRetriever:
    """Return the server that the environment names. Raises ConfigError if it names no server, or an invalid model."""
    server = find_look_up_server(settings)
    model = None if settings.socioscope_model is None else normalise_model_string(settings.socioscope_model)
    return RemoteRetriever(server.post, server.origin, model)


class LookUpCache:
    """Look-ups for a part; earlier successful ones of the same server are read from `qa_lookups`, which has one row per look-up.

    The row of a failed look-up keeps the sources of an earlier one, also of another server.
    """

    def __init__(self, warehouse: Warehouse, key: str) -> None:
        self._warehouse, self._at = warehouse, QA_SPACE.levels(key)

    @cached_property
    def _rows(self) -> dict[str, dict[str, Any]]:
        """Return stored look-ups by id, read only when needed. Unreadable ones are looked up again."""
        rows = self._warehouse.read_earlier("qa_lookups", **self._at)
        return {} if rows is None else {row["lookup_id"]: row for row in rows.to_pylist()}

    def find_cached(self, texts: Sequence[str], k: int, where: Mapping[str, str | int]) -> StoredLookUps:
        """Return the latest results for these texts. Makes no requests."""
        return StoredLookUps({text: _parse_retrieval(self._rows.get(_hash_lookup(text, k, where))) for text in texts})

    def list_expected(self, settings: Settings, texts: Sequence[str], k: int, where: Mapping[str, str | int]) -> StoredLookUps:
        """Return the results of `fetch_missing` without requests: none if the present server has no result yet, or failed.

        Without a server it equals `find_cached`. Raises ConfigError for an invalid address.
        """
        if settings.socioscope_url is None:
            return self.find_cached(texts, k, where)
        server = find_look_up_server(settings).origin
        keys = {text: _hash_lookup(text, k, where) for text in texts}
        rows = {text: self._rows[key] if self._is_found(key, server) else None for text, key in keys.items()}
        return StoredLookUps({text: _parse_retrieval(row) for text, row in rows.items()})

    def fetch_missing(self, settings: Settings, texts: Sequence[str], k: int, where: Mapping[str, str | int]) -> StoredLookUps:
        """Return the results of `find_cached`, after requesting missing ones from the server.

        Raises ConfigError as `open_retrieval_server`.
        """
        server = open_retrieval_server(settings)
        lookups = {_hash_lookup(text, k, where): text for text in texts}
        missing = [key for key in lookups if not self._is_found(key, server.where)]
        with ThreadPoolExecutor(LOOK_UPS_AT_ONCE) as pool:
            for start in range(0, len(missing), LOOK_UPS_BETWEEN_WRITINGS):
                keys = missing[start : start + LOOK_UPS_BETWEEN_WRITINGS]
                results = list(pool.map(lambda key: server.retrieve(lookups[key], k, where), keys))
                self._write(server.where, dict(zip(keys, results, strict=True)))
                if len(keys) == LOOK_UPS_BETWEEN_WRITINGS and all(result.problem for result in results):
                    given_up = (
                        f"was not looked up: the {len(keys)} look-ups before it failed, the last with: {results[-1].problem}"
                    )
                    remaining = missing[start + LOOK_UPS_BETWEEN_WRITINGS :]
                    self._write(server.where, dict.fromkeys(remaining, Retrieval(problem=given_up)))
                    break
        return self.find_cached(texts, k, where)

    def _is_found(self, key: str, server: str) -> bool:
        row = self._rows.get(key)
        return row is not None and row["problem"] is None and row["server"] == server

    def _write(self, server: str, results: Mapping[str, Retrieval]) -> None:
        for key, result in results.items():
            earlier = self._rows.get(key)
            sources = earlier["sources"] if earlier and result.problem else list(map(_serialize_source, result.sources))
            row = {"lookup_id": key, "server": server, "sources": sources, "problem": result.problem}
            self._rows[key] = {**self._at, **row}
        table = pa.Table.from_pylist(list(self._rows.values()), schema=QA_LOOKUPS)
        self._warehouse.write("qa_lookups", table, **self._at)


def _hash_lookup(text: str, k: int, where: Mapping[str, str | int]) -> str:
    return digest("look-up", text, k, format_filter(where))


def _serialize_source(source: SourceText) -> dict[str, str]:
    metadata = json.dumps(dict(source.metadata), ensure_ascii=False, sort_keys=True)
    return {"doc_id": source.doc_id, "page_content": source.page_content, "metadata": metadata}


def _parse_retrieval(row: Mapping[str, Any] | None) -> Retrieval:
    if row is None:
        return Retrieval(problem=NOT_LOOKED_UP)
    sources = (SourceText(text["doc_id"], text["page_content"], json.loads(text["metadata"])) for text in row["sources"])
    return Retrieval(tuple(sources), row["problem"])


class VectorCache:
    """The embedder of a part's texts; vectors of earlier runs are read from `qa_vectors`."""

    def __init__(self, warehouse: Warehouse, key: str) -> None:
        self._warehouse, self._at = warehouse, QA_SPACE.levels(key)
        self._is_new = False

    @cached_property
    def _rows(self) -> dict[str, dict[str, Any]]:
        """Return stored vectors by hash of the text, read only when needed."""
        rows = self._warehouse.read_or_empty("qa_vectors", **self._at).to_pylist()
        return {row["text_hash"]: row for row in rows if row["embedder"] == LOCAL_EMBEDDER}

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of texts, (texts, dimensions)."""
        from resources.gateway.embedder import embed_locally

        by_hash = {hash_text(text): text for text in texts}
        if missing := {key: text for key, text in by_hash.items() if key not in self._rows}:
            self._is_new = True
            for key, embedding in zip(missing, embed_locally(list(missing.values())), strict=True):
                vector_row = {
                    "embedder": LOCAL_EMBEDDER,
                    "text_hash": key,
                    "vector": embedding.vector.tolist(),
                    "windows": embedding.windows,
                }
                self._rows[key] = {**self._at, **vector_row}
        return np.array([self._rows[hash_text(text)]["vector"] for text in texts], dtype=np.float32)

    def keep(self) -> None:
        """Write the new vectors in addition to the stored ones."""
        if self._is_new:
            rows = [self._rows[key] for key in sorted(self._rows)]
            self._warehouse.write("qa_vectors", pa.Table.from_pylist(rows, schema=QA_VECTORS), **self._at)
            self._is_new = False
