"""People's blind votes on pairs of responses, and the scores that follow from them. It serves every family."""
