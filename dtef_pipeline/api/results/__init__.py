"""What the runs of an evaluation came to: metrics, costs and traces of any family."""
