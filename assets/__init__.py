"""The DAG: one thin file a stage, and what schedules, checks and partitions them."""
