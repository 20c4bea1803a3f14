"""What a family passes to the engine: the settings of its runs, and its stages."""
