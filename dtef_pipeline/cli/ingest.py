"""`dtef ingest`: stores survey rounds, and prints what was stored of each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from dtef_pipeline.cli.opened_warehouse import open_warehouse, say_skipped
from dtef_pipeline.cli.started_runs import check_home_path, dagster_instance
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.whole import ALLOWANCES, MISSING_ATTRIBUTES, MISSING_QUESTIONS, NEXT_STEPS
from dtef_pipeline.text.beginning import beginning
from dtef_pipeline.text.counted import and_more, counted
from resources.gateway.progress import kept_terminal, waiting
from resources.settings import Settings
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from dtef_pipeline.survey.model import Survey
    from resources.sources import Sources


_SHOWN = 10
_MOST_ITEMS = 20
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


def summary(warehouse: Warehouse, round_id: str, seconds: float) -> Iterator[str]:
    """Counts, what is in quarantine and why, what was taken for a scale, and what there is to know about the round."""
    rows = warehouse.read_or_empty("survey_responses", columns=_READ_BACK, round=round_id)
    quarantine = warehouse.read_or_empty("survey_quarantine", round=round_id).to_pylist()
    pairs, segments = ([row for row in quarantine if (row["question_id"] is None) == whole] for whole in (False, True))
    questions = {row["question_id"]: row for row in rows.drop_columns("segment").to_pylist()}
    yield (
        f"{round_id}: {counted(len(pc.unique(rows['segment'])), 'segment')}, {counted(len(questions), 'question')}, "
        f"{counted(len(rows), 'pair')}, {counted(len(pairs), 'pair')} and {counted(len(segments), 'whole segment')} in quarantine "
        f"({seconds:.1f} s)"
    )
    if quarantine:
        yield f"  quarantine: {_reasons(pairs, 'pair')}{'; ' * bool(pairs and segments)}{_reasons(segments, 'whole segment')}"
        yield from (f"    such as {_place(row)}: {row['reason']}: {row['detail']}" for row in _examples(pairs))
        yield f"    all: dtef sql \"SELECT * FROM survey_quarantine WHERE round = '{round_id}'\""
    asked = sorted(questions.values(), key=lambda row: row["question_order"])
    yield from _scales(round_id, asked)
    yield from _batteries(round_id, [row["battery"] for row in asked])
    for finding in _findings(warehouse, round_id):
        items = finding["items"]
        if finding["code"] == "profile-question":
            yield f"  profile questions, left out: {_named(list(dict.fromkeys(items)))}"
        elif finding["code"] == "duplicate-question":
            yield f"  asked before in the round, with the same text and options: {counted(len(items), 'question')}: {_named(items)}"
        elif finding["level"] == "warning":
            yield f"  warning: {str(finding['message']).rstrip('.')}{': ' * bool(items)}{_named(items)}"


def design_effect(before: float, now: float, stated: float | None) -> Iterator[str]:
    """What the design effect of a round is where it is not 1, and whether it was `stated` now or `before`; empty where it is and was 1."""
    if now != 1:
        counts = f"each respondent counts as 1/{now:g} of one drawn at random, in ceilings and skill"
        kept = (
            ""
            if stated is not None
            else "; stated when the round was ingested before, and kept: --design-effect 1 takes it back"
        )
        changed = f"; it was {before:g}" if stated is not None and before not in (1, now) else ""
        yield f"  design effect {now:g}: {counts}{kept}{changed}"
    elif before != 1:
        yield f"  design effect 1; it was {before:g}"


def faults(warehouse: Warehouse, round_id: str) -> list[str]:
    """Lines on what of the file was not read; empty when all was."""
    errors = [_fault(finding) for finding in _findings(warehouse, round_id) if finding["level"] == "error"]
    return [*errors, f"all else of {round_id} is stored"] if errors else []


def _findings(warehouse: Warehouse, round_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = warehouse.read_or_empty("survey_findings", round=round_id).to_pylist()
    return found


def _fault(finding: dict[str, Any]) -> str:
    items, message = finding["items"], str(finding["message"]).rstrip(".")
    named = f": {and_more(items, _MOST_ITEMS)}" if items else ""
    next_step = f"; {NEXT_STEPS[finding['code']]}" if finding["code"] in NEXT_STEPS else ""
    return f"error: {message}{named}{next_step}"


def _reasons(rows: Sequence[dict[str, Any]], noun: str) -> str:
    """`16 pairs decimal-comma, 1 pair nan`: the most frequent reason first."""
    found = Counter(row["reason"] for row in rows).most_common()
    return ", ".join(f"{counted(number, noun)} {reason}" for reason, number in found)


def _examples(pairs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first pair of each reason that is about numbers in the file; that too few answered says all there is to say."""
    first: dict[str, dict[str, Any]] = {}
    for row in pairs:
        if row["reason"] not in ("n-below-minimum", "n-unknown", "no-data"):
            first.setdefault(row["reason"], row)
    return list(first.values())


def _place(row: dict[str, Any]) -> str:
    where = row["file"] if row["line"] is None else f"{row['file']}:{row['line']}"
    return f"{where} ({row['segment']})"


def _scales(round_id: str, questions: Sequence[dict[str, Any]]) -> Iterator[str]:
    """How many questions are on a scale, and which of several options are not."""
    kinds = Counter(row["scale"] for row in questions)
    aside = sum(any(row["dont_know"]) for row in questions)
    yield f"  scales: {kinds['ordinal']} ordinal, {kinds['nominal']} nominal; {aside} with a don't-know option"
    unordered = [row for row in questions if row["scale"] == "nominal" and len(row["options"]) > 2]
    for row in unordered[:_SHOWN]:
        yield f"    nominal: {beginning(row['question_text'])} ({beginning(' / '.join(row['options']))}): {row['scale_reason']}"
    if len(unordered) > _SHOWN:
        yield f"    and {len(unordered) - _SHOWN} more that are nominal with 3 or more options"
    columns = "DISTINCT question_order, question_text, options, scale, scale_reason, dont_know"
    yield f"    all: dtef sql \"SELECT {columns} FROM survey_responses WHERE round = '{round_id}' ORDER BY 1\""


def _batteries(round_id: str, names: Sequence[str]) -> Iterator[str]:
    """How many batteries the questions were asked in."""
    sizes = Counter(names)
    several = [size for size in sizes.values() if size > 1]
    largest = f" (the largest of {max(several)})" if several else ""
    yield f"  batteries: {len(sizes)}, {len(several)} of them of several questions{largest}"
    columns = "DISTINCT battery, question_order, question_text"
    yield f"    all: dtef sql \"SELECT {columns} FROM survey_responses WHERE round = '{round_id}' ORDER BY ALL\""


def _named(texts: Sequence[str]) -> str:
    """The first texts, shortened; those that are then the same once, with their number."""
    found = Counter(map(beginning, texts))
    shown = dict(list(found.items())[:_SHOWN])
    more = f" and {len(texts) - sum(shown.values())} more" if len(found) > _SHOWN else ""
    return "; ".join(text if number == 1 else f"{text} ({number} of them)" for text, number in shown.items()) + more


@dataclass(frozen=True)
class IngestOptions:
    """Options of `dtef ingest`."""

    round_id: str | None = None
    min_n: int | None = None
    design_effect: float | None = None
    allow_missing_questions: bool = False
    allow_missing_attributes: bool = False
    replace: bool = False

    @property
    def of_a_round(self) -> dict[str, Any]:
        """What registering a round takes."""
        from dtef_pipeline.survey.observe import MIN_N

        given = {MISSING_QUESTIONS: self.allow_missing_questions, MISSING_ATTRIBUTES: self.allow_missing_attributes}
        allowed = tuple(code for code in ALLOWANCES if given[code])
        return {"min_n": self.min_n or MIN_N, "allowed": allowed, "replace": self.replace, "design_effect": self.design_effect}


def ingest(paths: Sequence[Path], options: IngestOptions) -> int:
    """The exit code: 1 when something of a round was not read, or not stored. A fault of any round leaves all as they were."""
    if options.round_id and len(paths) > 1:
        raise ConfigError(f"--round {options.round_id}: allowed with one PATH; got {len(paths)}")
    check_home_path(Settings.from_environment())
    with kept_terminal():
        with waiting("checking what is there"):
            import assets.launch  # noqa: F401 - takes seconds, in which something is to be seen
            from assets.survey.rounds import checked_round
            from dtef_pipeline.survey.adapters import read_survey, read_surveys
            from resources.sources import Sources

            surveys = [(path, survey) for path in paths for survey in read_surveys(path, options.round_id)]
            _require_one_place([survey.round for _, survey in surveys])
            warehouse = open_warehouse(new=True)
            sources = Sources(warehouse, read_survey)
            if len(surveys) > 1:
                for _, survey in surveys:
                    checked_round(sources, survey, **options.of_a_round)
        clean = True
        with dagster_instance() as instance:
            for path, survey in surveys:
                clean &= _ingested(instance, sources, survey, path, options)
        with waiting("naming the tables for `dtef sql`"):
            warehouse.refresh_database()
    return 0 if clean else 1


def _require_one_place(rounds: Sequence[str]) -> None:
    if twice := sorted({round_id for round_id in rounds if rounds.count(round_id) > 1}):
        raise ConfigError(f"round {', '.join(twice)} is in more than one PATH: give the one to take it from")


def _ingested(instance: Any, sources: Sources[Survey], survey: Survey, path: Path, options: IngestOptions) -> bool:
    """Store one round and say what came of it; whether nothing was left unread."""
    from assets.launch import materialize
    from assets.survey.rounds import register_round

    started = time.monotonic()
    with waiting(f"{survey.round}: noting what is new"):
        before = sources.before(survey.round)
        registered = register_round(instance, sources, survey, path, **options.of_a_round)
    outcome = materialize(instance, ["survey_responses"], registered.keys, {})
    say_skipped(outcome, sources.warehouse)
    for line in summary(sources.warehouse, survey.round, time.monotonic() - started):
        say(line)
    if registered.retired:
        retired = f"retired {counted(len(registered.retired), 'segment')} that the round no longer has"
        say(f"  warning: {retired}: {', '.join(registered.retired)}")
    if registered.changes is not None:
        say(f"  since it was ingested last: {registered.changes}")
    for line in design_effect(before.design_effect if before else 1, registered.source.design_effect, options.design_effect):
        say(line)
    unread = faults(sources.warehouse, survey.round)
    for line in [*unread, *(f"error: {failure}" for failure in outcome.failures)]:
        say(line, err=True)
    return not (unread or outcome.failures)
