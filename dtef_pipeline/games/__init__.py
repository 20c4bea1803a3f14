"""The games family: scenarios that players play turn by turn, in words, and what came of it."""
