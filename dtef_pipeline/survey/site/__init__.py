"""The pages of this family on the site."""
