"""Votes of people and judges: the store, its files, the pairs that wait."""
