"""Scorers of Socioscope's types: yes or no, one or several values of a list, one or several of given options, yes or no with a reason."""
