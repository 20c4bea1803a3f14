"""The stages of the games family: what Dagster runs."""
