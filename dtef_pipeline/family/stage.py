"""What a family passes to the engine: its stages. A stage is a function of tables and settings; the engine reads, calls, writes and checks.

`assets/engine/` makes assets, checks, jobs and sensors from these records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.daily_budget import DailyBudget
from dtef_pipeline.asking.episodes import Episode, EpisodeResult
from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.asking.request import Failure, Request

Tables = Mapping[str, pa.Table]
"""Rows by the name of their table."""


def concatenate_tables(parts: Sequence[Tables]) -> Tables:
    """Concatenate the rows of several parts of a partition; each part has the tables of the first."""
    return {name: pa.concat_tables([part[name] for part in parts]) for name in parts[0]}


TAKEN_AWAY = "taken_away"
"""Metadata of a partition: the paid responses that were dropped, and why."""


class Inputs(Protocol):
    """What a stage knows about one partition. Tables that are stored by snapshot contain the rows of the run's snapshot."""

    @property
    def key(self) -> str:
        """Key of the partition."""

    @property
    def all_keys(self) -> Sequence[str]:
        """Keys of all partitions of the run, or of all runs of its command, including this one."""

    @property
    def levels(self) -> Mapping[str, str]:
        """The value of each level of the partition, by level name."""

    @property
    def models(self) -> Models:
        """The models that this installation knows."""

    @property
    def stage_config(self) -> Mapping[str, Any]:
        """For a check: the configuration that the run gives to its stage."""

    @property
    def outside(self) -> Any:
        """The installation (warehouse, environment, sandbox, response store), for stages that need more than tables."""

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of the partition. Raises WarehouseError if there are none yet."""

    def rows(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of the partition, or an empty table if there are none yet."""

    def earlier(self, table: str) -> pa.Table:
        """Return what the stage wrote before; no rows, with a warning, if that cannot be read."""

    def keep(self, tables: Tables) -> None:
        """Write what is done so far, so that a rerun after a kill continues from there."""

    def describe(self, **metadata: Any) -> None:
        """Add metadata about the partition to the run: texts, numbers, tables, or lists and mappings of them."""

    def warn(self, line: str) -> None:
        """Log a warning about the partition."""

    def enter(self, name: Hashable, open: Callable[[], AbstractContextManager[Any]]) -> Any:
        """Return the value of a context that is opened once for all partitions of the run and closed at the end of the stage."""

    def embed(self, texts: Sequence[str], spec: ModelSpec, n_known: int) -> Any:
        """Return the vectors of texts, see `resources.gateway.embedder.embed`. `n_known`: number of further texts that already have
        vectors.

        Raises GatewayError if no text can be embedded.
        """

    @property
    def is_dry(self) -> bool:
        """Whether the run is only estimated: nothing is written and no model is called."""

    def remember(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """Return the result of `make`, which is called once per name for all partitions of the run."""

    def at(self, key: str) -> Inputs:
        """Return the inputs of another partition of the run."""


class MostCalls(Protocol):
    """Upper bound on the calls of episodes whose number of requests depends on the replies."""

    def add(self, episode: Any, request: Request) -> None:
        """Count a new request of the episode that is not stored."""

    def total(self) -> Iterable[tuple[ModelSpec, int, float, float]]:
        """Return per model the most calls, and the most tokens of their prompts and of each response."""


@dataclass(frozen=True)
class EpisodePlan:
    """What a stage requests for one partition, and the rows that it builds from the replies."""

    models: Sequence[ModelSpec]
    """The models that get the requests."""
    expected: Mapping[str, int]
    """Number of requests by model, as far as it is known in advance."""
    size: int
    """Number of episodes, as far as it is known in advance."""
    episodes: Callable[[], Iterable[Episode]]
    """Yields the episodes, each when its turn comes."""
    rows: Callable[[Sequence[Any], Sequence[EpisodeResult]], Tables]
    """Returns the new rows, given some episodes and their results; without episodes, empty tables."""
    merge_with_stored: Callable[[Tables], Tables] = lambda new: new
    """Returns the rows to write: the new ones merged with the stored ones, while no other run writes."""
    stand_in: Callable[[Any, Request, str], str | None] = lambda episode, request, text: text
    """Returns a reply with which an estimated episode can continue: the text, of the usual length, in the requested form. None: any reply
    ends the episode."""
    most_calls: Callable[[], MostCalls] | None = None
    """Returns the upper bound of calls for an estimate; None: an unreadable reply adds one request, as in the episode's `next`."""
    longer_at_most: float = inf
    """For an estimate: the most tokens by which a prompt can grow if the text that it shows is cut to a length."""


@dataclass(frozen=True)
class Check:
    """A condition that every partition of a table must meet."""

    name: str
    description: str
    table: str
    columns: tuple[str, ...]
    """The columns of the table that it checks."""
    find: Callable[[Inputs, pa.Table], Iterable[str]]
    """Yields the faults of a partition, given its rows over all snapshots."""
    blocking: bool = False
    """Whether later stages of a run wait for it; a fault is then an error."""
    is_error: bool = False
    """Whether a fault is an error although no stage waits; otherwise it is a warning."""


def make_uniqueness_check(table: str, columns: Sequence[str]) -> Check:
    """Return the check `TABLE_are_unique`: no two rows of a partition have the same values in these columns."""

    def find_repeated(_: Inputs, rows: pa.Table) -> Iterator[str]:
        counts = rows.group_by(list(columns)).aggregate([([], "count_all")])
        for row in counts.filter(pc.greater(counts["count_all"], 1)).select(list(columns)).to_pylist():
            yield " ".join(str(value) for value in row.values())

    description = f"No two rows of a partition have the same {', '.join(columns)}."
    return Check(f"{table}_are_unique", description, table, tuple(columns), find_repeated, blocking=True)


FAILED_SHARE = 0.01
"""Share of a model's calls that failed permanently above which a check warns."""


def make_failure_check(name: str, table: str, state: str, noun: str) -> Check:
    """Return a check that warns of models of which more than FAILED_SHARE of the `noun` failed: rows whose column `state` is `error`."""

    def find_failing_models(_: Inputs, rows: pa.Table) -> Iterator[str]:
        frame = rows.to_pandas()
        shares = (frame[state] == "error").groupby(frame["model"]).mean()
        for model, share in shares[shares > FAILED_SHARE].items():
            yield f"{model}: {share:.1%} of the {noun} failed"

    description = f"Warns of models for which more than {FAILED_SHARE:.0%} of the {noun} failed; a rerun requests those again."
    return Check(name, description, table, ("model", state), find_failing_models)


class Forecast(NamedTuple):
    """The assumed reply to one request of an estimate, if it differs between the requests of a stage."""

    setting: str = ""
    """The setting, as `Lengths.variant` appends it to the variant."""
    usual_tokens: float | None = None
    """Used if no earlier reply in this setting is known; None: as in `Replies`."""
    name_suffix: str = ""
    """Appended to the name of the model if settings are counted separately."""


@dataclass(frozen=True)
class CallPlan:
    """An `EpisodePlan` in which each response takes one request, and all responses together become the rows."""

    models: Sequence[ModelSpec]
    expected: Mapping[str, int]
    size: int
    requests: Callable[[], Sequence[Request]]
    """Returns the requests. A `RequestList` builds only those without a stored response."""
    keys: Callable[[], Sequence[str]]
    """Returns the keys of stored responses that count: those of the requests, and of others that are not sent."""
    rows: Callable[[pa.Table, Mapping[str, Failure]], Tables]
    """Returns the new rows, given the stored responses (any superset) and the failures by request key."""
    merge_with_stored: Callable[[Tables], Tables] = lambda new: new
    foresee: Callable[[], Mapping[str, Forecast]] = dict
    """Returns forecasts of replies by request key, for an estimate. It is called after `requests`."""


class Limits(NamedTuple):
    """Limits on costs in addition to the budgets of the run."""

    daily: Mapping[str, DailyBudget] = {}
    """Daily budgets over all runs, by role."""
    unpriced: Collection[str] = ()
    """Models of unknown price that a limit in dollars does not stop."""


class Lengths(NamedTuple):
    """The table columns that contain token counts of earlier replies."""

    table: str
    variant: str = "model_variant"
    """The column with the model's variant, or SQL for the variant with what `Forecast.setting` says behind it."""
    replies: str = ""
    """SQL for the number of replies in a row; empty: a row has one request, which other rows may share."""


@dataclass(frozen=True)
class Replies:
    """The replies that an estimate assumes for the requests of a stage."""

    lengths: tuple[Lengths, ...] = ()
    """Tables with earlier replies: the estimate is the mean over a model's variant, from the last table that has any."""
    usual_tokens: int | None = 400
    """Tokens of a reply if there are no earlier ones; None: the token limit of the request."""
    name_suffix: str = ""
    """Appended to the name of a model if this stage uses it for another purpose than the rest of the run."""


@dataclass(frozen=True)
class Stage:
    """One table of a family by partition, and the tables that are computed with it."""

    name: str
    """Name of the table and of the asset."""
    description: str
    make: Callable[[Inputs, Any], Tables | EpisodePlan | CallPlan]
    """Returns the rows by table, the stage's own first, or a plan of requests for them. Raises DtefError: only this partition fails."""
    verb: str = ""
    """The stage's name in logs and messages, such as `predict`; empty: the table's name."""
    after: tuple[str, ...] = ()
    """The stages and sources whose tables it reads."""
    settings: tuple[str, ...] = ()
    """Names of its settings."""
    version: str = "1"
    """Version of its code; a new one makes existing partitions stale."""
    asks: bool = False
    nightly: bool = False
    """Whether the nightly run makes it, so that Dagster shows when it is late."""
    is_exclusive: bool = False
    """Whether only one run at a time may write a partition, because the stage adds to existing rows."""
    checks: tuple[Check, ...] = ()
    preview: tuple[str, ...] = ()
    """Columns of the preview of its first rows."""
    counted_columns: tuple[str, ...] = ()
    """Columns whose values the metadata counts."""
    context: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Context manager around all work on a partition, such as one that names whose code failed."""
    follows: bool = False
    """Whether its input determines its rows: its data version is then that of its input, and the rows are not hashed."""
    versioned_tables: tuple[str, ...] = ()
    """Further tables that its data version covers."""
    unversioned_columns: tuple[str, ...] = ()
    """Columns that the data version ignores, such as durations."""
    at_a_time: int = 5_000
    """Number of episodes in memory at a time."""
    limits: Callable[[Any, Any], Limits] | None = None
    """Returns limits in addition to the budgets of the run, given `Inputs.outside` and the settings."""
    snapshot: Callable[[Any], str | None] = lambda settings: settings.snapshot
    """Returns the snapshot that it reads and writes in tables by snapshot, given the settings; None: all snapshots."""
    expected: Callable[[Inputs, Any], Mapping[str, int]] | None = None
    """Returns the requests of the run by model if partitions share some; None: the sum over its plans."""
    make_together: Callable[[Sequence[Inputs], Any], Mapping[str, Tables]] | None = None
    """As `make`, for many partitions by key at the cost of one; `make` handles those that it leaves out, and all if it fails."""
    metadata: Callable[[Tables], Mapping[str, Any]] = field(default=lambda tables: {})
    """Returns further metadata of a partition: texts, numbers, or tables."""
    extra_tables: tuple[str, ...] = ()
    """The other tables that it writes."""
    replies: Replies = Replies()
    is_idle: Callable[[Any, Models], bool] = lambda settings, models: False
    """Whether it sends no request under these settings, in any partition."""

    @property
    def asks_models(self) -> bool:
        """Whether the stage calls models, through a plan or for vectors."""
        return self.asks or "max_calls" in self.settings
