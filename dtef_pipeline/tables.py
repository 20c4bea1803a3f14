"""Columns that the tables of every family share: names, types and descriptions, spliced into each family's own tables.

A description states a column's meaning in its table, with unit, range and direction of a number. It is stored in
the metadata of the field, for the Dagster UI and docs/reference.md; files are written without it (`strip_descriptions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from dtef_pipeline.keys import Space

if TYPE_CHECKING:
    import pandas as pd
from collections.abc import Sequence

_DESCRIPTION = b"description"


def field(name: str, type: pa.DataType, description: str) -> pa.Field:
    """Return a column with its description: one line that begins with a noun and is understandable by itself."""
    return pa.field(name, type, metadata={_DESCRIPTION: description})


def description(column: pa.Field) -> str:
    """Return the column's description. Raises KeyError with the column's name if it has none."""
    text = (column.metadata or {}).get(_DESCRIPTION)
    if text is None:
        raise KeyError(f"column {column.name} has no description")
    return str(text.decode())


def describe_schema(schema: pa.Schema, descriptions: Mapping[str, str]) -> pa.Schema:
    """Return the schema of computed rows with a description per column. Raises KeyError for a column without one."""
    return pa.schema([field(column.name, column.type, descriptions[column.name]) for column in schema])


def strip_descriptions(rows: pa.Table) -> pa.Table:
    """Return the rows without descriptions, so that rewording a description changes no file or hash."""
    plain = pa.schema([column.remove_metadata() for column in rows.schema], metadata=rows.schema.metadata)
    return pa.Table.from_arrays(rows.columns, schema=plain)


def convert_to_schema(rows: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    """Return the schema's columns of the rows, which may have others; NaN becomes null."""
    arrays = [pa.array(rows[column.name], column.type, from_pandas=True) for column in schema]
    return pa.table(arrays, schema=schema)


def convert_to_schema_or_null(rows: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    """Do the same as `convert_to_schema`, with null columns for those that the rows lack."""
    arrays = [
        pa.array(rows[column.name], column.type, from_pandas=True) if column.name in rows else pa.nulls(len(rows), column.type)
        for column in schema
    ]
    return pa.table(arrays, schema=schema)


def build_family_rows(rows: pd.DataFrame, schema: pa.Schema, family: str) -> pa.Table:
    """Return a family's rows of a table over all families, with null columns for those that the family lacks."""
    return convert_to_schema_or_null(rows.assign(family=family), schema)


STATUSES = ("ok", "unparseable", "wrong_length", "error", "refused", "missing", "budget")
ANSWERED = ("ok", "unparseable", "wrong_length", "refused")
"""Statuses of predictions with a response; the parse rate is the share of these that could be read."""
READ_ENOUGH = 0.9
"""Share of a model's responses that could be read below which a warning is shown."""

FAMILY_FIELD = field("family", pa.string(), "Family of the evaluation, such as qa or games")
CUT_FIELD = field("cut", pa.string(), "Grouping of the board, such as overall; columns that only other groupings have are null")
SNAPSHOT_FIELD = field("snapshot", pa.string(), "Snapshot of the responses: base, or a date for a nightly run")
PROMPT_FIELD = field("prompt_id", pa.string(), "Hash of the prompt and its target")
MODEL_FIELDS = (
    field("model", pa.string(), "Name of the model: gpt-4.1-mini"),
    field("model_variant", pa.string(), "Model string plus every sampling parameter"),
)
SAMPLE_FIELDS = (
    field("temperature", pa.float64(), "Sampling temperature; null: not set"),
    field("draw", pa.int32(), "Repeated sample of the same prompt, from 0"),
)
METRIC_FIELD = field("metric", pa.string(), "Metric behind the score")
ANSWERED_AT_FIELD = field("answered_at", pa.timestamp("us", tz="UTC"), "Time of the response; null: no model was called")
_UNKNOWN_COST_FIELD = field(
    "unknown_cost_usd_most",
    pa.float64(),
    "Upper limit in US dollars for calls of unknown cost, beyond cost_usd; null: none, or no price is known",
)

REQUEST = (
    *MODEL_FIELDS,
    *SAMPLE_FIELDS,
    field(
        "request_key",
        pa.string(),
        "Key of the stored response: hash of a prompt of this text, model variant, draw, snapshot",
    ),
)
"""The model and the key of the stored response."""
REPLY = (
    field("call_status", pa.string(), "State of the call: answered, error, missing or budget"),
    field("response", pa.string(), "Raw text as served"),
    field("error", pa.string(), "Reason why there is no response"),
    field("finish_reason", pa.string(), "Reason the provider gives for the end of the response, such as stop or length"),
    field("served_model", pa.string(), "Model that served the response, as the provider reports it"),
    field("fingerprint", pa.string(), "Provider's name for the configuration that answered"),
    field("prompt_tokens", pa.int32(), "Tokens of the prompt; 0 at all but the first of the rows that share one request"),
    field("completion_tokens", pa.int32(), "Tokens of the response; 0 at all but the first of the rows that share one request"),
    field(
        "cost_usd",
        pa.float64(),
        "Known cost of the request's calls in US dollars; 0 at all but its first row; null: unknown",
    ),
    field("unknown_cost_attempts", pa.int32(), "Calls that may have been billed at an unknown cost; null: not counted"),
    _UNKNOWN_COST_FIELD,
    field("latency_s", pa.float64(), "Seconds that the call took; null: no call was answered"),
    field("attempts", pa.int32(), "Calls sent until a response arrived or the request was given up"),
    ANSWERED_AT_FIELD,
)
"""The outcome of a request."""
CALL = (SNAPSHOT_FIELD, PROMPT_FIELD, *REQUEST, *REPLY)
"""The columns of every table of model calls. Usage is in one row per request: the first of the rows that share it."""

PARSE_RATE_FIELD = field("parse_rate", pa.float64(), "Share of responses that could be read, 0-1: higher is better")
COSTS = pa.schema(
    [
        FAMILY_FIELD,
        field("role", pa.string(), "Role of the model: candidate, judge, analyst or embedder"),
        field("first_level", pa.string(), "First level of the partition, such as `--by suite`; null: embedders"),
        field("second_level", pa.string(), "Second level of the partition, such as `--by part`; null: none"),
        SNAPSHOT_FIELD,
        field("purpose", pa.string(), "Purpose of the calls, such as the evaluator of a judge; null: not distinguished"),
        *MODEL_FIELDS,
        field("answered", pa.int64(), "Requests with a reply; a request that several rows share counts once"),
        field("failed", pa.int64(), "Requests that failed; a rerun sends them again"),
        field("budget_stopped", pa.int64(), "Requests not sent, because a budget was reached"),
        field("calls", pa.int64(), "Calls that were answered; a request that was repeated, or is a conversation, has several"),
        field("prompt_tokens", pa.int64(), "Tokens of prompts; each call counts once"),
        field("completion_tokens", pa.int64(), "Tokens of responses; each call counts once"),
        field("cost_usd", pa.float64(), "Sum of the known costs in US dollars; null: no cost is known"),
        field("unpriced", pa.int64(), "Answered requests with a call whose price is unknown"),
        field("unknown_cost_attempts", pa.int64(), "Calls that may have been billed at an unknown cost, such as timeouts"),
        _UNKNOWN_COST_FIELD,
    ]
)
"""One row per family, role, partition, snapshot, purpose and model variant."""

COMPARISONS = pa.schema(
    [
        FAMILY_FIELD,
        field("first_level", pa.string(), "Suite; null: all partitions of the family are compared together"),
        field("context_level", pa.string(), "Context level of the prompts; null: the family has none"),
        field("condition", pa.string(), "Condition of the requests; null: the family has none"),
        field("targets", pa.string(), "Items that count: clean (without circular ones) or all; null: the family makes no difference"),
        METRIC_FIELD,
        field("measured_by", pa.string(), "Judge or embedder behind the metric; null: the metric needs none"),
        *MODEL_FIELDS,
        field("other_model", pa.string(), "Model that the first one is compared with"),
        field("other_variant", pa.string(), "Variant of the model that the first one is compared with"),
        field("verdict", pa.string(), "Verdict by p_adjusted, such as better; equivalent: the 90 % interval lies within a margin"),
        field("difference", pa.float64(), "Lead of the better model: score less other score, in units of the score"),
        field("low", pa.float64(), "Lower end of the 95 % interval of the difference; null: too few clusters"),
        field("high", pa.float64(), "Upper end of the 95 % interval of the difference; null: too few clusters"),
        field("score", pa.float64(), "Mean score of the better model on the items that both have a score for, 0-1: higher is better"),
        field("other_score", pa.float64(), "Mean score of the other model on the same items, 0-1: higher is better"),
        field("n_items", pa.int64(), "Different items that both models have a score for"),
        field("n_pairs", pa.int64(), "Items, counted once per partition, that both models have a score for"),
        field("n_clusters", pa.int64(), "Clusters of intervals and tests; items if there are too few clusters"),
        field("effect_size", pa.float64(), "Difference in units of the standard deviation of the clusters' differences"),
        field("p", pa.float64(), "p value of the difference, 0-1 (two-sided t test over clusters); null: too few clusters"),
        field("adjusted_over", pa.string(), "Comparisons that p is adjusted over, such as models (two language models); null: all of the board"),
        field("p_adjusted", pa.float64(), "Adjusted p, 0-1 (Holm over the comparisons of one board, or those in adjusted_over)"),
        field("parsed_verdict", pa.string(), "Verdict from readable responses only"),
        field("parsed_note", pa.string(), "Finding from readable responses only, if it differs from the published one; empty: it does not"),
        field("note", pa.string(), "Caution about the row, or why a number is missing; empty: none"),
    ]
)  # fmt: skip
"""One row per family, board and two models that share an item, the better one first."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table's columns, where it is stored and how its files are rebuilt; a null schema is inferred from the rows written."""

    schema: pa.Schema | None
    space: Space | None = None
    """The partition space of the table; None: the table is one file."""
    levels: tuple[str, ...] = ()
    """Folder levels above the table's files."""
    remake: str = "dtef board --refresh"
    """The command that makes a file again. `{options}` stands for its levels, such as `--suite S --part P --snapshot base`, and
    `{family}` for that level alone, and `{models}`, `{personas}` or `{players}` for the models, which other tables of the partition list.
    """


Cuts = Mapping[str, Sequence[str]]
"""By the name of each cut, the columns that it has and not every cut."""


def stack_cuts(frames: Mapping[str, pd.DataFrame], schema: pa.Schema, cuts: Cuts) -> pa.Table:
    """Stack the rows of all cuts, by name. Columns that a cut lacks are null."""
    return pa.concat_tables(
        convert_to_schema_or_null(rows.drop(columns=_list_other_columns(cut, cuts), errors="ignore").assign(cut=cut), schema)
        for cut, rows in frames.items()
    )


def select_cut(table: pd.DataFrame, cut: str, cuts: Cuts) -> pd.DataFrame:
    """Return the rows of one cut, without the columns that only other cuts have."""
    rows: pd.DataFrame = table[table["cut"] == cut].reset_index(drop=True)
    return rows.drop(columns=["cut", *_list_other_columns(cut, cuts)], errors="ignore")


def _list_other_columns(cut: str, cuts: Cuts) -> list[str]:
    return sorted({name for columns in cuts.values() for name in columns} - {*cuts[cut]})
