"""Faults in YAML files are named all at once, each with file, line and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from dtef_pipeline.documents import Part, member_docstrings, read_document
from dtef_pipeline.errors import ConfigError


class Ball(Part):
    name: str
    size: Annotated[int, Field(ge=1)] = 1
    colour: str | None = "red"


class Box(Part):
    balls: list[Ball] = Field(default=[])
    named: dict[str, Ball] = Field(default={})


def read(tmp_path: Path, text: str, members: dict[str, str] | None = None) -> Box:
    path = tmp_path / "box.yaml"
    path.write_text(text, encoding="utf-8")
    return read_document(path, "box file", Box.model_fields, members).validate_as(Box)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            "named:\n  a: {name: x\n  b: 1\n",
            3,
            "while parsing a flow mapping that begins in line 2: expected ',' or '}', but got ':'; close the bracket",
        ),
        ("named: {}\nballs: []\nnamed: {}\n", 3, "the key 'named' is given twice"),
        ("balls: []\n? [a, b]\n: 1\n", 2, "['a', 'b'] is not a key"),
        (
            "balls:\n- {name: 2026-13-01}\n",
            2,
            "2026-13-01 is not a date: month must be in 1..12; allowed: a date such as 2026-03-01",
        ),
        ("balls: []\nnamed: '\x01'\n", 2, r"the character '\x01' is not allowed in YAML"),
        ("- balls\n", 1, "got ['balls']; allowed: a mapping with balls, named"),
    ],
)
def test_what_is_no_yaml_is_named_by_file_and_line_and_without_what_the_parser_adds(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'box.yaml'}:{line}: not a readable box file: {said}")
    assert "unicode string" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("boxes: 1\n", "1: boxes: unknown key; known: balls, named"),
        ("balls:\n- {name: a}\n- {name: b, weight: 1}\n", "3: ball 'b': weight: unknown key; known: name, size, colour"),
        ("balls:\n- size: 0\n  name: a\n", "2: ball 'a': size: got 0; allowed: 1 or more"),
        ("balls:\n- {name: a}\n- {size: 2}\n", "3: ball 2: name: is missing"),
        ("balls: [5]\n", "1: ball 1: got 5; allowed: a mapping"),
        ("named:\n  a:\n    name: 5\n", "3: named.a.name: got 5; allowed: text"),
    ],
)
def test_a_fault_is_named_by_line_part_and_field_with_what_arrived_and_what_is_allowed(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text, {"balls": "ball"})
    assert str(caught.value) == f"{tmp_path / 'box.yaml'}:{said}"


def test_all_faults_are_reported_at_once_each_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"box\.yaml:2: .*got 0.*; .*box\.yaml:3: .*is missing"):
        read(tmp_path, "balls:\n- {name: a, size: 0}\n- {size: 1}\n")


def test_a_long_value_is_reported_by_its_beginning(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, f"balls: {'x' * 5000}\n")
    assert len(str(caught.value)) < 400


def test_a_key_without_a_value_was_not_given_unless_null_is_one_of_its_values(tmp_path: Path) -> None:
    (ball,) = read(tmp_path, "named:\nballs:\n- {name: a, size: , colour: }\n").balls
    assert (ball.size, ball.colour) == (1, None)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: not a readable box file: .*No such file"):
        read_document(tmp_path / "none.yaml", "box file", [])


def test_a_document_that_is_read_again_is_not_changed_with_the_first() -> None:
    text = "models: {a: {draws: [1]}}"
    first, again = (read_document(text, "model file", ["models"]) for _ in range(2))
    first.values["models"]["a"]["draws"].append(2)
    assert again.values == read_document(text, "model file", ["models"]).values == {"models": {"a": {"draws": [1]}}}


class Inner(Part):
    size: int
    """How large
    it is."""


class Outer(Inner):
    """A model."""

    inner: Inner
    """What is in it."""
    stated: int = Field(description="Said by the field.")
    """Not said."""
    silent: int
    renamed: int = Field(alias="re-named")
    """Called otherwise outside."""


def test_members_are_described_by_the_docstrings_below_them() -> None:
    members = Outer.model_json_schema()["properties"]
    assert members["inner"] == {"$ref": "#/$defs/Inner", "description": "What is in it."}
    assert members["size"]["description"] == "How large\nit is."
    assert members["stated"]["description"] == "Said by the field."
    assert "description" not in members["silent"]
    assert members["re-named"]["description"] == "Called otherwise outside."


def test_no_source_is_read_before_a_schema_is_made() -> None:
    """Every command read the source of every model at its start."""
    assert Outer.model_fields["inner"].description is None
    assert Outer.model_fields["stated"].description == "Said by the field."


def test_a_model_that_was_not_written_in_a_file_has_none() -> None:
    made = type("Made", (Part,), {"__annotations__": {"size": int}, "__module__": __name__})
    assert member_docstrings(made) == {}
    assert "description" not in made.model_json_schema()["properties"]["size"]
