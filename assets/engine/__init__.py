"""Makes assets, checks, jobs and sensors of the records of families."""
