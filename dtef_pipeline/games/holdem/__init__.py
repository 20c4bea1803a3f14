"""Fixed-limit Texas hold'em for two: `poker/limit-holdem`."""
