"""Evaluations as they are asked for, wait, run and end."""
