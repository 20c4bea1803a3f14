"""The qa family in Dagster: its stages per part of a suite, its roll-ups and jobs."""
