"""Runs programs that models wrote, kept apart from this machine and from the tests that judge them."""
