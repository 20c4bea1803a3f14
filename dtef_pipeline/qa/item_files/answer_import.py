"""Import of models' answers from published files, whose rows each name a known item."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from dtef_pipeline.asking.calls import UNKNOWN_LATENCY_S
from dtef_pipeline.asking.models import IMPORTED, ModelSpec
from dtef_pipeline.asking.request import Response
from dtef_pipeline.identity import request_key
from dtef_pipeline.qa.item_files.item_log import ItemLog, RowFault
from dtef_pipeline.qa.item_files.layout import require_mapping
from dtef_pipeline.qa.item_files.rows import SourceRow, read_rows, read_whole_json
from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.text.name_matching import list_nearest

ITEM_ID_KEYS = ("item_id", "task_id", "id", "index")
"""Keys that name the item of a row; the first that exists counts."""
ANSWER_UNDER = ("text", "response", "completion")
"""Keys of the answer; the first that exists counts. Several draws are a list under `samples`."""
SAMPLES_KEY = "samples"
_ROW_PROMPT_KEY = "prompt"
"""Keys of the prompt, in files that have it."""
_SUBJECT_KEYS = ("subject", "category")
_ALLOWED_ROW = "an item (item_id, task_id, or index and subject), a text (text, response or completion; or samples) and a model"
_MODEL_NAME = re.compile(r"[^\s=,]{1,200}")
_MOST_DRAWS, _MOST_COUNT, _MOST_AMOUNT = 100_000, 2**31 - 1, 1e15
Numbers = Sequence[int] | Mapping[str, Sequence[int]]
"""The number that answers use for the item at each place: one list, or one per subject."""


class ImportedAnswer(NamedTuple):
    """One answer of a model."""

    item_id: str
    model: str
    """The model's name, without `imported/`."""
    draw: int
    text: str
    usage: Mapping[str, Any]
    """`finish_reason`, `prompt_tokens`, `completion_tokens`, `cost_usd` and `latency_s`, as far as the row has them."""


@dataclass(frozen=True, slots=True)
class ImportRules:
    """The rules for reading the rows of a file."""

    key: str | None = None
    """Key that names the item; None: one of ITEM_ID_KEYS."""
    model: str | None = None
    """Model of rows without a model name."""
    numbers: Numbers | None = None
    """None: the numbers are places of the items here."""
    repeats_are_draws: bool = False
    """Whether several rows of one model and item are its draws, in the order of the file."""
    skips_unknown: bool = False
    """Whether rows of unknown items are skipped."""


class ImportedFile(NamedTuple):
    """The content of a file of answers."""

    answers: list[ImportedAnswer]
    skipped: int
    """Number of skipped rows of unknown items."""
    n_foreign_prompts: int = 0
    """Number of rows whose prompt does not contain the text of their item; such a prompt is not used."""


class ImportedResponses(NamedTuple):
    """Imported answers in the form of stored responses."""

    responses: list[Response]
    n_conflicting: int
    """Number of answers that are not stored, because an earlier item with the same prompt has another answer."""


class _UnknownItem(RowFault):
    """A row names an unknown item."""


def read_imported(
    path: Path, suite: str, item_ids: Sequence[str], rules: ImportRules, texts: Mapping[str, str] | None = None
) -> ImportedFile:
    """Read the answers of a file: lines of JSON, also gzipped, or Parquet.

    `item_ids`: of the suite, or of some parts of it. `texts`: the question by item; None: prompts of rows are not checked. Raises
    ItemError, with file and line, for the first row that names no item or an unknown one, that has no text, or that repeats the model, item
    and draw of another.
    """
    log, reader = ItemLog(strict=True), _RowReader(_Items(suite, item_ids, rules.numbers), rules, texts or {})
    answers: list[ImportedAnswer] = []
    n_skipped = 0
    for row in read_rows(path, log):
        try:
            answers += reader.read(row)
        except _UnknownItem as fault:
            if not rules.skips_unknown:
                _refuse_row(log, fault, path, row)
            n_skipped += 1
        except RowFault as fault:
            _refuse_row(log, fault, path, row)
    return ImportedFile(answers, n_skipped, reader.n_foreign_prompts)


def read_numbers(path: Path) -> Numbers:
    """Read a JSON list of whole numbers, or an object of such lists by subject. Raises ItemError for any other file."""
    form = "a JSON list of whole numbers, or an object of such lists by subject"
    try:
        content = read_whole_json(path).value
    except RowFault as fault:
        raise ItemError(fault.text, where=str(path), arrived=fault.found, allowed=form) from None
    for numbers in content.values() if isinstance(content, dict) else [content]:
        if not isinstance(numbers, list) or not all(type(n) is int for n in numbers) or len(set(numbers)) < len(numbers):
            raise ItemError("the file does not list distinct item numbers", where=str(path), allowed=form)
    return content  # type: ignore[no-any-return]


def build_imported_responses(
    answers: Sequence[ImportedAnswer], prompt_ids: Mapping[str, str], snapshot: str, at: datetime
) -> ImportedResponses:
    """Build a response for each answer, under the request key of its item's prompt. `prompt_ids`: by item. `at`: time of the import."""
    specs = {name: build_imported_model(name) for name in dict.fromkeys(answer.model for answer in answers)}
    responses: dict[str, Response] = {}
    n_outvoted = 0
    for answer in answers:
        spec, prompt = specs[answer.model], prompt_ids[answer.item_id]
        key = request_key(prompt, spec.variant, answer.draw, snapshot)
        usual: dict[str, Any] = {"finish_reason": None, "prompt_tokens": None, "completion_tokens": None, "cost_usd": None}
        details = {**usual, "latency_s": UNKNOWN_LATENCY_S, **answer.usage}
        origin: dict[str, Any] = {"served_model": None, "fingerprint": None, "attempts": 1, "answered_at": at}
        response = Response(key, prompt, spec.name, spec.variant, answer.draw, snapshot, answer.text, **details, **origin)
        n_outvoted += responses.setdefault(key, response).text != answer.text
    return ImportedResponses(list(responses.values()), n_outvoted)


def build_imported_model(name: str) -> ModelSpec:
    """Build the model record of imported answers."""
    return ModelSpec(name=f"{IMPORTED}{name}", model=f"{IMPORTED}{name}")


def _refuse_row(log: ItemLog, fault: RowFault, path: Path, row: SourceRow) -> None:
    log.log_error(fault, path, row.number + 1 if row.line is None else row.line)


@dataclass(slots=True)
class _Items:
    """The items that rows may name."""

    suite: str
    ids: Sequence[str]
    numbers: Numbers | None
    _known_ids: set[str] = field(init=False)
    _ids_by_ending: dict[str, str | None] = field(init=False)
    """Ids by their part after the last slash; None: several ids have it."""
    _ids_by_place: dict[str | None, dict[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._known_ids, self._ids_by_ending = set(self.ids), {}
        for item_id in self.ids:
            end = item_id.rpartition("/")[2]
            self._ids_by_ending[end] = None if end in self._ids_by_ending else item_id
        groups: Mapping[Any, Sequence[int]] = self.numbers if isinstance(self.numbers, Mapping) else {None: self.numbers or ()}
        self._ids_by_place = {
            group: {number: place for place, number in enumerate(numbers)} for group, numbers in groups.items()
        }

    def resolve_id(self, values: Mapping[str, Any], key: str | None) -> str:
        """Return the id of a row's item. Raises RowFault if it names no known item."""
        name = key or next((column for column in ITEM_ID_KEYS if values.get(column) is not None), ITEM_ID_KEYS[0])
        value = values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
            raise RowFault("item", f"{name} names no item", found=value, allowed=_ALLOWED_ROW)
        subject = next((values[column] for column in _SUBJECT_KEYS if isinstance(values.get(column), str)), None)
        details = f"{subject}/{value}" if subject is not None else str(value)
        place = self._find_by_place(value, subject, details)
        for candidate in (str(place), f"{subject}/{place}", self._ids_by_ending.get(str(place))):
            if candidate in self._known_ids:
                return candidate
        raise self._make_unknown_item(details)

    def _find_by_place(self, value: int | str, subject: str | None, details: str) -> int | str:
        """Return the item's id here."""
        if self.numbers is None or not isinstance(value, int):
            return value
        places = self._ids_by_place.get(subject if isinstance(self.numbers, Mapping) else None, {})
        if value not in places:
            raise self._make_unknown_item(f"{details} (not among the given numbers)")
        return places[value]

    def _make_unknown_item(self, details: str) -> _UnknownItem:
        return _UnknownItem(
            "unknown_item", f"no such item in {self.suite}", found=details, allowed=list_nearest(details, self.ids)
        )


class _RowReader:
    """A reader of rows that remembers their draws."""

    def __init__(self, items: _Items, rules: ImportRules, texts: Mapping[str, str]) -> None:
        self._items, self._rules, self._texts = items, rules, texts
        self.n_foreign_prompts = 0
        self._seen: dict[tuple[str, str, int], int] = {}
        self._draws: Counter[tuple[str, str]] = Counter()

    def read(self, row: SourceRow) -> list[ImportedAnswer]:
        values = require_mapping(row, (*ITEM_ID_KEYS[:1], *ANSWER_UNDER[:1], "model"))
        model, texts, usage = self._read_model(values), _read_texts(values), _read_usage(values)
        item = self._items.resolve_id(values, self._rules.key)
        first = self._find_first_draw(values, model, item, len(texts))
        answers = [ImportedAnswer(item, model, first + place, text, usage) for place, text in enumerate(texts)]
        for answer in answers:
            self._require_once(answer, row)
        prompt = values.get(_ROW_PROMPT_KEY)
        self.n_foreign_prompts += isinstance(prompt, str) and self._texts.get(item, "").strip() not in prompt
        return answers

    def _read_model(self, values: Mapping[str, Any]) -> str:
        name = values.get("model")
        name = self._rules.model if name is None else name
        name = name.removeprefix(IMPORTED) if isinstance(name, str) else name
        if not isinstance(name, str) or not _MODEL_NAME.fullmatch(name) or not name.isprintable():
            form = "a name without blanks, commas and =; --model NAME is used for rows without a model"
            raise RowFault("model", "model is not a valid model name", found=name, allowed=form)
        return name

    def _find_first_draw(self, values: Mapping[str, Any], model: str, item: str, number: int) -> int:
        if (draw := values.get("draw")) is not None:
            if type(draw) is not int or not 0 <= draw <= _MOST_DRAWS:
                raise RowFault(
                    "draw", "draw is not a valid draw number", found=draw, allowed=f"a whole number from 0 to {_MOST_DRAWS:,}"
                )
            return draw
        if not self._rules.repeats_are_draws:
            return 0
        self._draws[model, item] += number
        return self._draws[model, item] - number

    def _require_once(self, answer: ImportedAnswer, row: SourceRow) -> None:
        line = row.number + 1 if row.line is None else row.line
        if (first := self._seen.setdefault((answer.model, answer.item_id, answer.draw), line)) != line:
            detail = f"draw {answer.draw} of {answer.item_id} by {answer.model}, as in line {first}"
            rule = "each draw once: number them in `draw`, list them in `samples`, or give --repeats-are-draws"
            raise RowFault("duplicate", "the same answer occurs twice", found=detail, allowed=rule)


def _read_texts(values: Mapping[str, Any]) -> list[str]:
    """Return the texts of a row, one per draw."""
    if (samples := values.get(SAMPLES_KEY)) is not None:
        if not isinstance(samples, list) or not samples or not all(isinstance(sample, str) for sample in samples):
            raise RowFault(
                "text", f"{SAMPLES_KEY} is not a list of strings", found=samples, allowed="a list of strings, one per draw"
            )
        return samples
    name = next((key for key in ANSWER_UNDER if key in values), None)
    if name is None or not isinstance(values[name], str):
        content = sorted(map(str, values)) if name is None else values[name]
        form = f"a text (it may be empty) under {', '.join(ANSWER_UNDER)}, or a list of strings under {SAMPLES_KEY}"
        raise RowFault("text", "the row has no text" if name is None else f"{name} is not text", found=content, allowed=form)
    return [values[name]]


def _read_usage(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usage in a row."""
    return dict(_iterate_usage(values))


def _iterate_usage(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, (is_allowed, form) in _USAGE_KEYS.items():
        if (value := values.get(name)) is not None:
            if not is_allowed(value):
                raise RowFault(name, f"{name} has an invalid value", found=value, allowed=f"{form}, or null")
            yield name, value


def _is_small_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST_COUNT


def _is_usable_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= _MOST_AMOUNT


_USAGE_KEYS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "finish_reason": (lambda value: isinstance(value, str), "a text such as stop or length"),
    "prompt_tokens": (_is_small_count, "a whole number from 0"),
    "completion_tokens": (_is_small_count, "a whole number from 0"),
    "cost_usd": (_is_usable_amount, "US dollars from 0"),
    "latency_s": (_is_usable_amount, "seconds (0: not known)"),
}
