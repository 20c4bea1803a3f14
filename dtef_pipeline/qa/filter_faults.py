"""Whether a filter of interviews leaves any, before models are asked about none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.prompt_rows import AskedHow
from dtef_pipeline.qa.transcripts.metadata import METADATA_COLUMNS
from dtef_pipeline.qa.transcripts.remote import REMOTE
from dtef_pipeline.qa.transcripts.retriever import are_allowed
from dtef_pipeline.text.nearest import nearest

OPTION_OF_FILTER = "--filter"


def filter_faults(
    keys: Sequence[str],
    how: AskedHow,
    documents: Callable[[str, Sequence[str]], pa.Table],
    given_as: str = OPTION_OF_FILTER,
) -> dict[str, str]:
    """By part what is wrong where the filter leaves no document of it, though others have some. Raises ConfigError where none of the parts has.

    `documents`: these columns of the rows of `qa_documents` of a part; `given_as`: what users call the filter.
    """
    if not how.filter:
        return {}
    columns = ["doc_id", *(METADATA_COLUMNS[name] for name in how.filter)]
    parts = {key: documents(key, columns) for key in keys}
    told = {key: text for key, rows in parts.items() if (text := unmatched(rows, how, given_as))}
    if told and len(told) == sum(len(rows) > 0 for rows in parts.values()):
        raise ConfigError(next(iter(told.values())))
    return told


def unmatched(documents: pa.Table, how: AskedHow, given_as: str = OPTION_OF_FILTER) -> str | None:
    """What is wrong with the filter, and what there is; None: it leaves documents, or it is for a server to say. Table: as of `are_allowed`."""
    if not how.filter or how.retriever == REMOTE or not len(documents) or are_allowed(documents, how.filter).any():
        return None
    return f"{given_as} {' '.join(_named(how.filter))} matches no document; {'; '.join(_there_is(documents, how.filter))}"


def _named(where: Mapping[str, str | int]) -> list[str]:
    return [f"{name}={value}" for name, value in where.items()]


def _there_is(documents: pa.Table, where: Mapping[str, str | int]) -> Iterator[str]:
    """Of each key the values, of those that are like the given one first."""
    for name, value in where.items():
        values = {str(one) for one in documents[METADATA_COLUMNS[name]].to_pylist() if one is not None}
        yield f"{name} has {nearest(str(value), values)}"
