"""Whether a filter of interviews leaves any, before a command asks models about none."""

from __future__ import annotations

from collections.abc import Sequence

from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.qa.filter_faults import filter_faults
from dtef_pipeline.qa.prompt_rows import AskedHow
from dtef_pipeline.qa.space import QA_SPACE
from resources.warehouse import Warehouse


def refuse_empty_filter(warehouse: Warehouse, keys: Sequence[str], how: AskedHow) -> None:
    """Raises ConfigError where the filter leaves no document of any of the parts; warns of each where others have some."""
    faults = filter_faults(
        keys, how, lambda key, columns: warehouse.read_or_empty("qa_documents", columns=columns, **QA_SPACE.levels(key))
    )
    for key, text in faults.items():
        say(f"warning: {key}: {text}", err=True)
