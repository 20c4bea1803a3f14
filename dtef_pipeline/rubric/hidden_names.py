"""Takes the names of makers, models and providers out of texts, so that who sums up cannot know whom it sums up.

A name counts in whatever case and form it is written: with accents, invisible characters or look-alike letters in it, with a blank or
nothing for a hyphen, spelled letter by letter. A word of everyday language that is also a name (Meta, Sonnet) is hidden where a model of that
maker takes part; one that names models alone (a haiku, the command line) only with a capital letter or a version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from dtef_pipeline.asking.makers import FURTHER_MAKERS, KNOWN_MAKERS, SERVING, Maker, maker_named, maker_of, makers_said_in
from dtef_pipeline.errors import NameLeak
from dtef_pipeline.text.folded import folded, past_marks

MODEL_HIDDEN, COMPANY_HIDDEN, PROVIDER_HIDDEN = "[model]", "[company]", "[provider]"
"""What stands in the place of a name."""

_SHORTEST_NAME = 3
# Names that would take these apart are left; providers whose names are words are hidden within model strings alone.
_NOT_NAMES = frozenset(
    {"model", "models", "company", "provider", "auto", "chat", "free", "local", "replicate", "snowflake", "heroku"}
)
_PARTS_OF_COMPANIES = (
    "deepmind",
    "open ai",
    "meta ai",
    "谷歌",
    "グーグル",
    "구글",
    "गूगल",
    "阿里巴巴",
    "阿里云",
    "微软",
    "月之暗面",
)
_WORDS_TOO = frozenset({"azure", "bedrock", "hyperbolic"})
"""Providers that are hidden where they serve one of the models."""
_PLATFORMS = ("OpenRouter", "LiteLLM", "Hugging Face", "HuggingFace", "vLLM", "Ollama")
_TAIL = (
    r"(?:[ \-_]?v?\d+(?:\.\d+)*[a-z]{0,2}(?![a-z])"
    r"|[ \-_]?(?:mini|oss|nano|turbo|pro|plus|flash|lite|ultra|opus|sonnet|haiku|instant|maverick|scout|instruct|coder|preview|latest)"
    r"(?![a-z]))*"
)
"""What may follow the name of a model: versions and sizes."""
_BETWEEN = r"[\s\-_./:*`]*"
_SPELLED_OUT = re.compile(r"(?<![a-z])[a-z](?:[ .\-_*]{1,2}[a-z](?![a-z])){2,}")
"""A word of three letters or more, spelled letter by letter."""


class _Spot(NamedTuple):
    """A name in a plain text."""

    start: int
    end: int
    hidden: str


class _Name(NamedTuple):
    core: str
    """Its longest part, plain: a text without it does not hold the name."""
    pattern: str
    letters: str
    hidden: str
    everyday: bool = False
    """Whether it is an everyday word unless it has a capital letter or a version."""


@dataclass(frozen=True, slots=True)
class HiddenNames:
    """The names that must not be read, made by `names_of`."""

    names: tuple[_Name, ...]
    """The longest first."""

    def hide(self, text: str) -> str:
        """The text with [model], [company] or [provider] in place of each name, longest first; everything else as it is."""
        plain, places = folded(text)
        parts, end = [], 0
        for spot in self._spots(text, plain, places):
            parts += [text[end : places[spot.start]], spot.hidden]
            # The marks over its last letter go with it.
            end = past_marks(text, places[spot.end - 1] + 1)
        return "".join([*parts, text[end:]]) if parts else text

    def found(self, text: str) -> list[str]:
        """The names that the text holds, plain and in order."""
        plain, places = folded(text)
        return [plain[spot.start : spot.end] for spot in self._spots(text, plain, places)]

    def without(self, text: str) -> HiddenNames:
        """Those of the names that the text does not hold."""
        plain, _ = folded(text)
        left = tuple(name for name in self.names if name.core not in plain or not re.search(name.pattern, plain))
        return HiddenNames(left)

    def refuse(self, text: str, where: str) -> None:
        """Raises NameLeak when the text still holds a name. `where`: what it is, for the message."""
        if found := sorted(set(self.found(text))):
            raise NameLeak(
                f"{where} still names {', '.join(found[:5])}, so it was not sent: nobody who sums up may know whom; "
                "allowed: opaque ids such as MK_5000 alone"
            )

    def _spots(self, text: str, plain: str, places: Sequence[int]) -> list[_Spot]:
        """Where names stand in the plain text, in order."""
        pattern = self._pattern(plain)
        spots = []
        for match in pattern.finditer(plain) if pattern else ():
            name = self.names[int((match.lastgroup or "n0")[1:])]
            if not name.everyday or _is_name(match, plain, text[places[match.start()]]):
                spots.append(_Spot(match.start(), match.end(), name.hidden))
        spelled = list(_spelled(self.names, plain))
        if not spelled:
            return spots
        taken = {place for spot in spots for place in range(spot.start, spot.end)}
        return sorted([*spots, *(spot for spot in spelled if not taken.intersection(range(spot.start, spot.end)))])

    def _pattern(self, plain: str) -> re.Pattern[str] | None:
        """Of the names that may be in the text at all: most are in none."""
        return _compiled(self.names, tuple(place for place, name in enumerate(self.names) if name.core in plain))


@lru_cache(maxsize=256)
def _compiled(names: tuple[_Name, ...], chosen: tuple[int, ...]) -> re.Pattern[str] | None:
    if not chosen:
        return None
    return re.compile("|".join(f"(?P<n{place}>{names[place].pattern})" for place in chosen))


def _is_name(match: re.Match[str], plain: str, first: str) -> bool:
    """Whether an everyday word is meant as a name: its first letter, as it was written, is a capital, or a version stands with it."""
    before = plain[max(0, match.start() - 2) : match.start()]
    return not first.islower() or any(one.isdigit() for one in f"{before}{match.group()}")


def _spelled(names: tuple[_Name, ...], plain: str) -> Iterator[_Spot]:
    """Names that are spelled letter by letter: C l a u d e, G.P.T."""
    for run in _SPELLED_OUT.finditer(plain):
        letters = [place for place in range(run.start(), run.end()) if plain[place].isalpha()]
        for match in _letters_pattern(names).finditer("".join(plain[place] for place in letters)):
            hidden = names[int((match.lastgroup or "n0")[1:])].hidden
            yield _Spot(letters[match.start()], letters[match.end() - 1] + 1, hidden)


@lru_cache(maxsize=16)
def _letters_pattern(names: tuple[_Name, ...]) -> re.Pattern[str]:
    chosen = [(place, name) for place, name in enumerate(names) if re.fullmatch("[a-z]+", name.letters) and not name.everyday]
    return re.compile("|".join(f"(?P<n{place}>{name.letters})" for place, name in chosen))


def names_of(models: Iterable[str], called: Iterable[str] = ()) -> HiddenNames:
    """The names to hide where these models take part.

    Args:
        models: model strings or variants: each whole, its name, its maker and its provider are hidden.
        called: further names of these models: those that people gave them, and those of what was served.
    """
    strings = [model.partition("[")[0] for model in models]
    named: dict[str, _Name] = {}

    def add(text: str, hidden: str, everyday: bool = False) -> None:
        if (name := _name(text, hidden, everyday)) is not None:
            named.setdefault(name.pattern, name)

    for text in (*strings, *(one.partition("@")[0] for one in called)):
        for part in _parts(text):
            add(part, MODEL_HIDDEN)
        for part in _short_parts(text):
            # A dot: it is not looked for where words are spelled letter by letter.
            short = _Name(part, rf"(?<![a-z\d]){part}(?![a-z\d])", f"{part}.", MODEL_HIDDEN)
            named.setdefault(short.pattern, short)
    for maker in KNOWN_MAKERS:
        for said in maker.said:
            add(said, _kind(maker, said))
    for maker_here in sorted({one for model in strings if (one := maker_of(model))}):
        _add_maker(maker_here, add)
    for maker in {one for model in strings for one in makers_said_in(model, FURTHER_MAKERS)}:
        for said in maker.said:
            add(said, _kind(maker, said))
    here = {text.partition("/")[0] for text in strings if "/" in text}
    for provider in sorted({*SERVING, *_PLATFORMS} - _WORDS_TOO | here):
        add(provider, PROVIDER_HIDDEN)
    return HiddenNames(tuple(sorted(named.values(), key=lambda name: (-len(name.letters), name.pattern))))


def _add_maker(name: str, add: Callable[..., None]) -> None:
    """What a maker that takes part is called, everyday words too."""
    add(name, COMPANY_HIDDEN)
    if (maker := maker_named(name)) is None:
        return
    for folder in maker.folders:
        add(folder, COMPANY_HIDDEN)
    for said in maker.said_too:
        kind = _kind(maker, said)
        add(said, kind, kind == MODEL_HIDDEN)


def _kind(maker: Maker, said: str) -> str:
    """Whether a name is that of the company or of a model. Of one that is both (DeepSeek) a model's, so that its version goes with it."""
    if any(said.lower().startswith(family.rstrip("-")) for family in maker.families):
        return MODEL_HIDDEN
    companies = {*maker.folders, maker.name.lower(), *_PARTS_OF_COMPANIES}
    return COMPANY_HIDDEN if said.lower() in companies else MODEL_HIDDEN


def _parts(text: str) -> list[str]:
    """The string, and what stands behind each of its slashes: `openai/gpt-4o` and `gpt-4o` too of `openrouter/openai/gpt-4o`."""
    pieces = text.split("/")
    return [text, *("/".join(pieces[start:]) for start in range(1, len(pieces)))]


def _short_parts(text: str) -> list[str]:
    """What is under three characters of a model string, or short for it: `o3`, `yi`, and `r1` of `deepseek-r1`."""
    parts = _parts(text.lower())
    pieces = re.split(r"[\s\-_.:]+", parts[-1])
    return [one for one in parts if re.fullmatch(r"[a-z]{2}|[a-z]\d", one)] + [
        one for one in pieces if len(pieces) > 1 and re.fullmatch(r"[a-z]\d{1,2}", one)
    ]


def _name(text: str, hidden: str, everyday: bool) -> _Name | None:
    """None: too short, or a word that cannot be told from others."""
    plain, _ = folded(text)
    parts = re.findall(r"[^\W_]+", plain)
    letters = "".join(parts)
    if len(letters) < (_SHORTEST_NAME if letters.isascii() else 2) or plain.strip() in _NOT_NAMES or letters.isdigit():
        return None
    inside = _BETWEEN.join(map(re.escape, parts))
    # Digits may follow (ChatGPT4), the s of a plural, and AI; other Latin letters may not (Claudette). Those of other alphabets may: many
    # languages put nothing between words.
    pattern = rf"(?<![a-z]){inside}(?:ai)?{_TAIL if hidden == MODEL_HIDDEN else ''}s?(?![a-z])"
    return _Name(max(parts, key=len), pattern, letters, hidden, everyday)
