"""The qa family: a question with an expected answer, and a scorer chosen by the question's type."""
