"""The default random seed."""

SEED = 20_261_121
"""Unless another is given."""
