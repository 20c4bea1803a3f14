"""Do the columns of an attribute have all respondents who were asked for it: where many are in none, a column is gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dtef_pipeline.survey.adapters.counts import SEGMENT_COLUMN, Counts, SegmentColumn
from dtef_pipeline.survey.attributes import segment_key
from dtef_pipeline.survey.model import Finding
from dtef_pipeline.survey.observe import MIN_N
from dtef_pipeline.text.counted import and_more, counted

_LEAST_SHARE = 0.01
"""Of those asked: fewer in no column than this are people who gave no answer."""
_MOST_VALUES = 5


@dataclass(frozen=True)
class ProfileQuestion:
    """A question on who the respondent is, the file that lists its options, and how many were asked, where that is known."""

    attribute: str
    text: str
    options: Sequence[str]
    file: str
    asked: int | None


def coverage_findings(
    columns: Sequence[SegmentColumn],
    unread: Sequence[str],
    questions: Sequence[ProfileQuestion],
    counts: Counts,
    where: str,
) -> Iterator[Finding]:
    """An error where a question lists values that have no column, a warning where nothing says what the column was.

    Respondents are in exactly one column of each attribute. That a listed value has no column is no fault by itself: where the
    others have all respondents, nobody chose it. `unread`: columns that other findings name. `where`: the files, for the message.
    """
    keys = {column.segment.key for column in columns}
    listed, files, nameless = list[str](), list[str](), list[str]()
    for attribute, of_attribute in _by_attribute(columns).items():
        about = [question for question in questions if question.attribute == attribute]
        asked = max((q.asked for q in about if q.asked is not None), default=counts.most("All"))
        gone = _in_no_column(of_attribute, unread, counts, asked or 0)
        if not asked or gone < max(MIN_N, _LEAST_SHARE * asked):
            continue
        share = f"{gone:,} of {counted(asked, 'respondent')}, {gone / asked:.0%}"
        known = next((q for q in about if _without_column(q, keys)), None)
        if known is None:
            nameless.append(f"{attribute} ({share})")
        else:
            listed.append(f"{known.text}: {and_more(_without_column(known, keys), _MOST_VALUES)} ({share})")
            files.append(known.file)
    if listed:
        *most, last = dict.fromkeys(files)
        naming = f"{' and '.join([*most, last])} {'list' if most else 'lists'}"
        message = (
            f"{naming} these segments among the answers to a question on the respondent, and {where} have no column of them"
        )
        yield Finding("error", "lost-column", message, tuple(listed))
    if nameless:
        message = (
            f"Respondents are in no column of these attributes, so {where} may have lost one: compare with the questionnaire"
        )
        yield Finding("warning", "respondents-without-column", message, tuple(nameless))


def _by_attribute(columns: Sequence[SegmentColumn]) -> dict[str, list[SegmentColumn]]:
    found: dict[str, list[SegmentColumn]] = defaultdict(list)
    for column in columns:
        found[column.segment.attribute].append(column)
    return found


def _in_no_column(columns: Sequence[SegmentColumn], unread: Sequence[str], counts: Counts, asked: int) -> int:
    """Of those asked, who is neither in a column of the attribute nor in an unread one that may be of it; 0 where n is unknown."""
    sizes = [column.segment.n for column in columns]
    if None in sizes:
        return 0
    groups = {column.group for column in columns}
    named_elsewhere = (counts.most(name) or 0 for name in unread if _group(name) in {None, *groups})
    return asked - sum(n for n in sizes if n is not None) - sum(named_elsewhere)


def _group(column: str) -> int | None:
    match = SEGMENT_COLUMN.fullmatch(column)
    return int(match[1]) if match else None


def _without_column(question: ProfileQuestion, keys: set[str]) -> list[str]:
    return [option for option in question.options if segment_key(question.attribute, option) not in keys]
