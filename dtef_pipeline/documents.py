"""YAML files that people write: read with unique keys, and checked part by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, model_validator

from dtef_pipeline.errors import ConfigError


class Part(BaseModel):
    """No unknown key, no infinity, no guessing of types; a key without a value is a key that was not given."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _given(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        return {key: value for key, value in values.items() if value is not None or key == "temperature"}


class UniqueKeys(yaml.SafeLoader):
    """YAML in which a key said twice in one mapping is an error instead of a silent overwrite."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is given twice", key_node.start_mark)
            if key_node.tag != "tag:yaml.org,2002:merge":
                seen.add(key)
        return super().construct_mapping(node, deep)


def mapping(value: Any, where: str) -> dict[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: expected a mapping of names, got {type(value).__name__} {str(value)[:60]!r}")
    return value
