"""Survey adapters: one for each file layout, found through the entry-point group `dtef.adapters`."""

from __future__ import annotations

import shlex
import warnings
from codecs import getincrementaldecoder
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.completeness import convert_to_percent
from dtef_pipeline.survey.model import Survey
from dtef_pipeline.survey.validation import check_survey, list_names, make_round_id

ENTRY_POINT_GROUP = "dtef.adapters"
_BUILT_IN = ("global-dialogues", "dtef-json", "long-table")


class Adapter(Protocol):
    """The interface of an adapter. An optional text `accepts` describes the paths that it reads."""

    name: str

    def recognises(self, path: Path) -> bool:
        """Return whether the path has this layout. Must not raise, and should read only the beginning."""

    def read(self, path: Path) -> Survey | list[Survey]:
        """Return the survey at the path, or the list of its rounds if a file of the layout may hold several. Raises SurveyError."""


def adapters() -> list[Adapter]:
    """Return all installed adapters. Adapters of other packages come first, so that they take precedence."""
    instances: list[Adapter] = []
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: p.name):
        try:
            instances.append(point.load()())
        except Exception as error:
            package = point.dist.name if point.dist else "an unknown package"
            warnings.warn(f"survey adapter {point.name} of {package} cannot be loaded: {error}", stacklevel=2)
    return sorted(instances, key=lambda a: _BUILT_IN.index(a.name) if a.name in _BUILT_IN else -1)


def _find_adapter(path: Path) -> Adapter:
    """Return the first adapter that recognises the path. Raises SurveyError if none does."""
    if not path.exists():
        raise SurveyError("the file or directory does not exist", where=str(path))
    candidates = adapters()
    adapter = next((a for a in candidates if a.recognises(path)), None)
    if adapter is None:
        if path.is_dir() and any(a.recognises(entry) for entry in path.iterdir() for a in candidates):
            hint = f"the paths of its surveys, as in `dtef check {shlex.quote(str(path))}/*`"
            raise SurveyError("a folder of surveys, not a survey", where=str(path), allowed=hint)
        choices = "; ".join(f"{getattr(a, 'accepts', 'see its documentation')} ({a.name})" for a in candidates)
        raise SurveyError("not a survey", where=str(path), arrived=_describe_contents(path), allowed=choices)
    return adapter


def read_surveys(path: Path | str, round_id: str | None = None) -> list[Survey]:
    """Return all rounds at a path, or only `round_id`. In a layout with a single round, `round_id` becomes its name."""
    place = Path(path)
    surveys = _read(_find_adapter(place), place)
    if round_id is not None:
        name = make_round_id(round_id, where=str(place))
        surveys = _choose_round(surveys, name, place) if isinstance(surveys, list) else replace(surveys, round=name)
    rounds = surveys if isinstance(surveys, list) else [surveys]
    return [convert_to_percent(check_survey(survey)) for survey in rounds]


def _read(adapter: Adapter, path: Path) -> Survey | list[Survey]:
    try:
        return adapter.read(path)
    except SurveyError:
        raise
    except Exception as error:
        problem = f"the adapter {adapter.name} failed: {type(error).__name__}: {error}"
        raise SurveyError(problem, where=str(path)) from error


def read_survey(path: Path | str, round_id: str | None = None) -> Survey:
    """Return the only survey at a path. A file with several rounds needs `round_id`."""
    surveys = read_surveys(path, round_id)
    if len(surveys) != 1:
        rounds = [s.round for s in surveys]
        raise SurveyError(
            "several rounds in one file", where=str(path), arrived=rounds, allowed="one round; name the round to read"
        )
    return surveys[0]


def _choose_round(surveys: list[Survey], name: str, path: Path) -> list[Survey]:
    matches = [s for s in surveys if s.round == name]
    if not matches:
        raise SurveyError("no such round in the file", where=str(path), arrived=name, allowed=[s.round for s in surveys])
    return matches


def _describe_contents(path: Path) -> str:
    if path.is_dir():
        names = sorted(f.name for f in path.iterdir())
        return f"a directory with {list_names(names)}" if names else "an empty directory"
    with path.open("rb") as file:
        start = file.read(4096)
    if not start:
        return "an empty file"
    try:
        first_line = getincrementaldecoder("utf-8-sig")().decode(start).splitlines()[0]
    except UnicodeDecodeError:
        return "a file that is not UTF-8 text"
    return f"a text file beginning with {first_line[:120]!r}"
