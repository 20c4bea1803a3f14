"""Whether a filter of interviews leaves any, before models are asked about none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.prompt_rows import AskedHow
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.transcripts.metadata import METADATA_COLUMNS
from dtef_pipeline.qa.transcripts.remote import REMOTE
from dtef_pipeline.qa.transcripts.retriever import are_allowed
from dtef_pipeline.text.nearest import nearest
from resources.warehouse import Warehouse


def refuse_empty_filter(warehouse: Warehouse, keys: Sequence[str], how: AskedHow) -> None:
    """Raises ConfigError where the filter leaves no document of any of the parts; warns of each where others have some."""
    if not how.filter:
        return
    columns = ["doc_id", *(METADATA_COLUMNS[name] for name in how.filter)]
    parts = {key: warehouse.read_or_empty("qa_documents", columns=columns, **QA_SPACE.levels(key)) for key in keys}
    told = {key: text for key, rows in parts.items() if (text := unmatched(rows, how))}
    if told and len(told) == sum(len(rows) > 0 for rows in parts.values()):
        raise ConfigError(next(iter(told.values())))
    for key, text in told.items():
        say(f"warning: {key}: {text}", err=True)


def unmatched(documents: pa.Table, how: AskedHow) -> str | None:
    """What is wrong with the filter, and what there is; None: it leaves documents, or it is for a server to say. Table: as of `are_allowed`."""
    if not how.filter or how.retriever == REMOTE or not len(documents) or are_allowed(documents, how.filter).any():
        return None
    return f"--filter {' '.join(_named(how.filter))} matches no document; {'; '.join(_there_is(documents, how.filter))}"


def _named(where: Mapping[str, str | int]) -> list[str]:
    return [f"{name}={value}" for name, value in where.items()]


def _there_is(documents: pa.Table, where: Mapping[str, str | int]) -> Iterator[str]:
    """Of each key the values, of those that are like the given one first."""
    for name, value in where.items():
        values = {str(one) for one in documents[METADATA_COLUMNS[name]].to_pylist() if one is not None}
        yield f"{name} has {nearest(str(value), values)}"
