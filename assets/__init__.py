"""The DAG: one thin file per stage, and what schedules, checks and partitions them."""
