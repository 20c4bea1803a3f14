"""What surveys call the things that boards and drift are about."""

from dtef_pipeline.report.stored_rows import Names
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.drift_subject import SUBJECT

NAMES = Names(
    place={"round": "Round", "segment": "Segment"},
    asked={"context_level": "Context", "condition": "Asked as"},
    usual={"condition": BlueprintOptions().condition},
    part="segment",
    cell="pair",
    reference=LEAVE_ONE_OUT,
    subject=SUBJECT,
)
