"""The sensor `new_round`: watches the landing folder, and registers and runs each new or changed round once."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import dagster as dg

from assets.engine.family_assets import family_jobs, stage_keys
from assets.engine.site_report import report
from assets.stage.checks import asset_check
from assets.stage.dagster_internals import read_sensor_state
from assets.stage.file_notes import list_partitions
from assets.stage.partitions import build_range_tags, split_ranges
from assets.stage.resources import Store
from assets.survey.boards import (
    breakdowns,
    comparisons,
    leaderboard,
    reliability,
    responsiveness,
    segment_gaps,
    survey_costs,
    survey_drift,
)
from assets.survey.rounds import register_round, sources_of, survey_files
from assets.survey.stages import SURVEY_STAGES
from dtef_pipeline.errors import DtefError, SurveyError
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.identity import partition_key
from dtef_pipeline.survey.adapters import read_surveys
from dtef_pipeline.survey.changes import Changes
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.model import Survey
from dtef_pipeline.survey.observations import MIN_N
from dtef_pipeline.text.number_words import format_count
from resources.settings import Settings
from resources.sources import Sources, compute_fingerprint, content_hash, is_still_arriving

CHANGED_TAG, LANDING_TAG = "dtef/changed", "dtef/landing"

_FIRST_STAGE = dg.AssetKey("survey_responses")
_FEW_WORDS = 60
"""Most characters of a displayed value."""
_CHECK = "landings_are_readable"
REGISTER_SECONDS = 20.0
"""A tick starts no further round after this time, because Dagster ends a tick after 60 s and then loses its cursor."""


@dataclass(frozen=True, slots=True)
class Look:
    """The state of one file or folder in the landing folder, stored in the sensor's cursor."""

    stamp: str = ""
    """Its `fingerprint`."""
    hash: str = ""
    """Its `content_hash`, computed whenever the stamp has changed and once after that."""
    stable: bool = False
    """Whether stamp and bytes are the same at two ticks."""
    done: bool = False
    """Whether nothing is left to do until the bytes change."""
    rounds: tuple[str, ...] = ()
    """The rounds that it contains."""
    settled: Mapping[str, str] = field(default_factory=dict)
    """Its rounds with nothing left to do for these bytes: round to its error, or to an empty text if it was registered."""
    trouble: str = ""
    """Why all or a part of it cannot be used: one line per round. Reported when it is new."""


def check_path(path: Path, before: Look | None) -> Look:
    """Return the new state of a path. Raises OSError for a dangling link, or a file that vanishes in the meantime."""
    stamp = compute_fingerprint(path)
    if before and before.stable and before.stamp == stamp:
        return before
    checksum = content_hash(path)
    if is_still_arriving(path):
        return Look(stamp, checksum)
    if before and before.hash == checksum:
        # A stamp that changed with the same bytes (someone touched the file) keeps the state.
        return replace(before, stamp=stamp, stable=before.stable or before.stamp == stamp)
    return Look(stamp, checksum)


class Landing:
    """One tick: the state of the folder now and at the previous tick. `clock`: monotonic seconds."""

    def __init__(
        self,
        context: dg.SensorEvaluationContext,
        sources: Sources[Survey],
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.context, self.sources, self.folder, self.clock = context, sources, folder, clock
        self.before = _read_cursor(context.cursor)
        self.now: dict[str, Look] = {}
        self.deadline, self.begun = clock() + REGISTER_SECONDS, 0
        self.left: list[str] = []

    def requests(self) -> list[dg.RunRequest]:
        """Return the runs to start. A failure affects only its own file or folder; the rest waits for the next tick if time is up."""
        for path in sorted(self.folder.iterdir()):
            if not path.name.startswith("."):
                self._look(path)
        requests = [request for name in list(self.now) for request in self._land(name)]
        if self.left:
            self.context.log.info(f"left for the next tick, after {REGISTER_SECONDS:g} s: {', '.join(self.left)}")
        return requests

    @property
    def cursor(self) -> str:
        return json.dumps({name: asdict(look) for name, look in self.now.items()})

    @property
    def reason(self) -> str:
        """The reason why nothing runs, and unusable files: the first clause of each error; the log has the whole text."""
        waiting = [name for name, look in self.now.items() if not look.stable and not look.trouble]
        troubles = [f"{name}: {_extract_first_clauses(look.trouble)}" for name, look in self.now.items() if look.trouble]
        arriving = f"; waiting until it stops changing: {', '.join(waiting)}" if waiting else ""
        remainder = f"; left for the next tick: {', '.join(self.left)}" if self.left else ""
        unusable = f"; cannot be used: {'; '.join(troubles)}" if troubles else ""
        return f"no new, complete survey in {self.folder}{arriving}{remainder}{unusable}"

    @property
    def evaluations(self) -> list[dg.AssetCheckEvaluation]:
        """The result of the check `landings_are_readable`, if it differs from that after the previous tick."""
        if self.context.cursor is not None and _list_troubles(self.now) == _list_troubles(self.before):
            return []
        return [dg.AssetCheckEvaluation(survey_files.key, _CHECK, **_can_be_read(self.now))]

    def _look(self, path: Path) -> None:
        before = self.before.get(path.name)
        try:
            self.now[path.name] = self._drop_mended(check_path(path, before))
        except OSError as error:
            self._record_look(path.name, Look(trouble=f"{path}: {error.strerror}"))

    def _drop_mended(self, look: Look) -> Look:
        """Reset a failed round if someone has ingested the same bytes manually, with an option that accepts them."""
        rounds = [
            round_id for round_id, trouble in look.settled.items() if trouble and self._is_ingested_by_hand(round_id, look.hash)
        ]
        if not rounds:
            return look
        return replace(
            look, done=False, settled={name: problem for name, problem in look.settled.items() if name not in rounds}
        )

    def _is_ingested_by_hand(self, round_id: str, checksum: str) -> bool:
        source = self.sources.find_previous(round_id)
        return source is not None and not source.landed and source.content_hash == checksum

    def _land(self, name: str) -> list[dg.RunRequest]:
        look = self.now[name]
        if not look.stable or look.done:
            return []
        if self._is_time_up():
            self.left.append(name)
            return []
        try:
            surveys = read_surveys(self.folder / name)
        except Exception as error:
            self.begun += 1
            self._record_look(name, replace(look, done=isinstance(error, SurveyError), trouble=self._format_error(name, error)))
            return []
        return self._land_rounds(name, surveys)

    def _land_rounds(self, name: str, surveys: Sequence[Survey]) -> list[dg.RunRequest]:
        """Return the runs of one file or folder, without its rounds settled at an earlier tick."""
        look, notes = self.now[name], dict(self.now[name].settled)
        requests, troubles, is_done = list[dg.RunRequest](), list[str](), True
        for survey in surveys:
            if survey.round in notes:
                continue
            if rival := self._find_competing_file(survey.round, name):
                # Looked at again at each tick: it takes over when the other goes.
                is_done = False
                troubles.append(f"round {survey.round} is read from {rival}, not from here: remove one of the two")
                continue
            if self._is_time_up():
                self.left.append(f"{survey.round} from {name}")
                is_done = False
                continue
            self.begun += 1
            try:
                requests += self._register(survey, name, look.hash)
                notes[survey.round] = ""
            except SurveyError as error:
                notes[survey.round] = self._format_error(name, error)
            except Exception as error:
                # A fault of the survey stays until its bytes change; other errors (disk, warehouse) may be gone at the next tick.
                is_done = False
                troubles.append(self._format_error(name, error))
        rounds = tuple(survey.round for survey in surveys)
        trouble = "\n".join([*filter(None, notes.values()), *troubles])
        self._record_look(name, replace(look, done=is_done, rounds=rounds, settled=notes, trouble=trouble))
        return requests

    def _is_time_up(self) -> bool:
        """Return whether the tick's time is up; never before it has started something, so each tick makes progress on a slow disk."""
        return self.begun > 0 and self.clock() >= self.deadline

    def _format_error(self, name: str, error: Exception) -> str:
        return str(error) if isinstance(error, DtefError) else f"{self.folder / name}: {type(error).__name__}: {error}"

    def _register(self, survey: Survey, name: str, checksum: str) -> list[dg.RunRequest]:
        """Return the runs of a round. The run key is that of the landing, so a repeated request starts no second run."""
        if self._is_ingested_by_hand(survey.round, checksum):
            return []
        source = self.sources.get(survey.round)
        options = {"min_n": source.min_n, "allowed": source.allowed} if source else {"min_n": MIN_N}
        path = self.folder / name
        result = register_round(self.context.instance, self.sources, survey, path, checksum=checksum, **options)
        changes, summary = ("new", "new") if result.changes is None else (str(result.changes), result.changes.summary())
        self.context.log.info(f"{survey.round} from {name}, {format_count(len(result.keys), 'segment')}: {changes}")
        if result.retired:
            self.context.log.warning(
                f"{survey.round}: retired segments that are no longer in the survey: {', '.join(result.retired)}"
            )
        tags = {LANDING_TAG: f"{survey.round}:{result.source.landing}", CHANGED_TAG: summary or "nothing"}
        # Excluded parts of the files may have changed, which only the first stage records.
        only = [_FIRST_STAGE] if result.changes == Changes() and self._has_results(survey.round, result.keys) else None
        return [
            dg.RunRequest(
                run_key=f"{survey.round}:{result.source.landing}:{checksum}:{part[0]}",
                tags={**build_range_tags(part), **tags},
                asset_selection=only,
            )
            for part in split_ranges(list_partitions(self.context.instance, SPACE), result.keys)
        ]

    def _has_results(self, round_id: str, keys: Sequence[str]) -> bool:
        segments = self.sources.warehouse.values("segment_results", "segment", round=round_id)
        return {partition_key(round_id, segment) for segment in segments}.issuperset(keys)

    def _find_competing_file(self, round_id: str, name: str) -> str | None:
        """Return the name of another file or folder that the round is already read from, or None if there is none."""
        source = self.sources.find_previous(round_id)
        path = Path(source.path) if source else None
        if path is None or path.parent != self.folder.absolute() or path.name == name:
            return None
        look = self.now.get(path.name)
        # It still contains the round, as far as it was read.
        return path.name if look is not None and (not look.rounds or round_id in look.rounds) else None

    def _record_look(self, name: str, look: Look) -> None:
        """Store the state, and log its trouble as an error if it is new."""
        before = self.before.get(name)
        if look.trouble and (before is None or before.trouble != look.trouble):
            self.context.log.error(f"{name}: {look.trouble}")
        self.now[name] = look


def _read_cursor(cursor: str | None) -> dict[str, Look]:
    """Return the states in the cursor, without those of earlier versions of the sensor."""
    fields = Look.__dataclass_fields__.keys()
    looks = json.loads(cursor or "{}").items()
    known = {name: look for name, look in looks if isinstance(look, dict) and look.keys() == fields}
    return {name: Look(**{**look, "rounds": tuple(look["rounds"])}) for name, look in known.items()}


def _list_troubles(looks: Mapping[str, Look]) -> dict[str, str]:
    return {name: look.trouble for name, look in looks.items() if look.trouble}


def _can_be_read(looks: Mapping[str, Look]) -> dict[str, Any]:
    """Return the result of the check: unusable files in the folder, and why."""
    troubles = _list_troubles(looks)
    faults = f"{len(troubles)} of {len(looks)} cannot be read, or only in part: {', '.join(troubles)}" if troubles else ""
    return {
        "passed": not troubles,
        "severity": dg.AssetCheckSeverity.WARN,
        "description": faults or f"all {len(looks)} can be read",
        "metadata": {name: dg.MetadataValue.text(trouble) for name, trouble in troubles.items()},
    }


@asset_check(asset=survey_files.key, name=_CHECK)
def landings_are_readable(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """Warns of files in the folder DTEF_SURVEYS that cannot be read or only in part. The sensor `new_round` reports each change."""
    return dg.AssetCheckResult(**_can_be_read(_read_cursor(read_sensor_state(context.instance, new_round.name).cursor)))


def _extract_first_clauses(trouble: str) -> str:
    """Return the first clause of each line, with a short found value: `...; got 'an empty directory'`."""
    clauses = []
    for line in trouble.splitlines():
        wrong, _, tail = line.partition("; ")
        got = tail.partition("; ")[0]
        clauses.append(f"{wrong}, {got}" if got.startswith("got ") and len(got) <= _FEW_WORDS else wrong)
    return "; ".join(clauses)


@dg.sensor(
    job_name="survey_pipeline",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Watches the folder DTEF_SURVEYS: runs a new or changed round once its files are complete and unchanged for two ticks. "
    "The log of a tick and a check of survey_files list what cannot be read; it does not stop the others. Off by default.",
)
def new_round(context: dg.SensorEvaluationContext, store: Store) -> dg.SensorResult | dg.SkipReason:
    folder = Settings.read_environment().surveys
    if not folder.is_dir():
        return dg.SkipReason(f"the landing folder {folder} does not exist (DTEF_SURVEYS)")
    landing = Landing(context, sources_of(store), folder)
    requests = landing.requests()
    reason = None if requests else dg.SkipReason(landing.reason)
    return dg.SensorResult(run_requests=requests, cursor=landing.cursor, skip_reason=reason, asset_events=landing.evaluations)


BOARDS = [leaderboard, breakdowns, comparisons, responsiveness, segment_gaps, reliability]
SURVEY_ROLL_UPS = [*BOARDS, survey_costs, survey_drift, report]
survey_pipeline, survey_roll_ups, survey_boards_after_run = family_jobs(
    FAMILY_BY_NAME["survey"], SURVEY_STAGES, SURVEY_ROLL_UPS, scores_name="segment_results"
)
survey_nightly = dg.define_asset_job(
    "survey_nightly",
    selection=dg.AssetSelection.assets(*stage_keys(SURVEY_STAGES)[2:]),
    description="Repeats the same prompts in a new snapshot, scores the responses, and compares them with earlier snapshots.",
)
