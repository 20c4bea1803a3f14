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
"""Metadata of a partition: what went that had been paid for, and why."""


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
    def given(self) -> Mapping[str, Any]:
        """For a check: the configuration that the run gives to its stage."""

    @property
    def outside(self) -> Any:
        """The installation (warehouse, environment, sandbox, response store), for stages that need more than tables."""

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of the partition. Raises WarehouseError if there are none yet."""

    def rows(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of the partition, or an empty table if there are none yet."""

    def earlier(self, table: str) -> pa.Table | None:
        """Return what the stage wrote before if it can still be read, else None."""

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
    """Who is asked."""
    expected: Mapping[str, int]
    """Requests by the name of the model, as far as that is known before."""
    size: int
    """Episodes, as far as that is known before."""
    episodes: Callable[[], Iterable[Episode]]
    """Makes them one by one, when their turn comes."""
    rows: Callable[[Sequence[Any], Sequence[EpisodeResult]], Tables]
    """The new rows of some of the episodes, and what came of each; of none, tables without rows."""
    merge_with_stored: Callable[[Tables], Tables] = lambda new: new
    """What is written, of all new rows: merged with those that are there, while no other run writes them."""
    stand_in: Callable[[Any, Request, str], str | None] = lambda episode, request, text: text
    """For an estimate, a reply that an episode can go on with: the text, of the usual length, in the form that is asked for. None: the
    episode is over with any reply."""
    most_calls: Callable[[], MostCalls] | None = None
    """For an estimate; None: an episode takes one request more where a reply cannot be read, as its `next` says."""
    longer_at_most: float = inf
    """For an estimate, the tokens by which a prompt can become longer at most, where what it shows is cut to a length."""


@dataclass(frozen=True)
class Check:
    """A condition that every partition of a table must meet."""

    name: str
    description: str
    table: str
    columns: tuple[str, ...]
    """Of the table, those that are looked at."""
    find: Callable[[Inputs, pa.Table], Iterable[str]]
    """What is wrong with a partition, given its rows over all snapshots."""
    blocking: bool = False
    """Later stages of a run wait for it, and what it finds is an error."""
    is_error: bool = False
    """What it finds is an error, though no stage waits for it; otherwise a warning."""


def make_uniqueness_check(name: str, description: str, table: str, columns: Sequence[str]) -> Check:
    """Return a check that no two rows of a partition have the same values in these columns."""

    def find_repeated(_: Inputs, rows: pa.Table) -> Iterator[str]:
        counts = rows.group_by(list(columns)).aggregate([([], "count_all")])
        for row in counts.filter(pc.greater(counts["count_all"], 1)).select(list(columns)).to_pylist():
            yield " ".join(str(value) for value in row.values())

    return Check(name, description, table, tuple(columns), find_repeated, blocking=True)


FAILED_SHARE = 0.01
"""Share of a model's calls that failed for good, above which one is warned."""


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
    behind_name: str = ""
    """Appended to the name of the model if settings are counted separately."""


@dataclass(frozen=True)
class CallPlan:
    """An `EpisodePlan` in which each response takes one request, and all responses together become the rows."""

    models: Sequence[ModelSpec]
    expected: Mapping[str, int]
    size: int
    requests: Callable[[], Sequence[Request]]
    """Those that are to be answered. Of a `RequestList` only those are made that no stored response answers."""
    keys: Callable[[], Sequence[str]]
    """Keys of responses that count where they are stored: of these requests, and of others that nobody is asked."""
    rows: Callable[[pa.Table, Mapping[str, Failure]], Tables]
    """The new rows, of stored responses (any superset) and what failed, by request key."""
    merge_with_stored: Callable[[Tables], Tables] = lambda new: new
    foresee: Callable[[], Mapping[str, Forecast]] = dict
    """For an estimate, what is known of replies, by request key. It is called after `requests`."""


class Limits(NamedTuple):
    """Limits on costs in addition to the budgets of the run."""

    daily: Mapping[str, DailyBudget] = {}
    """By role, on a day and over all runs."""
    unpriced: Collection[str] = ()
    """Models that are asked under a limit in dollars though their price is not known."""


class Lengths(NamedTuple):
    """The table columns that contain token counts of earlier replies."""

    table: str
    variant: str = "model_variant"
    """The column with the model's variant, or SQL for the variant with what `Forecast.setting` says behind it."""
    replies: str = ""
    """How many replies a row has, in SQL; empty: a row is of one request, which other rows may share."""


@dataclass(frozen=True)
class Replies:
    """The replies that an estimate assumes for the requests of a stage."""

    lengths: tuple[Lengths, ...] = ()
    """Of replies of a model's variant the mean counts, of the last table that has any."""
    usual_tokens: int | None = 400
    """Where there are none; None: as many as the request makes room for."""
    behind_name: str = ""
    """Stands behind the name of a model, where it is asked for something else than in its role elsewhere."""


@dataclass(frozen=True)
class Stage:
    """One table of a family by partition, and the tables that are computed with it."""

    name: str
    """Of the table, and of the asset."""
    description: str
    make: Callable[[Inputs, Any], Tables | EpisodePlan | CallPlan]
    """What is written, by table, the stage's own first; or what is to be asked for that. Raises DtefError: the partition fails, others go on."""
    verb: str = ""
    """The stage's name in logs and messages, such as `predict`; empty: the table's name."""
    after: tuple[str, ...] = ()
    """Stages, or sources, whose tables it reads."""
    settings: tuple[str, ...] = ()
    """Names of those that it takes."""
    version: str = "1"
    """Of its code: with another one, partitions that were made before are stale."""
    asks: bool = False
    nightly: bool = False
    """The nightly run makes it: Dagster shows when it is late."""
    alone: bool = False
    """No other run writes a partition while it is made: for a stage that adds to what is there."""
    checks: tuple[Check, ...] = ()
    preview: tuple[str, ...] = ()
    """Columns that the first rows are shown with."""
    counted: tuple[str, ...] = ()
    """Columns whose values are counted in the metadata."""
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Within what all that is done for a partition is done, such as naming whose code failed."""
    follows: bool = False
    """Its rows follow from what it reads: the versions of that are its own, and the rows are not hashed."""
    versioned: tuple[str, ...] = ()
    """Tables beside the stage's own that its version is of too."""
    unversioned: tuple[str, ...] = ()
    """Columns that differ though nothing else does, such as seconds."""
    at_a_time: int = 5_000
    """Episodes that are held in memory together."""
    limits: Callable[[Any, Any], Limits] | None = None
    """What bounds it besides the budgets of the run, given `Inputs.outside` and the settings."""
    snapshot: Callable[[Any], str | None] = lambda settings: settings.snapshot
    """Given the settings, the snapshot that it reads and makes of tables that are kept by snapshot; None: all that there are."""
    expected: Callable[[Inputs, Any], Mapping[str, int]] | None = None
    """Requests of the run by the name of the model, where partitions share some; otherwise those of its plans are added up."""
    make_together: Callable[[Sequence[Inputs], Any], Mapping[str, Tables]] | None = None
    """As `make`, of many partitions by key, where that costs as much as one; `make` makes those that it leaves out, and all if it fails."""
    metadata: Callable[[Tables], Mapping[str, Any]] = field(default=lambda tables: {})
    """What else is shown of a partition: texts, numbers, or tables."""
    beside: tuple[str, ...] = ()
    """The other tables that it writes."""
    replies: Replies = Replies()
    is_idle: Callable[[Any, Models], bool] = lambda settings, models: False
    """Whether it asks nobody under these settings, whatever the partition."""

    @property
    def asks_models(self) -> bool:
        """Whether the stage calls models, through a plan or for vectors."""
        return self.asks or "max_calls" in self.settings
