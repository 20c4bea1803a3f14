"""What the words mean and how the numbers are made: no Dagster, no network, no clock, no environment."""
