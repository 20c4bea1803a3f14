"""Small surveys written by the tests, and the real ones where they are at hand."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.model import Survey
from tests.conftest import SHARED

POLL = "Poll Single Select"

Row = tuple[str, str, str, str]  # question id, type, text, response
Cells = Sequence[str]


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip(f"the real surveys are not at {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def published_surveys(shared: Path) -> dict[str, tuple[Survey, Survey]]:
    """Round -> (from JSON, from the folder) of the published rounds GD1-GD5."""
    return {
        name: (read_survey(shared / "surveys" / f"{name.lower()}.json"), read_survey(shared / "global-dialogues" / name))
        for name in ("GD1", "GD2", "GD3", "GD4", "GD5")
    }


@pytest.fixture
def write_csv() -> Callable[[Path, Sequence[Sequence[object]]], Path]:
    def write(path: Path, rows: Sequence[Sequence[object]]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
        return path

    return write


@pytest.fixture
def round_directory(tmp_path: Path, write_csv: Callable[[Path, Sequence[Sequence[object]]], Path]) -> Callable[..., Path]:
    """Writes a directory in the layout of Global Dialogues: columns of cells, and respondents by question and column."""

    def write(
        columns: dict[str, Cells],
        rows: Sequence[Row] = (("q1", POLL, "Is it good?", "Yes"), ("q1", POLL, "Is it good?", "No")),
        counts: dict[str, dict[str, object]] | None = None,
        name: str = "GD9",
    ) -> Path:
        names = list(columns)
        header = ["Question ID", "Question Type", "Question", "Response", "OriginalResponse", "Star", "All", *names]
        body = [[*row, "", "", "", *(columns[c][i] for c in names)] for i, row in enumerate(rows)]
        directory = tmp_path / name
        write_csv(directory / f"{name}_aggregate_standardized.csv", [header, *body])
        if counts is None:
            counts = {row[0]: dict.fromkeys(names, 50) for row in rows}
        table = [[q, "", *(by.get(c, "") for c in names)] for q, by in counts.items()]
        write_csv(directory / f"{name}_segment_counts_by_question.csv", [["Question ID", "Question Text", *names], *table])
        return directory

    return write
