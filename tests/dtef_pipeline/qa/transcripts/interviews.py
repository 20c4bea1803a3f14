"""The shared interviews and the vectors about them, for the tests that need real ones."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.qa.transcripts.chunks import build_documents_table, split_into_chunks
from dtef_pipeline.qa.transcripts.corpus import Corpus, load_corpus
from tests.conftest import SHARED

INTERVIEWS = SHARED / "transcripts"
needs_interviews = pytest.mark.skipif(not INTERVIEWS.is_dir(), reason=f"no real interviews at {INTERVIEWS}")
METADATA = {
    "PROJECT": "DK-001",
    "YEAR": 2024,
    "MONTH": "April",
    "NAME": "Ida Møller",
    "COUNTRY": "Denmark",
    "GEOGRAPHY": "Aarhus",
    "FILE": "one.csv",
    "TYPE": "interview",
    "RECORD LANG": "en",
}


@functools.cache
def shared_corpus() -> Corpus:
    return load_corpus(INTERVIEWS)


@functools.cache
def shared_documents() -> Any:
    return build_documents_table(split_into_chunks(shared_corpus().transcripts))


@functools.cache
def shared_questions() -> list[dict[str, Any]]:
    questions: list[dict[str, Any]] = json.loads((INTERVIEWS / "questions.json").read_text(encoding="utf-8"))["qa_pairs"]
    return questions


def write_corpus(folder: Path, interviews: dict[str, str], metadata: str) -> Path:
    (folder / "interviews").mkdir(parents=True)
    (folder / "metadata.csv").write_text(metadata, encoding="utf-8", newline="")
    for name, text in interviews.items():
        (folder / "interviews" / name).write_text(text, encoding="utf-8", newline="")
    return folder
