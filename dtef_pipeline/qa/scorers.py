"""The scorers by name and by type of item, and scoring outside the pipeline: answers as JSON lines become the same lines with their scores.

Other packages add scorers by the entry-point group `dtef.scorers`. A line is `{"scorer": "list_one", "response": "by car", "reference":
{"car": 1, "bike": 0.5}}`, with optional `options`, `synonyms`, `penalty`, `strict`, `wordnet_senses`, `finish_reason`, `timeout_s` and
`task`; `scorer` is the name of a scorer or a type of items. It gets `status`, `value`, `score`, `read_by`, `flags`, `reason` and further
output of the scorer; other keys are passed through.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NoReturn

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.model import ItemError, ItemScore, Scorer, ScoreResponse, ScorerSettings, WrittenResponse
from dtef_pipeline.qa.reading.choice import ExactChoice
from dtef_pipeline.qa.reading.numeric import Numeric
from dtef_pipeline.qa.socioscope.lists import ListMany, ListOne
from dtef_pipeline.qa.socioscope.picks import PickMany, PickOne
from dtef_pipeline.qa.socioscope.words import make_lexicon_fingerprint
from dtef_pipeline.qa.socioscope.yes_no import YesNo, YesNoRationale
from dtef_pipeline.text.json_values import JsonFault, parse_json
from dtef_pipeline.text.number_words import format_count, list_first_names
from dtef_pipeline.text.shortening import shorten_to_line, shorten_value

SCORER_GROUP = "dtef.scorers"
"""Entry-point group for scorers of other packages: each is a class that makes a Scorer when called without arguments."""
SCORER_OF_TYPE = {
    "Yes/No": "yes_no",
    "ListOne": "list_one",
    "ListMany": "list_many",
    "PickOne": "pick_one",
    "PickMany": "pick_many",
    "Yes/No with Rationale": "yes_no_rationale",
}
"""Socioscope's types of items with their scorers."""
_SCORERS: tuple[Scorer, ...] = (
    YesNo(),
    ListOne(),
    ListMany(),
    PickOne(),
    PickMany(),
    YesNoRationale(),
    ExactChoice(),
    Numeric(),
)
_BY_SCORER_NAME = {scorer.name: scorer for scorer in _SCORERS}
_BY_FOLDED_TYPE = {label.casefold(): name for label, name in SCORER_OF_TYPE.items()}


def find_scorer(name_or_type: str) -> Scorer | None:
    """Find the scorer of a name or of a type, ignoring case and outer spaces, or return None.

    Scorers of this package take precedence. Raises ConfigError for one of another package that cannot be loaded.
    """
    key = name_or_type.strip()
    name = _BY_FOLDED_TYPE.get(key.casefold(), key)
    return _BY_SCORER_NAME.get(name) or _load_scorer(name)


def list_scorer_names() -> list[str]:
    """Return the names of all scorers: those of this package, then those of others."""
    return [*_BY_SCORER_NAME, *(name for name in sorted(_find_added_scorers()) if name not in _BY_SCORER_NAME)]


def describe_scorers(extras: Sequence[str] = ()) -> str:
    """Describe the types that have a scorer and the names of all scorers; `extras`: scorers that only the caller can use."""
    return ", ".join((*SCORER_OF_TYPE, *list_scorer_names(), *extras))


def make_unscored_scorer(name_or_type: str, extras: Sequence[str] = ()) -> ScoreResponse:
    """Return a scoring function that gives no value, for an item whose type has no scorer."""
    score = ItemScore("no_scorer", reason=f"the type {name_or_type} has no scorer; known: {describe_scorers(extras)}")
    return lambda response: score


def find_lexicon_name(scorer: Scorer, settings: ScorerSettings) -> str | None:
    """Return the fingerprint of a scorer's synonyms, see `make_lexicon_fingerprint`; None: it uses none, or there are none."""
    return make_lexicon_fingerprint(settings) if getattr(scorer, "uses_lexicon", False) else None


@lru_cache(maxsize=1)
def _find_added_scorers() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=SCORER_GROUP)}


@lru_cache(maxsize=64)
def _load_scorer(name: str) -> Scorer | None:
    point = _find_added_scorers().get(name)
    if point is None:
        return None
    try:
        scorer: Scorer = point.load()()
    except Exception as error:
        package = point.dist.name if point.dist else "an unknown package"
        raise ConfigError(f"the scorer {name} of {package} cannot be loaded: {type(error).__name__}: {error}") from error
    return scorer


MakeScoreWritten = Callable[[Mapping[str, Any]], ScoreResponse]
"""Prepares the scoring of a line's response; raises ItemError or ConfigError if the line lacks information."""
OUTSIDE_SCORERS = ("code_execution", "judge", "verbatim")
"""Scorers that need more than a text and its reference: a sandbox, a model or documents, which the caller must provide."""
_MANY_BRACKETS = 200
_MAX_UNKNOWN_LISTED = 10
_LINE_PLACE = "line"
"""Placeholder for the place of an error, replaced by file and line number."""


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_listed(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) or _is_number(item) for item in value)


_KINDS_OF_VALUE: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "response": (
        lambda value: value is None or isinstance(value, str) or _is_listed(value),
        "a text, null for no response, or a list of strings or numbers",
    ),
    "options": (_is_texts, "a list of strings"),
    "synonyms": (
        lambda value: isinstance(value, dict) and all(map(_is_texts, value.values())),
        'an object of words with lists of words: {"car": ["auto"]}',
    ),
    "penalty": (lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
    "strict": (lambda value: isinstance(value, bool), "true or false"),
    "wordnet_senses": (lambda value: value in ("first", "all"), "first, all"),
    "finish_reason": (lambda value: isinstance(value, str), "a text"),
    "timeout_s": (lambda value: _is_number(value) and value > 0, "a number of seconds above 0"),
    "task": (lambda value: isinstance(value, str), "a text, the name of a program in the file of --tasks"),
}
"""Valid values of a line's keys, as a test and in words. All keys but the response may be null or missing."""


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """A line and the function that scores it."""

    item: dict[str, Any]
    response: WrittenResponse
    score: ScoreResponse


def read_answer_lines(
    lines: Iterable[str], where: str, outside: Mapping[str, MakeScoreWritten] | None = None
) -> list[AnswerLine]:
    """Read and check the lines of a file; blank ones are skipped.

    Args:
        lines: each is a JSON object.
        where: the name of the file in errors.
        outside: scoring functions of the available OUTSIDE_SCORERS.

    Raises:
        ItemError: for the first line that cannot be scored, with its number, the value found and the allowed values.
    """
    reader = _Reader(outside or {})
    answers = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                answers.append(reader.read(line))
            except ItemError as error:
                problem = error.problem if error.where == _LINE_PLACE else f"{error.where}: {error.problem}"
                raise ItemError(problem, where=where, line=number, arrived=error.arrived, allowed=error.allowed) from None
            except ConfigError as error:
                raise ItemError(str(error), where=where, line=number) from None
    return answers


def score_answer_lines(lines: Iterable[AnswerLine], statuses: Counter[str] | None = None) -> Iterator[str]:
    """Yield each line with its score, as strict JSON, in order. `statuses`: counts the statuses of the scores."""
    for line in lines:
        score = line.score(line.response)
        if statuses is not None:
            statuses[score.status] += 1
        fields = {name: getattr(score, name) for name in ("status", "value", "score", "read_by", "flags", "reason")}
        yield _ENCODER.encode({**line.item, **fields, **score.details})


def describe_unknown_scorers(lines: Sequence[AnswerLine], outside: Collection[str]) -> str | None:
    """Describe the lines with unknown scorers in a sentence, or return None. `outside`: names of the scorers that callers provide."""
    names = Counter(line.item["scorer"] for line in lines)
    unknown = {name: count for name, count in names.items() if name not in outside and find_scorer(name) is None}
    if not unknown:
        return None
    named = list_first_names([shorten_to_line(name, 40) for name in unknown], _MAX_UNKNOWN_LISTED)
    share = f"{sum(unknown.values()):,} of {format_count(len(lines), 'line')}"
    return f"{share} name unknown scorers: {named}; known: {describe_scorers(tuple(outside))}"


class _Reader:
    """A reader of lines; a shared reference is read once."""

    def __init__(self, outside: Mapping[str, MakeScoreWritten]) -> None:
        self._outside = outside
        self._prepared_scorers: dict[tuple[str, str, tuple[str, ...], str], ScoreResponse] = {}
        self._settings: dict[str, ScorerSettings] = {}

    def read(self, line: str) -> AnswerLine:
        item = _parse_json_object(line)
        for key, (is_allowed, form) in _KINDS_OF_VALUE.items():
            value = item.get(key)
            if (value is not None or key == "response") and not is_allowed(value):
                _refuse_value(key, value, form)
        if "response" not in item and "citations" not in item:
            _refuse_value("response", None, _KINDS_OF_VALUE["response"][1])
        response = item.get("response")
        text = json.dumps(response, ensure_ascii=False) if isinstance(response, list) else response
        return AnswerLine(item, WrittenResponse(text, item.get("finish_reason")), self._prepare_line_scorer(item))

    def _prepare_line_scorer(self, item: dict[str, Any]) -> ScoreResponse:
        name = item.get("scorer")
        if not isinstance(name, str):
            _refuse_value("scorer", name, ", ".join(list_scorer_names()))
        if name in self._outside:
            return self._outside[name](item)
        if name in OUTSIDE_SCORERS:
            _refuse_value("scorer", name, ", ".join((*list_scorer_names(), *self._outside)))
        scorer = find_scorer(name)
        if scorer is None:
            return make_unscored_scorer(name, tuple(self._outside))
        reference, options = _read_reference(item), tuple(item.get("options") or ())
        values = {name: item[name] for name in _SETTINGS_KEYS if item.get(name) is not None}
        # Lines of equal settings share them, and with them the lexicon.
        settings_key = json.dumps(values, sort_keys=True)
        settings = self._settings.setdefault(settings_key, ScorerSettings(**values))
        key = (scorer.name, reference, options, settings_key)
        if key not in self._prepared_scorers:
            self._prepared_scorers[key] = scorer.prepare_item(reference, options, settings)
        return self._prepared_scorers[key]


_SETTINGS_KEYS = ("strict", "penalty", "wordnet_senses", "synonyms")


def _read_reference(item: dict[str, Any]) -> str:
    if "reference" not in item:
        _refuse_value("reference", None, "the expected answer: a text, or a metric as JSON")
    reference = item["reference"]
    return reference if isinstance(reference, str) else json.dumps(reference, ensure_ascii=False)


def _parse_json_object(line: str) -> dict[str, Any]:
    try:
        content = parse_json(line.strip())
        if line.count("[") + line.count("{") > _MANY_BRACKETS:
            _ENCODER.encode(content)  # what cannot be written again is refused now, before any line is written
    except RecursionError:
        _refuse_line("it is nested too deeply")
    except JsonFault as fault:
        _refuse_line(f"it is not JSON: {fault}", line)
    if not isinstance(content, dict):
        _refuse_line("it is not an object", line)
    return content


_ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False)


def _refuse_line(problem: str, line: str | None = None) -> NoReturn:
    form = "a JSON object with scorer, response and reference"
    raise ItemError(problem, where=_LINE_PLACE, arrived=None if line is None else shorten_to_line(line), allowed=form)


def _refuse_value(key: str, value: Any, form: str) -> NoReturn:
    raise ItemError(f"{key} is missing or invalid", where=_LINE_PLACE, arrived=shorten_value(value), allowed=form)
