"""Plans of evaluations requested over HTTP: a manifest is checked and becomes a Dagster run."""
