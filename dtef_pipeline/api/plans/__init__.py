"""What an evaluation that is asked for over HTTP comes to: its manifest is checked, and becomes a run of Dagster."""
