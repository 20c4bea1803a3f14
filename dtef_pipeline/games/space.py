"""The partitions of the games family: one per scenario of a league."""

from __future__ import annotations

from dtef_pipeline.keys import Space

LEAGUE_SPACE = Space("league_scenario", first="league", second="scenario", order=str.casefold)
"""One partition is one scenario: `solitaire/thirteen`, `poker/limit-holdem`, `negotiation/allocation`."""
