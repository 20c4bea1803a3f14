"""The seed of what is drawn."""

SEED = 20_261_121
"""Unless another is given."""
