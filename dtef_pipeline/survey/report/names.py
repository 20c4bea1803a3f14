"""What surveys call the things that boards and drift are about."""

from dtef_pipeline.report.names import Names
from dtef_pipeline.survey.blueprint.options import BlueprintOptions

NAMES = Names(
    place={"round": "Round", "segment": "Segment"},
    asked={"context_level": "Context", "condition": "Asked as"},
    usual={"condition": BlueprintOptions().condition},
    way="context {context_level}",
    whole_way="context {context_level}, asked as {condition}",
    item="question",
    part="segment",
    cell="pair",
)
