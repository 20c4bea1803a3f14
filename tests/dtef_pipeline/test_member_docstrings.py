"""Members of models are described by what stands below them, when a schema is made and not before."""

from __future__ import annotations

from pydantic import Field

from dtef_pipeline.documents import Part, member_docstrings


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
