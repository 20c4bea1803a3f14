"""What the files of a suite come to: its items, and the documents that they are about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.item_files.item_log import ERROR_LEVEL, ItemFinding, LoadedItems, format_shortened
from dtef_pipeline.qa.item_files.layouts import INTERVIEW_LAYOUT, load_items
from dtef_pipeline.qa.judging.judgement_rows import VERBATIM_SCORER
from dtef_pipeline.qa.model import ItemError, QaItem, ScorerSettings
from dtef_pipeline.qa.score_lines import OUTSIDE_SCORERS
from dtef_pipeline.qa.scorers import find_scorer, list_scorer_names
from dtef_pipeline.qa.suites import SuiteSpec
from dtef_pipeline.qa.transcripts.chunks import build_documents_table, split_into_chunks
from dtef_pipeline.qa.transcripts.corpus_files import load_corpus
from dtef_pipeline.text.name_matching import list_nearest


@dataclass(frozen=True)
class AddedFiles:
    """The files of a suite as they were read."""

    loaded: LoadedItems
    scorers_of: Callable[[QaItem], Sequence[str]]
    """The scorers of an item, by name."""
    documents: pa.Table | None = None
    """The chunks of the documents that items are about; None: they are about none."""

    @property
    def parts(self) -> list[str]:
        """The parts that items are of, in the order in which they first occur."""
        return list(dict.fromkeys(item.part for item in self.loaded.items))


def read_added(
    spec: SuiteSpec, path: Path, corpus: Path | None, *, part: str | None = None, strict: bool = False
) -> AddedFiles:
    """Read the items at a path in the layout of their suite, and the documents that they are about.

    Rows that are not usable are findings, also of documents. With `strict` the first one raises ItemError. `part`: the name of the part, where a
    file is one; None: its own. Raises ItemError for a path where nothing is, and ConfigError for a suite with a scorer that there is not, and
    for a `part` where the files say which parts they have.
    """
    _require_scorers(spec)
    if part is not None and spec.layout != INTERVIEW_LAYOUT:
        raise ConfigError(
            f"part {part}: the files of {spec.name} say which parts they have: a suite of your own (--suites) keeps other files apart"
        )
    documents = load_corpus(corpus, strict=strict) if corpus and spec.layout == INTERVIEW_LAYOUT else None
    items = load_items(
        spec.layout,
        path,
        spec.name,
        part=part,
        strict=strict,
        check_metric=lambda item: _check_metric(spec, item),
        turn_text=documents.turn_text if documents else None,
    )
    if documents is None:
        return AddedFiles(items, lambda item: spec.scorers_of(item.type))
    corpus_findings = tuple(_make_corpus_finding(error) for error in documents.quarantined)
    result = replace(items, findings=(*items.findings, *corpus_findings))
    return AddedFiles(
        result,
        lambda item: _add_quotation_scorer(spec.scorers_of(item.type)),
        build_documents_table(split_into_chunks(documents.transcripts)),
    )


def _require_scorers(spec: SuiteSpec) -> None:
    kinds = (*list_scorer_names(), *OUTSIDE_SCORERS)
    for name in (*(spec.scorers or ()), *(scorer for names in (spec.scorers_by_type or {}).values() for scorer in names)):
        if name not in kinds and find_scorer(name) is None:
            raise ConfigError(f"suite {spec.name}: there is no scorer {name!r}; known: {list_nearest(name, kinds, len(kinds))}")


def _add_quotation_scorer(scorers: Sequence[str]) -> tuple[str, ...]:
    """Whoever is asked about documents cites them, and the quotations are checked."""
    return (*scorers, VERBATIM_SCORER) if scorers else ()


def _check_metric(spec: SuiteSpec, item: QaItem) -> None:
    """Raises ItemError for an item whose metric its scorer cannot read."""
    for name in spec.scorers_of(item.type):
        if scorer := find_scorer(name):
            scorer.prepare_item(item.reference, item.options, ScorerSettings())


def _make_corpus_finding(error: ItemError) -> ItemFinding:
    value = None if error.arrived is None else format_shortened(error.arrived)
    return ItemFinding(ERROR_LEVEL, "corpus", str(error.where), error.line, None, value, error.allowed, error.problem)
