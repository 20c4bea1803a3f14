"""Scores from votes on responses of any family: what Dagster runs."""
