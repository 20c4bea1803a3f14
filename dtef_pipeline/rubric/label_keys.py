"""What tells points apart that labels are about. By itself, because every command looks at the tables that have these columns."""

ITEM_KEYS = (
    "blueprint",
    "snapshot",
    "prompt",
    "model",
    "model_variant",
    "temperature",
    "system_index",
    "draw",
    "block",
    "path",
    "position",
)
