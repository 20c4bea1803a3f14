"""The known suites, and checks before a run whether their parts fit its settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.judging.arbiter import Arbiter
from dtef_pipeline.qa.judging.judgement_rows import JUDGED_ITEM_COLUMNS, select_judged_items
from dtef_pipeline.qa.prompt_rows import AskSettings
from dtef_pipeline.qa.suites import Suites, load_suites
from dtef_pipeline.qa.tables import QA_SPACE
from dtef_pipeline.qa.transcripts.retriever import REMOTE
from resources.gateway.prices import price
from resources.settings import Settings, find_shipped
from resources.warehouse import Warehouse


def load_known_suites(file: str | None) -> Suites:
    """Load the shipped suites and those of a user's file, which replace shipped ones of the same name."""
    return load_suites(find_shipped("suites.yaml"), *([Path(file)] if file else []))


class PartFindings(NamedTuple):
    """Results of checking parts against the settings."""

    needs_judge: bool
    """Whether some items need a judge."""
    has_documents: bool
    """Whether some items are about documents."""
    refusals: Mapping[str, ConfigError]
    """Errors by part that does not fit the settings."""


def require_askable_parts(warehouse: Warehouse, keys: Sequence[str], setup: AskSettings, settings: Settings) -> bool:
    """Return whether some items need a judge.

    Raises ConfigError if the settings fit no part (if they fit some, only the others fail), and if a server must look up chunks but none is
    configured.
    """
    findings = check_parts(warehouse, keys, setup)
    if keys and len(findings.refusals) == len(keys):
        raise next(iter(findings.refusals.values()))
    if findings.has_documents:
        require_server(setup.retriever, settings)
    return findings.needs_judge


def check_parts(warehouse: Warehouse, keys: Sequence[str], setup: AskSettings) -> PartFindings:
    """Check each of these parts."""
    needs_judge, asks_about, errors = False, False, dict[str, ConfigError]()
    for key in keys:
        levels = QA_SPACE.levels(key)
        items = warehouse.rows("qa_items", columns=["type", *JUDGED_ITEM_COLUMNS], **levels)
        n_examples = len(warehouse.rows("qa_examples", columns=["position"], **levels))
        has_documents = bool(len(warehouse.rows("qa_documents", columns=["doc_id"], **levels)))
        try:
            setup.refuse_for(key, items["type"].to_pylist(), n_examples, about_documents=has_documents)
        except ConfigError as error:
            errors[key] = error
        asks_about = asks_about or has_documents
        needs_judge = needs_judge or bool(select_judged_items(items))
    return PartFindings(needs_judge, asks_about, errors)


def require_server(retriever: str, settings: Settings) -> None:
    """Raise ConfigError if a server must find the chunks but the environment names none."""
    if retriever == REMOTE:
        from assets.qa.lookups import open_retrieval_server

        open_retrieval_server(settings)


def refuse_unpriced_judge(
    arbiter: Arbiter, allowed: Collection[str], given_as: str = "`allow_unpriced` in the section qa of the panel file:"
) -> None:
    """Raise ConfigError for a judge with its own address and no price under a daily budget. `given_as`: the user's name of `allowed`.

    Models listed by LiteLLM are left to the gateway, because the look-up takes seconds.
    """
    name = arbiter.model.name
    if arbiter.daily_budget is not None and arbiter.model.api_base and price(arbiter.model) is None and name not in allowed:
        raise ConfigError(
            f"judge {name}: its price is unknown, so the daily budget of ${arbiter.daily_budget:,.2f} cannot be enforced. Set "
            f"input_price and output_price in the models file, or allow it with {given_as} {name}"
        )
