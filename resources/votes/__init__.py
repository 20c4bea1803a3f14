"""Votes of people and judges: the store, its files, the waiting pairs."""
