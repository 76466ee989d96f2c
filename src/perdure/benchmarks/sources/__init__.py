"""From raw files to checked arrays: where data lie, how they are read, how what was built is kept."""
