"""Solitaire with thirteen cards of one suit: the table, the shortest solutions, and the scenario."""
