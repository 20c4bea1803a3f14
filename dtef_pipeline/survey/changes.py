"""The differences between two readings of a survey round, which are reported before a rerun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.survey.tables import SURVEY_RESPONSES
from dtef_pipeline.survey.validation import list_names
from dtef_pipeline.text.number_words import format_count

COMPARED_COLUMNS: list[str] = SURVEY_RESPONSES.names

_NAMED = {"round", "segment", "question_id", "question_text", "options", "observed", "n"}
_OF_OTHER_SEGMENTS = {"population", "population_n", "leave_one_out_marginal", "leave_one_out_n", "shuffled", "shuffled_segment"}


@dataclass(frozen=True)
class Changes:
    """Names of new, missing or different parts. A pair is `segment question`; pairs of an added or dropped segment or question are not
    repeated.
    """

    segments_added: tuple[str, ...] = ()
    segments_dropped: tuple[str, ...] = ()
    questions_added: tuple[str, ...] = ()
    questions_dropped: tuple[str, ...] = ()
    questions_reworded: tuple[str, ...] = ()
    """Another text, other options, or the options in another order."""
    pairs_added: tuple[str, ...] = ()
    pairs_dropped: tuple[str, ...] = ()
    distributions_changed: tuple[str, ...] = ()
    n_changed: tuple[str, ...] = ()
    other_columns_changed: tuple[str, ...] = ()
    """Each with its number of pairs: `scale (47 pairs)`. Those that follow from other segments' answers only where nothing else changed."""

    @property
    def _names_by_kind(self) -> dict[str, tuple[str, ...]]:
        """The names by kind of change."""
        return {name.replace("_", " "): names for name, names in vars(self).items() if names}

    def summary(self) -> str:
        """Return `3 distributions changed, 1 segment added`, or an empty text without changes."""
        return ", ".join(_count(len(names), kind) for kind, names in self._names_by_kind.items())

    def __str__(self) -> str:
        """Return `2 segments added (country:peru, country:togo); other columns changed: scale (47 pairs)`, or `no change to any answer`."""
        named = self._names_by_kind
        columns = named.pop("other columns changed", None)
        parts = [f"{_count(len(names), kind)} ({list_names(names)})" for kind, names in named.items()]
        if columns:
            parts.append(f"other columns changed: {', '.join(columns)}")
        return "; ".join(parts) or "no change to any answer"


def _count(number: int, kind: str) -> str:
    """Return `1 segment added`; `1 n changed` has no plural."""
    noun, _, change = kind.rpartition(" ")
    return f"{number} n {change}" if noun == "n" else f"{format_count(number, noun.removesuffix('s'))} {change}"


def compare_readings(before: pa.Table, after: pa.Table) -> Changes:
    """Compare two `survey_responses` tables of a round (columns `COMPARED_COLUMNS`), in the order of `after`, then of `before`."""
    old, new = (
        {(row["segment"], row["question_id"]): row for row in table.select(COMPARED_COLUMNS).to_pylist()}
        for table in (before, after)
    )
    pairs = {pair: (old[pair], row) for pair, row in new.items() if pair in old}
    segments, questions = ([dict.fromkeys(pair[place] for pair in side) for side in (old, new)] for place in (0, 1))
    differing = {name: [pair for pair, rows in pairs.items() if rows[0][name] != rows[1][name]] for name in COMPARED_COLUMNS}
    reworded = {*differing["question_text"], *differing["options"]}
    changes = Changes(
        *_list_added_and_dropped(*segments),
        *_list_added_and_dropped(*questions),
        tuple(dict.fromkeys(pair[1] for pair in pairs if pair in reworded)),
        tuple(_name(pair) for pair in new if pair not in old and pair[0] in segments[0] and pair[1] in questions[0]),
        tuple(_name(pair) for pair in old if pair not in new and pair[0] in segments[1] and pair[1] in questions[1]),
        tuple(map(_name, differing["observed"])),
        tuple(map(_name, differing["n"])),
        _count_differing(differing, _OF_OTHER_SEGMENTS | _NAMED),
    )
    return changes if changes != Changes() else Changes(other_columns_changed=_count_differing(differing, _NAMED))


def _count_differing(differing: Mapping[str, Sequence[object]], omissions: Set[str]) -> tuple[str, ...]:
    """Return the columns that differ, each with its number of pairs."""
    counts = {name: len(pairs) for name, pairs in differing.items() if pairs and name not in omissions}
    return tuple(f"{name} ({format_count(count, 'pair')})" for name, count in counts.items())


def select_losses(changes: Changes, quarantine: pa.Table) -> Changes:
    """Return the dropped segments, questions and pairs, without pairs that now have too few respondents.

    `quarantine` is that of the later reading.
    """
    thin = {_name((row["segment"], row["question_id"])) for row in quarantine.to_pylist() if row["reason"] == "n-below-minimum"}
    return Changes(
        segments_dropped=changes.segments_dropped,
        questions_dropped=changes.questions_dropped,
        pairs_dropped=tuple(pair for pair in changes.pairs_dropped if pair not in thin),
    )


def _list_added_and_dropped(old: Mapping[str, None], new: Mapping[str, None]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(name for name in new if name not in old), tuple(name for name in old if name not in new)


def _name(pair: tuple[str, str | None]) -> str:
    return " ".join(filter(None, pair))


SAME_SURVEY = "same-survey"
"""The code of the finding that a round is a copy of others; its items are the round and the others."""
COPY_COLUMNS = ("segment", "question_text", "options", "observed")
"""Columns of `survey_responses` that `is_copy` reads."""
_COPIED_SHARE = 0.9
"""Share of the smaller survey's pairs that have the same distribution in a copy: samples of two waves do not agree like that."""


def is_copy(first: pa.Table, second: pa.Table) -> bool:
    """Return whether two rounds (COPY_COLUMNS) are one survey: nearly all pairs of the smaller one have the same distribution in the other."""
    left, right = (
        {(row["segment"], row["question_text"], *row["options"]): row["observed"] for row in table.to_pylist()}
        for table in (first, second)
    )
    n_same = sum(np.allclose(shares, right[pair], rtol=0, atol=1e-9) for pair, shares in left.items() if pair in right)
    return n_same > 0 and n_same >= _COPIED_SHARE * min(len(left), len(right))


def list_moved_rounds(checks: pa.Table) -> list[str]:
    """Return the rounds of the questions in `top_changes`, sorted."""
    return sorted({round_id for row in checks.to_pylist() for round_id, _ in _list_changed_questions(row)})


def add_moved_texts(checks: pa.Table, connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return the rows of DRIFT_CHECKS or DRIFT with `text` filled in `top_changes`, null for a question whose survey is missing.

    `connection` has a view `survey_responses` of the rounds of `list_moved_rounds`.
    """
    rows = checks.to_pylist()
    questions = sorted({question for row in rows for question in _list_changed_questions(row)})
    if not questions or not has_table(connection, "survey_responses"):
        return checks
    text_rows = connection.execute(
        """SELECT round, question_id, min(question_text) FROM survey_responses
        SEMI JOIN (SELECT unnest($rounds) AS round, unnest($ids) AS question_id) USING (round, question_id) GROUP BY ALL""",
        {"rounds": [round_id for round_id, _ in questions], "ids": [question for _, question in questions]},
    ).fetchall()
    texts = {(round_id, question): text for round_id, question, text in text_rows}
    for row in rows:
        for move, question in zip(row["top_changes"] or (), _list_changed_questions(row), strict=True):
            move["text"] = texts.get(question)
    return pa.Table.from_pylist(rows, checks.schema)


def _list_changed_questions(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return round and id of each question."""
    return [tuple(move["item"].split("/", 1)) for move in row["top_changes"] or ()]
