"""What the explorer on a part's page is given: each item with what was said of it, how that was read, and where quotations stand.

Everything is plain data, which the page's script shows as text. Long texts are cut; a text that is cut is a list of its beginning and of its
length in characters. What is null, empty or as usual is left out.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, NamedTuple

from dtef_pipeline.qa.score_rows import ANSWERED_CALL
from dtef_pipeline.qa.site.part_rows import PartRows, ResponseName, response_name
from dtef_pipeline.report.page_files import packed
from dtef_pipeline.report.stored_rows import StoredRow

RESPONSE_CHARACTERS, ITEM_CHARACTERS, CHUNK_CHARACTERS, TOLD_CHARACTERS = 2_000, 8_000, 6_000, 800
"""Of a response; of an item's text, options and expected answer; of a chunk of a document; of anything else that a page shows of a text."""
METRICS_FIRST = ("correct", "passed", "score", "judged", "existence", "existence_relaxed")
"""Metrics in the order in which they are shown; others follow by name."""
_ABOUT_A_DOCUMENT = ("name", "project", "geography", "country", "month", "year")
_USUAL_END = "stop"
CutText = str | list[Any]


class ExploredPage(NamedTuple):
    """The items of one page, from the first of them on, and the data that its explorer is given."""

    first: int
    """Place of the first item in its part, from 0."""
    n_items: int
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Known:
    """What a part's responses have in common: each is told on the page once, and by its place after that."""

    models: Mapping[str, str]
    """Name by variant, the best first."""
    ways: Sequence[str]
    snapshots: Sequence[str]
    measures: Sequence[tuple[str, str]]
    """Metric, and what it was measured by; the one that items are told apart by first."""

    def told(self) -> dict[str, Any]:
        return {
            "models": [{"name": name, "variant": variant} for variant, name in self.models.items()],
            "ways": list(self.ways),
            "snapshots": list(self.snapshots),
            "metrics": [{"metric": metric, "by": by} for metric, by in self.measures],
        }


def explored_pages(part: PartRows, most_bytes: int) -> Iterator[ExploredPage]:
    """The items of a part in as many pages as it takes to hold each under `most_bytes` of data, or to one item. None: no page."""
    known = _known(part)
    entries: list[dict[str, Any]] = []
    documents: dict[str, dict[str, Any]] = {}
    size = first = 0
    for place, row in enumerate(part.items):
        entry = _item(part, row, known)
        shown = {doc: _document(part.documents[doc]) for doc in _documents_of(entry) if doc in part.documents}
        added = len(packed(entry)) + sum(len(packed(one)) for doc, one in shown.items() if doc not in documents)
        if entries and size + added > most_bytes:
            yield _page(part, known, first, entries, documents)
            entries, documents, size, first = [], {}, 0, place
        entries.append(entry)
        documents |= shown
        size += added
    if entries:
        yield _page(part, known, first, entries, documents)


def _page(
    part: PartRows, known: _Known, first: int, entries: list[dict[str, Any]], documents: Mapping[str, dict[str, Any]]
) -> ExploredPage:
    data = {**known.told(), "documents": list(documents.values()), "items": entries, "first": first, "total": len(part.items)}
    return ExploredPage(first, len(entries), data)


def _known(part: PartRows) -> _Known:
    responses = [row for rows in part.responses.values() for row in rows]
    scores = [(name, row) for name, rows in part.scores.items() for row in rows]
    measures = sorted({(row["metric"] or "", row["measured_by"] or "") for _, row in scores}, key=_metric_place)
    ways = sorted({row["condition"] or "" for row in responses} | {name[1] or "" for name, _ in scores})
    snapshots = sorted({row["snapshot"] for row in responses})
    return _Known(_models(responses, scores, measures[0] if measures else None), ways, snapshots, measures)


def _metric_place(measure: tuple[str, str]) -> tuple[int, tuple[str, str]]:
    known = measure[0] in METRICS_FIRST
    return (METRICS_FIRST.index(measure[0]) if known else len(METRICS_FIRST), measure)


def _models(
    responses: Sequence[StoredRow], scores: Sequence[tuple[ResponseName, StoredRow]], measure: tuple[str, str] | None
) -> dict[str, str]:
    """The variants with their names: by the mean of the first metric, the best first, then by name."""
    found: dict[str, list[float]] = defaultdict(list)
    for name, row in scores:
        if (row["metric"] or "", row["measured_by"] or "") == measure and row["score"] is not None:
            found[name[2]].append(row["score"])
    means = {variant: fsum(own) / len(own) for variant, own in found.items()}
    names = {row["model_variant"]: row["model"] for row in responses}
    order = sorted(names, key=lambda variant: (-means.get(variant, -1.0), names[variant] or "", variant or ""))
    return {variant: names[variant] for variant in order}


def _item(part: PartRows, row: StoredRow, known: _Known) -> dict[str, Any]:
    item = row["item_id"]
    return _said(
        id=item,
        type=row["type"],
        scorers=row["scorers"],
        text=cut(row["text"], ITEM_CHARACTERS),
        options=[cut(option, ITEM_CHARACTERS) for option in row["options"] or ()],
        expected=cut(_expected(row), ITEM_CHARACTERS),
        solution=cut(row["solution"], TOLD_CHARACTERS),
        cluster=row["cluster"] if row["cluster"] != item else None,
        line=row["source_line"],
        flags=row["flags"],
        quotes=[
            _said(text=cut(one["text"], RESPONSE_CHARACTERS), file=one["file"], turn=one["turn"]) for one in row["quotes"] or ()
        ],
        asked=_asked(part, item, known),
        said=[_response(part, one, known) for one in _in_order(part.responses.get(item, ()), known)],
    )


def _expected(row: StoredRow) -> str | None:
    """The expected answer for people: of a program its tests, which are kept as JSON."""
    reference = row["reference"]
    if row["type"] != "code" or not reference:
        return None if reference is None else str(reference)
    try:
        held = json.loads(reference)
    except ValueError:
        return str(reference)
    tests = held.get("test") if isinstance(held, dict) else None
    return str(tests) if isinstance(tests, str) else str(reference)


def _asked(part: PartRows, item: str, known: _Known) -> list[dict[str, Any]]:
    """How the item was asked, by condition: the order of its options, and the chunks that were shown with it."""
    prompts = {row["condition"] or "": row for row in part.prompts.get(item, ())}
    retrieved = {row["condition"] or "": row for row in part.retrieval.get(item, ())}
    chunks: dict[str, list[StoredRow]] = defaultdict(list)
    for row in part.context.get(item, ()):
        chunks[row["condition"] or ""].append(row)
    return [
        _said(
            way=place,
            order=prompts[way]["option_order"] if way in prompts else None,
            examples=prompts[way]["n_examples"] if way in prompts else None,
            problem=next((row["problem"] for row in chunks.get(way, ()) if row["problem"]), None),
            chunks=[_chunk(row) for row in chunks.get(way, ()) if row["doc_id"] is not None],
            found=_found(retrieved.get(way)),
        )
        for place, way in enumerate(known.ways)
        if way in prompts or way in chunks
    ]


def _chunk(row: StoredRow) -> dict[str, Any]:
    own = None if row["page_content"] is None else cut(row["page_content"], CHUNK_CHARACTERS)
    return _said(
        doc=row["doc_id"], rank=row["rank"], near=_rounded(row["relevance"]), evidence=row["holds_quote"] or None, text=own
    )


def _found(row: StoredRow | None) -> dict[str, Any]:
    if row is None:
        return {}
    shares = {name: _rounded(row[name]) for name in ("precision", "recall", "mrr", "ndcg")}
    return _said(k=row["k"], relevant=row["n_relevant"], **shares)


def _documents_of(entry: Mapping[str, Any]) -> Iterator[str]:
    return (chunk["doc"] for asked in entry.get("asked", ()) for chunk in asked.get("chunks", ()))


def _document(row: StoredRow) -> dict[str, Any]:
    about = ", ".join(str(row[name]) for name in _ABOUT_A_DOCUMENT if row[name] is not None and row[name] != "")
    return _said(id=row["doc_id"], about=cut(about, TOLD_CHARACTERS), text=cut(row["page_content"], CHUNK_CHARACTERS))


def _in_order(responses: Sequence[StoredRow], known: _Known) -> list[StoredRow]:
    place = {variant: at for at, variant in enumerate(known.models)}
    return sorted(
        responses, key=lambda row: (place[row["model_variant"]], row["condition"] or "", row["snapshot"], row["draw"] or 0)
    )


def _response(part: PartRows, row: StoredRow, known: _Known) -> dict[str, Any]:
    name = response_name(row)
    ended = row["finish_reason"]
    return _said(
        model=list(known.models).index(row["model_variant"]),
        way=known.ways.index(row["condition"] or ""),
        snapshot=known.snapshots.index(row["snapshot"]),
        draw=row["draw"] or None,
        text=cut(row["response"], RESPONSE_CHARACTERS),
        state=None if row["call_status"] == ANSWERED_CALL else row["call_status"],
        ended=None if ended == _USUAL_END else ended,
        error=cut(row["error"], TOLD_CHARACTERS),
        scores=sorted((_score(one, known) for one in part.scores.get(name, ())), key=lambda one: int(one["metric"])),
        quoted=[_citation(one) for one in part.citations.get(name, ())],
        judged=[_judgement(one) for one in part.judgements.get(name, ())],
        run=[_execution(one) for one in part.executions.get(name, ())],
    )


def _score(row: StoredRow, known: _Known) -> dict[str, Any]:
    return _said(
        metric=known.measures.index((row["metric"] or "", row["measured_by"] or "")),
        scorer=row["scorer"],
        score=_rounded(row["score"]),
        status=None if row["status"] == "ok" else row["status"],
        how=row["how"],
        flags=row["flags"],
        reason=cut(row["reason"], TOLD_CHARACTERS),
        detail=cut(row["detail"], TOLD_CHARACTERS),
    )


def _citation(row: StoredRow) -> dict[str, Any]:
    found = "exact" if row["exact"] else "relaxed" if row["relaxed"] else None
    return _said(
        source=cut(row["source_index"], TOLD_CHARACTERS),
        doc=row["doc_id"],
        quote=cut(row["quote"], TOLD_CHARACTERS),
        found=found,
        why=row["reason"],
        begin=row["begin"],
        end=row["end"],
    )


def _judgement(row: StoredRow) -> dict[str, Any]:
    return _said(
        by=row["evaluator"],
        judge=row["judge_model"] or row["judge_variant"],
        score=_rounded(row["score"]),
        why=row["reason"],
        said=cut(row["explanation"], TOLD_CHARACTERS),
        again=(row["attempts"] or 1) > 1 or None,
        own=row["self_judged"] or None,
        raw=[cut(text, TOLD_CHARACTERS) for text in row["raw"] or ()] if row["score"] is None else None,
        error=cut(row["error"], TOLD_CHARACTERS),
    )


def _execution(row: StoredRow) -> dict[str, Any]:
    return _said(
        verdict=row["verdict"],
        message=cut(row["message"], RESPONSE_CHARACTERS),
        isolation=row["isolation"],
        python=row["python"],
        seconds=_rounded(row["wall_s"]),
        flags=row["flags"],
    )


def cut(text: str | None, most: int) -> CutText | None:
    """The text, or where it is longer its first `most` characters with the number of all."""
    return text if text is None or len(text) <= most else [text[:most], len(text)]


def _said(**fields: Any) -> dict[str, Any]:
    """The fields that say something; 0 and false do."""
    return {name: value for name, value in fields.items() if value is not None and value != "" and value != [] and value != {}}


def _rounded(value: float | None) -> float | None:
    return None if value is None or value != value else round(value, 4)
