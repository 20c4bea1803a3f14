"""What is asked of questions with expected answers every night: the section `qa` of the panel file. Without suites and parts: nothing.

qa:
  suites: [gsm8k]
  parts: ["mmlu/high_school_*"]
  models: [gpt-4.1-mini]
  limit: 50
  judge: gpt-4.1-mini
  sample_rate: 1
  max_cost_usd: 5
  role_budgets: {judge: {max_cost_usd: 2}}
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dtef_pipeline.documents import read_document
from dtef_pipeline.qa.anchored_answers import ANCHORS_KEPT
from dtef_pipeline.qa.asked_parts import QA_PANEL_SECTION, QaAsked

_QA_SWITCHES = (
    *("few_shot_as", "sample_rate", "daily_budget", "allow_unpriced", "sandbox", "timeout_s", "strict", "penalty", "senses"),
)


def _sandbox_level(value: Any) -> Any:
    """YAML takes a bare off for false."""
    return "off" if value is False else value


class QaPanel(QaAsked):
    """What a night asks."""

    judges: Annotated[str, Field(min_length=1)] | None = None
    """File with the block `arbiter`, in place of the shipped judges.yaml; a path from the folder of the panel file."""
    sandbox: (
        Annotated[Literal["auto", "sandlock", "bwrap", "unshare", "rlimits", "off"], BeforeValidator(_sandbox_level)] | None
    ) = None
    """Isolation that code is run in; none: as DTEF_SANDBOX says."""
    trust_answers: bool | None = None
    anchors: Annotated[int, Field(ge=0)] = ANCHORS_KEPT
    """How many judged answers the judge is shown again, so that a drift of the judge is told apart from one of models."""
    max_cost_usd: Annotated[float, Field(ge=0)] | None = None
    """What all stages of a night may spend together, the anchors included."""
    max_calls: Annotated[int, Field(ge=0)] | None = None

    @property
    def bounds(self) -> dict[str, Any]:
        return self._told(("max_cost_usd", "max_calls"))

    @property
    def switches(self) -> dict[str, Any]:
        """How answers are judged, run and scored, by the names of the settings of `dtef qa run`; those that have a value."""
        return self._told(_QA_SWITCHES)

    def anchors_config(self, snapshot: str) -> dict[str, dict[str, Any]]:
        """Configuration of `qa_anchors`, by its name; empty where the panel asks for no anchors."""
        if not self.anchors:
            return {}
        return {"qa_anchors": {**self._asking(snapshot), **self._arbiter(), "n": self.anchors}}

    def _arbiter(self) -> dict[str, Any]:
        return {**({"judges_file": self.judges} if self.judges else {}), **super()._arbiter()}


def load_qa_panel(path: Path) -> QaPanel | None:
    """The section of a panel file; None where it has none. Raises ConfigError with file, line, what arrived and what is allowed."""
    panel = read_document(path, "panel file", [QA_PANEL_SECTION]).section(QA_PANEL_SECTION, QaPanel)
    if panel is None or not panel.judges:
        return panel
    return panel.model_copy(update={"judges": str(path.parent.absolute() / panel.judges)})
