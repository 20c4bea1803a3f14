"""Removal of names of models, makers and providers from texts, for analysts, who must not know whom they summarize, and for reviewers.

A name matches in any case and form: with accents, invisible or look-alike characters, with a hyphen, white space or nothing between its
parts. Longer names come first, and with a name the other names of its maker and the maker's models are hidden.

Analysts (`collect_hidden_names`) read [model], [company] and [provider]; names spelled letter by letter are hidden too. Reviewers of pairs
(`build_blinding`) read [model] only in place of whole words: a word that only contains a name (coherent, of Cohere; GPT-40, of GPT-4)
stays, and so does an everyday word (Together, Command, Opus) that is not written as a name. The two differ because stored requests to
analysts and votes of reviewers depend on each.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from dtef_pipeline.asking.makers import (
    EVERYDAY_NAMES,
    FURTHER_MAKERS,
    KNOWN_MAKERS,
    SERVING,
    Maker,
    find_maker,
    find_makers_in_name,
    get_known_maker,
)
from dtef_pipeline.errors import NameLeak
from dtef_pipeline.text.folding import fold_text, skip_marks

MODEL_HIDDEN, COMPANY_HIDDEN, PROVIDER_HIDDEN = "[model]", "[company]", "[provider]"
"""Placeholder of a name."""


class Name(NamedTuple):
    """A name as a pattern of folded text."""

    core: str
    """Its longest part, folded: a text without it does not contain the name."""
    pattern: str
    letters: str
    """Its letters and digits, folded."""
    replacement: str = MODEL_HIDDEN
    is_everyday: bool = False
    """Whether it is an everyday word unless it has a capital letter or a version."""


class _Spot(NamedTuple):
    """A name in a folded text."""

    start: int
    end: int
    replacement: str = MODEL_HIDDEN


def _replace_spots(text: str, places: Sequence[int], spots: Iterable[_Spot]) -> str:
    """Replace each spot, in order, by its placeholder, including marks over the last letter of a name."""
    parts, end = [], 0
    for spot in spots:
        parts += [text[end : places[spot.start]], spot.replacement]
        end = skip_marks(text, places[spot.end - 1] + 1)
    return "".join([*parts, text[end:]]) if parts else text


def _iterate_matches(names: tuple[Name, ...], plain: str) -> Iterator[tuple[Name, re.Match[str]]]:
    """Yield the matches of the names, in order; the first of several at one place."""
    places = tuple(place for place, name in enumerate(names) if name.core in plain)
    for match in _compile_names(names, places).finditer(plain) if places else ():
        yield names[int((match.lastgroup or "n0")[1:])], match


def _merge_spots(spots: Sequence[_Spot], candidates: Iterable[_Spot]) -> list[_Spot]:
    """Return the spots, and the further ones that overlap none of them, in order."""
    places = {place for spot in spots for place in range(spot.start, spot.end)}
    return sorted([*spots, *(spot for spot in candidates if places.isdisjoint(range(spot.start, spot.end)))])


@lru_cache(maxsize=512)
def _compile_names(names: tuple[Name, ...], places: tuple[int, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<n{place}>{names[place].pattern})" for place in places))


_SHORTEST_NAME = 3
# Names that overlap these are not hidden; providers whose names are words are hidden only within model strings.
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
_EVERYDAY_PROVIDERS = frozenset({"azure", "bedrock", "hyperbolic"})
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


@dataclass(frozen=True, slots=True)
class HiddenNames:
    """The names to hide from analysts, made by `collect_hidden_names`."""

    names: tuple[Name, ...]
    """Names, the longest first."""

    def hide(self, text: str) -> str:
        """Replace each name, longest first, by [model], [company] or [provider]; the rest is unchanged."""
        plain, places = fold_text(text)
        return _replace_spots(text, places, self._find_spots(text, plain, places))

    def find_names(self, text: str) -> list[str]:
        """Return the names in the text, folded and in order."""
        plain, places = fold_text(text)
        return [plain[spot.start : spot.end] for spot in self._find_spots(text, plain, places)]

    def remove_names_in(self, text: str) -> HiddenNames:
        """Return only the names that the text does not contain."""
        plain, _ = fold_text(text)
        names = tuple(name for name in self.names if name.core not in plain or not re.search(name.pattern, plain))
        return HiddenNames(names)

    def check_leaks(self, text: str, where: str) -> None:
        """Raise NameLeak if the text still contains a name. `where`: description of the text, for the message."""
        if leaks := sorted(set(self.find_names(text))):
            raise NameLeak(
                f"{where} still names {', '.join(leaks[:5])}, so it was not sent: the analyst must not see names of models; "
                "allowed: only opaque ids such as MK_5000"
            )

    def _find_spots(self, text: str, plain: str, places: Sequence[int]) -> list[_Spot]:
        """Return the positions of names in the folded text, in order."""
        spots = [
            _Spot(*match.span(), name.replacement)
            for name, match in _iterate_matches(self.names, plain)
            if not name.is_everyday or _is_meant_as_name(match, plain, text[places[match.start()]])
        ]
        extras = list(_find_spelled_out(self.names, plain))
        return _merge_spots(spots, extras) if extras else spots


def _is_meant_as_name(match: re.Match[str], plain: str, first: str) -> bool:
    """Return whether an everyday word is meant as a name: its first letter is not lower case as written, or it has a version."""
    before = plain[max(0, match.start() - 2) : match.start()]
    return not first.islower() or any(character.isdigit() for character in f"{before}{match.group()}")


def _find_spelled_out(names: tuple[Name, ...], plain: str) -> Iterator[_Spot]:
    """Yield names that are spelled letter by letter: C l a u d e, G.P.T."""
    for run in _SPELLED_OUT.finditer(plain):
        letters = [place for place in range(run.start(), run.end()) if plain[place].isalpha()]
        for match in _compile_letters(names).finditer("".join(plain[place] for place in letters)):
            hidden = names[int((match.lastgroup or "n0")[1:])].replacement
            yield _Spot(letters[match.start()], letters[match.end() - 1] + 1, hidden)


@lru_cache(maxsize=16)
def _compile_letters(names: tuple[Name, ...]) -> re.Pattern[str]:
    choices = [
        (place, name) for place, name in enumerate(names) if re.fullmatch("[a-z]+", name.letters) and not name.is_everyday
    ]
    return re.compile("|".join(f"(?P<n{place}>{name.letters})" for place, name in choices))


def collect_hidden_names(models: Iterable[str], selectors: Iterable[str] = ()) -> HiddenNames:
    """Collect the names to hide when these models take part.

    Args:
        models: model strings or variants; each full string, name, maker and provider is hidden.
        selectors: further names of these models: user-defined names, and those of served models.
    """
    strings = [model.partition("[")[0] for model in models]
    named: dict[str, Name] = {}

    def add(text: str, hidden: str, everyday: bool = False) -> None:
        if (name := _name(text, hidden, everyday)) is not None:
            named.setdefault(name.pattern, name)

    for text in (*strings, *(selector.partition("@")[0] for selector in selectors)):
        for part in _split_model_string(text):
            add(part, MODEL_HIDDEN)
        for part in _list_short_parts(text):
            # The dot prevents a match of words that are spelled letter by letter.
            short = Name(part, rf"(?<![a-z\d]){part}(?![a-z\d])", f"{part}.", MODEL_HIDDEN)
            named.setdefault(short.pattern, short)
    for maker in KNOWN_MAKERS:
        for product_name in maker.product_names:
            add(product_name, _choose_placeholder(maker, product_name))
    for named_maker in sorted({match for model in strings if (match := find_maker(model))}):
        _add_maker(named_maker, add)
    for maker in {match for model in strings for match in find_makers_in_name(model, FURTHER_MAKERS)}:
        for product_name in maker.product_names:
            add(product_name, _choose_placeholder(maker, product_name))
    providers = {text.partition("/")[0] for text in strings if "/" in text}
    for provider in sorted({*SERVING, *_PLATFORMS} - _EVERYDAY_PROVIDERS | providers):
        add(provider, PROVIDER_HIDDEN)
    return HiddenNames(tuple(sorted(named.values(), key=lambda name: (-len(name.letters), name.pattern))))


def _add_maker(name: str, add: Callable[..., None]) -> None:
    """Add the names of a maker that takes part, including everyday words."""
    add(name, COMPANY_HIDDEN)
    if (maker := get_known_maker(name)) is None:
        return
    for folder in maker.folders:
        add(folder, COMPANY_HIDDEN)
    for product_name in maker.everyday_names:
        kind = _choose_placeholder(maker, product_name)
        add(product_name, kind, kind == MODEL_HIDDEN)


def _choose_placeholder(maker: Maker, product_name: str) -> str:
    """Return whether a name is a company's or a model's. A name that is both (DeepSeek) is a model's, so that its version is hidden too."""
    if any(product_name.lower().startswith(family.rstrip("-")) for family in maker.families):
        return MODEL_HIDDEN
    companies = {*maker.folders, maker.name.lower(), *_PARTS_OF_COMPANIES}
    return COMPANY_HIDDEN if product_name.lower() in companies else MODEL_HIDDEN


def _split_model_string(text: str) -> list[str]:
    """Return the string, and what follows each of its slashes: also `openai/gpt-4o` and `gpt-4o` for `openrouter/openai/gpt-4o`."""
    pieces = text.split("/")
    return [text, *("/".join(pieces[start:]) for start in range(1, len(pieces)))]


def _list_short_parts(text: str) -> list[str]:
    """Return very short parts of a model string, or short forms of it: `o3`, `yi`, and `r1` of `deepseek-r1`."""
    parts = _split_model_string(text.lower())
    pieces = re.split(r"[\s\-_.:]+", parts[-1])
    return [part for part in parts if re.fullmatch(r"[a-z]{2}|[a-z]\d", part)] + [
        piece for piece in pieces if len(pieces) > 1 and re.fullmatch(r"[a-z]\d{1,2}", piece)
    ]


def _name(text: str, hidden: str, everyday: bool) -> Name | None:
    """Return a name with its pattern, or None if it is too short, only digits, or a common word such as `model`."""
    plain, _ = fold_text(text)
    parts = re.findall(r"[^\W_]+", plain)
    letters = "".join(parts)
    if len(letters) < (_SHORTEST_NAME if letters.isascii() else 2) or plain.strip() in _NOT_NAMES or letters.isdigit():
        return None
    inside = _BETWEEN.join(map(re.escape, parts))
    # Digits may follow (ChatGPT4), the s of a plural, and AI; other Latin letters may not (Claudette). Those of other alphabets may: many
    # languages put nothing between words.
    pattern = rf"(?<![a-z]){inside}(?:ai)?{_TAIL if hidden == MODEL_HIDDEN else ''}s?(?![a-z])"
    return Name(max(parts, key=len), pattern, letters, hidden, everyday)


_VERSION_TIED = re.compile(r"[_-]?v?\d")
_VERSION_FOLLOWS = re.compile(
    r"[\s_-]{1,3}(?:v\d|\d+\.\d|\d+b(?![a-z])|ai(?![a-z0-9])|labs(?![a-z0-9]))|[\s_-]{1,3}r(?:\+|(?![a-z0-9]))"
)
_NEAR = 3
"""Maximum number of characters between a word and an adjacent name."""
_MAX_SENTENCE_LENGTH = 200
_QUOTES = " \t\"'`*_([{<#>~|“”„‘’«»"
_ENDS_A_SENTENCE = ".!?:;…。！？：；-•–—"
_CAPITALISED_WORDS = frozenset({"I", "I'm", "I’m"})


def select_capitalised_names(
    text: str, plain: str, places: Sequence[int], words: Sequence[_Spot], names: Sequence[_Spot]
) -> Iterator[_Spot]:
    """Yield the everyday words that are written as names.

    Args:
        text: as written.
        plain: folded.
        places: position in `text` of each character of `plain`.
        words: positions of everyday words that are also names, in order.
        names: positions of other names.
    """
    ends = {name.end for name in names}
    starts = {name.start for name in names}
    for word in words:
        first, last = word.start, word.end
        gaps = [plain[end:first] for end in range(max(0, first - _NEAR), first) if end in ends]
        gaps += [plain[last:start] for start in range(last, last + _NEAR + 1) if start in starts]
        has_version = any(character.isdigit() for character in plain[first:last])
        is_joined = has_version and not any(character.isspace() for character in plain[first:last])
        is_tied = is_joined or any(gap in {"-", "_", "/"} for gap in gaps) or _VERSION_TIED.match(plain, last) is not None
        nearby = (
            has_version or any(gap.strip() in {"", "'s"} for gap in gaps) or _VERSION_FOLLOWS.match(plain, last) is not None
        )
        if is_tied or (text[places[first]].isupper() and (nearby or _is_inside_a_sentence(text, places[first]))):
            yield word


def _is_inside_a_sentence(text: str, place: int) -> bool:
    before = text[max(0, place - _MAX_SENTENCE_LENGTH) : place].rpartition("\n")[2].rstrip(_QUOTES)
    if not before or before[-1] in _ENDS_A_SENTENCE:
        return False
    earlier, _, word = before.replace("\t", " ").rpartition(" ")
    word, earlier = word.strip(_QUOTES), earlier.rstrip(_QUOTES)
    if not word[:1].isupper() or word.rstrip(",") in _CAPITALISED_WORDS:
        return True
    return not earlier or earlier[-1] in _ENDS_A_SENTENCE


JOINT = r"[\s_-]{1,8}"
"""Separator between the parts of a name; a longer gap ends the name."""
_NO_JOINT = r"[\s_-]{0,8}"
_DECIMAL_JOINT = r"[\s_.-]{1,8}"
_FURTHER_DECIMALS = r"(?:\.\d{1,6}){0,3}"
"""Decimals after a name that ends in a number: GPT-4.1 is hidden completely if GPT-4 is."""
_PIECES = re.compile(r"[^\W\d_]+|\d+|[\s_-]+|.", re.DOTALL)
_OUTER_JOINTS = re.compile(r"\A[\s_-]+|[\s_-]+\Z")
_LETTERS_BEFORE_DIGITS = 3
"""Minimum number of letters before a number that may be separated from them: gpt4, but not x4, which occurs in formulas."""
_TIED_VERSION_OF_FAMILY = r"[_-]?v?\d{1,6}(?:\.\d{1,6}){0,3}[a-z]?"


def compile_name(name: str) -> Name | None:
    """Compile a name as whole words; return None if it looks like ordinary text: fewer than two letters or digits, or only digits."""
    pieces = _PIECES.findall(_OUTER_JOINTS.sub("", fold_text(name)[0]))
    letters = "".join(piece for piece in pieces if piece.isalnum())
    if letters.isdigit() or len(letters) < (2 if letters.isascii() else 1):
        return None
    parts = [re.escape(pieces[0])]
    for place, piece in enumerate(pieces[1:], 1):
        if not _is_joint(piece):
            parts.append(_choose_joint(pieces, place) + (_DECIMAL_JOINT if _is_point(pieces, place) else re.escape(piece)))
    decimals = _FURTHER_DECIMALS if pieces[-1].isdigit() else ""
    pattern = f"{_start_edge(pieces[0][0])}{''.join(parts)}{decimals}{_end_edge(pieces[-1][-1])}"
    return Name(max(pieces, key=len), pattern, letters)


def compile_exact_name(name: str) -> Name | None:
    """Compile the pattern of a model's exact name, however short, as a whole word; return None if it has no letter.

    A hyphen, an underscore, white space or nothing matches where the name has one of them or where a letter meets a digit: o3, O 3, o-3.
    """
    pieces = [piece for piece in _PIECES.findall(fold_text(name)[0]) if not _is_joint(piece)]
    letters = "".join(piece for piece in pieces if piece.isalnum())
    if not letters or letters.isdigit():
        return None
    parts = [re.escape(pieces[0])]
    for before, piece in pairwise(pieces):
        joint = _NO_JOINT if before.isalnum() and piece.isalnum() else ""
        parts.append(joint + (_DECIMAL_JOINT if piece == "." else re.escape(piece)))
    # The m of I'm is not a word.
    guards = ("(?<!['’])", "(?!['’](?!s(?![a-z])))") if len(letters) == 1 else ("", "")
    pattern = f"{guards[0]}{_start_edge(pieces[0][0])}{''.join(parts)}{_end_edge(pieces[-1][-1])}{guards[1]}"
    return Name(max(pieces, key=len), pattern, letters)


def compile_family_name(name: str, versions: Iterable[str]) -> Name | None:
    """Compile the pattern of a maker's name for all its models, with a version tied to it: GPT, GPT3, Llama-2.

    `versions`: versions of hidden names, which also match after a space. A number that only begins with one (GPT-40, of GPT-4) is another
    word and does not match.
    """
    base = compile_name(name)
    if base is None:
        return None
    end = base.letters[-1]
    if not (end.isascii() and end.isalpha() and base.pattern.endswith(_end_edge(end))):
        return base
    numbers = "|".join(
        sorted({_DECIMAL_JOINT.join(re.findall("[0-9]+", text)) for text in versions}, key=lambda text: (-len(text), text))
    )
    longer = f"(?!{_NO_JOINT}(?:{numbers})[0-9])" if numbers else ""
    version = f"(?:{_TIED_VERSION_OF_FAMILY}{f'|{JOINT}v?(?:{numbers})' if numbers else ''})?"
    return base._replace(pattern=f"{base.pattern.removesuffix(_end_edge(end))}{longer}{version}{_end_edge(end)}")


def _choose_joint(pieces: list[str], place: int) -> str:
    """Return the pattern allowed before a piece (not the first), by what precedes it in the name."""
    piece, before = pieces[place], pieces[place - 1]
    if not _is_joint(before):
        is_separate = piece.isdigit() and before.isalpha() and len(before) >= _LETTERS_BEFORE_DIGITS
        return _NO_JOINT if is_separate else ""
    first, digits = pieces[place - 2], "".join(pieces[place : place + 2])
    if first.isdigit() and piece.isdigit():
        return _DECIMAL_JOINT
    is_version = piece.isdigit() or re.fullmatch(r"v\d+", digits) is not None
    return _NO_JOINT if (is_version and first.isalpha()) or (first.isdigit() and piece.isalpha()) else JOINT


def _is_point(pieces: list[str], place: int) -> bool:
    return (
        pieces[place] == "."
        and pieces[place - 1].isdigit()
        and pieces[place + 1 : place + 2] != []
        and pieces[place + 1].isdigit()
    )


def _is_joint(piece: str) -> bool:
    return piece[0].isspace() or piece[0] in "_-"


def _start_edge(first: str) -> str:
    return f"(?<!{_word_edge_pattern(first)})" if _word_edge_pattern(first) else ""


def _end_edge(last: str) -> str:
    return f"(?!{_word_edge_pattern(last)})" if _word_edge_pattern(last) else ""


def _word_edge_pattern(edge: str) -> str:
    """Return the characters that, next to the edge of a name, make it part of a longer word; empty for scripts without spaces."""
    if edge.isascii():
        return "[a-z0-9]" if edge.isalnum() else ""
    return "" if unicodedata.category(edge) == "Lo" or not edge.isalnum() else r"[^\W_]"


_NO_ORGANISATIONS = frozenset({*SERVING, "baseline", "imported", "stored", "models", "accounts"})
_SHORT_FOR_A_MODEL = re.compile(r"[a-z]\d{1,2}|\d{1,2}o")
"""Short names of models: K2, R1, 4o."""
_SHORTEST_PART = 4
"""Minimum letters and digits of the last part of a model string (`org/name`) to count as a name."""
_SIZE_IN_BRACKETS = re.compile(r"\s{0,8}\([^()]{0,40}\)\s{0,8}\Z")
_FIRST_VERSION = re.compile(r"[0-9]{1,6}(?:[._-][0-9]{1,6}(?![0-9a-z])){0,2}")


class ScrubbedText(NamedTuple):
    """A text without names."""

    text: str
    n_replaced: int
    """Number of names that were removed."""


@dataclass(frozen=True, slots=True)
class Blinding:
    """The names to hide from reviewers, made by `build_blinding`; the longest first."""

    certain_names: tuple[Name, ...]
    """Names that match in any context."""
    everyday_names: tuple[Name, ...] = ()
    """Names that are everyday words as well."""

    def add_pair_names(self, names: Iterable[str]) -> Blinding:
        """Add the exact names of a pair of models, however short, which may be words in other texts."""
        new_names = compile_exact_names(frozenset(names)).difference(self.certain_names)
        return Blinding(_sort_by_length([*self.certain_names, *new_names]), self.everyday_names) if new_names else self

    def scrub(self, text: str) -> ScrubbedText:
        """Replace each name by `[model]`. Linear in the length of the text."""
        plain, places = fold_text(text)
        spots, words = (
            [_Spot(*match.span()) for _, match in _iterate_matches(names, plain)]
            for names in (self.certain_names, self.everyday_names)
        )
        if words:
            spots = _merge_spots(spots, select_capitalised_names(text, plain, places, words, spots))
        return ScrubbedText(_replace_spots(text, places, spots), len(spots))


def build_blinding(names: Iterable[str]) -> Blinding:
    """Build the blinding that removes these names and what they reveal (family, maker, its other products) from any text. `add_pair_names`
    removes more.

    Names without a letter and single Latin letters are ignored. The given names match wherever they are whole words; their parts and the
    further names of their makers do not match where they are everyday words.
    """
    names = set(names)
    parts = {part for name in names for part in _split_name(name)}
    words = EVERYDAY_NAMES - {_fold_name(name) for name in names}
    patterns = {_fold_name(name): compile_name(name) for name in parts} | _compile_maker_names(
        parts, (*KNOWN_MAKERS, *FURTHER_MAKERS)
    )
    known_patterns = {plain: pattern for plain, pattern in patterns.items() if pattern is not None}
    return Blinding(
        _sort_by_length(pattern for plain, pattern in known_patterns.items() if plain not in words),
        _sort_by_length(pattern for plain, pattern in known_patterns.items() if plain in words),
    )


def _fold_name(name: str) -> str:
    return fold_text(name)[0].strip()


def _split_name(name: str) -> Iterator[str]:
    """Yield the name, the name without the size in brackets, and what follows its last slash: `gpt-4` of `openai/gpt-4`."""
    yield name
    yield _SIZE_IN_BRACKETS.sub("", name)
    last = name.rpartition("/")[2]
    if len(last) >= _SHORTEST_PART:
        yield last


@lru_cache(maxsize=4096)
def compile_exact_names(names: frozenset[str]) -> frozenset[Name]:
    """Compile the exact names of models, from all their stored names: whole, each part of `org/name`, and abbreviations."""
    parts = {form for name in names for part in _list_exact_parts(name) for form in _list_forms(part)}
    return frozenset(filter(None, map(compile_exact_name, parts)))


def _list_forms(name: str) -> tuple[str, ...]:
    """Return a name and its capitals, some of which look like Latin letters when the small ones do not: Я Н Д."""
    return (name,) if name.isascii() else (name, name.upper())


def _list_exact_parts(name: str) -> Iterator[str]:
    base = _SIZE_IN_BRACKETS.sub("", name).partition("[")[0].partition("@")[0].strip()
    *folders, last = base.split("/")
    if not folders:
        # A single letter is a label in an imported file.
        yield from [base] if len(base) > 1 else ()
        return
    yield from (folder for folder in folders if folder.lower() not in _NO_ORGANISATIONS)
    yield from (last, last.partition(":")[0])
    pieces = re.split(r"[\s_.:-]+", last.lower())
    yield from (piece for piece in pieces if len(pieces) > 1 and _SHORT_FOR_A_MODEL.fullmatch(piece))


def _compile_maker_names(names: Iterable[str], makers: Sequence[Maker]) -> dict[str, Name | None]:
    """Compile the names of the named models' makers and all their models, by folded name; model names include versions."""
    versions: dict[Maker, set[str]] = {}
    for name in names:
        for maker in find_makers_in_name(name, makers):
            its = {_fold_name(product_name) for product_name in (*maker.product_names, *maker.everyday_names)}
            matches = [] if _fold_name(name) in its else _FIRST_VERSION.findall(_fold_name(name))[:1]
            versions.setdefault(maker, set()).update(matches)
    forms: dict[str, Name | None] = {}
    for known_maker in sorted(versions):
        for product_name in (known_maker.name, *known_maker.product_names, *known_maker.everyday_names):
            is_family = any(product_name.lower().startswith(family.rstrip("-")) for family in known_maker.families)
            for form in _list_forms(product_name) if known_maker in FURTHER_MAKERS else (product_name,):
                forms[_fold_name(form)] = compile_family_name(form, versions[known_maker]) if is_family else compile_name(form)
    return forms


def _sort_by_length(spellings: Iterable[Name]) -> tuple[Name, ...]:
    return tuple(sorted(spellings, key=lambda name: (-len(name.letters), -len(name.pattern), name.pattern)))


def list_names_of_model(name: str, variant: str) -> tuple[str, ...]:
    """Return what would identify a model: its name, its string with and without provider and settings, and the names of its maker.

    Further names of the maker and its models are added when texts are blinded (`build_blinding`).
    """
    string = variant.partition("[")[0]
    last, maker = string.rpartition("/")[2], find_maker(string) or ""
    record = get_known_maker(maker)
    names = {name, variant, string, maker, *(record.product_names if record else ())}
    return tuple(sorted({*filter(None, names), *((last,) if len(last) >= _SHORTEST_PART else ())}))
