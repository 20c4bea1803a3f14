"""The pages of rubrics on the site."""
