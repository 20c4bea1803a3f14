"""Dagster definitions of scores from votes on responses of any family."""
