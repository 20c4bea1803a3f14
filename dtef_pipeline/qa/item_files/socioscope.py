"""Questions about interviews in Socioscope's format: `{"qa_pairs": [{id?, question, answers?, evidence?, quotes?}]}`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dtef_pipeline.qa.item_files.item_log import ANSWERS_CODE, FileAnswer, ItemLog, LoadedItems, RowFault
from dtef_pipeline.qa.item_files.layout import (
    flag_options,
    number_row,
    read_options,
    require_mapping,
    require_path,
    require_readable,
    require_text,
    reserve_id,
    warn_of_flags,
)
from dtef_pipeline.qa.item_files.rows import DuplicateKeys, JsonFile, SourceRow, find_member_lines, read_whole_json
from dtef_pipeline.qa.model import ItemError, QaItem, Quote

SOCIOSCOPE_TYPES = ("Yes/No", "ListOne", "ListMany", "PickOne", "PickMany", "Yes/No with Rationale")
PICKING_TYPES = ("PickOne", "PickMany")
"""Types that choose from options."""
UNKNOWN_TYPE, EMPTY_METRIC = "unknown_type", "empty_metric"
"""Flags of items that cannot be scored: the type has no scorer; the metric is empty."""
_TYPE_SPELLED = {name.casefold(): name for name in SOCIOSCOPE_TYPES}
_PAIR_KEYS = ("question", "id", "answers", "evidence", "quotes")
_ANSWER_ALLOWED = "{answer, source?, context?, citations?}, with context and citations lists"
_EVIDENCE_ALLOWED = "a list of {file, turn}, with turn a whole number"

INTERVIEW_LAYOUT = "socioscope"
CheckMetric = Callable[[QaItem], None]
"""Raises ItemError for an item whose reference its scorer cannot read or names a value outside the options."""
TurnText = Callable[[str, int | None], str | None]
"""Returns the text of a turn given the file's name and the turn, or of the whole transcript if the turn is None; None: it does not
exist."""


def load_socioscope(
    path: Path,
    *,
    suite: str = "socioscope",
    part: str | None = None,
    strict: bool = False,
    check_metric: CheckMetric | None = None,
    turn_text: TurnText | None = None,
) -> LoadedItems:
    """Load the items of a file and the answers in it.

    An item's id is its part and its `id`, else its place in the file, from 0: `questions/s01`. Its cluster is the first transcript of its
    evidence, else the item itself. Its reference is the metric: text unchanged, anything else as JSON.

    Args:
        path: a JSON file.
        suite: the suite of the items.
        part: the part of the suite. None: the file's name without its ending.
        strict: whether the first unusable question raises ItemError.
        check_metric: raises ItemError for an unreadable metric. None: metrics are not checked.
        turn_text: the transcripts, which must contain the quotes. None: quotes are not checked.

    Raises:
        ItemError: for a path that is not a file.
    """
    if require_path(path).is_dir():
        raise ItemError("a folder", where=str(path), allowed="a JSON file with qa_pairs")
    part = part or path.stem
    log = ItemLog(strict, part=part)
    try:
        pairs = _list_pairs(read_whole_json(path))
    except RowFault as fault:
        log.log_error(fault, path)
        return LoadedItems(findings=log.findings)
    reader = _PairReader(path, suite, part, log, check_metric, turn_text)
    for row in pairs:
        reader.read(row)
    return LoadedItems(tuple(reader.items), log.findings, answers=tuple(reader.answers))


def _list_pairs(file: JsonFile) -> list[SourceRow]:
    form = 'an object with a list, once: {"qa_pairs": [...]}'
    value = file.value
    pairs = value.get("qa_pairs") if isinstance(value, dict) and not isinstance(value, DuplicateKeys) else None
    if not isinstance(pairs, list):
        raise RowFault("qa_pairs", "qa_pairs is missing or not a list", found=value, allowed=form)
    if not pairs:
        raise RowFault("empty", "qa_pairs is empty", allowed=form)
    lines = find_member_lines(file.text, "qa_pairs")
    return [SourceRow(number, line, pair) for number, (line, pair) in enumerate(zip(lines, pairs, strict=True))]


@dataclass
class _PairReader:
    """A reader of pairs from one file."""

    path: Path
    suite: str
    part: str
    log: ItemLog
    check_metric: CheckMetric | None
    turn_text: TurnText | None
    items: list[QaItem] = field(default_factory=list)
    answers: list[FileAnswer] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    missing: set[object] = field(default_factory=set)
    """Transcripts and turns that do not exist; each is reported only once."""

    def read(self, row: SourceRow) -> None:
        """Read the item of a pair and its answers; an unusable pair is logged and gives nothing."""
        item_id = f"{self.part}/{row.number}"
        try:
            pair = require_mapping(row, _PAIR_KEYS)
            item_id = f"{self.part}/{number_row(row)}"
            item = self._read_item(pair, item_id, row.line)
            if self.check_metric is not None and not {UNKNOWN_TYPE, EMPTY_METRIC} & set(item.flags):
                _check_item_metric(item, self.check_metric)
            reserve_id(item_id, self.ids)
        except RowFault as fault:
            self.log.log_error(fault, self.path, row.line, item_id)
            return
        warn_of_flags(item, self.path, self.log)
        for warning in _list_warnings(item, self.turn_text):
            self._log_warning(item, warning)
        self.items.append(item)
        self._read_answers(pair.get("answers"), item)

    def _log_warning(self, item: QaItem, fault: RowFault) -> None:
        """Log a warning; that a file of transcripts is missing, once per file."""
        if fault.code == "no_such_source" or fault.found in {quote.file for quote in item.quotes}:
            if fault.found in self.missing:
                return
            self.missing.add(fault.found)
        self.log.log_warning(fault, self.path, item.source_line, item.item_id)

    def _read_item(self, pair: Mapping[str, Any], item_id: str, line: int | None) -> QaItem:
        question = _require_question(pair.get("question"))
        label = require_text(question, "type").strip()
        type_ = _TYPE_SPELLED.get(" ".join(label.casefold().split()), label)
        evidence = _read_evidence(pair.get("evidence"))
        reference = _read_metric_text(question.get("metric"))
        item = QaItem(
            item_id=item_id,
            suite=self.suite,
            part=self.part,
            type=type_,
            text=require_text(question, "text"),
            options=_read_pick_options(question, type_),
            reference=reference,
            cluster=evidence[0][0] if evidence else item_id,
            source_line=line,
            quotes=_read_quotes(pair.get("quotes"), evidence),
        )
        unknown = [UNKNOWN_TYPE] if type_ not in SOCIOSCOPE_TYPES else []
        empty = [] if reference.strip() else [EMPTY_METRIC]
        return replace(item, flags=(*unknown, *empty, *(flag_options(item.options) if item.options else ())))

    def _read_answers(self, answers: object, item: QaItem) -> None:
        if not isinstance(answers, list | None):
            fault = RowFault(ANSWERS_CODE, "answers is not a list", found=answers, allowed=f"a list of {_ANSWER_ALLOWED}")
            self.log.log_error(fault, self.path, item.source_line, item.item_id)
            return
        for number, answer in enumerate(answers or ()):
            try:
                entry = _read_answer(answer, number, item.item_id)
                self.answers.append(entry)
                if entry.source and self.turn_text is not None and self.turn_text(entry.source, None) is None:
                    text = f"the source of answer {number} is not among the transcripts"
                    form = "a file of the transcripts"
                    self._log_warning(item, RowFault("no_such_source", text, found=entry.source, allowed=form))
            except RowFault as fault:
                fault.code = ANSWERS_CODE  # whatever is wrong with it, its item is kept
                self.log.log_error(fault, self.path, item.source_line, item.item_id)


def _list_warnings(item: QaItem, turn_text: TurnText | None) -> Iterator[RowFault]:
    if UNKNOWN_TYPE in item.flags:
        text = "this type has no scorer; the item is kept without scores"
        yield RowFault(UNKNOWN_TYPE, text, found=item.type, allowed=SOCIOSCOPE_TYPES)
    if EMPTY_METRIC in item.flags:
        yield RowFault(EMPTY_METRIC, "the metric is empty; the item is kept without scores", allowed="what is expected")
    if turn_text is not None:
        yield from filter(None, (_find_quote_fault(quote, turn_text) for quote in item.quotes))


def _require_question(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        form = "an object with text, type, metric and, for types that choose, options"
        raise RowFault("question", "question is not an object", found=value, allowed=form)
    if isinstance(value, DuplicateKeys):
        raise RowFault("doubled_key", "a key of the question occurs twice", found=value.duplicate_key, allowed="each key once")
    return value


def _read_metric_text(value: object) -> str:
    """Return the metric as text or JSON; its scorer checks it."""
    if isinstance(value, str):
        return require_readable(value, "metric")
    if isinstance(value, DuplicateKeys):
        raise RowFault("metric", "a value of the metric occurs twice", found=value.duplicate_key, allowed="each value once")
    return "" if value is None else require_readable(json.dumps(value, ensure_ascii=False), "metric")


def _check_item_metric(item: QaItem, check_metric: CheckMetric) -> None:
    try:
        check_metric(item)
    except ItemError as error:
        found = item.reference if error.arrived is None else error.arrived
        raise RowFault("metric", error.problem, found=found, allowed=error.allowed) from error


def _read_pick_options(question: Mapping[str, Any], type_: str) -> tuple[str, ...]:
    """Return the options to choose from; empty for a type without options."""
    if type_ in SOCIOSCOPE_TYPES and type_ not in PICKING_TYPES:
        return ()
    options = question.get("options")
    return () if options is None and type_ not in PICKING_TYPES else read_options(options)


def _read_evidence(value: object) -> list[tuple[str, int | None]]:
    """Return file and turn of each piece of evidence."""
    fault = RowFault("evidence", "the evidence cannot be read", found=value, allowed=_EVIDENCE_ALLOWED)
    if not isinstance(value, list | None):
        raise fault
    pieces = []
    for piece in value or ():
        turn = piece.get("turn") if isinstance(piece, dict) else None
        if not isinstance(piece, dict) or isinstance(turn, bool) or not isinstance(turn, int | None):
            raise fault
        pieces.append((require_text(piece, "file"), turn))
    return pieces


def _read_quotes(value: object, evidence: Sequence[tuple[str, int | None]]) -> tuple[Quote, ...]:
    """Return the quotes with their places: one each, or all in the only one; else in any turn of the first file."""
    if not isinstance(value, list | None) or not all(isinstance(quote, str) and quote.strip() for quote in value or ()):
        raise RowFault("quotes", "the quotes cannot be read", found=value, allowed="a list of strings that are not blank")
    quotes = [require_readable(quote, "a quote") for quote in value or ()]
    if quotes and not evidence:
        raise RowFault("quotes", "quotes without evidence", found=quotes, allowed=f"evidence: {_EVIDENCE_ALLOWED}")
    if len(quotes) == len(evidence):
        places = list(evidence)
    else:
        places = [evidence[0] if len(evidence) == 1 else (evidence[0][0], None)] * len(quotes) if quotes else []
    return tuple(Quote(quote, file, turn) for quote, (file, turn) in zip(quotes, places, strict=True))


def _find_quote_fault(quote: Quote, turn_text: TurnText) -> RowFault | None:
    """Return the fault of a quote that is not in the place of its evidence, character by character."""
    text = turn_text(quote.file, quote.turn)
    place = quote.file if quote.turn is None or turn_text(quote.file, None) is None else f"{quote.file}, turn {quote.turn}"
    if text is None:
        problem = "the evidence names a file or turn that the transcripts do not have"
        return RowFault("no_such_turn", problem, found=place, allowed="a file and a turn of the transcripts")
    if quote.text.strip() not in text:
        form = "text exactly as in the transcript"
        return RowFault("quote_not_found", f"the quote is not in {place}", found=quote.text, allowed=form)
    return None


def _read_answer(value: object, number: int, item_id: str) -> FileAnswer:
    fault = RowFault(ANSWERS_CODE, f"answer {number} cannot be read", found=value, allowed=_ANSWER_ALLOWED)
    if not isinstance(value, dict) or "answer" not in value:
        raise fault
    if isinstance(value["answer"], dict) and ("answer" not in value["answer"] or isinstance(value["answer"], DuplicateKeys)):
        raise fault
    context, citations, source = (value.get(key) for key in ("context", "citations", "source"))
    if not isinstance(context, list | None) or not isinstance(citations, list | None) or not isinstance(source, str | None):
        raise fault
    source = source and require_readable(source, "the source of an answer")
    text = value["answer"]
    if text is not None:
        text = require_readable(text if isinstance(text, str) else json.dumps(text, ensure_ascii=False), "answer")
    return FileAnswer(item_id, number, text, source, tuple(context or ()), tuple(citations or ()))
