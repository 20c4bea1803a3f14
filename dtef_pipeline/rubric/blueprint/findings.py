"""The kinds of findings in a blueprint, and the log of those in one file."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from dtef_pipeline.rubric.blueprint.blueprint_yaml import SourceLines
from dtef_pipeline.rubric.blueprint.model import BlueprintFinding

FINDING_LEVELS = ("error", "unscorable", "warning", "info")
"""From the worst to the least: the file does not run unless broken parts are skipped; it runs, but the criterion stays unscored; it runs, but
its meaning may differ from what the author intended; worth knowing.
"""
HEADER_PLACE = "header"
_SHOWN_LENGTH = 60
_CODES_BY_LEVEL = {
    "error": """
        yaml reserved-id no-prompts bad-header bad-prompt no-prompt-text bad-message assistant-first nothing-to-generate
        rubric-not-a-list bad-point text-and-function nested-too-deep weight-out-of-range unknown-reference
        unknown-collection custom-model no-models-left bad-judge
    """,
    "unscorable": "unknown-function bad-arguments bad-regex",
    "warning": """
        dollar-string duplicate-prompt-id single-element-path no-criteria consecutive-roles no-collections
        empty-collection external-call system-and-systems temperature-twice system-twice prompt-and-messages
    """,
    "info": "ignored-id no-prompt-id no-models model-twice ideal-only unknown-key deprecated-judges paths-in-both-blocks",
}
BLUEPRINT_FINDINGS: Mapping[str, str] = {code: level for level, codes in _CODES_BY_LEVEL.items() for code in codes.split()}
"""The level of each code that `read_blueprint` gives, errors first."""
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
        self.findings.append(BlueprintFinding(code, BLUEPRINT_FINDINGS[code], spot.place, text, spot.line))

    def add_in_header(self, code: str, container: object, key: object, text: str) -> None:
        """Add a finding on a member of the header, or of a list or mapping in it."""
        self.add(code, self.find_member_place(HEADER_PLACE, container, key), text)

    def find_member_place(self, place: str, container: object, key: object) -> Spot:
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


def shorten_value(value: object) -> str:
    """Return the beginning of a value for a message, as JSON if it is not a text."""
    try:
        full_text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        full_text = repr(value)
    text = " ".join(full_text.split())
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}..."
