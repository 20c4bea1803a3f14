"""Execution of programs written by models, isolated from this machine and the tests that judge them."""
