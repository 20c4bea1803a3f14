"""How votes become scores: the section `preference` of the panel file, all of it optional:

preference:
  ties: davidson
  prior_l2: 0.01
  weight: confidence
  control: length
  items: ["mmlu/*"]
  no_own_judge: true
  without_leak_risk: true
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dtef_pipeline.documents import Part, read_document
from dtef_pipeline.preference.vote_fit import PreferenceOptions

PREFERENCE_SECTION = "preference"


class VoteSettings(Part):
    """Which votes count, and how, in `dtef preference fit` and in the table `preference_scores`."""

    ties: Literal["half", "davidson", "drop"] = "half"
    """Half a win of each, an outcome with a parameter of its own, or nothing."""
    prior_l2: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """Penalty prior_l2 * sum(beta^2): with one every player has a finite score."""
    weight: Literal["confidence"] | None = None
    """A vote of confidence c counts c / 5. Judges give none: their votes count 1."""
    control: Literal["length"] | None = None
    """Players are compared as if their texts were equally long."""
    items: list[Annotated[str, Field(min_length=1)]] = []  # noqa: RUF012 - pydantic copies it
    """Only votes on items that fit one of these patterns; none: all."""
    no_own_judge: bool = False
    """Whether votes of a judge on responses of its own maker are left out."""
    without_leak_risk: bool = False
    """Whether pairs are left out in whose texts a name stood, which may tell who wrote them."""

    @property
    def options(self) -> PreferenceOptions:
        return PreferenceOptions(self.ties, self.prior_l2, self.weight, self.control)


def load_vote_settings(path: Path) -> VoteSettings | None:
    """The section of a panel file; None where it has none. Raises ConfigError with file, line, what arrived and what is allowed."""
    return read_document(path, "panel file", [PREFERENCE_SECTION]).section(PREFERENCE_SECTION, VoteSettings)
