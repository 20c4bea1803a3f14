"""The names of the assets over all partitions, by family, and of the report.

They are constants, so that a command imports only the modules of its own family.
"""

from dtef_pipeline.families import PLUGIN_FAMILIES

REPORT = "report"
"""The site over all families: the asset, and its folder in the warehouse. Made after each family's roll-ups."""
BOARD_NAMES = ["leaderboard", "breakdowns", "comparisons", "responsiveness", "segment_gaps", "reliability"]
ROLL_UP_NAMES = [*BOARD_NAMES, "survey_costs", "survey_drift", REPORT]
QA_ROLL_UP_NAMES = ["qa_board", "qa_costs", "qa_validity", "qa_drift", REPORT]
GAMES_ROLL_UP_NAMES = ["persona_results", "games_costs", "games_drift", REPORT]
PREFERENCE_ROLL_UP_NAMES = ["preference_scores"]
RUBRIC_ROLL_UP_NAMES = [
    *(f"rubric_{name}" for name in ("board", "corrected", "champions", "agreement", "validity", "drift", "costs")),
    REPORT,
]
FAMILY_ROLL_UPS = {
    "survey": ROLL_UP_NAMES,
    "rubric": RUBRIC_ROLL_UP_NAMES,
    "qa": QA_ROLL_UP_NAMES,
    "games": GAMES_ROLL_UP_NAMES,
    **{family.name: family.roll_ups for family in PLUGIN_FAMILIES},
}
"""Roll-up names by family."""
