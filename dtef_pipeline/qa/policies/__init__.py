"""Routing policies, replayed over stored scores: which model would have been asked for each item, how good it was and what it cost."""
