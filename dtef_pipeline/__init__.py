"""The rules of the project and how numbers are computed: no Dagster, no network, no clock, no environment."""
