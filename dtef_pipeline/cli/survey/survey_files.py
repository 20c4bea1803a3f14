"""The files of survey rounds: for `dtef add`, `check`, `list` and `remove`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.cli.family_verbs import Addition, AddReport, CheckReport, FamilyFiles
from dtef_pipeline.cli.warehouse_access import open_warehouse
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.completeness import ALLOWANCES, MISSING_ATTRIBUTES, MISSING_QUESTIONS, NEXT_STEPS
from dtef_pipeline.text.number_words import format_count, list_first_names
from dtef_pipeline.text.shortening import shorten_to_line
from resources.gateway.progress import waiting
from resources.sources import ROUND_NOTES
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.survey.rounds import RegistrationResult
    from dtef_pipeline.survey.model import Survey
    from resources.sources import Sources


_SHOWN = 10
_MAX_ITEMS = 20
_READ_BACK = [
    "segment",
    "question_id",
    "question_order",
    "question_text",
    "options",
    "scale",
    "scale_reason",
    "dont_know",
    "battery",
]


class RoundTables(NamedTuple):
    """The tables of a round, stored or to be stored."""

    round: str
    responses: pa.Table
    quarantine: pa.Table
    findings: list[dict[str, Any]]


def read_stored_round(warehouse: Warehouse, round_id: str) -> RoundTables:
    return RoundTables(
        round_id,
        warehouse.read_or_empty("survey_responses", columns=_READ_BACK, round=round_id),
        warehouse.read_or_empty("survey_quarantine", round=round_id),
        warehouse.read_or_empty("survey_findings", round=round_id).to_pylist(),
    )


def summary(result: RoundTables) -> Iterator[str]:
    """Yield counts, quarantine with reasons, detected scales and batteries, and findings of the round."""
    rows, round_id = result.responses, result.round
    quarantine = result.quarantine.to_pylist()
    pairs, segments = ([row for row in quarantine if (row["question_id"] is None) == is_whole] for is_whole in (False, True))
    questions = {row["question_id"]: row for row in rows.select(_READ_BACK[1:]).to_pylist()}
    counts = [format_count(len(part), noun) for part, noun in ((pairs, "pair"), (segments, "whole segment")) if part]
    yield (
        f"{round_id}: {format_count(len(pc.unique(rows['segment'])), 'segment')}, {format_count(len(questions), 'question')}, "
        f"{format_count(len(rows), 'pair')}; {' and '.join(counts) or 'nothing'} in quarantine"
    )
    if quarantine:
        yield f"  quarantine: {_format_reasons(pairs, 'pair')}{'; ' * bool(pairs and segments)}{_format_reasons(segments, 'whole segment')}"
        yield from (f"    such as {_format_place(row)}: {row['reason']}: {row['detail']}" for row in _choose_examples(pairs))
        yield f"    all: dtef sql \"SELECT * FROM survey_quarantine WHERE round = '{round_id}'\""
    question_rows = sorted(questions.values(), key=lambda row: row["question_order"])
    yield from _describe_scales(round_id, question_rows)
    yield from _describe_batteries(round_id, [row["battery"] for row in question_rows])
    for finding in result.findings:
        items = finding["items"]
        if finding["code"] == "profile-question":
            yield f"  questions about the respondent, left out: {_format_names(list(dict.fromkeys(items)))}"
        elif finding["code"] == "duplicate-question":
            yield f"  repeated in the round, with the same text and options: {format_count(len(items), 'question')}: {_format_names(items)}"
        elif finding["level"] == "warning":
            yield f"  warning: {str(finding['message']).rstrip('.')}{': ' * bool(items)}{_format_names(items)}"


def design_effect(before: float, now: float, value: float | None) -> Iterator[str]:
    """Yield the round's design effect, unless it is and was 1. `before`: of the last ingest; `value`: as given, or None if kept."""
    if now != 1:
        counts = f"each respondent counts as 1/{now:g} of a respondent of a simple random sample"
        note = "" if value is not None else "; kept from an earlier ingest of the round; --design-effect 1 resets it"
        change = f"; it was {before:g}" if value is not None and before not in (1, now) else ""
        yield f"  design effect {now:g}: {counts}{note}{change}"
    elif before != 1:
        yield f"  design effect 1; it was {before:g}"


def faults(result: RoundTables) -> list[str]:
    """Return lines on parts of the file that were not read; empty if everything was."""
    errors = [_format_finding(finding) for finding in result.findings if finding["level"] == "error"]
    return [*errors, f"all else of {result.round} is stored"] if errors else []


def _format_finding(finding: dict[str, Any]) -> str:
    items, message = finding["items"], str(finding["message"]).rstrip(".")
    named = f": {list_first_names(items, _MAX_ITEMS)}" if items else ""
    next_step = f"; {NEXT_STEPS[finding['code']]}" if finding["code"] in NEXT_STEPS else ""
    return f"error: {message}{named}{next_step}"


def _format_reasons(rows: Sequence[dict[str, Any]], noun: str) -> str:
    """`16 pairs (decimal-comma), 1 pair (nan)`: the most frequent reason first."""
    counts = Counter(row["reason"] for row in rows).most_common()
    return ", ".join(f"{format_count(number, noun)} ({reason})" for reason, number in counts)


def _choose_examples(pairs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first pair of each reason about numbers in the file. Reasons about too few respondents need no example."""
    first: dict[str, dict[str, Any]] = {}
    for row in pairs:
        if row["reason"] not in ("n-below-minimum", "n-unknown", "no-data"):
            first.setdefault(row["reason"], row)
    return list(first.values())


def _format_place(row: dict[str, Any]) -> str:
    where = row["file"] if row["line"] is None else f"{row['file']}:{row['line']}"
    return f"{where} ({row['segment']})"


def _describe_scales(round_id: str, questions: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield how many questions have a scale, and which with several options have none."""
    kinds = Counter(row["scale"] for row in questions)
    aside = sum(any(row["dont_know"]) for row in questions)
    yield f"  scales: {kinds['ordinal']} ordinal, {kinds['nominal']} nominal; {aside} with a don't-know option"
    nominal_rows = [row for row in questions if row["scale"] == "nominal" and len(row["options"]) > 2]
    for row in nominal_rows[:_SHOWN]:
        yield f"    nominal: {shorten_to_line(row['question_text'])} ({shorten_to_line(' / '.join(row['options']))}): {row['scale_reason']}"
    if len(nominal_rows) > _SHOWN:
        yield f"    and {len(nominal_rows) - _SHOWN} more that are nominal with 3 or more options"
    columns = "DISTINCT question_order, question_text, options, scale, scale_reason, dont_know"
    yield f"    all: dtef sql \"SELECT {columns} FROM survey_responses WHERE round = '{round_id}' ORDER BY 1\""


def _describe_batteries(round_id: str, names: Sequence[str]) -> Iterator[str]:
    sizes = Counter(names)
    several = [size for size in sizes.values() if size > 1]
    largest = f"{len(several)} with 2 or more questions (at most {max(several)})" if several else "each with 1 question"
    yield f"  batteries: {len(sizes)}, {largest}"
    columns = "DISTINCT battery, question_order, question_text"
    yield f"    all: dtef sql \"SELECT {columns} FROM survey_responses WHERE round = '{round_id}' ORDER BY ALL\""


def _format_names(texts: Sequence[str]) -> str:
    """Return the first texts, shortened; equal ones once, with their number."""
    counts = Counter(map(shorten_to_line, texts))
    examples = dict(list(counts.items())[:_SHOWN])
    suffix = f" and {len(texts) - sum(examples.values())} more" if len(counts) > _SHOWN else ""
    return "; ".join(text if number == 1 else f"{text} ({number} of them)" for text, number in examples.items()) + suffix


def _build_addition(warehouse: Warehouse, survey: Survey, path: Path, options: Mapping[str, Any]) -> Addition:
    """Return the addition of a round from a file. `options`: of `register_round`."""
    sources = _open_sources(warehouse)
    previous = sources.find_previous(survey.round)

    def register(instance: Any) -> RegistrationResult:
        from assets.survey.rounds import register_round

        with waiting(f"{survey.round}: registering the round"):
            return register_round(instance, sources, survey, path, **options)

    def report(result: RegistrationResult) -> AddReport:
        tables = read_stored_round(warehouse, survey.round)
        lines = list(summary(tables))
        if result.retired:
            text = f"removed {format_count(len(result.retired), 'segment')} that the round no longer has"
            lines.append(f"  warning: {text}: {', '.join(result.retired)}")
        if result.changes is not None:
            lines.append(f"  changes since the last ingest: {result.changes}")
        before = previous.design_effect if previous else 1
        lines += design_effect(before, result.source.design_effect, options["design_effect"])
        problems = faults(tables)
        return AddReport(lines, problems, not problems)

    return Addition(register, report)


def _build_options(
    min_n: int | None, design_effect: float | None, allow_missing_questions: bool, allow_missing_attributes: bool, replace: bool
) -> dict[str, Any]:
    from dtef_pipeline.survey.observations import MIN_N

    flags = {MISSING_QUESTIONS: allow_missing_questions, MISSING_ATTRIBUTES: allow_missing_attributes}
    codes = tuple(code for code in ALLOWANCES if flags[code])
    return {"min_n": min_n or MIN_N, "allowed": codes, "replace": replace, "design_effect": design_effect}


def _open_sources(warehouse: Warehouse) -> Sources[Survey]:
    from dtef_pipeline.survey.adapters import read_survey
    from resources.sources import Sources

    return Sources(warehouse, read_survey)


def _read_surveys(paths: Sequence[Path], round_id: str | None) -> list[tuple[Path, Survey]]:
    """Return the rounds at the paths. Raises ConfigError if a round is in several paths."""
    from dtef_pipeline.survey.adapters import read_surveys

    if round_id and len(paths) > 1:
        raise ConfigError(f"--round {round_id} works with one PATH only; got {len(paths)}")
    surveys = [(path, survey) for path in paths for survey in read_surveys(path, round_id)]
    rounds = [survey.round for _, survey in surveys]
    if repeats := sorted({name for name in rounds if rounds.count(name) > 1}):
        raise ConfigError(f"round {', '.join(repeats)} is in more than one PATH; leave all but one out")
    return surveys


def _read(warehouse: Warehouse, paths: Sequence[Path], round_id: str | None, **flags: Any) -> list[Addition]:
    """Read the rounds. If one of several is faulty, none is stored."""
    from assets.survey.rounds import check_round

    surveys, options = _read_surveys(paths, round_id), _build_options(**flags)
    if len(surveys) > 1:
        for _, survey in surveys:
            check_round(_open_sources(warehouse), survey, **options)
    return [_build_addition(warehouse, survey, path, options) for path, survey in surveys]


def _check(paths: Sequence[Path], round_id: str | None, **flags: Any) -> CheckReport:
    from assets.survey.rounds import check_round

    sources, options, results = _open_sources(open_warehouse(new=True)), _build_options(**flags), []
    for _, survey in _read_surveys(paths, round_id):
        observed = check_round(sources, survey, **options)
        results.append(RoundTables(survey.round, observed.responses, observed.quarantine, observed.findings.to_pylist()))
    # The other lines query tables that are not stored yet.
    lines = [line for result in results for line in summary(result) if "dtef sql" not in line]
    document = [
        {
            **_count_rows(result.round, result.responses, result.quarantine),
            "findings": result.findings,
            "quarantined": result.quarantine.to_pylist(),
        }
        for result in results
    ]
    errors = [line for result in results for line in faults(result)[:-1]]
    return CheckReport(document, lines, not errors, errors)


def _count_rows(round_id: str, responses: pa.Table, quarantine: pa.Table) -> dict[str, Any]:
    """Count the rows. `question_id` in `quarantine` is null in rows about a whole segment."""
    n_segments = quarantine["question_id"].null_count
    return {
        "round": round_id,
        "segments": len(pc.unique(responses["segment"])),
        "questions": len(pc.unique(responses["question_id"])),
        "pairs": len(responses),
        "quarantined_pairs": len(quarantine) - n_segments,
        "quarantined_segments": n_segments,
    }


def _list_rounds(warehouse: Warehouse) -> dict[str, list[dict[str, Any]]]:
    return {"rounds": [_build_row(warehouse, round_id) for round_id in warehouse.values("survey_responses", "round")]}


def _build_row(warehouse: Warehouse, round_id: str) -> dict[str, Any]:
    responses = warehouse.read_or_empty("survey_responses", columns=["segment", "question_id"], round=round_id)
    quarantine = warehouse.read_or_empty("survey_quarantine", columns=["question_id"], round=round_id)
    source = _open_sources(warehouse).find_previous(round_id)
    snapshots = {
        snapshot
        for segment in warehouse.values("scores", "segment", round=round_id)
        for snapshot in warehouse.values("scores", "snapshot", round=round_id, segment=segment)
    }
    file = source.path if source else ""
    return {**_count_rows(round_id, responses, quarantine), "snapshots": sorted(snapshots), "file": file}


SURVEY_FILES = FamilyFiles(
    noun="round",
    adds="dtef add PATH",
    read=_read,
    check=_check,
    list_tables=_list_rounds,
    notes=ROUND_NOTES,
    counted_rows={"predictions": "response"},
    by_first=True,
    stage="survey_responses",
)
