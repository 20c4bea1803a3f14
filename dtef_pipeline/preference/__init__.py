"""People's and judges' blind votes on pairs of responses, and the scores computed from them, for every family."""
