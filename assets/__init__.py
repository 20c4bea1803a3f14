"""The DAG: one thin file per stage, with its schedules, checks and partitions."""
