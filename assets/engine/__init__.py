"""Builds assets, checks, jobs and sensors from the records of families."""
