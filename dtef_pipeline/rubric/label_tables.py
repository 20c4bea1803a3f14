"""The tables of people's labels and of anchors: what was drawn, what was said, and what scores come to by it."""

from __future__ import annotations

import pyarrow as pa

from dtef_pipeline.rubric.space import ITEM_KEYS
from dtef_pipeline.rubric.tables import CONVERSATION, RUBRIC_POINTS
from dtef_pipeline.rubric.validity_tables import RUBRIC_CORRECTED, RUBRIC_DRAWN, RUBRIC_KNOWN_CLASSES
from dtef_pipeline.tables import field

_DRAW_OF_LABELS = field(
    "draw_id", pa.string(), "Hash of a draw of prompts to be labelled: equal for the same draw of the same tables"
)
_POINT_FIELDS = tuple(RUBRIC_POINTS.field(name) for name in ITEM_KEYS)
_LABEL_ITEM = field("item", pa.string(), "Hash of the prompt, the response's text and the criterion")

RUBRIC_LABEL_DRAWS = pa.schema(
    [
        _DRAW_OF_LABELS,
        field("drawn_at", pa.timestamp("us", tz="UTC"), "Time of the draw"),
        field("imported", pa.bool_(), "Flag: true once labels of the draw's sheet were imported, from when on the draw counts"),
        *RUBRIC_DRAWN,
    ]
)
"""One row per draw and prompt that could have been drawn to be labelled."""

RUBRIC_LABEL_ITEMS = pa.schema([_DRAW_OF_LABELS, *_POINT_FIELDS, _LABEL_ITEM])
"""One row per draw and point that a label of its sheet is about."""

_AFTER_PROMPTS_NEEDED = RUBRIC_CORRECTED.get_field_index("prompts_needed") + 1
RUBRIC_CORRECTED_ROWS = pa.schema(
    [
        field("blueprint", pa.string(), "Id of the blueprint, from its path: / is written __; null: over all blueprints"),
        *list(RUBRIC_CORRECTED)[:_AFTER_PROMPTS_NEEDED],
        field(
            "labels_needed",
            pa.int64(),
            "Labels to give, of all models, for the interval of the score on these very prompts to be .06 wide; null: too few labels to say",
        ),
        *list(RUBRIC_CORRECTED)[_AFTER_PROMPTS_NEEDED:],
    ]
)
"""One row per model over all blueprints, then one per blueprint and model."""

RUBRIC_ANCHOR_ITEMS = pa.schema(
    [
        *_POINT_FIELDS,
        _LABEL_ITEM,
        field("criterion_id", pa.string(), "Hash of what is judged: kind, text, function and its argument"),
        field("text", pa.string(), "Response's text as judges see it"),
        field("criterion", pa.string(), "Criterion that is labelled, as judges see it"),
        field("messages", CONVERSATION, "Conversation without the system prompt; a null text is a turn that the model writes"),
        field("criteria", pa.list_(pa.string()), "All criteria in words of the prompt, for judges that see the list"),
        field("seed", pa.int64(), "Seed of the choice"),
    ]
)
"""One row per anchor: a stored response and a criterion that judges are shown again and again, whatever became of the blueprint."""

RUBRIC_CORRECTIONS = {"rubric_corrected": RUBRIC_CORRECTED_ROWS, "rubric_known_classes": RUBRIC_KNOWN_CLASSES}
"""By name: what follows from the labels."""
