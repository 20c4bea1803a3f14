"""The kinds of findings in a blueprint: the level, meaning and remedy of each."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NamedTuple

from dtef_pipeline.rubric.blueprint.blueprint_yaml import SourceLines
from dtef_pipeline.rubric.blueprint.model import BlueprintFinding

FINDING_LEVELS: Mapping[str, str] = {
    "error": "the file does not run unless broken parts are skipped",
    "unscorable": "the file runs, but the criterion stays unscored",
    "warning": "the file runs, but its meaning may differ from what the author intended",
    "info": "worth knowing",
}
"""The levels from the worst to the least, with the effect of each on a run."""
HEADER_PLACE = "header"


class FindingKind(NamedTuple):
    """One kind of finding."""

    level: str
    meaning: str
    """A sentence without its full stop."""
    remedy: str
    """The remedy, beginning with a verb."""


def _make_error_kind(means: str, remedy: str) -> FindingKind:
    return FindingKind("error", means, remedy)


def _make_unscorable_kind(means: str, remedy: str) -> FindingKind:
    return FindingKind("unscorable", means, remedy)


def _make_warning_kind(means: str, remedy: str) -> FindingKind:
    return FindingKind("warning", means, remedy)


def _make_info_kind(means: str, remedy: str) -> FindingKind:
    return FindingKind("info", means, remedy)


BLUEPRINT_FINDINGS: Mapping[str, FindingKind] = {
    "yaml": _make_error_kind(
        "the file is not YAML or JSON and cannot be read",
        "correct the line; put quotes around a text with `: ` in it",
    ),
    "reserved-id": _make_error_kind(
        "the id that follows from the file's path is reserved, ends in `__`, or is another file's too",
        "rename the file or its folder",
    ),
    "no-prompts": _make_error_kind("the file has no prompts", "write a list of prompts below the header, after a line `---`"),
    "bad-header": _make_error_kind("a value of the header has the wrong form", "write it as the message says"),
    "bad-prompt": _make_error_kind("a prompt, or a value in it, has the wrong form", "write it as the message says"),
    "no-prompt-text": _make_error_kind("a prompt has no text or messages", "write `prompt:` with a text, or `messages:`"),
    "bad-message": _make_error_kind(
        "a message has no known role, or no text; only messages of the assistant may be null",
        "write `- user: text` or `- assistant: text`",
    ),
    "assistant-first": _make_error_kind("the first message is the assistant's", "begin with a message of the user"),
    "nothing-to-generate": _make_error_kind(
        "the last message is not the user's, so the model has no turn",
        "end with a message of the user, or write `- assistant: null`",
    ),
    "rubric-not-a-list": _make_error_kind(
        "`should` or `should_not` is not a list", "write each criterion in a line that begins with `- `"
    ),
    "bad-point": _make_error_kind(
        "a criterion is neither a text nor a function", "put quotes around a text, usually one with `: ` or a number"
    ),
    "text-and-function": _make_error_kind("a criterion is both a text and a function", "write two criteria"),
    "nested-too-deep": _make_error_kind(
        "an alternative path, which is a list, contains another list of criteria", "write each path as a plain list"
    ),
    "weight-out-of-range": _make_error_kind(
        "a weight is not a number from 0.1 to 10", "write a number from 0.1 to 10, without quotes"
    ),
    "unknown-reference": _make_error_kind("`$ref` has no definition", "write the definition into `point_defs` in the header"),
    "unknown-collection": _make_error_kind(
        "a model is neither `provider:model` nor a known collection",
        "write `provider:model`, or give the folder of collections",
    ),
    "custom-model": _make_error_kind(
        "a model is given with an address", "describe it in models.yaml, and name it with `--model`"
    ),
    "no-models-left": _make_error_kind(
        "every named collection is empty, so there is no model", "name a model, or give `--model`"
    ),
    "bad-judge": _make_error_kind(
        "a judge has no model, or an unknown approach", "write `{model: provider:model, approach: standard}`"
    ),
    "unknown-function": _make_unscorable_kind(
        "the point function is unknown",
        "use a name of the table of functions; write a text that begins with $ as `text:`",
    ),
    "bad-arguments": _make_unscorable_kind(
        "the function does not accept this argument", "write the argument as in the table of functions"
    ),
    "bad-regex": _make_unscorable_kind("the pattern is not a regular expression of JavaScript", "correct the pattern"),
    "dollar-string": _make_warning_kind(
        "a function is written as a text and is read as a function", "remove the quotes: `$name: argument`"
    ),
    "duplicate-prompt-id": _make_warning_kind("two prompts have the same id; the later one gets `#2`", "give it another id"),
    "single-element-path": _make_warning_kind(
        "a list of one criterion is an alternative path, and meeting one path is enough",
        "write the criterion without its list, unless it is an alternative",
    ),
    "no-criteria": _make_warning_kind(
        "a prompt has neither criteria nor an ideal answer, so its responses get no score", "add `should:` or `ideal:`"
    ),
    "consecutive-roles": _make_warning_kind(
        "two consecutive messages have the same role; they are sent as written", "join them, or add the message between them"
    ),
    "no-collections": _make_warning_kind(
        "a collection is named, but no folder of collections is known, so its models are unknown",
        "give the folder with `--models-dir`, or name models with `--model` when it is run",
    ),
    "empty-collection": _make_warning_kind("a named collection has no models", "leave it out"),
    "external-call": _make_warning_kind(
        "a function needs an external service, which is not supported: its criterion stays unscored",
        "write a text criterion, or another function",
    ),
    "system-and-systems": _make_warning_kind(
        "a system prompt is not used, because every prompt uses the list of the header", "remove one of the two"
    ),
    "temperature-twice": _make_warning_kind(
        "a temperature is given twice and used once", "name it once; for more responses, draw several"
    ),
    "system-twice": _make_warning_kind("a system prompt occurs twice in the list and is used once", "name it once"),
    "prompt-and-messages": _make_warning_kind(
        "a prompt has both `prompt` and `messages`; the messages are sent", "remove one of the two"
    ),
    "ignored-id": _make_info_kind("an id in the header is not used: the id follows from the file's path", "leave it out"),
    "no-prompt-id": _make_info_kind(
        "a prompt has no id and gets one from its contents, so the id changes when they change", "give it an id"
    ),
    "no-models": _make_info_kind("no models are named, so those of the collection CORE are used", "name models to use others"),
    "model-twice": _make_info_kind("a model is named twice (perhaps by a collection) and is used once", "name it once"),
    "ideal-only": _make_info_kind(
        "a prompt has an ideal answer and no criteria: only similarity is scored", "add `should:` to score criteria"
    ),
    "unknown-key": _make_info_kind("a key is unknown here and is ignored", "correct its spelling, or remove it"),
    "deprecated-judges": _make_info_kind("judges in an older form, or backup judges, are not used", "write them as `judges:`"),
    "paths-in-both-blocks": _make_info_kind(
        "both `should` and `should_not` have alternative paths, which are numbered separately", "nothing, if this is intended"
    ),
}
"""Every code that `read_blueprint` gives, errors first."""
UNKNOWN_MODEL_CODES = ("no-collections", "no-models-left")
"""The codes of files whose models are unknown: such a file is readable, but a run of it must name models."""


@dataclass(frozen=True)
class Spot:
    """A place in a file: in words, and its line if known."""

    place: str
    line: int | None = None


@dataclass
class FindingLog:
    """The findings so far, and the lines of the file's values."""

    lines: SourceLines = field(default_factory=SourceLines)
    findings: list[BlueprintFinding] = field(default_factory=list)

    def add(self, code: str, spot: Spot, text: str) -> None:
        """Add a finding with its code's level. `text`: what is wrong and what to write."""
        self.findings.append(BlueprintFinding(code, BLUEPRINT_FINDINGS[code].level, spot.place, text, spot.line))

    def find_member_place(self, place: str, container: object, key: object = None) -> Spot:
        """Return the place of a member of a list or mapping."""
        return Spot(place, self.lines.find_member_line(container, key))

    def check_unknown_keys(self, values: Mapping[str, object], known_keys: Iterable[str], place: str) -> None:
        """Add one finding per unknown key."""
        known_keys = frozenset(known_keys)
        for key in values:
            if key not in known_keys:
                text = f"`{shorten_value(key)}` is unknown here and is ignored{_suggest_key(key, known_keys)}"
                self.add("unknown-key", self.find_member_place(place, values, key), text)

    def check_second_names(self, values: Mapping[str, object], names: Iterable[str], place: str) -> None:
        """Add one finding per redundant alias of a key; the first is used."""
        aliases = [name for name in names if values.get(name) not in (None, "", [])]
        for name in aliases[1:]:
            self.add(
                "unknown-key",
                self.find_member_place(place, values, name),
                f"`{name}` is ignored, because `{aliases[0]}` is given; remove one of the two",
            )


def is_left_out_for(level: str, code: str) -> bool:
    """Return whether a finding makes a part of the file unusable; a run can replace unknown models."""
    return level == "error" and code not in UNKNOWN_MODEL_CODES


def list_blocking_codes(findings: Iterable[BlueprintFinding]) -> list[str]:
    """List the codes that prevent a run, in the order of the file and without duplicates."""
    return list(dict.fromkeys(finding.code for finding in findings if finding.level == "error"))


def _suggest_key(key: str, known_keys: Collection[str]) -> str:
    """Suggest the most similar known key, if any: `should_not` for `shouldNot` and `should-not`."""
    plain = {name.replace("_", "").lower(): name for name in sorted(known_keys)}
    letters = "".join(character for character in key if character.isalnum()).lower()
    close = get_close_matches(letters, plain, n=1, cutoff=0.8)
    return f"; did you mean `{plain[close[0]]}`?" if close else ""


def shorten_value(value: object, limit: int = 60) -> str:
    """Return the beginning of a value for a message, as JSON if it is not a text."""
    full_text = value if isinstance(value, str) else _encode_value(value)[: 4 * limit]
    text = " ".join(full_text.split())
    return text if len(text) <= limit else f"{text[:limit]}..."


def _encode_value(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)
