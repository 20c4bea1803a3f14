"""A variant is read back as the model it stands for."""

from __future__ import annotations

import pytest

from dtef_pipeline.asking.variants import spec_of


@pytest.mark.parametrize(
    "variant", ["openai/gpt[max_tokens=256,temperature=0]", "openai/x", "local/smollm2-135m[temperature=0]"]
)
def test_a_variant_is_read_as_the_model_it_stands_for(variant: str) -> None:
    spec = spec_of("name", variant)
    assert spec is not None
    assert spec.variant == variant
    assert spec_of("name", "strange[x]") is None
