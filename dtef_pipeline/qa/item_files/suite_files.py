"""The files of a suite: its items and their documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.item_files.benchmarks import load_gsm8k, load_humaneval, load_mmlu
from dtef_pipeline.qa.item_files.item_log import LoadedItems
from dtef_pipeline.qa.item_files.socioscope import INTERVIEW_LAYOUT, load_socioscope
from dtef_pipeline.qa.judging.judgement_rows import VERBATIM_SCORER
from dtef_pipeline.qa.model import QaItem, ScorerSettings
from dtef_pipeline.qa.scorers import OUTSIDE_SCORERS, find_scorer, list_scorer_names
from dtef_pipeline.qa.suites import SuiteSpec
from dtef_pipeline.qa.transcripts.chunks import build_documents_table, split_into_chunks
from dtef_pipeline.qa.transcripts.corpus import load_corpus
from dtef_pipeline.text.name_matching import list_nearest

TABLE_LAYOUTS = {"mmlu": load_mmlu, "gsm8k": load_gsm8k, "humaneval": load_humaneval}
"""Layouts with one row per item, each with its reader."""


@dataclass(frozen=True)
class AddedFiles:
    """The loaded files of a suite."""

    loaded_items: LoadedItems
    scorers_of: Callable[[QaItem], Sequence[str]]
    """Names of an item's scorers."""
    documents: pa.Table | None = None
    """Chunks of the documents that items are about; None: the suite has no documents."""

    @property
    def parts(self) -> list[str]:
        """The parts of the items, in the order of their first occurrence."""
        return list(dict.fromkeys(item.part for item in self.loaded_items.items))


def read_added(
    spec: SuiteSpec, path: Path, corpus: Path | None, *, part: str | None = None, strict: bool = False
) -> AddedFiles:
    """Read the items at a path in the layout of their suite, and the documents that they are about.

    Unusable rows become findings, also those of documents; with `strict` the first one raises ItemError. `part`: a name for the part of a
    file; None: its own name. Raises ItemError for a path that does not exist, and ConfigError for a suite with an unknown scorer, or for a
    `part` if the files name their own parts.
    """
    _require_scorers(spec)
    if spec.layout != INTERVIEW_LAYOUT:
        if part is not None:
            raise ConfigError(
                f"part {part}: the files of {spec.name} name their own parts. Add other files as a suite of your own (--suites)"
            )
        return AddedFiles(
            TABLE_LAYOUTS[spec.layout](path, suite=spec.name, strict=strict), lambda item: spec.scorers_of(item.type)
        )
    documents = load_corpus(corpus, strict=strict) if corpus else None
    items = load_socioscope(
        path,
        suite=spec.name,
        part=part,
        strict=strict,
        check_metric=lambda item: _check_metric(spec, item),
        turn_text=documents.turn_text if documents else None,
    )
    if documents is None:
        return AddedFiles(items, lambda item: spec.scorers_of(item.type))
    return AddedFiles(
        replace(items, findings=(*items.findings, *documents.errors)),
        lambda item: (*scorers, VERBATIM_SCORER) if (scorers := spec.scorers_of(item.type)) else (),
        build_documents_table(split_into_chunks(documents.transcripts)),
    )


def _require_scorers(spec: SuiteSpec) -> None:
    kinds = (*list_scorer_names(), *OUTSIDE_SCORERS)
    for name in (*(spec.scorers or ()), *(scorer for names in (spec.scorers_by_type or {}).values() for scorer in names)):
        if name not in kinds and find_scorer(name) is None:
            raise ConfigError(f"suite {spec.name}: unknown scorer {name!r}; known: {list_nearest(name, kinds, len(kinds))}")


def _check_metric(spec: SuiteSpec, item: QaItem) -> None:
    """Raise ItemError for an item whose metric its scorer cannot read."""
    for name in spec.scorers_of(item.type):
        if scorer := find_scorer(name):
            scorer.prepare_item(item.reference, item.options, ScorerSettings())
