"""The demographic attribute of a value, recognised by the value itself, and segment keys.

The vocabulary is `vocabulary.toml` in this folder. Values that it lacks have no attribute: there is no default.
"""

from __future__ import annotations

import html
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.identity import normalize_text
from dtef_pipeline.survey.model import Segment

AI_CONCERN = "aiConcern"
"""The one attribute that is an attitude: its question is a target like others, and circular for its own segments."""

_PROFILE_COVERAGE = 0.8  # a profile question offers nearly all values of its attribute, an opinion about countries does not
_EXAMPLES = re.compile(r"\s*\((?:e\.?\s?g\b|for example\b|such as\b|including\b|incl\b|i\.?\s?e\b).*\)\Z")
_COMBINING_MARKS = re.compile("[\u0300-\u036f]")
_NON_ANSWERS = (
    r"(?:i-)?(?:don-t|dont|do-not|can-t|cant|cannot|did-not|didn-t)-(?:know|say|answer|tell|remember|recall)",
    r"(?:i-am-|i-m-)?(?:not-sure|unsure|undecided)",
    r"(?:i-)?(?:would-|d-)?(?:prefer|rather)-not(?:-to)?(?:-say|-answer|-disclose|-respond|-share)?|prefer-to-not-say",
    r"(?:refuse|decline)[sd]?(?:-to-(?:say|answer))?|refusal|dk-(?:na|nr|ns|ref(?:used)?|no-answer)|n-a|missing|unknown|not-(?:stated|available|asked|applicable)",
    r"(?:no|non)-?(?:answer|response|opinion)|not-answered|skipped",
    r"no-(?:se|sabe|contesta|responde)|ns-n[cr]|prefiero-no-(?:decir|contestar|responder)(?:lo)?|nao-(?:sei|sabe|responde[ru]?)",
    r"weiss(?:-ich)?-nicht|keine-(?:angabe|antwort)|(?:je-)?ne-sais?-pas|sans-reponse|refus|non-(?:so|sa|risponde)",
    r"(?:я-)?не-знаю|затрудняюсь-ответить|отказ(?:-от-ответа)?|нет-ответа|不知道|不清楚|拒绝回答|无回答|わからない|無回答|答えたくない|لا-اعرف|لا-أعرف",
)
_NON_ANSWER = f"(?:{'|'.join(_NON_ANSWERS)})"
NON_ANSWER_KEY = rf":(?:other-(?:or-|and-)?)?{_NON_ANSWER}(?:-(?:or-|and-)?{_NON_ANSWER}|-vol(?:unteered)?)*(?:[+]|$)"
"""Matches the key of a segment of people who gave no answer, or of one that joins it with another (`region:other-refused`: who is in
such a remainder depends on who refused, so it cannot be described). Regular expression of Python and of RE2."""
NON_ANSWER_SQL = f"regexp_matches(segment, '{NON_ANSWER_KEY}')"
"""True in rows of such a segment. Boards, drift and the report leave them out unless a segment is selected by name."""


@dataclass(frozen=True)
class Attribute:
    """The known values of an attribute: normalized -> canonical spelling, and patterns for open-ended sets."""

    name: str
    spellings: Mapping[str, str]
    patterns: tuple[tuple[re.Pattern[str], str], ...]

    def canonical(self, value: str) -> str | None:
        """Return the canonical spelling of a value, or None if unknown.

        Examples added by a questionnaire are ignored: `East Midlands (e.g., Derbyshire, Leicestershire)`.
        """
        spelling = normalize_text(value)
        return self._canonical(spelling) or self._canonical(_EXAMPLES.sub("", spelling))

    def _canonical(self, spelling: str) -> str | None:
        for pattern, template in self.patterns:
            if match := pattern.fullmatch(spelling):
                return match.expand(template)
        return self.spellings.get(spelling)


@cache
def load_vocabulary() -> Mapping[str, Attribute]:
    """Return the attributes of `vocabulary.toml` by name."""
    raw = tomllib.loads(files("dtef_pipeline.survey").joinpath("vocabulary.toml").read_text(encoding="utf-8"))
    return {name: _build_attribute(name, entry) for name, entry in raw.items()}


def _build_attribute(name: str, entry: Mapping[str, object]) -> Attribute:
    values, aliases, patterns = entry["values"], entry.get("aliases", {}), entry.get("patterns", [])
    assert isinstance(values, list)
    assert isinstance(aliases, dict)
    assert isinstance(patterns, list)
    spellings = {normalize_text(v): v for v in values} | {normalize_text(a): v for a, v in aliases.items()}
    return Attribute(name, spellings, tuple((re.compile(p), template) for p, template in patterns))


def clean(text: str) -> str:
    """Return the text with HTML entities resolved, composed characters, and tabs and runs of blanks collapsed."""
    return " ".join(unicodedata.normalize("NFC", html.unescape(text)).split())


def clean_lines(text: str) -> str:
    """Return the text cleaned, but with its line breaks."""
    return "\n".join(clean(line) for line in text.strip().splitlines())


@cache
def find_candidates(value: str) -> frozenset[str]:
    """Return the names of all attributes that have the value: none for `Martian`, several for `Other`."""
    return frozenset(name for name, attribute in load_vocabulary().items() if attribute.canonical(clean(value)) is not None)


@cache
def canonical(attribute: str, value: str) -> str:
    """Return the value in canonical spelling (Türkiye -> Turkey). Unknown values or attributes are only cleaned."""
    entry = load_vocabulary().get(attribute)
    return (entry and entry.canonical(clean(value))) or clean(value)


def classify_groups(groups: Mapping[int, Sequence[str]]) -> dict[tuple[int, str], str | None]:
    """Return the attribute of each value of each O-group, or None if the vocabulary does not determine it.

    Each value is classified by itself. If several attributes have it, it gets the attribute of most of the group's unambiguous values or,
    without such values, the only attribute that all values of the group share.
    """
    result: dict[tuple[int, str], str | None] = {}
    for group, values in groups.items():
        majority = _find_majority(values)
        for value in values:
            names = find_candidates(value)
            result[group, value] = next(iter(names)) if len(names) == 1 else majority if majority in names else None
    return result


def _find_majority(values: Sequence[str]) -> str | None:
    sets = [names for v in values if (names := find_candidates(v))]
    votes = Counter(next(iter(names)) for names in sets if len(names) == 1)
    if votes:
        name, count = votes.most_common(1)[0]
        return name if 2 * count > votes.total() else None
    shared = frozenset.intersection(*sets) if sets else frozenset()
    return next(iter(shared)) if len(shared) == 1 else None


def find_attribute(options: Sequence[str]) -> str | None:
    """Return the attribute that has all options as values."""
    name = _find_majority(options)
    return name if name is not None and all(name in find_candidates(o) for o in options) else None


def find_profile_attribute(options: Sequence[str], round_values: Mapping[str, Iterable[str]]) -> str | None:
    """Return the attribute of a question about the respondent, or None for a question of opinion.

    All options must be values of one attribute and include nearly all of its values in the round. The AI-concern question is an opinion.
    """
    name = find_attribute(options)
    if name is None or name == AI_CONCERN:
        return None
    present = {canonical(name, v) for v in round_values.get(name, ())}
    option_values = {canonical(name, o) for o in options}
    return name if len(present & option_values) >= _PROFILE_COVERAGE * len(present) else None


def normalise_attribute_name(text: str) -> str:
    """Return the canonical name of an attribute (`Age group` -> `ageGroup`). Other names are only made valid for a key."""
    plain = re.sub(r"[\W_]+", "", text).casefold()
    names = {name.casefold(): name for name in load_vocabulary()} | {"age": "ageGroup"}
    return names.get(plain) or re.sub(r"\W+", "-", clean(text)).strip("-")


def slugify(value: str) -> str:
    """Return the value for a segment key: `United States` -> `united-states`, `65+` -> `65-plus`, `<18` -> `under-18`."""
    plain = unicodedata.normalize("NFKD", clean(value)).casefold()
    text = _COMBINING_MARKS.sub("", unicodedata.normalize("NFKD", plain))
    if text.startswith(("<", ">")):
        text = ("under-" if text[0] == "<" else "over-") + text[1:]
    if text.endswith("+"):
        text = text.rstrip("+") + "-plus"
    text = unicodedata.normalize("NFC", text)
    return re.sub(r"[\W_]+", "-", text).strip("-")


def make_segment_key(attribute: str, value: str) -> str:
    """Return `country:turkey` for country and Türkiye."""
    return f"{attribute}:{slugify(canonical(attribute, value))}"


def segment(attributes: Mapping[str, str], n: int | None, *, where: str, line: int | None = None) -> Segment:
    """Return the segment with the attributes; several are joined (`environment:rural+gender:female`)."""
    parts = tuple((normalise_attribute_name(a), canonical(normalise_attribute_name(a), v)) for a, v in attributes.items())
    for name, value in parts:
        if not name or not slugify(value):
            problem = "the attribute and the value of a segment each need a letter or digit"
            raise SurveyError(problem, where=where, line=line, arrived=dict(attributes))
    key = "+".join(make_segment_key(name, value) for name, value in parts)
    return Segment(key, "+".join(name for name, _ in parts), ", ".join(value for _, value in parts), n, parts)


def is_non_answer(key: str) -> bool:
    """Return whether a segment, by its key, is people who did not answer (`party:refused`, `pid3:not-sure`), whom nobody can describe."""
    return re.search(NON_ANSWER_KEY, key) is not None


def require_unique_segment_keys(segments: Sequence[Segment], *, where: str) -> None:
    """Raise SurveyError if two segments of a round have the same key."""
    values: dict[str, str] = {}
    for s in segments:
        if s.key in values:
            problem = f"two segments have the same key {s.key!r}"
            raise SurveyError(problem, where=where, arrived=[values[s.key], s.value], allowed="one segment per key")
        values[s.key] = s.value
