"""Batteries: questions of a survey that were asked as one block, and batteries that are the same in several rounds.

Results of the questions of a battery are correlated, so an interval must treat the battery, not its questions, as one observation (Cameron,
Gelbach & Miller 2011; MacKinnon, Nielsen & Webb 2023). docs/explanation/batteries.md explains the rule and its errors.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations, takewhile

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import has_table, require_current_scores
from dtef_pipeline.identity import digest, normalize_text
from dtef_pipeline.survey.identity import make_question_key, make_round_order
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.model import Question
from dtef_pipeline.survey.tables import QUESTION_BATTERIES

STEM_WORDS = 8
"""Words that two neighbours over one scale share as their stem: as many as open `To what extent, if at all, do you trust ...`."""

SAME_SHARE = 0.85
"""Share of words from which two texts over the same options are one question in two wordings: three words of twenty may differ."""

_SHORT_STEM = 3
_IN_BRACKETS = re.compile(r"\([^()]*\)")


@dataclass(frozen=True)
class Wording:
    """A question reduced to words and options, without remarks in brackets, punctuation and case, to identify the same question."""

    words: tuple[str, ...]
    numbered: frozenset[tuple[str, int]]
    options: frozenset[str]
    asks: bool
    """False for an item that is not a question by itself, such as `A romantic partner.`, whose question is before the list."""

    @classmethod
    def reduce_wording(cls, text: str, options: Sequence[str]) -> Wording:
        """Return the wording of a question's text and options."""
        asks = text.rstrip().endswith((":", "…", "...")) or "?" in text
        words = split_words(text)
        return cls(words, number_words(words), _normalise_options(options), asks)

    def has_alike_options(self, wording: Wording) -> bool:
        """Return whether at least half of the longer list of options is in both. Another label or an additional middle does not change a
        scale.
        """
        return 2 * len(self.options & wording.options) >= max(len(self.options), len(wording.options))

    def has_shared_stem(self, wording: Wording) -> bool:
        """Return whether the texts differ in one part: their common beginning and end have `STEM_WORDS` words, or at least three and half
        of the longer text.
        """
        enough = min(STEM_WORDS, max(_SHORT_STEM, len(self.words) / 2, len(wording.words) / 2))
        opening = count_common_words([self.words, wording.words])
        ending = count_common_words([self.words[opening:][::-1], wording.words[opening:][::-1]])
        return opening + ending >= enough or self.words == wording.words

    def is_same_text(self, wording: Wording) -> bool:
        """Return whether the text is repeated with the same options or regrouped ones, such as `Agree` for `Strongly agree` and `Somewhat
        agree`.

        `Which statement comes closer to your view?` over two unlike lists of options is two questions.
        """
        if self.words != wording.words:
            return False
        words, others = ({word for option in options for word in option.split()} for options in (self.options, wording.options))
        return self.has_alike_options(wording) or words <= others or others <= words

    def is_variant(self, wording: Wording) -> bool:
        """Return whether both are wordings of one question, with the same options: `SAME_SHARE` of the words are in both."""
        return self.options == wording.options and compute_word_share(self.numbered, wording.numbered) >= SAME_SHARE


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a text without remarks in brackets, or all words if it has no others."""
    plain = normalize_text(text)
    return tuple(re.findall(r"\w+", _IN_BRACKETS.sub(" ", plain)) or re.findall(r"\w+", plain)) or (plain,)


def number_words(words: Sequence[str]) -> frozenset[tuple[str, int]]:
    """Return the words with the number of earlier occurrences, so that a set keeps repeated words."""
    before: Counter[str] = Counter()
    pairs = []
    for word in words:
        pairs.append((word, before[word]))
        before[word] += 1
    return frozenset(pairs)


def compute_word_share(first: Set[tuple[str, int]], second: Set[tuple[str, int]]) -> float:
    """Return the share of the words (from `number_words`) of two texts that are in both, from 0 to 1 (Dice, 1945).

    0 for texts that are too short, or too unlike in length for `SAME_SHARE`.
    """
    shorter, total = min(len(first), len(second)), len(first) + len(second)
    if shorter < STEM_WORDS or 2 * shorter < SAME_SHARE * total:
        return 0.0
    return 2 * len(first & second) / total


def _normalise_options(options: Sequence[str]) -> frozenset[str]:
    """Return the options in the form for comparison, with their remarks if they differ only in these."""
    bare = [" ".join(split_words(option)) for option in options]
    return frozenset(bare if len({*bare}) == len(bare) else map(normalize_text, options))


def count_common_words(texts: Sequence[Sequence[str]]) -> int:
    """Return the number of equal words at the beginning of all texts."""
    return sum(1 for _ in takewhile(lambda words: len({*words}) == 1, zip(*texts, strict=False)))


BY_RULE, BY_SURVEY = "rule:", "given:"
"""How the name of a battery begins: found by the rule and named after its first question; named by the survey."""


class _Links:
    """Union-find: linked nodes have the same root."""

    def __init__(self) -> None:
        self._above: dict[Hashable, Hashable] = {}

    def root(self, node: Hashable) -> Hashable:
        """Return the node's root, which is the same for all nodes linked directly or indirectly."""
        while (above := self._above.setdefault(node, node)) != node:
            self._above[node] = node = self._above[above]
        return node

    def link(self, first: Hashable, second: Hashable) -> None:
        """Link two nodes, and all nodes linked to them."""
        self._above[self.root(first)] = self.root(second)


def assign_batteries(questions: Sequence[Question]) -> list[str]:
    """Return the battery of each question of one round. The questions must be in questionnaire order.

    Neighbours with similar options are in one battery if they share a stem, are in one block of the questionnaire, or are items of a list
    whose introduction the source lacks. A question that is repeated later in the round is in the same battery. A battery named by the
    survey takes precedence. A question without links is its own battery.
    """
    wordings = [Wording.reduce_wording(q.text, q.options) for q in questions]
    block_numbers = [
        number_words(split_words(f"{q.block} {q.text}")) if q.block else w.numbered
        for q, w in zip(questions, wordings, strict=True)
    ]
    links = _Links()
    for i, j in combinations(range(len(questions)), 2):
        if questions[i].battery is None and questions[j].battery is None:
            neighbours = j == i + 1 and _is_one_block(questions[i], questions[j], wordings[i], wordings[j])
            if neighbours or _is_repeat(wordings[i], wordings[j], block_numbers[i], block_numbers[j]):
                links.link(i, j)
    first: dict[Hashable, str] = {}
    for i, q in enumerate(questions):
        first.setdefault(links.root(i), q.id)
    return [
        f"{BY_RULE}{first[links.root(i)]}" if q.battery is None else f"{BY_SURVEY}{q.battery}" for i, q in enumerate(questions)
    ]


def _is_one_block(first: Question, second: Question, first_wording: Wording, second_wording: Wording) -> bool:
    if not first_wording.has_alike_options(second_wording):
        return False
    if first.block == second.block and (first.block is not None or not (first_wording.asks or second_wording.asks)):
        return True
    return first_wording.has_shared_stem(second_wording)


def _is_repeat(a: Wording, b: Wording, one_in_block: Set[tuple[str, int]], other_in_block: Set[tuple[str, int]]) -> bool:
    """Return whether the second question is a rewording of the first, or the first with its introduction written out."""
    if a.is_same_text(b) or a.is_variant(b):
        return True
    if a.options != b.options:
        return False
    return max(compute_word_share(one_in_block, b.numbered), compute_word_share(a.numbered, other_in_block)) >= SAME_SHARE


def link_batteries(questions: pd.DataFrame) -> pd.Series[str]:
    """Return the battery of each question over all rounds. Questions with equal names are in one battery.

    Links join the questions of one battery of a round, the same question in several rounds (same text and options, except for remarks in
    brackets and regrouped options), and two wordings of one question.

    Args:
        questions: one row per (round, question_id), with `round`, `battery` (see `assign_batteries`), `question_text` and `options`.

    Returns:
        A name for each row: the smallest hash of the battery's `make_question_key`s, which does not depend on the order of rows.
    """
    pairs = list(zip(questions["question_text"], map(tuple, questions["options"]), strict=True))
    pair_keys = {pair: digest(*make_question_key(*pair)) for pair in dict.fromkeys(pairs)}
    keys = [pair_keys[pair] for pair in pairs]
    # Where several spellings are one question, the first in sorted order speaks for it, whatever the order of rows.
    wordings = {pair_keys[pair]: Wording.reduce_wording(*pair) for pair in sorted(pair_keys, reverse=True)}
    links = _link_questions(wordings, list(zip(keys, questions["round"], questions["battery"], strict=True)))
    name: dict[Hashable, str] = {}
    for key in sorted(wordings):
        name.setdefault(links.root(key), key)
    return pd.Series([name[links.root(key)] for key in keys], index=questions.index, name="cluster", dtype=object)


def _link_questions(wordings: Mapping[str, Wording], rows: Sequence[tuple[str, str, str]]) -> _Links:
    """Return all links between keys of questions. `rows`: key, round and battery of each question of a round."""
    links = _link_same_questions(wordings)
    for key, round_id, battery in rows:
        links.link(key, (round_id, battery))
    for first, second in _find_variants(wordings):
        links.link(first, second)
    return links


def _link_same_questions(wordings: Mapping[str, Wording]) -> _Links:
    """Link the keys of the same question in all rounds: equal words, even if options were regrouped."""
    word_keys: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for key, wording in wordings.items():
        word_keys[wording.words].append(key)
    links = _Links()
    for keys in word_keys.values():
        for first, second in combinations(keys, 2):
            if wordings[first].is_same_text(wordings[second]):
                links.link(first, second)
    return links


def _find_variants(wordings: Mapping[str, Wording]) -> Iterator[tuple[str, str]]:
    """Yield pairs of keys that are two wordings of one question."""
    option_keys: dict[frozenset[str], list[str]] = defaultdict(list)
    for key, wording in wordings.items():
        option_keys[wording.options].append(key)
    for keys in option_keys.values():
        for first, second in combinations(keys, 2):
            if wordings[first].is_variant(wordings[second]):
                yield first, second


_LINKED_TABLE = "linked_batteries"
_SHARED_WORDS = 3
"""Words that texts must share to be shown as what they share."""


def load_question_clusters(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return `cluster`, the linked battery, of each (round, question_id) of `survey_responses`; no rows without that table.

    After `take_links`, its links are used: for a connection to some of the rounds, because the other rounds link batteries, too. Raises
    WarehouseError for a survey that was ingested by a version without batteries.
    """
    if has_table(connection, _LINKED_TABLE):
        return pd.DataFrame(connection.table(_LINKED_TABLE).df())
    if not has_table(connection, "survey_responses"):
        return pd.DataFrame(columns=[*KEYS.shared_item, "cluster"], dtype="str")
    return load_linked_questions(connection)[[*KEYS.shared_item, "cluster"]]


def take_links(connection: duckdb.DuckDBPyConnection, clusters: pd.DataFrame) -> None:
    """Make `load_question_clusters` return these links, regardless of the connection's rounds."""
    connection.register(_LINKED_TABLE, clusters)


def load_linked_questions(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return one row per question of a round of `survey_responses`: its battery, text and options, and its linked battery as `cluster`.

    Raises WarehouseError for a survey that was ingested by a version without batteries.
    """
    question = ", ".join(KEYS.shared_item)
    with require_current_scores(KEYS):
        questions = connection.execute(
            f"""SELECT {question}, min(battery) AS battery, min(question_text) AS question_text, min(options) AS options
                FROM survey_responses WHERE battery IS NOT NULL AND options IS NOT NULL AND question_text IS NOT NULL
                GROUP BY {question} ORDER BY {question}"""
        ).df()
    return questions.assign(cluster=link_batteries(questions))


def load_questionnaires(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return `load_linked_questions` in the order of rounds and questionnaires; `same_item` is equal if text and options are equal."""
    places = connection.execute(
        "SELECT round, question_id, min(question_order) AS place FROM survey_responses GROUP BY ALL"
    ).df()
    rows = load_linked_questions(connection).merge(places, on=["round", "question_id"])
    rows = rows.assign(order=rows["round"].map(make_round_order)).sort_values(["order", "place"], ignore_index=True)
    keys = [digest(*make_question_key(*wording)) for wording in zip(rows["question_text"], rows["options"], strict=True)]
    return rows.assign(same_item=keys)


def build_question_batteries(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return one row of schema QUESTION_BATTERIES per question of a round; no rows without `survey_responses`.

    Raises WarehouseError for a survey that was ingested by a version without batteries.
    """
    if not has_table(connection, "survey_responses"):
        return QUESTION_BATTERIES.empty_table()
    questions = load_questionnaires(connection)
    reasons = {cluster: explain_link(group) for cluster, group in questions.groupby("cluster", sort=False)}
    rows = questions.assign(linked_battery=questions["cluster"], reason=questions["cluster"].map(reasons))[
        QUESTION_BATTERIES.names
    ]
    return pa.Table.from_pandas(rows, schema=QUESTION_BATTERIES, preserve_index=False).replace_schema_metadata(None)


def explain_link(questions: pd.DataFrame) -> str:
    """Return why the questions of a linked battery are together; empty for a single question. `questions` are rows of
    `load_questionnaires`.
    """
    return "; ".join(dict.fromkeys(_list_link_reasons(questions)))


def _list_link_reasons(questions: pd.DataFrame) -> Iterator[str]:
    for _, rows in questions.groupby(["round", "battery"], sort=False):
        name = str(rows["battery"].iloc[0])
        items = rows.drop_duplicates("same_item")
        if name.startswith(BY_SURVEY):
            yield f"named {name.removeprefix(BY_SURVEY)} by the survey"
        elif len(items) > 1:
            yield _describe_shared_wording(list(items["question_text"]), list(items["options"]))
    if questions.groupby("same_item")["round"].nunique().max() > 1:
        yield "questions asked in several rounds"
    elif len({*questions["round"]}) > 1:
        yield "questions with other words or options in another round"


def _describe_shared_wording(texts: Sequence[str], options: Sequence[Sequence[str]]) -> str:
    """Return the common wording or scale of a block's questions."""
    words = [question.split() for question in texts]
    opening, ending = count_common_words(words), count_common_words([[*reversed(word_list)] for word_list in words])
    if opening >= _SHARED_WORDS:
        return f"same stem: “{' '.join(words[0][:opening])} …”"
    if ending >= _SHARED_WORDS:
        return f"same stem: “… {' '.join(words[0][-ending:])}”"
    lacking = not any(Wording.reduce_wording(question, choices).asks for question, choices in zip(texts, options, strict=True))
    return (
        "items of one list with the same scale" if lacking else "neighbouring questions with the same scale, or repeated later"
    )
