"""The configuration that all stages share which ask models: the snapshot, and what asking may cost."""

import dagster as dg
from pydantic import Field, ValidationError, field_validator

from dtef_pipeline.asking.models import Budget
from dtef_pipeline.asking.snapshot_label import LABEL_WORDS, require_safe
from dtef_pipeline.documents import in_one_line
from dtef_pipeline.errors import ConfigError


class AskingConfig(dg.Config):
    """In which snapshot models are asked, and what that may cost."""

    snapshot: str = Field(default="base", description=f"Label of this evaluation pass: base, a date, or {LABEL_WORDS}.")
    max_cost_usd: float | None = Field(default=None, ge=0, description="US dollars this run may spend.")
    max_calls: int | None = Field(default=None, ge=0, description="Calls this run may send, retries included.")
    max_tokens: int | None = Field(default=None, ge=0, description="Tokens this run may use, of prompts and responses.")
    budgets: dict[str, dict[str, float]] = Field(
        default={},
        description="By model name, what the run may use of it, in place of the models file's: max_cost_usd, max_calls, max_tokens.",
    )

    @field_validator("snapshot")
    @classmethod
    def _is_label(cls, snapshot: str) -> str:
        return require_safe(snapshot)

    @property
    def budget(self) -> Budget:
        return Budget(max_cost_usd=self.max_cost_usd, max_calls=self.max_calls, max_tokens=self.max_tokens)

    @property
    def budgets_of_models(self) -> dict[str, Budget]:
        """By name of the model. Raises ConfigError for a budget that none can be."""
        try:
            return {name: Budget.model_validate(limits) for name, limits in self.budgets.items()}
        except ValidationError as error:
            raise ConfigError(f"budgets: {in_one_line(error, Budget)}") from None
