"""The scorers of Socioscope's types: yes or no, one or many values of a list, one or many of given options, yes or no with a reason."""
