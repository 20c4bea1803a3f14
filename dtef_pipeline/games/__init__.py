"""The games family: scenarios that players play turn by turn in text, and the results."""
