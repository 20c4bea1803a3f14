"""Reading replies to questions about numbered sources: the answer and its quotations."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from dtef_pipeline.qa.reading.reply_end import cut_at_end
from dtef_pipeline.qa.transcripts.corpus import replace_unreadable
from dtef_pipeline.text.json_values import Pairs, Value, decode_value_at, find_objects, format_json_value
from dtef_pipeline.text.plain import strip_thinking

ANSWER_KEY, CITATIONS_KEY = "answer", "citations"
_KEYS_OF_REASONS = ("rationale", "reasons", "reason", "reasoning", "explanation")
JSON_REPLY, TEXT_REPLY = "json", "text"
"""How a reply was read: as the requested object, or as a text that is the answer as a whole."""
CUT_JSON = "cut_json"
"""Flag of a JSON reply that was cut off or is broken."""
_NO_ANSWER = "the reply begins as a JSON object but has no complete answer: it was cut off, or its JSON is broken"
_MAX_CITATIONS = 1_000
_MAX_JSON_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class CitedReply:
    """A model's answer and its citations."""

    answer: str
    """The answer as scorers receive it; a list or a number is JSON."""
    citations: tuple[dict[str, Any], ...] = ()
    """As the model gave them, in order; `check_citations` finds faults in them."""
    read_by: str = TEXT_REPLY
    """`json` or `text`."""
    flags: tuple[str, ...] = ()
    """`cut_json`: the reply begins as the requested object but is incomplete."""
    problem: str | None = None
    """Why no answer can be read (the answer is then empty); None: it was read."""
    rationale: str = ""
    """The reasons in the same object as the answer, as text; empty: none."""

    @property
    def answer_with_reasons(self) -> str:
        """The answer followed by its reasons."""
        return f"{self.answer}, {self.rationale}" if self.rationale else self.answer


def read_cited(text: str | None) -> CitedReply:
    """Read the answer and the citations of a reply.

    Thinking is dropped. The last JSON object with an `answer` counts, in a code fence or within other text. In an object that is cut off or
    broken, the complete answer and citations count; without a complete answer the reply is unreadable, because the words of a quotation are
    not an answer. Any other text is the answer as a whole, without citations. No text raises an error.
    """
    body = replace_unreadable(cut_at_end(strip_thinking(text or "")).text.strip())
    try:
        objects = [entry for entry in find_objects(body[-_MAX_JSON_CHARACTERS:]) if _take_last(entry.pairs, ANSWER_KEY)]
        if objects:
            return _read_reply_object(objects[-1].pairs)
        cut = parse_cut_object(body, CITATIONS_KEY)
        return CitedReply(body) if cut is None else _read_cut_reply(cut)
    except RecursionError:  # deeper than any answer
        return CitedReply(body)


def _take_last(pairs: Pairs, key: str) -> list[Any]:
    """Return the last value of a key of the object, as a list; empty if it has none."""
    return pairs.find_values(key)[-1:]


def _read_reply_object(pairs: Pairs) -> CitedReply:
    (answer,) = _take_last(pairs, ANSWER_KEY)
    citations = _take_last(pairs, CITATIONS_KEY)
    if isinstance(answer, Pairs) and (inner := _take_last(answer, ANSWER_KEY)):
        citations = citations or _take_last(answer, CITATIONS_KEY)
        pairs, (answer,) = answer, inner
    reasons = next((values[0] for name in _KEYS_OF_REASONS if (values := _take_last(pairs, name))), None)
    return CitedReply(
        "" if answer is None else replace_unreadable(format_json_value(answer).strip()),
        _read_citations(citations[0] if citations else None),
        JSON_REPLY,
        rationale=replace_unreadable(_join_reasons_of(reasons)),
    )


def _join_reasons_of(value: Any) -> str:
    """Return reasons as words: a text, the members of a list, or an object's texts and the keys whose value is true."""
    if isinstance(value, Pairs):
        return ", ".join(filter(None, (_format_reason(name, content) for name, content in value)))
    if isinstance(value, list):
        return ", ".join(filter(None, map(_join_reasons_of, value)))
    return value.strip() if isinstance(value, str) else ""


def _format_reason(name: str, value: Any) -> str:
    if isinstance(value, bool | int | float):
        return name.strip() if value > 0 else ""
    return _join_reasons_of(value)


def _read_cut_reply(members: Pairs) -> CitedReply:
    if _take_last(members, ANSWER_KEY):
        return replace(_read_reply_object(members), flags=(CUT_JSON,))
    citations = _take_last(members, CITATIONS_KEY)
    return CitedReply("", _read_citations(citations[0] if citations else None), JSON_REPLY, (CUT_JSON,), _NO_ANSWER)


def _read_citations(value: Any) -> tuple[dict[str, Any], ...]:
    """Read the entries of a list of citations; a single citation is a list of one. An entry that is not an object has no quotation, but
    counts."""
    if value is None or isinstance(value, str):
        return ()
    entries: list[Any] = value if isinstance(value, list) and not isinstance(value, Pairs) else [value]
    mappings = (entry if isinstance(entry, Pairs) else () for entry in entries[:_MAX_CITATIONS])
    return tuple({key.strip().casefold(): _drop_lists(value) for key, value in pairs} for pairs in mappings)


def _drop_lists(value: Any) -> Any:
    """Return a value of a citation; None for an object or list, which is neither a number nor a quotation."""
    if isinstance(value, str):
        return replace_unreadable(value)
    return None if isinstance(value, list) else value


_BEGINS = re.compile(r'`*\s*(?:json\s*)?(\{\s*")', re.IGNORECASE)
_OBJECT_IN_TEXT = re.compile(r'\{\s*"(?:answer|citations)"\s*:', re.IGNORECASE)
_JSON_BLANKS = re.compile(r"[ \t\r\n]*")


def parse_cut_object(text: str, list_key: str) -> Pairs | None:
    """Return the complete members of a broken object, in order; None: the text neither begins as an object nor contains that of a reply, or
    the object is complete.

    The complete entries of the list under the key `list_key` count even if the list is broken. Any other value counts if it is complete:
    followed by a comma or the end of the object, or a text, list or object at the end of the reply. Each character is examined a fixed
    number of times.
    """
    opening = _BEGINS.match(text)
    start = opening.start(1) if opening else (found.start() if (found := _OBJECT_IN_TEXT.search(text)) else None)
    if start is None or decode_value_at(text, start) is not None:
        return None
    members, place = Pairs(), start + 1
    while (key := _read_key(text, _skip_blanks(text, place))) is not None:
        value_place = _skip_blanks(text, key.end + 1)
        found_value = decode_value_at(text, value_place)
        if found_value is None or not _is_complete(text, found_value):
            if key.value.strip().casefold() == list_key and text[value_place : value_place + 1] == "[":
                members.append((key.value, _read_entries(text, value_place + 1)))
            return members
        members.append((key.value, found_value.value))
        place = _skip_blanks(text, found_value.end)
        if text[place : place + 1] != ",":
            return members
        place += 1
    # A quoted text without a colon: the bracket opens no object.
    first = decode_value_at(text, _skip_blanks(text, start + 1))
    is_a_text = not members and first is not None and _skip_blanks(text, first.end) < len(text)
    return None if is_a_text else members


def _read_key(text: str, place: int) -> Value | None:
    """Return the key at this place, which ends at its colon."""
    token = decode_value_at(text, place)
    if token is None or not isinstance(token.value, str):
        return None
    colon = _skip_blanks(text, token.end)
    return Value(token.value, colon) if text[colon : colon + 1] == ":" else None


def _is_complete(text: str, token: Value, end: str = "}") -> bool:
    place = _skip_blanks(text, token.end)
    follows = text[place : place + 1]
    return follows in (",", end) if follows else isinstance(token.value, str | list)


def _read_entries(text: str, place: int) -> list[Any]:
    """Return the complete entries of a list that begins before this place."""
    entries = []
    while (token := decode_value_at(text, _skip_blanks(text, place))) is not None and _is_complete(text, token, "]"):
        entries.append(token.value)
        place = _skip_blanks(text, token.end)
        if text[place : place + 1] != ",":
            break
        place += 1
    return entries


def _skip_blanks(text: str, place: int) -> int:
    match = _JSON_BLANKS.match(text, place)
    return match.end() if match else place
