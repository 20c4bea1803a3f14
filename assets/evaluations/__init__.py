"""Evaluations that were asked for over HTTP, as Dagster runs."""
