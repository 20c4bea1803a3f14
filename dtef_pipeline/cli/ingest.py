"""What `dtef ingest` does; the words are in `dtef_pipeline/cli/dtef.py`."""

import time
from pathlib import Path

import click
import pyarrow.compute as pc

from dtef_pipeline.cli.read import open_warehouse
from dtef_pipeline.cli.run import dagster_instance
from dtef_pipeline.survey.validation import counted
from resources.warehouse import Warehouse


def ingest(path: Path, round_id: str | None, min_n: int | None) -> int:
    from dtef_pipeline.survey.adapters import read_survey, read_surveys
    from dtef_pipeline.survey.observe import MIN_N

    surveys = read_surveys(path, round_id)
    from assets.launch import materialize
    from assets.survey.rounds import register_round
    from resources.sources import Sources

    warehouse = open_warehouse()
    failures = 0
    with dagster_instance() as instance:
        for survey in surveys:
            started = time.monotonic()
            registered = register_round(instance, Sources(warehouse, read_survey), survey, path, min_n=min_n or MIN_N)
            outcome = materialize(instance, ["survey_responses"], registered.keys, {})
            failures += len(outcome.failures)
            _say_ingested(warehouse, survey.round, registered.retired, time.monotonic() - started)
            if registered.changes is not None:
                click.echo(f"  since it was ingested last: {registered.changes}")
            for failure in outcome.failures:
                click.echo(f"error: {failure}", err=True)
    warehouse.refresh_database()
    return 1 if failures else 0


def _say_ingested(warehouse: Warehouse, round_id: str, retired: list[str], seconds: float) -> None:
    rows = warehouse.read_or_empty("survey_responses", columns=["segment", "question_id", "n_source"], round=round_id)
    quarantine = warehouse.read_or_empty("survey_quarantine", round=round_id)
    pairs = len(quarantine) - quarantine["question_id"].null_count
    click.echo(
        f"{round_id}: {counted(len(pc.unique(rows['segment'])), 'segment')}, "
        f"{counted(len(pc.unique(rows['question_id'])), 'question')}, {counted(len(rows), 'pair')}, "
        f"{counted(pairs, 'pair')} and {counted(len(quarantine) - pairs, 'whole segment')} in quarantine ({seconds:.1f} s)"
    )
    if retired:
        click.echo(f"  warning: retired {counted(len(retired), 'segment')} that the round no longer has: {', '.join(retired)}")
    findings = warehouse.read_or_empty("survey_findings", round=round_id).to_pylist()
    left_out = [finding for finding in findings if finding["code"] == "profile-question"]
    if left_out:
        click.echo(f"  profile questions, left out: {'; '.join(item for f in left_out for item in f['items'])}")
    for finding in findings:
        if finding["level"] != "info":
            click.echo(
                f"  {finding['level']}: {finding['message']}: {', '.join(finding['items'][:20])}",
                err=finding["level"] == "error",
            )
