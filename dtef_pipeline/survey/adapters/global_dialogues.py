"""Global Dialogues: a directory with `<ROUND>_aggregate_standardized.csv` and, if present, the counts file and the discussion guide.

Segment columns read `O<k>: <value>`. The meaning of O<k> differs from round to round, so each column is classified by its value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.identity import normalize_text
from dtef_pipeline.survey.adapters.dialogue_files import (
    AGGREGATE,
    COUNTS_FILE,
    DERIVED_COLUMN,
    GUIDE,
    REQUIRED,
    SEGMENT_COLUMN,
    Counts,
    GuideItem,
    Poll,
    Questionnaire,
    SegmentColumn,
    collect_guide_blocks,
    collect_guide_orders,
    read_aggregate,
)
from dtef_pipeline.survey.attributes import canonical, classify_groups, find_candidates, find_profile_attribute, segment
from dtef_pipeline.survey.model import Answer, Finding, Question, Survey, Unreadable
from dtef_pipeline.survey.validation import check_question, find_round_name, parse_percentage

_PREFIXED = re.compile(r"[^\W\d_][\w ]{0,30}:\s*\S")
_SUMS_UP = re.compile(
    r"\d+\+|branch(?:es)?\b.*|(?:(?:north|south|east|west|central|middle|latin)(?:er|ern|e|rn)?[ -]?){0,3}"
    r"(?:africa|americas?|asia|europe|caribbean|oceania|australasia|antarctica|polynesia|melanesia|micronesia)",
    re.IGNORECASE,
)
"""Columns over several segments, as they are published (Norther Europe, Souther Asia), and those of a questionnaire's branches."""
_DESCRIPTIVE = {
    *(*REQUIRED, "All", "OriginalResponse", "Star", "Categories", "Sentiment"),
    *("Submitted By", "Language", "Sample ID", "Participant ID"),
}


class GlobalDialogues:
    """An adapter of the published directory of one round of Global Dialogues."""

    name = "global-dialogues"
    accepts = f"a directory with a file <ROUND>{AGGREGATE}, or that file"

    def recognises(self, path: Path) -> bool:
        """Return whether the path is a round's directory or its aggregate file."""
        return bool(_find_aggregates(path))

    def read(self, path: Path) -> Survey:
        """Read the published round. Its id is the directory's name."""
        files = _find_aggregates(path)
        if len(files) != 1:
            names = [f.name for f in files]
            raise SurveyError("one aggregate file per round", where=str(path), arrived=names, allowed=self.accepts)
        file, where = files[0], str(files[0])
        aggregate, questionnaire = read_aggregate(file), Questionnaire.read_questionnaire_files(file)
        prefix, counts = questionnaire.prefix, questionnaire.counts
        segment_columns, unknown, about_columns = _select_segment_columns(aggregate.columns, aggregate.polls, counts, where)
        questions, about_questions = _select_questions(aggregate.polls, segment_columns, questionnaire.guide, where)
        missing = questionnaire.findings(aggregate, segment_columns, unknown)
        no_counts = _check_counts(counts, prefix, [q for q, _ in questions], segment_columns)
        guideless = () if file.with_name(prefix + GUIDE).is_file() else (_NO_GUIDE,)
        named = path.absolute().name if path.is_dir() else prefix
        message = f"The round is named {named.upper()} after its folder, but its files have another name"
        renames = () if named.upper() == prefix.upper() else (Finding("warning", "folder-named-otherwise", message, (prefix,)),)
        return Survey(
            round=find_round_name(named),
            name=f"Global Dialogues {prefix}",
            adapter=self.name,
            path=str(path),
            questions=tuple(q for q, _ in questions),
            segments=tuple(c.segment for c in segment_columns),
            answers=tuple(_iterate_column_answers(questions, segment_columns, counts, where)),
            findings=(*aggregate.findings, *about_columns, *missing, *about_questions, *no_counts, *guideless, *renames),
            requires_n=True,
        )


_NO_GUIDE = Finding(
    "warning",
    "no-guide-file",
    f"There is no <ROUND>{GUIDE}, so options are in the order of the aggregate file; a guide that is added later can change it.",
)


def _check_counts(
    counts: Counts, prefix: str, questions: Sequence[Question], columns: Sequence[SegmentColumn]
) -> tuple[Finding, ...]:
    if counts.columns:
        return tuple(counts.findings(questions, [c.name for c in columns]))
    message = (
        f"{prefix}{COUNTS_FILE} is missing next to the aggregate file; it has the number of people who answered each question"
    )
    return (Finding("error", "no-counts-file", message),)


def _find_aggregates(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.name.endswith(AGGREGATE) else []
    return sorted(f for f in path.glob(f"*{AGGREGATE}") if f.is_file()) if path.is_dir() else []


def _select_segment_columns(
    columns: Sequence[str], polls: Sequence[Poll], counts: Counts, where: str
) -> tuple[list[SegmentColumn], list[str], list[Finding]]:
    """Return the columns of segments, one per key, the unknown columns, and findings on others."""
    matches: list[tuple[int, int, str]] = []
    derived_names: list[str] = []
    plain: list[str] = []
    nameless: list[str] = []
    unheard: list[str] = []
    for index, name in enumerate(columns):
        match = SEGMENT_COLUMN.fullmatch(name)
        if DERIVED_COLUMN.fullmatch(name):
            derived_names.append(name)
        elif match:
            matches.append((int(match[1]), index, match[2]))
        elif name not in _DESCRIPTIVE:
            # 44+ sums up age groups.
            is_segment = _PREFIXED.match(name) or find_candidates(name) - {"ageGroup"}
            (nameless if is_segment else plain if _SUMS_UP.fullmatch(name) else unheard).append(name)
    segments, unknown = _classify_columns(matches, columns, counts, where)
    unknown += nameless
    unique_columns, repeats = _remove_repeated_columns(segments)
    findings = [
        Finding("error", "unknown-column", _UNKNOWN_MESSAGE, tuple(map(counts.add_share, unknown))),
        Finding("warning", "unheard-column", _UNHEARD_MESSAGE, tuple(map(counts.add_share, unheard))),
        Finding("info", "repeated-attribute", "The attribute was asked twice; the lower O-number is used.", tuple(repeats)),
        Finding("info", "derived-column", "Weighted scores and rank counts are not segments.", tuple(derived_names)),
        Finding(
            "info", "non-segment-column", "Columns without an O-number (regions, branches) are not segments.", tuple(plain)
        ),
    ]
    return _keep_one_column_per_key(unique_columns, polls, where), unknown, [f for f in findings if f.items]


_UNKNOWN_MESSAGE = "These segment columns were NOT read: no known attribute has their values, or they lack an O-number"
_UNHEARD_MESSAGE = "These columns were NOT read: they lack an O-number and are not a known region or branch"


def _classify_columns(
    matches: Sequence[tuple[int, int, str]], columns: Sequence[str], counts: Counts, where: str
) -> tuple[list[SegmentColumn], list[str]]:
    groups: dict[int, list[str]] = defaultdict(list)
    for group, _, value in matches:
        groups[group].append(value)
    attributes = classify_groups(groups)
    segments, unknown = [], []
    for group, index, value in matches:
        attribute = attributes[group, value]
        if attribute is None:
            unknown.append(columns[index])
        else:
            n = counts.largest_n(columns[index])
            segments.append(SegmentColumn(index, columns[index], group, segment({attribute: value}, n, where=where, line=1)))
    return sorted(segments, key=lambda c: (c.group, c.index)), unknown


def _remove_repeated_columns(columns: Sequence[SegmentColumn]) -> tuple[list[SegmentColumn], list[str]]:
    """Return the columns of the lowest O-number for each key, and the other names. A group that mostly repeats lower ones is removed."""
    home: dict[str, int] = {}
    for c in columns:
        home.setdefault(c.segment.key, c.group)
    sizes: dict[tuple[int, str], list[bool]] = defaultdict(list)
    for c in columns:
        sizes[c.group, c.segment.attribute].append(home[c.segment.key] < c.group)
    repeat_groups = {group for group, repeats in sizes.items() if 2 * sum(repeats) > len(repeats)}
    duplicates = [c for c in columns if home[c.segment.key] < c.group or (c.group, c.segment.attribute) in repeat_groups]
    names = {c.name for c in duplicates}
    return [c for c in columns if c.name not in names], [c.name for c in duplicates]


def _keep_one_column_per_key(columns: Sequence[SegmentColumn], polls: Sequence[Poll], where: str) -> list[SegmentColumn]:
    """Remove empty columns with the key of another (Turkey beside Türkiye). Raises SurveyError if two have data."""
    by_key: dict[str, list[SegmentColumn]] = defaultdict(list)
    for c in columns:
        by_key[c.segment.key].append(c)
    unique_columns = []
    for key, group in by_key.items():
        if len(group) == 1:
            unique_columns += group
            continue
        full = [c for c in group if c.segment.n or any(row[c.index].strip() for poll in polls for row in poll.rows)]
        if len(full) > 1:
            problem = f"several columns make the same segment {key!r}"
            raise SurveyError(problem, where=where, line=1, arrived=[c.name for c in full], allowed="one column per segment")
        unique_columns.append((full or group)[0])
    return unique_columns


def _select_questions(
    polls: Sequence[Poll], columns: Sequence[SegmentColumn], guide: Sequence[GuideItem], where: str
) -> tuple[list[tuple[Question, Poll]], list[Finding]]:
    """Return the questions to predict with their rows in questionnaire order, and a finding on omitted profile questions."""
    values: dict[str, list[str]] = defaultdict(list)
    for c in columns:
        if c.segment.n or c.segment.n is None:
            values[c.segment.attribute].append(c.segment.value)
    order, blocks = collect_guide_orders(guide), collect_guide_blocks(guide)
    targets, profile = [], []
    for poll in polls:
        attribute = find_profile_attribute(poll.options, values)
        if attribute and _is_answering_itself(poll, [c for c in columns if c.segment.attribute == attribute]):
            profile.append(poll.text)
            continue
        question = Question(poll.id, poll.text, tuple(poll.options), block=blocks.get(normalize_text(poll.text)))
        check_question(question, where=where, line=poll.line)
        targets.append(_order_by_guide(question, poll, order.get(normalize_text(poll.text), ())))
    message = "Questions about the respondent (age, country, ...) are not predicted."
    return targets, [Finding("info", "profile-question", message, tuple(profile))] if profile else []


def _read_percentages(poll: Poll, column: int) -> tuple[float | Unreadable | None, ...]:
    return tuple(parse_percentage(row[column]) for row in poll.rows)


def _is_answering_itself(poll: Poll, columns: Sequence[SegmentColumn]) -> bool:
    """Return whether the attribute's segments mostly choose their own value, if they have shares for it.

    "Where would you rather live?" has the options of a profile question, but is not one.
    """
    shares = []
    for c in columns:
        for option, row in zip(poll.options, poll.rows, strict=True):
            share = parse_percentage(row[c.index])
            if canonical(c.segment.attribute, option) == c.segment.value and isinstance(share, float):
                shares.append(share)
    return not shares or sum(shares) >= 80 * len(shares)


def _order_by_guide(question: Question, poll: Poll, orders: Sequence[Sequence[str]]) -> tuple[Question, Poll]:
    """Order the options as in the questionnaire, then options that it adds by a setting (Other), in file order.

    A guide entry with an option that the question lacks is another question of the same text.
    """
    names = [normalize_text(o) for o in question.options]
    order = max((texts for texts in orders if set(texts) <= set(names)), key=len, default=names)
    places = sorted(range(len(names)), key=lambda i: order.index(names[i]) if names[i] in order else len(order))
    rows, lines = [poll.rows[i] for i in places], [poll.lines[i] for i in places]
    return replace(question, options=tuple(question.options[i] for i in places)), replace(poll, rows=rows, lines=lines)


def _iterate_column_answers(
    questions: Sequence[tuple[Question, Poll]], columns: Sequence[SegmentColumn], counts: Counts, where: str
) -> Iterator[Answer]:
    """Yield an answer for each segment and question, except for segments without data."""
    for column in columns:
        key, cells = column.segment.key, [_read_percentages(poll, column.index) for _, poll in questions]
        if all(cell is None for question in cells for cell in question):
            continue
        for (question, poll), percentages in zip(questions, cells, strict=True):
            n = counts.n(question.id, column.name)
            yield Answer(key, question.id, percentages, n, where, poll.line)
