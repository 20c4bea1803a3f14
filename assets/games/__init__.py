"""The games family in Dagster."""
