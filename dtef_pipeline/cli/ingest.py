"""What `dtef ingest` does; the words are in `dtef_pipeline/cli/dtef.py`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtef_pipeline.cli.ingest_summary import design_effect, faults, summary
from dtef_pipeline.cli.opened_warehouse import open_warehouse, say_skipped
from dtef_pipeline.cli.ready import check_home_path, dagster_instance
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.whole import ALLOWANCES, MISSING_ATTRIBUTES, MISSING_QUESTIONS
from dtef_pipeline.text.counted import counted
from resources.gateway.progress import kept_terminal, waiting
from resources.settings import Settings

if TYPE_CHECKING:
    from dtef_pipeline.survey.model import Survey
    from resources.sources import Sources


@dataclass(frozen=True)
class IngestOptions:
    """Options of `dtef ingest`."""

    round_id: str | None = None
    min_n: int | None = None
    design_effect: float | None = None
    allow_missing_questions: bool = False
    allow_missing_attributes: bool = False
    replace: bool = False

    @property
    def of_a_round(self) -> dict[str, Any]:
        """What registering a round takes."""
        from dtef_pipeline.survey.observe import MIN_N

        given = {MISSING_QUESTIONS: self.allow_missing_questions, MISSING_ATTRIBUTES: self.allow_missing_attributes}
        allowed = tuple(code for code in ALLOWANCES if given[code])
        return {"min_n": self.min_n or MIN_N, "allowed": allowed, "replace": self.replace, "design_effect": self.design_effect}


def ingest(paths: Sequence[Path], options: IngestOptions) -> int:
    """The exit code: 1 when something of a round was not read, or not stored. A fault of any round leaves all as they were."""
    if options.round_id and len(paths) > 1:
        raise ConfigError(f"--round {options.round_id}: allowed with one PATH; got {len(paths)}")
    check_home_path(Settings.from_environment())
    with kept_terminal():
        with waiting("checking what is there"):
            import assets.launch  # noqa: F401 - takes seconds, in which something is to be seen
            from assets.survey.rounds import checked_round
            from dtef_pipeline.survey.adapters import read_survey, read_surveys
            from resources.sources import Sources

            surveys = [(path, survey) for path in paths for survey in read_surveys(path, options.round_id)]
            _require_one_place([survey.round for _, survey in surveys])
            warehouse = open_warehouse(new=True)
            sources = Sources(warehouse, read_survey)
            if len(surveys) > 1:
                for _, survey in surveys:
                    checked_round(sources, survey, **options.of_a_round)
        clean = True
        with dagster_instance() as instance:
            for path, survey in surveys:
                clean &= _ingested(instance, sources, survey, path, options)
        with waiting("naming the tables for `dtef sql`"):
            warehouse.refresh_database()
    return 0 if clean else 1


def _require_one_place(rounds: Sequence[str]) -> None:
    if twice := sorted({round_id for round_id in rounds if rounds.count(round_id) > 1}):
        raise ConfigError(f"round {', '.join(twice)} is in more than one PATH: give the one to take it from")


def _ingested(instance: Any, sources: Sources[Survey], survey: Survey, path: Path, options: IngestOptions) -> bool:
    """Store one round and say what came of it; whether nothing was left unread."""
    from assets.launch import materialize
    from assets.survey.rounds import register_round

    started = time.monotonic()
    with waiting(f"{survey.round}: noting what is new"):
        before = sources.before(survey.round)
        registered = register_round(instance, sources, survey, path, **options.of_a_round)
    outcome = materialize(instance, ["survey_responses"], registered.keys, {})
    say_skipped(outcome, sources.warehouse)
    for line in summary(sources.warehouse, survey.round, time.monotonic() - started):
        say(line)
    if registered.retired:
        retired = f"retired {counted(len(registered.retired), 'segment')} that the round no longer has"
        say(f"  warning: {retired}: {', '.join(registered.retired)}")
    if registered.changes is not None:
        say(f"  since it was ingested last: {registered.changes}")
    for line in design_effect(before.design_effect if before else 1, registered.source.design_effect, options.design_effect):
        say(line)
    unread = faults(sources.warehouse, survey.round)
    for line in [*unread, *(f"error: {failure}" for failure in outcome.failures)]:
        say(line, err=True)
    return not (unread or outcome.failures)
