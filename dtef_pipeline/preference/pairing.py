"""The choice of pairs, and what a reviewer sees of a pair: its id, the prompt, and two texts without names.

A pair has responses of two players to the same item in the same draw. All players are in about the same number of pairs.

New pairs depend only on the responses and the existing pairs, not on a clock or random numbers.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.errors import SourceError
from dtef_pipeline.identity import digest, normalize_text
from dtef_pipeline.judging.hidden_names import Blinding, Name, list_names_of_model
from dtef_pipeline.preference.vote_files import FileVote, iterate_file_votes, iterate_json_lines, require_id, require_text
from dtef_pipeline.preference.votes import (
    LONGEST_ID,
    Choice,
    PairedResponse,
    Side,
    VotePair,
    is_id,
    make_paired_response,
    vote_pair,
)
from dtef_pipeline.text.folding import fold_text
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.plain import strip_thinking

_MANY_DECIMALS = re.compile(r"[0-9]{1,20}(?:\.[0-9]{3,25}(?:e-[0-9]{1,3})?|(?:\.[0-9]{1,2})?e-[0-9]{1,3})")


class BlindedPair(NamedTuple):
    """A served pair, with the served field names."""

    pair_id: str
    prompt: str
    run_a: str
    run_b: str

    def serialize(self) -> dict[str, str]:
        """Return an object with these four fields and no other."""
        return self._asdict()


def choose_shown_as_a(pair_id: str, salt: str) -> Side:
    """Return which response of a pair is shown as A: `right` if the first bit is 1 of the SHA-256 of the pair's id, a line feed and the
    salt.

    The texts are hashed as UTF-8; the first bit is the highest of the first byte. The choice is unpredictable without the salt.
    """
    return "right" if hashlib.sha256(f"{pair_id}\n{salt}".encode()).digest()[0] >> 7 else "left"


def build_blinded_pair(pair: VotePair, left: PairedResponse, right: PairedResponse, names: Blinding, salt: str) -> BlindedPair:
    """Return the pair as shown to reviewers. `names`: those of all possible authors, not only of these two."""
    names = names.add_pair_names((*left.names, *right.names))
    first, second = (left, right) if choose_shown_as_a(pair.pair_id, salt) == "left" else (right, left)
    texts = (read_text(response.text, response.player, names) for response in (first, second))
    return BlindedPair(pair.pair_id, names.scrub(left.prompt).text, *texts)


def read_text(text: str, player: str, names: Blinding) -> str:
    """Return a response as shown to reviewers: its text without names; for computed players, numbers with 2 decimals."""
    readable = _MANY_DECIMALS.sub(lambda match: f"{float(match[0]):.2f}", text) if is_computed(player) else text
    return names.scrub(readable).text


def normalize_for_comparison(text: str, player: str, names: Blinding) -> str:
    """Return the shown text without differences in case and white space, to find texts that reviewers cannot distinguish."""
    return normalize_text(read_text(text, player, names))


def count_replaced_names(names: Blinding, pairs: Iterable[tuple[str, PairedResponse, PairedResponse]]) -> dict[str, int]:
    """Return how many names are removed from a pair's two texts, by pair id."""
    cache: dict[tuple[str, frozenset[Name]], int] = {}
    sure_names = frozenset(names.certain_names)

    def count(response: PairedResponse, blinding: Blinding, pair_names: frozenset[Name]) -> int:
        # Most texts contain no further name, so they are scrubbed once for all pairs.
        plain = fold_text(response.text)[0]
        present = frozenset(name for name in pair_names if name.core in plain)
        key = response.response_id, present
        if key not in cache:
            cache[key] = (blinding if present else names).scrub(response.text).n_replaced
        return cache[key]

    counts = {}
    for pair_id, left, right in pairs:
        blinding = names.add_pair_names((*left.names, *right.names))
        pair_names = frozenset(blinding.certain_names) - sure_names
        counts[pair_id] = count(left, blinding, pair_names) + count(right, blinding, pair_names)
    return counts


_Candidates = tuple[PairedResponse, PairedResponse]
_NO_NAMES = Blinding(())


def make_new_pairs(
    responses: Iterable[PairedResponse],
    old_pairs: Iterable[VotePair] = (),
    *,
    names: Blinding = _NO_NAMES,
    per_item: int | None = None,
    most: int | None = None,
) -> list[VotePair]:
    """Return new pairs, at most `per_item` of an item and `most` in total, spread over the items.

    Both responses are of one family, item, draw and snapshot, of different players, and differ after normalising as reviewers read them,
    without `names`. Within an item players' numbers of pairs differ by at most one, if enough pairs are left. `old_pairs` are the
    responses' existing pairs: they are not made again, and count in the balance and in `per_item`.
    """
    items: dict[tuple[str, str], list[PairedResponse]] = defaultdict(list)
    for response in {response.response_id: response for response in responses}.values():
        items[response.family, response.item_id].append(response)
    before: dict[tuple[str, str], list[VotePair]] = defaultdict(list)
    for pair in old_pairs:
        before[pair.family, pair.item_id].append(pair)
    by_item = (
        _make_item_pairs(items[key], before[key], names, per_item)
        for key in sorted(items, key=lambda key: (digest("pairing", *key), key))
    )
    turns = zip_longest(*by_item)
    spread = [pair for turn in turns for pair in turn if pair is not None]
    return spread if most is None else spread[:most]


def _make_item_pairs(
    responses: Sequence[PairedResponse], old_pairs: Sequence[VotePair], names: Blinding, per_item: int | None
) -> list[VotePair]:
    """Return the new pairs of one item, each pairing the least shown player with the least shown opponent."""
    by_id = {response.response_id: response for response in responses}
    exposure: Counter[str] = Counter()
    for pair in old_pairs:
        exposure.update(by_id[response_id].player for response_id in (pair.left, pair.right) if response_id in by_id)
    room = None if per_item is None else max(0, per_item - len(old_pairs))
    known_pairs = {(pair.left, pair.right) for pair in old_pairs}
    waiting: dict[str, dict[int, _Candidates]] = defaultdict(dict)
    for place, candidates in enumerate(_list_candidates(responses, names)):
        if tuple(sorted(candidate.response_id for candidate in candidates)) not in known_pairs:
            for response in candidates:
                waiting[response.player][place] = candidates
    new_pairs: list[VotePair] = []
    while waiting and (room is None or len(new_pairs) < room):
        rarest = min(waiting, key=lambda player: (exposure[player], next(iter(waiting[player]))))
        place, candidates = min(
            waiting[rarest].items(), key=lambda item: (sum(exposure[response.player] for response in item[1]), item[0])
        )
        for player in (response.player for response in candidates):
            exposure[player] += 1
            del waiting[player][place]
            if not waiting[player]:
                del waiting[player]
        new_pairs.append(vote_pair(*candidates))
    return new_pairs


def _list_candidates(responses: Sequence[PairedResponse], names: Blinding) -> Iterator[_Candidates]:
    """Yield all possible pairs in the order of a tournament: in turns in which every player plays once."""
    groups: dict[tuple[int, str], list[PairedResponse]] = defaultdict(list)
    for response in responses:
        groups[response.draw, response.snapshot].append(response)
    read = {entry.response_id: normalize_for_comparison(entry.text, entry.player, names) for entry in responses}
    for key in sorted(groups):
        seats = sorted(groups[key], key=lambda entry: digest("seat", entry.response_id))
        for left, right in _schedule_tournament(seats):
            if left.player != right.player and read[left.response_id] != read[right.response_id]:
                yield left, right


def _schedule_tournament(seats: Sequence[PairedResponse]) -> Iterator[_Candidates]:
    """Yield the turns of an all-play-all tournament by the circle method. With an odd number of players, one pauses in each turn."""
    circle: list[PairedResponse | None] = [*seats, *([None] if len(seats) % 2 else [])]
    half = len(circle) // 2
    for _ in range(len(circle) - 1):
        for place in range(half):
            left, right = circle[place], circle[-1 - place]
            if left is not None and right is not None:
                yield left, right
        circle = [circle[0], circle[-1], *circle[1:-1]]


SOURCE_COLUMNS = ("first", "second", "item_id", "model", "player", "draw", "snapshot", "messages", "text", "request_keys")
"""Columns of a source's query: the two levels of the partition, the item (with its partition and condition), the model's name and variant,
draw, snapshot, the prompt (a list of structs with role and text), the text, and the keys of its stored responses.

A text of several turns is a list of structs: `said`, the player's text, and `answer`, the reply to it (null: none). An optional column
`persona` is the name and version of the persona that the model played, such as `cautious:v2`, or empty; the player is then PERSONA@VARIANT. An
optional column `served_model` is the provider's name of the model that answered (null: not reported)."""
_NO_DISPLAY_NAMES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class MetricSource:
    """The source of a family's automated metrics, per player."""

    tables: tuple[str, ...]
    query: str
    """SQL over the tables that gives `score_publishing.METRIC_QUERY_COLUMNS`, one row per metric and player. Names of metrics include
    what they were measured on, so they are unique over all partitions."""


@dataclass(frozen=True, slots=True)
class PairedSource:
    """The source of a family's responses."""

    tables: tuple[str, ...]
    query: str
    """SQL over the tables that returns `SOURCE_COLUMNS`, one row per answered response."""
    metrics: tuple[MetricSource, ...] = ()
    """Metrics to compare preference with; missing tables are skipped."""


def build_paired_responses(
    family: str, rows: Iterable[Mapping[str, Any]], display_names: Mapping[str, str] = _NO_DISPLAY_NAMES
) -> list[PairedResponse]:
    """Return the responses of a source's rows, without the models' reasoning.

    `display_names`: names of personas for people, by name and version.
    """
    return [
        make_paired_response(
            family,
            row["item_id"],
            row["player"],
            format_shown_text(row["text"]),
            prompt=format_shown_prompt(row["messages"]),
            draw=row["draw"],
            snapshot=row["snapshot"],
            names=_list_hidden_names(row, display_names),
            request_keys=tuple(row["request_keys"]),
        )
        for row in rows
    ]


def format_shown_text(text: str | Sequence[Mapping[str, Any]]) -> str:
    """Return a response as shown to reviewers: its text, or its turns with the speaker before each."""
    if isinstance(text, str):
        return strip_thinking(text).strip()
    parts = []
    for turn in text:
        parts.append(f"Player: {strip_thinking(turn['said']).strip()}")
        if turn["answer"]:
            parts.append(f"Game: {turn['answer'].strip()}")
    return "\n\n".join(parts)


def _list_hidden_names(row: Mapping[str, Any], display_names: Mapping[str, str]) -> tuple[str, ...]:
    """Return all names of the model, including the provider's, and of its persona."""
    persona = row.get("persona") or ""
    names = list_names_of_model(row["model"], row["player"].removeprefix(f"{persona}@") if persona else row["player"])
    served_model = row.get("served_model")
    names = (*names, served_model) if served_model else names
    if not persona:
        return names
    return (*names, persona, persona.partition(":")[0], *([display_names[persona]] if persona in display_names else []))


def format_shown_prompt(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return a prompt as shown to reviewers: the user's messages, separated by blank lines.

    If there are examples shown to the model as its own replies, these are included, with the speaker before each message. System messages
    are left out unless there are no others: they contain instructions on how to respond, and often the persona.
    """
    turns = [message for message in messages if message["role"] != "system"] or list(messages)
    if any(message["role"] == "assistant" for message in turns):
        return "\n\n".join(f"{message['role'].capitalize()}: {message['text']}" for message in turns)
    return "\n\n".join(str(message["text"]) for message in turns)


OTHER_TOOLS = "elsewhere"
"""The family of responses from other tools."""
_DEFAULT_NAME = "all"
"""The default item, and the prefix of default reviewers, to which the row number is added, since each row may have another reviewer."""


class RatedPair(NamedTuple):
    """One row of the file."""

    line: int
    pair: VotePair
    left: PairedResponse
    right: PairedResponse
    reviewer_id: str
    choice: Choice
    shown_as_a: Side
    """The side of the row's left response in the pair; in the file A is left."""
    confidence: int | None


def read_pairs_csv(path: Path, responses: Path | None = None, prompts: Path | None = None) -> list[RatedPair]:
    """Return the votes of a CSV (`iterate_file_votes`), in its order.

    `responses`: JSON lines with prompt_id, model and text, optionally maker and api_id, which are names to hide. `prompts`: JSON lines with
    prompt_id and text. Without them the texts are empty: votes count, and the pairs are not served. Raises SourceError with file and line.
    """
    prompt_texts = _read_prompts(prompts) if prompts else {}
    by_key = _read_responses(responses, prompt_texts) if responses else None
    return [_build_rated_pair(path, vote, by_key, prompt_texts) for vote in iterate_file_votes(path)]


def _read_prompts(path: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    for line, values in iterate_json_lines(path):
        prompt_id, text = require_id(path, line, values, "prompt_id"), require_text(path, line, values, "text")
        if texts.setdefault(prompt_id, text) != text:
            raise _duplicate_error(path, line, f"prompt_id {prompt_id}")
    return texts


def _read_responses(path: Path, prompts: Mapping[str, str]) -> dict[tuple[str, str], PairedResponse]:
    responses: dict[tuple[str, str], PairedResponse] = {}
    for line, values in iterate_json_lines(path):
        prompt_id, model = (require_id(path, line, values, name) for name in ("prompt_id", "model"))
        names = [
            model,
            *(require_text(path, line, values, name) for name in ("maker", "api_id") if values.get(name) is not None),
        ]
        text = require_text(path, line, values, "text")
        response = _build_response(prompt_id, model, text, prompts.get(prompt_id, ""), tuple(filter(None, names)))
        if responses.setdefault((prompt_id, model), response) != response:
            raise _duplicate_error(path, line, f"prompt_id {prompt_id} and model {model}")
    return responses


def _build_rated_pair(
    path: Path, vote: FileVote, responses: Mapping[tuple[str, str], PairedResponse] | None, prompts: Mapping[str, str]
) -> RatedPair:
    """Return a vote's pair. `responses`: None without a file."""
    prompt_id = vote.prompt_id or _DEFAULT_NAME
    sides = []
    for name in ("left", "right"):
        model = getattr(vote, name)
        if responses is not None and (prompt_id, model) not in responses:
            problem = f"{name}: no response of this model to prompt {prompt_id}"
            raise SourceError(problem, where=str(path), line=vote.line, arrived=model[:80])
        empty = _build_response(prompt_id, model, "", prompts.get(prompt_id, ""), (model,))
        sides.append(empty if responses is None else responses[prompt_id, model])
    left, right = sides
    pair = vote_pair(left, right)
    side: Side = "left" if pair.left == left.response_id else "right"
    reviewer = vote.reviewer_id or f"{_DEFAULT_NAME}-{vote.line}"
    if not is_id(reviewer):
        choices = f"nothing, or {format_count(LONGEST_ID, 'printable character')} at most"
        raise SourceError("reviewer_id", where=str(path), line=vote.line, arrived=repr(reviewer[:80]), allowed=choices)
    return RatedPair(vote.line, pair, left, right, reviewer, vote.choice, side, vote.confidence)


def _build_response(prompt_id: str, model: str, text: str, prompt: str, names: tuple[str, ...]) -> PairedResponse:
    return make_paired_response(OTHER_TOOLS, prompt_id, model, text, prompt=prompt, names=names)


def _duplicate_error(path: Path, line: int, label: str) -> SourceError:
    problem = f"{label[:200]}: there already with other content"
    return SourceError(problem, where=str(path), line=line, allowed="one line each, or equal ones")
