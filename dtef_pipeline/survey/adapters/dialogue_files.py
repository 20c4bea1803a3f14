"""The files of a round of Global Dialogues: single-select polls, counts of respondents, options in the questionnaire's order; and the
questions, options and segments that other files list but the aggregate file lacks, because it was truncated or has new names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.identity import normalize_text
from dtef_pipeline.survey.adapters.text_files import iterate_text_rows, open_table
from dtef_pipeline.survey.attributes import (
    canonical,
    classify_groups,
    clean,
    clean_lines,
    find_attribute,
    find_candidates,
    find_profile_attribute,
    make_segment_key,
)
from dtef_pipeline.survey.blueprint.wording import join_words
from dtef_pipeline.survey.completeness import MISSING_ATTRIBUTES, MISSING_QUESTIONS
from dtef_pipeline.survey.model import Finding, Question, Segment
from dtef_pipeline.survey.observations import MIN_N
from dtef_pipeline.survey.validation import parse_whole_count
from dtef_pipeline.text.number_words import format_count, list_first_names

AGGREGATE = "_aggregate_standardized.csv"
COUNTS_FILE = "_segment_counts_by_question.csv"
MAPPING = "_question_id_mapping.csv"
GUIDE = "_discussion_guide.csv"

_POLL = "poll single select"
_ASKED_AS_POLL = re.compile(r"(?:poll|onboarding) single select")
_ANNOUNCES = re.compile(r"\b(?:following|below|each|next|these)\b", re.IGNORECASE)
REQUIRED = ("Question ID", "Question Type", "Question", "Response")


SEGMENT_COLUMN = re.compile(r"[Oo]\s?(\d+)\s?[:.–-]\s*(\S.*)")
"""A segment's column: its O-number and its value."""

DERIVED_COLUMN = re.compile(r".* - (?:Weighted Score|Rank \d+ Count)")
"""What a ranking question adds to a segment's column."""


@dataclass(frozen=True)
class SegmentColumn:
    """A segment's column, with its index and name in the aggregate file."""

    index: int
    name: str
    group: int
    segment: Segment


@dataclass(frozen=True)
class Counts:
    """Question id -> column -> respondents. A column is found by its name, or else by its value in any known spelling."""

    columns: Sequence[str] = ()
    rows: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    """Question id -> text, blank if the file has none."""

    @cached_property
    def _name_by_value(self) -> Mapping[str, str]:
        return {_make_value_key(name): name for name in self.columns}

    def column(self, name: str) -> str | None:
        """Return the counts file's name of an aggregate column, such as Turkey for Türkiye."""
        return name if name in self.columns else self._name_by_value.get(_make_value_key(name))

    def n(self, question_id: str, name: str) -> int | None:
        return self.rows.get(question_id, {}).get(self.column(name) or "")

    def largest_n(self, name: str) -> int | None:
        """Return the respondents of a segment to its largest question."""
        column = self.column(name) or ""
        return max((n for row in self.rows.values() if (n := row.get(column)) is not None), default=None)

    def share(self, name: str) -> str:
        """Return a segment's share as `684 of 1,058 respondents, 65 %`, or a blank if unknown."""
        n, everyone = self.largest_n(name), self.largest_n("All")
        return "" if n is None or not everyone else f"{n:,} of {format_count(everyone, 'respondent')}, {n / everyone:.0%}"

    def add_share(self, name: str) -> str:
        """Return the column with its share, if known."""
        return f"{name} ({share})" if (share := self.share(name)) else name

    def findings(self, questions: Sequence[Question], names: Sequence[str]) -> Iterator[Finding]:
        """Yield findings on segments and questions that the file lacks."""
        if absent := tuple(name for name in names if self.column(name) is None):
            yield Finding("error", "no-counts-column", "The counts file has no column for these segments.", absent)
        if missing := tuple(q.text for q in questions if q.id not in self.rows):
            message = "The counts file has no row for these questions, so their n would be the size of the segment"
            yield Finding("error", MISSING_QUESTIONS, message, missing)

    def find_lost_segments(self, columns: Sequence[str], keys: Collection[str]) -> dict[str, str | None]:
        """Return the segments with respondents that the aggregate's `columns` lack: column -> its attribute, if known.

        `keys` are those of the aggregate's segments. An attribute that was asked twice may have its columns once.
        """
        value_keys = {_make_value_key(name) for name in columns}
        values = {
            name: match
            for name in self.columns
            if (match := SEGMENT_COLUMN.fullmatch(name)) and not DERIVED_COLUMN.fullmatch(name)
        }
        groups: dict[int, list[str]] = defaultdict(list)
        for match in values.values():
            groups[int(match[1])].append(match[2])
        classes = classify_groups(groups)
        attributes = {name: classes[int(match[1]), match[2]] for name, match in values.items()}
        return {
            name: attribute
            for name, attribute in attributes.items()
            if self.largest_n(name)
            and _make_value_key(name) not in value_keys
            and (attribute is None or make_segment_key(attribute, values[name][2]) not in keys)
        }


def _make_value_key(name: str) -> str:
    match = SEGMENT_COLUMN.fullmatch(name)
    if match is None:
        return normalize_text(name)
    candidates = sorted(find_candidates(match[2]))
    return f"{match[1]}:{normalize_text(canonical(candidates[0], match[2]) if candidates else match[2])}"


@dataclass
class Poll:
    """The rows of a question: first line, text, options and cells."""

    id: str
    text: str
    line: int
    options: list[str]
    rows: list[list[str]]
    lines: list[int]


@dataclass(frozen=True)
class Aggregate:
    """The single-select polls in file order, the column names, findings on omitted rows, and the other questions (id -> text)."""

    polls: list[Poll]
    columns: list[str]
    findings: list[Finding]
    others: Mapping[str, str]

    @property
    def texts(self) -> Mapping[str, str]:
        """Question id -> text of all questions."""
        return {poll.id: poll.text for poll in self.polls} | {**self.others}


@dataclass(frozen=True)
class GuideItem:
    """An entry of the discussion guide. `kind` is its type in lower case, blank if the guide has no such column."""

    kind: str
    text: str
    options: Sequence[str]

    @property
    def is_poll(self) -> bool:
        """Whether the entry is a single-select poll, which the aggregate file should contain."""
        return bool(_ASKED_AS_POLL.fullmatch(self.kind))


def read_aggregate(path: Path) -> Aggregate:
    """Read the aggregate file."""
    columns, rows = open_table(path, REQUIRED)
    id_, type_, text, response = (columns.index(name) for name in REQUIRED)
    polls: dict[str, Poll] = {}
    other_questions: dict[str, dict[str, str]] = defaultdict(dict)
    last = ""
    for line, row in rows:
        question_id = row[id_].strip()
        if normalize_text(row[type_]) != _POLL:
            other_questions[clean(row[type_])][question_id] = clean(row[text])
            continue
        if not question_id:
            raise SurveyError("a row without Question ID", where=str(path), line=line, arrived=row[text][:80])
        poll = polls.setdefault(question_id, Poll(question_id, clean_lines(row[text]), line, [], [], []))
        is_repeat = last != question_id and clean(row[response]) in poll.options
        if is_repeat or normalize_text(poll.text) != normalize_text(row[text]):
            problem = f"duplicate question id {question_id}: first used at line {poll.line}"
            raise SurveyError(problem, where=str(path), line=line, arrived=clean(row[text]), allowed=clean(poll.text))
        poll.options.append(clean(row[response]))
        poll.rows.append(row)
        poll.lines.append(line)
        last = question_id
    texts = {question_id: text for questions in other_questions.values() for question_id, text in questions.items()}
    return Aggregate(
        list(polls.values()), columns, [_report_left_out(kind, questions) for kind, questions in other_questions.items()], texts
    )


def _report_left_out(kind: str, texts: Mapping[str, str]) -> Finding:
    if normalize_text(kind) == "ask opinion":
        return Finding("info", "open-ended-question", "Open-ended questions have no options to predict.", tuple(texts.values()))
    message = f"Only single-select polls are used; these are of type {kind!r}."
    return Finding("info", "question-type", message, tuple(texts.values()))


def read_counts(path: Path) -> Counts:
    """Read the counts file. The result is empty if there is no such file."""
    if not path.is_file():
        return Counts()
    columns, rows = open_table(path, ("Question ID",))
    id_ = columns.index("Question ID")
    counts: dict[str, dict[str, int | None]] = {}
    texts: dict[str, str] = {}
    for line, row in rows:
        question_id = row[id_].strip()
        if question_id in counts:
            raise SurveyError(
                f"question id {question_id} occurs twice", where=str(path), line=line, allowed="one row per question"
            )
        counts[question_id] = {name: parse_whole_count(cell) for name, cell in zip(columns, row, strict=True) if cell}
        texts[question_id] = clean(dict(zip(columns, row, strict=True)).get("Question Text", ""))
    return Counts(columns, counts, texts)


def read_mapping(path: Path) -> dict[str, str]:
    """Return id -> text of the questions in the mapping file; empty if the file or one of its columns is missing."""
    if not path.is_file():
        return {}
    (_, header), *rows = [*iterate_text_rows(path)] or [(0, [])]
    if not {"uuid", "question_text"} <= {*header}:
        return {}
    id_, text = header.index("uuid"), header.index("question_text")
    return {row[id_].strip(): clean(row[text]) for _, row in rows if max(id_, text) < len(row) and row[id_].strip()}


def read_guide(path: Path) -> list[GuideItem]:
    """Return the entries of the discussion guide in file order; empty without a guide."""
    if not path.is_file():
        return []
    rows = (row for _, row in iterate_text_rows(path))
    header = next((row for row in rows if "Content" in row), [])
    if not header:
        raise SurveyError("not a discussion guide", where=str(path), allowed="a row of column names with 'Content'")
    content = header.index("Content")
    options = [i for i, name in enumerate(header) if name.startswith("Poll or Category Option")]
    kind = next((i for i, name in enumerate(header) if name.lower().startswith("item type")), None)
    return [
        GuideItem(
            "" if kind is None else normalize_text(row[kind]),
            row[content],
            [clean(row[i]) for i in options if i < len(row) and row[i].strip()],
        )
        for row in rows
        if max(content, kind or 0) < len(row) and row[content].strip()
    ]


def collect_guide_orders(guide: Sequence[GuideItem]) -> dict[str, list[list[str]]]:
    """Return normalized question text -> its normalized options, for each time the discussion guide asks it."""
    orders: dict[str, list[list[str]]] = defaultdict(list)
    for item in guide:
        if item.options:
            orders[normalize_text(item.text)].append([normalize_text(option) for option in item.options])
    return orders


def collect_guide_blocks(guide: Sequence[GuideItem]) -> dict[str, str]:
    """Return normalized question text -> the introduction of its list, for polls directly below an introduction.

    An introduction is a spoken text above the polls that ends with a colon or refers to the following items. A question that occurs in
    several places is left out.
    """
    blocks: dict[str, list[str | None]] = defaultdict(list)
    introduction: str | None = None
    for item in guide:
        if item.kind == "speak":
            introduction = _extract_introduction(item.text)
        elif item.kind == _POLL:
            blocks[normalize_text(item.text)].append(introduction)
        else:
            introduction = None
    return {text: lines[0] for text, lines in blocks.items() if len(lines) == 1 and lines[0] is not None}


def _extract_introduction(text: str) -> str | None:
    """Return the last sentence of a spoken text if it announces a list, else None."""
    last = clean(re.split(r"[.!?]\s+|\n", text.strip())[-1])
    return last if last.endswith(":") or _ANNOUNCES.search(last) else None


_MAY_BE_ABSENT = {"language"}
"""Published aggregates may leave these attributes out on purpose, though the guide asks for them."""
_ADDED_BY_A_SETTING = {"other", "noneoftheabove"}
_BRANCH = re.compile(r"branch \w+ - ")


@dataclass(frozen=True)
class Questionnaire:
    """The files next to the aggregate file, each empty if missing: counts, mapping (id -> text) and discussion guide.

    `prefix` is the GD4 of `GD4_aggregate_standardized.csv`.
    """

    prefix: str
    counts: Counts
    mapping: Mapping[str, str]
    guide: Sequence[GuideItem]

    @classmethod
    def read_questionnaire_files(cls, aggregate: Path) -> Questionnaire:
        """Read the files next to an aggregate file."""
        prefix = aggregate.name.removesuffix(AGGREGATE)
        counts, mapping, guide = (aggregate.with_name(prefix + name) for name in (COUNTS_FILE, MAPPING, GUIDE))
        return cls(prefix, read_counts(counts), read_mapping(mapping), read_guide(guide))

    def findings(self, aggregate: Aggregate, columns: Sequence[SegmentColumn], unknown: Sequence[str]) -> Iterator[Finding]:
        """Yield findings on questions and options without rows, and on attributes and segments without columns.

        `columns` are segments; `unknown` columns look like segments and were not read.
        """
        lacking, guide = self.prefix + AGGREGATE, self.prefix + GUIDE
        if missing := self._find_missing_questions(aggregate):
            files = list(dict.fromkeys(file for sources in missing.values() for file in sources))
            open_too = "" if self.guide else f" (including open questions, which only {guide} identifies)"
            naming = f"{join_words([self.prefix + file for file in files])} {'name' if len(files) > 1 else 'names'}"
            # Some files add an unpaired quotation mark.
            texts = tuple(text.strip('"') if text.count('"') == 1 else text for text in missing)
            yield Finding("error", MISSING_QUESTIONS, f"{naming} questions that {lacking} lacks{open_too}", texts)
        if lost_options := {poll.text: options for poll in aggregate.polls if (options := self._find_lost_options(poll))}:
            items = tuple(f"{text}: {', '.join(options)}" for text, options in lost_options.items())
            yield Finding("error", MISSING_QUESTIONS, f"{guide} lists options that {lacking} lacks", items)
        asked = {_normalise_wording(item.text) for item in self.guide}
        if asked and (extras := [poll.text for poll in aggregate.polls if _normalise_wording(poll.text) not in asked]):
            message = f"{guide} lacks these questions, so their options have the order of {lacking}"
            yield Finding("error", MISSING_QUESTIONS, message, tuple(extras))
        yield from self._check_columns(aggregate, columns, unknown)

    def _check_columns(
        self, aggregate: Aggregate, columns: Sequence[SegmentColumn], unknown: Sequence[str]
    ) -> Iterator[Finding]:
        lacking, counts = self.prefix + AGGREGATE, self.prefix + COUNTS_FILE
        attributes = {c.segment.attribute for c in columns}
        lost_columns = self.counts.find_lost_segments(aggregate.columns, {c.segment.key for c in columns})
        asking = f"{self.prefix}{GUIDE} asks for" if self.guide else "its own questions ask for"
        absent = {name: (text, asking) for name, text in self._list_profile_attributes(aggregate).items()}
        for column, attribute in lost_columns.items():
            if attribute is not None:
                absent.setdefault(attribute, (column, f"{counts} has"))
        if missing := {name: entry for name, entry in absent.items() if name not in attributes | _MAY_BE_ABSENT}:
            reasons = " or ".join(dict.fromkeys(asking for _, asking in missing.values()))
            message = f"No column of {lacking} could be read as one of the attributes that {reasons}"
            yield Finding("error", MISSING_ATTRIBUTES, message, tuple(f"{name}: {text}" for name, (text, _) in missing.items()))
        optional = [column for column, attribute in lost_columns.items() if attribute in _MAY_BE_ABSENT - attributes]
        unread = [column for column, attribute in lost_columns.items() if attribute not in missing and column not in optional]
        message = f"{counts} has respondents of these segments, but {lacking} has no column for them"
        if unread:
            yield Finding("error", "lost-column", message, tuple(map(self.counts.add_share, unread)))
        if optional:
            yield Finding("warning", "lost-column", message, tuple(map(self.counts.add_share, optional)))
        profile_questions = tuple(self._iterate_profile_questions(aggregate))
        yield from check_coverage(columns, [*unknown, *lost_columns], profile_questions, self.counts, f"{lacking} and {counts}")

    def _find_missing_questions(self, aggregate: Aggregate) -> dict[str, list[str]]:
        """Return text (or id) -> the files that list it. Open questions, and guide entries that are not questions, need no rows."""
        ids, texts = {*aggregate.texts}, {_normalise_wording(text) for text in aggregate.texts.values()}
        kinds = {_normalise_wording(item.text): item for item in self.guide if item.kind}
        missing: dict[str, list[str]] = defaultdict(list)
        for file, named in ((COUNTS_FILE, self.counts.texts), (MAPPING, self.mapping)):
            for question_id, text in named.items():
                item = kinds.get(_normalise_wording(text))
                # Guides lack the questions of a single branch, which are open ones.
                is_poll = item.is_poll if item else not (self.guide and _BRANCH.match(normalize_text(text)))
                if question_id not in ids and is_poll:
                    missing[text or question_id].append(file)
        for item in self.guide:
            if item.is_poll and len(item.options) > 1 and _normalise_wording(item.text) not in texts:
                missing[clean(item.text)].append(GUIDE)
        return _merge_wordings(missing)

    def _find_lost_options(self, poll: Poll) -> list[str]:
        """Return the guide's options that a question lacks; none if the guide lacks as many of its options, as these are other spellings."""
        wordings = {_normalise_wording(option) for option in poll.options}
        entries = [
            item.options
            for item in self.guide
            if item.options and _normalise_wording(item.text) == _normalise_wording(poll.text)
        ]
        if not entries:
            return []
        guide_options = min(entries, key=lambda options: len({_normalise_wording(option) for option in options} ^ wordings))
        missing_options = [option for option in guide_options if _normalise_wording(option) not in wordings]
        extras = wordings - {_normalise_wording(option) for option in guide_options} - _ADDED_BY_A_SETTING
        return missing_options if len(missing_options) > len(extras) else []

    def _list_profile_attributes(self, aggregate: Aggregate) -> dict[str, str]:
        """Return attribute -> its question, among the guide's questions about the respondent, or among the polls without a guide."""
        asking = GUIDE if self.guide else AGGREGATE
        questions = (q for q in self._iterate_profile_questions(aggregate) if q.file == self.prefix + asking)
        return {question.attribute: question.text for question in questions}

    def _iterate_profile_questions(self, aggregate: Aggregate) -> Iterator[ProfileQuestion]:
        """Yield the questions about the respondent, first those of the guide."""
        n = self._count_respondents(aggregate)
        guide = [
            (find_attribute(item.options), item.text, item.options, GUIDE)
            for item in self.guide
            if item.kind.startswith("onboarding")
        ]
        polls = [(find_profile_attribute(poll.options, {}), poll.text, poll.options, AGGREGATE) for poll in aggregate.polls]
        for attribute, text, options, file in (*guide, *polls):
            if attribute is not None and len(options) > 1:
                yield ProfileQuestion(attribute, clean(text), options, self.prefix + file, n.get(_normalise_wording(text)))

    def _count_respondents(self, aggregate: Aggregate) -> dict[str, int]:
        """Return wording -> the largest number of people who were asked it."""
        sizes: dict[str, int] = {}
        for question_id, text in (*aggregate.texts.items(), *self.counts.texts.items()):
            n = self.counts.n(question_id, "All")
            if n is not None:
                sizes[_normalise_wording(text)] = max(n, sizes.get(_normalise_wording(text), 0))
        return sizes


@cache
def _normalise_wording(text: str) -> str:
    """Return a wording in a form that files share: without blanks, punctuation, case and the branch of the questionnaire."""
    return re.sub(r"[\W_]+", "", _BRANCH.sub("", normalize_text(clean(text))))


def _merge_wordings(missing: Mapping[str, list[str]]) -> dict[str, list[str]]:
    first: dict[str, str] = {}
    by_text: dict[str, list[str]] = defaultdict(list)
    for text, files in missing.items():
        by_text[first.setdefault(_normalise_wording(text), text)] += files
    return dict(by_text)


_LEAST_SHARE = 0.01
"""Share of respondents: fewer than this without a column are people who did not answer."""
_MAX_VALUES = 5


@dataclass(frozen=True)
class ProfileQuestion:
    """A question about the respondent, the file that lists its options, and the number of people asked, if known."""

    attribute: str
    text: str
    options: Sequence[str]
    file: str
    asked: int | None


def check_coverage(
    columns: Sequence[SegmentColumn], unread: Sequence[str], questions: Sequence[ProfileQuestion], counts: Counts, where: str
) -> Iterator[Finding]:
    """Yield an error if a question lists values without a column, and a warning if respondents are missing but no question lists their
    value.

    Respondents are in exactly one column of each attribute. A listed value without a column is not an error by itself: if the other columns
    have all respondents, nobody chose it. `unread` columns are in other findings. `where` names the files in the message.
    """
    keys = {column.segment.key for column in columns}
    lines, files, nameless = list[str](), list[str](), list[str]()
    for attribute in dict.fromkeys(column.segment.attribute for column in columns):
        attribute_columns = [column for column in columns if column.segment.attribute == attribute]
        matches = [question for question in questions if question.attribute == attribute]
        n_respondents = max((q.asked for q in matches if q.asked is not None), default=counts.largest_n("All"))
        n_missing = _count_in_no_column(attribute_columns, unread, counts, n_respondents or 0)
        if not n_respondents or n_missing < max(MIN_N, _LEAST_SHARE * n_respondents):
            continue
        share = f"{n_missing:,} of {format_count(n_respondents, 'respondent')}, {n_missing / n_respondents:.0%}"
        listing = next((q for q in matches if _list_missing_options(q, keys)), None)
        if listing is None:
            nameless.append(f"{attribute} ({share})")
        else:
            lines.append(f"{listing.text}: {list_first_names(_list_missing_options(listing, keys), _MAX_VALUES)} ({share})")
            files.append(listing.file)
    if lines:
        names = list(dict.fromkeys(files))
        naming = f"{join_words(names)} {'list' if len(names) > 1 else 'lists'} these segments"
        message = f"{naming} among the answers to a question about the respondent, but {where} have no column for them"
        yield Finding("error", "lost-column", message, tuple(lines))
    if nameless:
        message = f"Some respondents are in no column of these attributes, so {where} may lack a column; compare with the questionnaire"
        yield Finding("warning", "respondents-without-column", message, tuple(nameless))


def _count_in_no_column(columns: Sequence[SegmentColumn], unread: Sequence[str], counts: Counts, n_respondents: int) -> int:
    """Return the number of people asked who are in no column of the attribute and in no unread column that may belong to it; 0 if n is
    unknown.
    """
    sizes = [column.segment.n for column in columns]
    if None in sizes:
        return 0
    groups = {column.group for column in columns}
    named_elsewhere = (counts.largest_n(name) or 0 for name in unread if _group(name) in {None, *groups})
    return n_respondents - sum(n for n in sizes if n is not None) - sum(named_elsewhere)


def _group(column: str) -> int | None:
    match = SEGMENT_COLUMN.fullmatch(column)
    return int(match[1]) if match else None


def _list_missing_options(question: ProfileQuestion, keys: set[str]) -> list[str]:
    return [option for option in question.options if make_segment_key(question.attribute, option) not in keys]
