"""What `dtef rubric export` does; the words are in `dtef_pipeline/cli/rubric_export_group.py`."""

from __future__ import annotations

from pathlib import Path

from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.rubric_stored_run import stored_run, whole_judgements
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.rubric.report.result_file import result_chunks
from dtef_pipeline.text.counted import counted
from resources.file_systems import write_chunks
from resources.warehouse import Warehouse


@reads_tables
def export(warehouse: Warehouse, blueprint: str, out: Path, snapshot: str | None) -> None:
    run = stored_run(warehouse, blueprint, snapshot)
    at = {"blueprint": blueprint, "snapshot": str(run.snapshot)}
    summaries, grades = (warehouse.rows(name, **at).to_pylist() for name in ("rubric_summaries", "rubric_grades"))
    write_chunks(out, result_chunks(run, whole_judgements(warehouse, **at), summaries, grades))
    prompts = counted(len(run.prompts), "prompt")
    say(f"wrote {out}: {blueprint}, snapshot {run.snapshot}, {prompts}, {counted(len(run.models), 'model')}", err=True)
