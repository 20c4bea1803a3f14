"""Personas: files of several versions, and lines that go out and in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError, SourceError
from dtef_pipeline.games.document_lines import find_new_documents, read_document_lines, write_document_lines
from dtef_pipeline.games.personas import Persona, read_persona_versions, select_latest_personas

FIRST = Persona(
    id="calm", version=1, display_name="Calm", system_prompt="Be calm.", traits={"risk": "low", "n": 1, "fair": True}
)
SECOND = FIRST.model_copy(update={"version": 2, "status": "approved"})
OTHER = Persona(id="able", version=1, display_name="Äble", system_prompt="Be able.\nAlways.")


def write(folder: Path, *personas: Persona) -> Path:
    for number, one in enumerate(personas):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump(one.model_dump(), allow_unicode=True), encoding="utf-8")
    return folder


def test_the_latest_version_of_a_persona_is_the_one_that_its_id_means(tmp_path: Path) -> None:
    write(tmp_path, SECOND, FIRST, OTHER)
    versions = read_persona_versions(tmp_path)
    assert versions == {"calm:v2": SECOND, "calm:v1": FIRST, "able:v1": OTHER}
    assert select_latest_personas(versions.values()) == {"able": OTHER, "calm": SECOND}


def test_a_version_that_stands_twice_is_an_error_with_file_and_line(tmp_path: Path) -> None:
    write(tmp_path, FIRST, FIRST)
    with pytest.raises(ConfigError, match=r"1\.yaml:2: id: got calm, .*version 1 .*; allowed: another version"):
        read_persona_versions(tmp_path)


def test_lines_are_sorted_and_come_back_as_the_same_bytes() -> None:
    text = write_document_lines("persona", [SECOND, OTHER, FIRST])
    assert [json.loads(line)["id"] for line in text.splitlines()] == ["able", "calm", "calm"]
    assert text.startswith('{"display_name":"Äble","id":"able","kind":"persona","schema":1,')
    assert write_document_lines("persona", read_document_lines("persona", text.encode(), "x").values()) == text


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(lambda text: bool(text.strip()))


@given(
    texts,
    texts,
    st.dictionaries(texts, st.one_of(texts, st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False))),
)
def test_any_persona_is_the_same_after_lines(name: str, prompt: str, traits: dict[str, str | int | float | bool]) -> None:
    one = Persona(id="any", version=3, display_name=name, system_prompt=prompt, traits=traits)
    assert read_document_lines("persona", write_document_lines("persona", [one]).encode(), "x") == {1: one}


GOOD = write_document_lines("persona", [FIRST]).strip()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", r"no JSON object; got \[\]"),
        ('{"kind": "vote", "schema": 1}', "kind is not 'persona'; got 'vote'; allowed: an object with"),
        (GOOD.replace('"schema":1', '"schema":true'), "schema is not 1; got True"),
        (GOOD.replace('"schema":1', '"schema":2'), "schema is not 1; got 2"),
        (GOOD.replace('"version":1', '"version":"1"'), "version: got '1'; allowed: a whole number"),
        (GOOD.replace('"id":"calm"', '"id":"../calm"'), "id: got '../calm'"),
        (GOOD.replace('"kind"', '"mood":1,"kind"'), "mood: unknown key; known: id, version"),
        (GOOD.replace('"kind"', '"id":"calm","kind"'), "is given twice"),
        (GOOD.replace('"n":1', '"n":NaN'), "NaN"),
        (GOOD.replace("Be calm.", "\\ud800"), "not valid JSON"),
        (GOOD.replace("Be calm.", "Be loud."), "line 1 .*; got 'calm:v1'"),
    ],
)
def test_a_bad_line_is_named_with_what_arrived_and_what_is_allowed(line: str, told: str) -> None:
    with pytest.raises(SourceError, match=f"in.jsonl:3: .*{told}"):
        read_document_lines("persona", f"{GOOD}\n\n{line}\n".encode(), "in.jsonl")


def test_what_is_there_already_is_skipped_and_what_differs_is_refused() -> None:
    there = [FIRST]
    assert find_new_documents({1: FIRST, 4: SECOND}, there, "x") == {4: SECOND}
    with pytest.raises(SourceError, match=r"x:7: .*; got 'calm:v1'; allowed: "):
        find_new_documents({7: FIRST.model_copy(update={"display_name": "Other"})}, there, "x")


def test_of_many_faults_in_a_line_the_first_are_reported() -> None:
    """A line of 60,000 faulty traits was read for half a minute, and told as 5 MB."""
    for faulty in ({f"t{n}": [] for n in range(5_000)}, {"x": 1}):
        keys = {f"k{n}": 1 for n in range(5_000)} if "x" in faulty else {}
        line = json.dumps({**json.loads(GOOD), **keys, "traits": faulty})
        with pytest.raises(SourceError) as error:
            read_document_lines("persona", line.encode(), "in.jsonl")
        assert len(str(error.value)) < 5_000
    assert "and 4,980 more" in str(error.value)
