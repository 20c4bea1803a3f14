"""Evaluations requested over HTTP, as Dagster runs."""
