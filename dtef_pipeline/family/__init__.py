"""What a family hands to the engine: the settings of its runs, and its stages."""
