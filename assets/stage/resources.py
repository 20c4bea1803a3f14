"""The outside world as Dagster resources: each says where something is, and opens it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

import dagster as dg

from assets.stage.shared_gateway import Command
from dtef_pipeline.asking.calls import Answer
from dtef_pipeline.asking.models import Budget, Models
from dtef_pipeline.asking.request import Failure, Request
from dtef_pipeline.boards.boards import Evidence
from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.identity import digest
from resources.gateway import Gateway
from resources.gateway.progress import RunProgress, shown_progress
from resources.known_models import known_models
from resources.responses.claims import Claims
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.warehouse import Warehouse
from resources.webhook import Webhook


class Store(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Warehouse, response store, models and webhook.

    Empty fields are read from DTEF_WAREHOUSE and DTEF_RESPONSES; the file and the URL from DTEF_MODELS and DTEF_WEBHOOK.
    """

    warehouse_root: str = ""
    responses_url: str = ""

    @cached_property
    def settings(self) -> Settings:
        return Settings.from_environment()

    @cached_property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.warehouse_root or self.settings.warehouse)

    @cached_property
    def models(self) -> Models:
        """The shipped models, and those of DTEF_MODELS."""
        return known_models(self.settings)

    @cached_property
    def webhook(self) -> Webhook | None:
        """What is told of drift; None: nobody."""
        return Webhook(self.settings.webhook) if self.settings.webhook else None

    @cached_property
    def evidence(self) -> dict[BoardOptions, Evidence]:
        """What boards are made of, by their options, as far as it was read. Dagster makes this resource anew for each run."""
        return {}

    @cached_property
    def responses(self) -> ResponseStore:
        return ResponseStore(self.responses_url or self.settings.responses_url)

    @contextmanager
    def writing(self, table: str, keys: Sequence[str]) -> Iterator[None]:
        """For a stage that reads, changes and writes these partitions of a table: no other run that shares the response store does meanwhile."""
        with Claims(self.responses) as claims, claims.alone([digest(table, key) for key in keys]):
            yield

    @contextmanager
    def asking(
        self,
        log: Callable[[str], None],
        expected: Mapping[str, int],
        budget: Budget,
        budgets: Mapping[str, Budget],
        command: Command | None = None,
    ) -> Iterator[Answer]:
        """A gateway for one run, with a progress display: has requests answered or replayed, window by window.

        `expected`: requests of the whole run by model name. `budget`: the run's; `budgets`: of single models, by name. `command`: whose
        runs share one gateway, and so its budget.
        """
        with shown_progress(log) as display:
            gateway = (command and command.gateway) or Gateway(self.responses, budget=budget, budgets=budgets)
            gateway.tell = display.say
            if command is not None:
                command.gateway = gateway
            progress = RunProgress(display, expected)

            def answer(requests: Sequence[Request]) -> Mapping[str, Failure]:
                failures = gateway.answer(requests, on_progress=progress).failures
                progress.window_done()
                return failures

            yield answer
