"""Look-ups on a server: kept, so that a text is looked up once."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from dtef_pipeline.identity import digest
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.tables import QA_LOOKUPS
from dtef_pipeline.qa.transcripts.metadata import spelled_filter
from dtef_pipeline.qa.transcripts.payload import model_string
from dtef_pipeline.qa.transcripts.remote import NOT_LOOKED_UP, LookedUp, RemoteRetriever
from dtef_pipeline.qa.transcripts.retriever import Retrieval, SourceText
from resources.look_up_server import look_up_server
from resources.settings import Settings
from resources.warehouse import Warehouse

LOOK_UPS_AT_ONCE = 8
LOOK_UPS_BETWEEN_WRITINGS = 32
"""A run that was killed goes on from the last writing. Where so many fail one after the other, the server is given up on."""


class AskedServer(NamedTuple):
    """A server that looks up."""

    retriever: RemoteRetriever
    where: str
    """Scheme and host."""


def asked_server(settings: Settings) -> AskedServer:
    """The server that the environment names. Raises ConfigError where it names none, or a model that is none."""
    server = look_up_server(settings)
    model = None if settings.socioscope_model is None else model_string(settings.socioscope_model)
    return AskedServer(RemoteRetriever(server.post, server.where, model), server.where)


class KeptLookUps:
    """Look-ups for a part: those that succeeded before are read from `qa_lookups`."""

    def __init__(self, warehouse: Warehouse, key: str) -> None:
        self._warehouse, self._at = warehouse, QA_SPACE.levels(key)

    @cached_property
    def _rows(self) -> dict[str, dict[str, Any]]:
        """What was looked up, by hash; most parts need none of it. What cannot be read is looked up again."""
        rows = self._warehouse.read_earlier("qa_lookups", **self._at)
        return {} if rows is None else {row["lookup_id"]: row for row in rows.to_pylist()}

    def kept(self, texts: Sequence[str], k: int, where: Mapping[str, str | int]) -> LookedUp:
        """What was found for these texts before, by whichever server. Nobody is asked."""
        rows = {text: self._rows.get(_lookup_id(text, k, where)) for text in texts}
        return LookedUp({text: _retrieval(row) if row else Retrieval(problem=NOT_LOOKED_UP) for text, row in rows.items()})

    def made(self, settings: Settings, texts: Sequence[str], k: int, where: Mapping[str, str | int]) -> LookedUp:
        """The same, with the server asked for what it did not find before. Raises ConfigError as `asked_server`."""
        server = asked_server(settings)
        wanted = {_lookup_id(text, k, where): text for text in texts}
        missing = [key for key in wanted if not self._is_known(key, server.where)]
        with ThreadPoolExecutor(LOOK_UPS_AT_ONCE) as pool:
            for start in range(0, len(missing), LOOK_UPS_BETWEEN_WRITINGS):
                keys = missing[start : start + LOOK_UPS_BETWEEN_WRITINGS]
                found = list(pool.map(lambda key: server.retriever.retrieve(wanted[key], k, where), keys))
                self._keep(keys, found, server.where)
                if len(keys) == LOOK_UPS_BETWEEN_WRITINGS and all(one.problem for one in found):
                    rest = missing[start + LOOK_UPS_BETWEEN_WRITINGS :]
                    given_up = (
                        f"was not looked up: the {len(keys)} look-ups before it failed, the last because {found[-1].problem}"
                    )
                    self._keep(rest, [Retrieval(problem=given_up)] * len(rest), server.where)
                    break
        return self.kept(texts, k, where)

    def _is_known(self, key: str, server: str) -> bool:
        row = self._rows.get(key)
        return row is not None and row["problem"] is None and row["server"] == server

    def _keep(self, keys: Sequence[str], found: Sequence[Retrieval], server: str) -> None:
        """Write these look-ups beside what was there."""
        for key, one in zip(keys, found, strict=True):
            self._rows[key] = {**self._at, "lookup_id": key, "server": server, **_told(one)}
        rows = [self._rows[key] for key in sorted(self._rows)]
        self._warehouse.write("qa_lookups", pa.Table.from_pylist(rows, schema=QA_LOOKUPS), **self._at)


def _lookup_id(text: str, k: int, where: Mapping[str, str | int]) -> str:
    return digest("look-up", text, k, spelled_filter(where))


def _told(found: Retrieval) -> dict[str, Any]:
    sources = [
        {
            "doc_id": one.doc_id,
            "page_content": one.page_content,
            "metadata": json.dumps(dict(one.metadata), ensure_ascii=False, sort_keys=True),
        }
        for one in found.sources
    ]
    return {"sources": sources, "problem": found.problem}


def _retrieval(row: Mapping[str, Any]) -> Retrieval:
    sources = (SourceText(one["doc_id"], one["page_content"], json.loads(one["metadata"])) for one in row["sources"])
    return Retrieval(tuple(sources), row["problem"])
