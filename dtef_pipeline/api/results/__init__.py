"""Results of the runs of an evaluation: metrics, costs and traces of any family."""
