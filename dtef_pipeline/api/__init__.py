"""The HTTP API and its pages: operators start evaluations and watch them, reviewers vote. An edge, like the command line."""
